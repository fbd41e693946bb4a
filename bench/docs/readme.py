"""The parts of README.md and of the page of findings that are made from published runs."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.docs.findings import FINDINGS, findings_list, findings_table, named_runs
from bench.docs.marked import with_part
from reports.blocks import Figure, Section
from reports.folder import RunFolder, read_folder
from reports.longer_inputs import longer_inputs_section
from reports.markdown import escape, with_code
from reports.numbers import least_to_most
from reports.sections.quotable import quotable_section
from reports.state_size import state_section

PUBLISHED = Path("results", "published")
FLAGSHIP = "flagship.parquet"
FLAGSHIP_FIGURE = ("transduction[rule=copy]", "docs/images/copying.svg")
"""Task whose drawing is taken, and where it is kept."""
FRESH = "fresh_seeds.parquet"
"""Run on seeds by which no size, length or learning rate was chosen."""
STATE_CAPTION = (
    "Mean over seeds, with its 95% interval or the extremes of the seeds, against the bytes that "
    "one sequence leaves behind after the longest one of training. No variant with an equal or "
    "smaller state has a better mean than one on the line. The report says which variants are left "
    "out."
)
"""In the place of the caption of the report, which has all rules."""


def update_readme(root: Path, *, write: bool = True) -> list[str]:
    """Bring the marked parts of README.md and of the page of findings up to date.

    Args:
        root: The checkout.
        write: Whether to write the files; otherwise they are only compared.

    Returns:
        Names of the parts that were out of date, and of the drawings.
    """
    changed: list[str] = []
    files: dict[str, str] = {}
    for page, parts in PARTS.items():
        text = (root / page).read_text(encoding="utf-8")
        for name, made in parts.items():
            part = made(root)
            new = with_part(text, name, part.text, name_of_page=page)
            changed += [f"{name} of {page}"] if new != text else []
            text = new
            files |= part.drawings
        files[page] = text
    for place, wanted in files.items():
        path = root / place
        if path.exists() and path.read_text(encoding="utf-8") == wanted:
            continue
        changed += [] if place in PARTS else [place]
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
    return changed


class Part(NamedTuple):
    """What stands between two markers."""

    text: str
    drawings: Mapping[str, str]
    """Place of each drawing that the text shows, from the checkout on, and what it holds."""


LIMITS = (
    "Scores are means of {} paired seeds with 95% t intervals, or with the lowest and the highest "
    "seed where an interval would leave the range of the metric. Networks have widths of 32 to 256 "
    "and train for seconds to minutes of CPU time, in `flagship` up to an hour, so nothing here "
    "speaks of large models.\n\n"
    "- `scaled_dot`, the baseline, has no positions. Uniform attention reads all keys with equal "
    "weights. `bench show NAME` says what a name is and which paper it comes from.\n"
    "- The first length that a test names is the longest of training.\n"
    "- Scores on longer inputs are optimistic, because the learning rate, the last step and the "
    "checkpoint were chosen on validation data that has such lengths; `offset` and `induction` are "
    "exceptions.\n"
    "- Scores at one length of these two, and shares of unknown words, are parts of a test and "
    "were not tested by themselves."
)


def folders(root: Path) -> dict[str, RunFolder]:
    """The runs that findings are of, by the stems of their packs."""
    return {run: read_folder(root / PUBLISHED / f"{run}.parquet") for run in sorted(named_runs())}


def headlines(root: Path) -> Part:
    """Results with their means, one sentence each."""
    return Part(findings_list(folders(root)), {})


def findings(root: Path) -> Part:
    """Results with their intervals, and how far they reach."""
    known = folders(root)
    limits = LIMITS.format(least_to_most(seeds_of({one.run for one in FINDINGS}, known)))
    return Part(f"{limits}\n\n{findings_table(known)}", {})


def seeds_of(runs: Collection[str], known: Mapping[str, RunFolder]) -> list[int]:
    """How many seeds each trained network of some runs has."""
    trained = [
        (run, one.cell)
        for run in runs
        for one in known[run].of_kind("quality")
        if one.record.status == "ok"
    ]
    found = Counter((run, one.task, one.backbone, one.slot, one.variant) for run, one in trained)
    return [*found.values()]


def figures(root: Path) -> Part:
    """Drawings of strings longer than those of training, and of scores against memory."""
    task, place = FLAGSHIP_FIGURE
    section = quotable_section(read_folder(root / PUBLISHED / FLAGSHIP))
    (drawn,) = (one for one in _figures(section) if task in one.title)
    first = Part(f"{_image(drawn, place)}{_caption(drawn)}", {place: drawn.svg})
    second = _of_fresh_seeds(
        root, state_section, "recall", "docs/images/state.svg", caption=STATE_CAPTION
    )
    return Part(f"{first.text}\n\n{second.text}", {**first.drawings, **second.drawings})


def lengths(root: Path) -> Part:
    """Drawings of scores against length, for a page of `docs`."""
    part = _of_fresh_seeds(root, longer_inputs_section, "induction", "docs/images/positions.svg")
    return part._replace(text=part.text.replace("](docs/", "]("))


def _of_fresh_seeds(
    root: Path,
    section: Callable[[RunFolder], Section | None],
    task: str,
    name: str,
    *,
    caption: str = "",
) -> Part:
    """A drawing of a section; one that has several parts is shown whole.

    Args:
        root: The checkout.
        section: Of a report.
        task: Its name is in the title of the drawing.
        name: Where the drawing is kept.
        caption: In the place of that of the report.
    """
    run = read_folder(root / PUBLISHED / FRESH)
    seeds = sorted({one.cell.seed for one in run.of_kind("quality")})
    source = (
        f"Run `{Path(FRESH).stem}`: seeds {seeds[0]} to {seeds[-1]}, by which no size, length or "
        "learning rate was chosen."
    )
    found = [one for one in _figures(section(run)) if task in one.title]
    parts, drawings = [], {}
    for at, figure in enumerate(found, start=1):
        place = name if at == 1 else name.replace(".svg", f"-{at}.svg")
        drawings[place] = figure.svg
        named = replace(figure, caption=caption or figure.caption)
        told = f"{_caption(named)} {source}" if at == 1 else f"<br>**Part {at} of {len(found)}.**"
        parts.append(_image(figure, place) + told)
    return Part("<br>".join(parts), drawings)


def _figures(section: Section | None) -> list[Figure]:
    blocks = () if section is None else section.blocks
    return [one for one in blocks if isinstance(one, Figure)]


def _image(figure: Figure, place: str) -> str:
    return f"![{escape(figure.description)}]({place})"


def _caption(figure: Figure) -> str:
    """Title and caption, below a drawing."""
    return f"<br>**{escape(figure.title.rstrip('.'))}.** {with_code(figure.caption)}"


PARTS: dict[str, dict[str, Callable[[Path], Part]]] = {
    "README.md": {"findings": headlines, "figures": figures},
    "docs/findings.md": {"findings": findings, "lengths": lengths},
}
"""Pages, the name of each marked part, and what writes it."""
