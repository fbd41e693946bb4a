"""The table of contents of a Markdown file: links to its headings, as GitHub names them."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from reports.blocks import SampleBlock, Section, StepsBlock, TableBlock

LISTED = "ranked-"
"""Start of the keys of the tables that have a line of their own: those of the comparisons."""


def contents(title: str, sections: Sequence[Section], escape: Callable[[str], str]) -> str:
    """Links to every section, and below it to its comparisons; empty without any.

    Args:
        title: Of the file, whose heading comes first.
        sections: In the order of the file.
        escape: Makes plain text mean itself in Markdown.
    """
    seen, lines = Counter[str](), list[str]()
    for level, text, listed in [(1, title, False), *_headings(sections)]:
        slug = heading_name(text)
        count = seen[slug]
        seen[slug] += 1
        if listed:
            target = f"{slug}-{count}" if count else slug
            lines.append(f"{'  ' * (level - 2)}- [{escape(text)}](#{target})")
    return "\n".join(lines)


def heading_name(heading: str) -> str:
    """The name that GitHub gives to a heading.

    >>> heading_name("recall (snail): token accuracy"), heading_name("oov_copy[decode=true]")
    ('recall-snail-token-accuracy', 'oov_copydecodetrue')
    """
    return re.sub(r"[^\w\- ]", "", " ".join(heading.lower().split())).replace(" ", "-")


def _headings(sections: Sequence[Section]) -> Iterator[tuple[int, str, bool]]:
    """Level and text of each heading in the order of the file, and whether it has a line."""
    for section in sections:
        yield 2, section.title, True
        for block in section.blocks:
            if isinstance(block, TableBlock):
                if not block.folded:
                    yield 3, block.title, block.key.startswith(LISTED)
            elif isinstance(block, SampleBlock | StepsBlock):
                yield 3, block.title, False
