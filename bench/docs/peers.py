"""The page of peers: how far our numbers are from those of public reference code."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.api.selector import parse
from reports.markdown import code_span, escape, with_code
from reports.numbers import counted
from reports.prose import join

STORED = Path("results", "published", "peers.json")
"""Where `make peers` stores what it measured."""
WITHOUT = Path("tests", "peers", "without_reference.txt")
"""Names for which we looked for a reference and found none, a line each."""
HEAD = (
    "Names that other people have written, too, are compared with their code: equal inputs and "
    "equal weights, on a CPU, output by output, and gradient by gradient where the other code has "
    "one. Each line is a test in `tests/peers/`. `make peers` installs the libraries beside the "
    "bench, compares, and stores what is printed here."
)
MEANING = (
    "The difference is the largest of all numbers of the outputs, or of all gradients; where a "
    "number above 1 occurs it is divided by the largest. In float64 the limit is 1e-10. It is 1e-5 "
    "in float32, which is used where the other code computes some of its steps in it."
)
PAGE = Path("results", "published", "peers.md")
"""The page in the repository; the site has the same one."""
COLUMNS = ("name", "reference", "compared", "in", "output", "gradient", "limit")


@dataclass(frozen=True, kw_only=True)
class PeerComparison:
    """One comparison with a reference, as its test found it."""

    variant: str
    """Our selector."""
    reference: str
    """The library or the model, with its version."""
    compared: str
    """What was computed by both."""
    precision: str
    """float32 or float64."""
    output: float
    """Largest difference of the outputs."""
    gradient: float | None
    """Largest difference of the gradients; None where the reference has none."""
    limit: float
    """What the test allows."""
    note: str = ""
    """What a reader must know: why the limit is wide, or where the reference differs."""
    commit: str = ""
    """That of our code, and whether files differed from it."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Which comparison it is, whatever was found and whichever version it was found with."""
        return self.variant, self.reference.rpartition(" ")[0], self.compared


def read_comparisons(path: Path) -> list[PeerComparison]:
    """Read the stored comparisons; none where nothing is stored."""
    if not path.is_file():
        return []
    return [PeerComparison(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def read_without(path: Path) -> list[str]:
    """Read the names that have no reference."""
    return path.read_text(encoding="utf-8").split() if path.is_file() else []


def store_comparisons(path: Path, found: Iterable[PeerComparison]) -> None:
    """Write comparisons over those that the file has of the same things, and keep the others."""
    known = {one.key: one for one in [*read_comparisons(path), *found]}
    lines = [json.dumps(asdict(known[key]), sort_keys=True) for key in sorted(known)]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def update_page(root: Path, *, write: bool = True) -> bool:
    """Bring the page of a checkout up to date; returns whether it was out of date."""
    path = root / PAGE
    wanted = peers_page(read_comparisons(root / STORED), read_without(root / WITHOUT))
    changed = not path.is_file() or path.read_text(encoding="utf-8") != wanted
    if write and changed:
        path.write_text(wanted, encoding="utf-8")
    return changed


def peers_page(found: Iterable[PeerComparison], without: Sequence[str] = ()) -> str:
    """The whole page.

    Args:
        found: The comparisons.
        without: Names for which no reference was found.
    """
    ordered = sorted(found, key=lambda one: one.key)
    lines = [f"| {' | '.join(COLUMNS)} |", "| " + " | ".join("---" for _ in COLUMNS) + " |"]
    lines += [line_of(one) for one in ordered]
    names = {parse(one.variant).name for one in ordered}
    references = {one.key[1] for one in ordered}
    told = counted(len(references), "reference")
    count = f"{len(ordered)} comparisons of {len(names)} names with {told}"
    count += f", by {_commits(ordered)}." if ordered else "."
    parts = ["# Other people's code", HEAD, MEANING, count, "\n".join(lines)]
    if without:
        names_without = ", ".join(code_span(name) for name in without)
        parts.insert(
            4,
            "No public package that computes the same on a CPU was found for "
            f"{names_without}; only their oracles hold them.",
        )
    return "\n\n".join(parts) + "\n"


def _commits(found: Sequence[PeerComparison]) -> str:
    """Which code was compared, with its comparisons where there were several."""
    counts = Counter(one.commit for one in found)
    if len(counts) == 1:
        return f"commit {code_span(*counts)}"
    return f"commits {join([f'{code_span(name)} ({n})' for name, n in counts.most_common()])}"


def line_of(one: PeerComparison) -> str:
    """One line of the table."""
    compared = with_code(one.compared) + (f". {with_code(one.note)}" if one.note else "")
    gradient = "none" if one.gradient is None else f"{one.gradient:.1e}"
    cells = (
        code_span(one.variant),
        escape(one.reference),
        compared,
        one.precision,
        f"{one.output:.1e}",
        gradient,
        f"{one.limit:.0e}",
    )
    return f"| {' | '.join(cells)} |"
