"""The folder that mkdocs builds: pages written by hand, pages of the root, and generated pages."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from bench.api.loading import load_package
from bench.cli.main import cli
from bench.docs.columns import columns_page
from bench.docs.commands import commands_page
from bench.docs.peers import STORED, WITHOUT, peers_page, read_comparisons, read_without
from bench.docs.tasks import tasks_page
from bench.docs.variants import variants_page
from reports.folder import read_folder

PUBLISHED = Path("results", "published", "quick.parquet")
"""The run whose scores and costs stand on the page of variants."""
REPORTS = "reports/published/"
DETAILS = "details.md"
"""Page with all tables of a report; it stays in the repository, because it is long."""
FROM_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "reports/published/README.md": "choices.md",
}
GENERATED = ("variants.md", "tasks.md", "commands.md", "columns.md", "peers.md")
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\\.)*)\]\((?P<target>[^)\s]+)\)")


def write_site(root: Path, out: Path) -> list[Path]:
    """Write every page of the documentation into a folder, which is made anew.

    Args:
        root: The checkout.
        out: A folder for the pages; what it held before is removed.

    Returns:
        The files written.
    """
    load_package("variants")
    load_package("tasks")
    shutil.rmtree(out, ignore_errors=True)
    pages = {f"docs/{path.relative_to(root / 'docs')}": path for path in _hand_written(root)}
    pages |= {name: root / name for name in FROM_ROOT if (root / name).is_file()}
    pages |= {str(path.relative_to(root)): path for path in _reports(root)}
    texts = {_place(name): path.read_text(encoding="utf-8") for name, path in pages.items()}
    known = {name: _place(name) for name in pages}
    known |= {f"docs/{name}": name for name in GENERATED}
    written = []
    for name in pages:
        at = _place(name)
        written.append(_write(out / at, linked(texts[at], name, known)))
    for name, text in _generated(root).items():
        written.append(_write(out / name, text))
    for folder in ("images", "javascripts"):
        if (root / "docs" / folder).is_dir():
            shutil.copytree(root / "docs" / folder, out / folder)
    for figures in (root / REPORTS).glob("*/figures"):
        shutil.copytree(figures, out / _place(str(figures.relative_to(root))))
    return written


def linked(text: str, source: str, known: Mapping[str, str]) -> str:
    """Point links to pages of the site; a link to a file that is no page becomes its text.

    Args:
        text: Markdown of one page.
        source: Its path in the checkout, by which its links are read.
        known: Paths in the checkout of all pages, and their paths in the site.
    """

    def replaced(match: re.Match[str]) -> str:
        target, _, part = match["target"].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match.group()
        asked = normpath(str(PurePosixPath(source).parent / target))
        part = f"#{part}" if part else ""
        if asked in known:
            place = relpath(known[asked], str(PurePosixPath(known[source]).parent))
            return f"{match['image']}[{match['text']}]({place}{part})"
        if asked.startswith("docs/images/") or (match["image"] and asked.startswith(REPORTS)):
            place = relpath(_place(asked), str(PurePosixPath(known[source]).parent))
            return f"{match['image']}[{match['text']}]({place})"
        return "" if match["image"] else f"{match['text']} (`{asked}` in the repository)"

    return _LINK.sub(replaced, text)


def _hand_written(root: Path) -> list[Path]:
    return sorted(path for path in (root / "docs").rglob("*.md") if path.name not in GENERATED)


def _reports(root: Path) -> list[Path]:
    return sorted(path for path in (root / REPORTS).glob("*/*.md") if path.name != DETAILS)


def _place(name: str) -> str:
    return FROM_ROOT.get(name, name.removeprefix("docs/").replace(REPORTS, "reports/"))


def _generated(root: Path) -> dict[str, str]:
    folder = read_folder(root / PUBLISHED)
    peers = peers_page(read_comparisons(root / STORED), read_without(root / WITHOUT))
    texts = (variants_page(folder), tasks_page(), commands_page(cli), columns_page(), peers)
    return {**dict(zip(GENERATED, texts, strict=True)), "adr/index.md": _decisions(root)}


def _decisions(root: Path) -> str:
    """A list of the decision records, by number."""
    lines = ["# Decisions", "One page a decision: what was decided, why, and what was considered."]
    found = sorted((root / "docs" / "adr").glob("[0-9]*.md"))
    heads = [path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for path in found]
    items = [f"- [{head}]({path.name})" for head, path in zip(heads, found, strict=True)]
    return "\n\n".join([*lines, "\n".join(items)]) + "\n"


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
