"""Drawings inside a page: they take its paper and ink, and share one style sheet."""

import re

from reports.figures.style import COLORS, INK, PAPER, REST, RULE, SOFT, STYLE_SHEET

_TAG = re.compile(r"<[^>]+>")
_STYLE = re.compile(r"<style.*?</style>\s*", re.DOTALL)
_INLINE = re.compile(r'(?<= )style="([^"]*)"')
_PANELS = re.compile(r'<svg class="panel" x="[^"]*" y="[^"]*" width="([^"]*)"')
_VARIABLES = (
    (PAPER, "paper"),
    (INK, "ink"),
    (SOFT, "soft"),
    (RULE, "rule"),
    (REST, "rest"),
    *((color, f"s{at}") for at, color in enumerate(COLORS[1:], start=1)),
)


class InlineDrawings:
    """Makes drawings fit for one page, and collects the style sheet that they need."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}

    def drawing(self, svg: str) -> str:
        """The drawing as markup of the page.

        Panels become drawings of their own, so that they wrap where a screen is narrow.

        Args:
            svg: A file as `reports.figures` makes it.

        """
        if 'class="chart"' not in svg[:200]:
            bare = _STYLE.sub("", svg)
            return _TAG.sub(lambda tag: self._themed(tag.group()), bare)
        head, _, body = svg.partition("<rect")
        title = re.search(r"<title[^>]*>(.*?)</title>", head)
        said = re.search(r"<desc[^>]*>(.*?)</desc>", head)
        assert title
        assert said
        body = body.partition("/>")[2].strip().removesuffix("</svg>").strip()
        body = _PANELS.sub(r'<svg class="panel" aria-hidden="true" width="\1"', body)
        label = f"{title.group(1)}. {said.group(1)}"
        role = f'role="img" aria-label="{label}"'
        width = re.search(r' width="([^"]*)"', head)
        assert width
        return f'<div class="chart" style="max-width:{width.group(1)}px" {role}>{body}</div>'

    def _themed(self, tag: str) -> str:
        """A tag of matplotlib with a class in place of its style."""
        return _INLINE.sub(lambda found: f'class="{self._class(found.group(1))}"', tag)

    def _class(self, style: str) -> str:
        compact = re.sub(r"\s*([:;])\s*", r"\1", style)
        return self._classes.setdefault(compact, f"x{len(self._classes)}")

    @property
    def style_sheet(self) -> str:
        """Rules for all drawings so far; colors of paper and ink are those of the page."""
        rules = "".join(f".{name}{{{style}}}" for style, name in self._classes.items())
        whole = f".chart{{& {STYLE_SHEET}}}{rules}"
        for color, name in _VARIABLES:
            whole = whole.replace(color, f"var(--{name})")
        return whole
