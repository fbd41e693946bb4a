"""The page that says what to choose, by all published runs."""

from pathlib import Path

from reports.all_runs import choices_in_short, choices_of_runs
from reports.folder import read_folder
from reports.markdown import table_text

PUBLISHED = Path("results", "published")
PAGES = Path("reports", "published")
PAGE = PAGES / "README.md"
RUNS = ("flagship", "multi30k", "modern", "quick", "families")
"""Runs that rank variants, in the order in which they stand."""
EQUALLY_LONG = ("quick", "families")
TITLE = """# What to choose

All runs are of small networks on a CPU; read [what the bench cannot show](../../docs/limits.md)
before you quote a number. The baseline, `scaled_dot`, is softmax attention without positions. Each
use of attention has one row here, of the first run that names a variant, in the order `flagship`,
`multi30k`, `modern`, then `quick` or `families`: of these two the one whose test compares more
variants, and of equally many the one with more seeds. No row is about long contexts: how fast they
are read is in [serving](serving/report.md), and scores at up to four times the length of training
are in the [findings](../../docs/findings.md). All runs and the rule are below.
"""
INTRODUCTION = """## Run by run

One row is what one run says of one use of attention: the variant that the rule below names, the
test and the numbers behind the choice, and what it costs. Runs of one use stand one below the
other, in the order `flagship`, `multi30k`, `modern`, `quick` and `families`. `flagship` trains
until validation gets no better or for 12,000 steps, minutes in most cases; `multi30k` trains for
four minutes of CPU time; the others train for seconds, some of their networks for up to five
minutes. Tests, sizes and variants differ between runs, so two of them may name different ones.
“Tied with” names, or counts, variants that are not significantly different from the one with the
best mean and that are significantly above uniform attention; they need not be equally good. Others
of the same rank are counted in brackets. A use is left out where no run has a variant above uniform
attention, and where all of its tests are pipeline checks. [How the rule works and what is
tested](../../docs/statistics.md#what-to-choose).
"""


def choices_page(root: Path) -> str:
    """The page, from the packs of a checkout."""
    runs = {name: read_folder(root / PUBLISHED / f"{name}.parquet") for name in RUNS}
    told, short = choices_in_short(runs, EQUALLY_LONG)
    tables = [table_text(table) for table in choices_of_runs(runs)]
    parts = [TITLE.strip(), told, table_text(short), INTRODUCTION.strip(), *tables]
    return "\n\n".join(parts) + "\n"


def update_choices(root: Path, *, write: bool = True) -> bool:
    """Bring the page up to date; returns whether it was out of date."""
    path, wanted = root / PAGE, choices_page(root)
    changed = not path.is_file() or path.read_text(encoding="utf-8") != wanted
    if write and changed:
        path.write_text(wanted, encoding="utf-8")
    return changed
