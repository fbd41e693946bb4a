"""The parts of README.md that are made from published runs, between markers."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.docs.findings import findings_table
from bench.docs.marked import with_part
from reports.blocks import Figure
from reports.folder import read_folder
from reports.longer_inputs import longer_inputs_section
from reports.markdown import escape, with_code
from reports.numbers import least_to_most
from reports.sections.quotable import quotable_section
from reports.state_size import state_section

PUBLISHED = Path("results", "published")
RUN = "quick.parquet"
MODERN = "modern.parquet"
FLAGSHIP = "flagship.parquet"
FLAGSHIP_FIGURE = ("transduction[rule=copy]", "docs/images/copying.svg")
"""Task whose drawing is taken, and where it is kept."""
FRESH = "fresh_seeds.parquet"
"""Run on seeds by which no size, length or learning rate was chosen."""
FRESH_FIGURES = (
    (state_section, "recall", "docs/images/state.svg"),
    (longer_inputs_section, "induction", "docs/images/positions.svg"),
)
"""Section of its report that draws, comparison that is taken, and where it is kept."""


def update_readme(root: Path, *, write: bool = True) -> list[str]:
    """Bring the marked parts of README.md up to date.

    Args:
        root: The checkout.
        write: Whether to write the file; otherwise it is only compared.

    Returns:
        Names of the parts that were out of date, and of the drawings.
    """
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8")
    changed: list[str] = []
    files: dict[str, str] = {}
    for name, made in PARTS.items():
        part = made(root)
        new = with_part(text, name, part.text)
        changed += [name] if new != text else []
        text = new
        files |= part.drawings
    for place, svg in files.items():
        path = root / place
        changed += [] if path.exists() and path.read_text(encoding="utf-8") == svg else [place]
    if write and changed:
        readme.write_text(text, encoding="utf-8")
        for place, svg in files.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(svg, encoding="utf-8")
    return changed


class Part(NamedTuple):
    """What stands between two markers."""

    text: str
    drawings: Mapping[str, str]
    """Place of each drawing that the text shows, from the checkout on, and what it holds."""


LIMITS = (
    "Scores are means of {} paired seeds with 95% t intervals, or with the lowest and the highest "
    "seed where an interval would leave the range of the metric. Networks have widths of 32 to 256 "
    "and train for seconds to minutes on a CPU, so nothing here speaks of large models. "
    "`scaled_dot`, the baseline, has no positions. Uniform attention reads all keys with equal "
    "weights. The first length that a test names is the longest of training. Scores on longer "
    "inputs are optimistic, because the learning rate, the last step and the checkpoint were "
    "chosen on validation data that has such lengths; `offset` and `induction` are exceptions. "
    "Scores at one length of these two, and shares of unknown words, are parts of a test and were "
    "not tested by themselves. `bench show NAME` says what a name is and which paper it comes "
    "from. Further limits are on [a page of their own](docs/limits.md)."
)


def findings(root: Path) -> Part:
    """Results with their numbers, and how far they reach."""
    runs = (RUN, MODERN, FLAGSHIP, FRESH)
    folders = {Path(run).stem: read_folder(root / PUBLISHED / run) for run in runs}
    quick, flagship = folders[Path(RUN).stem], folders[Path(FLAGSHIP).stem]
    trained = (one.cell for one in quick.of_kind("quality") if one.record.status == "ok")
    seeds = Counter((cell.task, cell.backbone, cell.slot, cell.variant) for cell in trained)
    limits = LIMITS.format(least_to_most(seeds.values()))
    task, place = FLAGSHIP_FIGURE
    section = quotable_section(flagship)
    blocks = () if section is None else section.blocks
    drawn = [one for one in blocks if isinstance(one, Figure) and task in one.title]
    shown = f"![{escape(drawn[0].description)}]({place}){_caption(drawn[0])}"
    text = "\n\n".join([limits, findings_table(folders), shown])
    return Part(text, {place: drawn[0].svg})


def _caption(figure: Figure) -> str:
    """Title and caption, below a drawing."""
    return f"<br>**{escape(figure.title.rstrip('.'))}.** {with_code(figure.caption)}"


def figures(root: Path) -> Part:
    """Drawings of memory and of positions; one that has several parts is shown whole."""
    shown: list[str] = []
    drawings: dict[str, str] = {}
    run = read_folder(root / PUBLISHED / FRESH)
    seeds = sorted({one.cell.seed for one in run.of_kind("quality")})
    source = (
        f"Run `{Path(FRESH).stem}`: seeds {seeds[0]} to {seeds[-1]}, by which no size, length or "
        "learning rate was chosen."
    )
    for drawn, task, name in FRESH_FIGURES:
        section = drawn(run)
        blocks = () if section is None else section.blocks
        found = [one for one in blocks if isinstance(one, Figure) and task in one.title]
        parts = []
        for at, figure in enumerate(found, start=1):
            place = name if at == 1 else name.replace(".svg", f"-{at}.svg")
            drawings[place] = figure.svg
            caption = f"<br>**Part {at} of {len(found)}.**"
            if at == 1:
                caption = f"{_caption(figure)} {source}"
            parts.append(f"![{escape(figure.description)}]({place}){caption}")
        shown.append("<br>".join(parts))
    return Part("\n\n".join(shown), drawings)


PARTS: dict[str, Callable[[Path], Part]] = {
    "findings": findings,
    "figures": figures,
}
"""Name of each marked part, and what writes it."""
