"""The parts of README.md that are made from published runs, between markers."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from reports.blocks import Figure, TableCell
from reports.choices import NONE_YET, TESTS
from reports.folder import RunFolder, read_folder
from reports.longer_inputs import longer_inputs_section
from reports.markdown import escape
from reports.numbers import least_to_most, plain
from reports.render import document
from reports.sections.quotable import quotable_section
from reports.state_size import state_section

PUBLISHED = Path("results", "published")
RUN = "quick.parquet"
MODERN = "modern.parquet"
FLAGSHIP = "flagship.parquet"
FLAGSHIP_FIGURE = ("transduction", "docs/images/copying.svg")
"""Task whose drawing is taken, and where it is kept."""
MODERN_FIGURES = (
    (RUN, state_section, "recall (transformer_decoder, layers=1)", "docs/images/state.svg"),
    (MODERN, longer_inputs_section, "induction", "docs/images/positions.svg"),
)
"""Run, section of its report that draws, comparison that is taken, and where it is kept."""
_PLACE = re.compile(r"\{([^{}]+)\/([^{}\/|]+)\|?([^{}]*)\}")
"""Task, variant and metric, by default that which ranks."""


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


def with_part(text: str, name: str, content: str) -> str:
    """The text with what stands between the two markers of a part replaced."""
    begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"README.md: the markers of the part {name!r} are missing")
    return (
        f"{before}{begin}\n{content}\n{end}{after}" if content else f"{before}{begin}{end}{after}"
    )


FINDINGS = (
    "- **Copy outputs write nearly all strings of the length of training; of longer ones three of "
    "four write more than plain attention, and none is ahead of a word-for-word program in every "
    "seed.** On `oov_copy`, one word in ten is outside the vocabulary, and `scaled_dot` has no "
    "way to write it. Of strings of 6 words, the longest of training, the copy outputs `copynet`, "
    "`pointer_generator` and `conv_copy` write shares of {oov_copy/copynet|sequence_accuracy}, "
    "{oov_copy/pointer_generator|sequence_accuracy} and {oov_copy/conv_copy|sequence_accuracy} "
    "without any error, `mha_roles` {oov_copy/mha_roles|sequence_accuracy}, `scaled_dot` "
    "{oov_copy/scaled_dot|sequence_accuracy}. Additive attention writes "
    "{oov_copy[decode=true]/unk_replacement|sequence_accuracy} if each unknown word is replaced "
    "afterwards by the source word with the largest weight (`unk_replacement`, in a comparison of "
    "its own). Of strings of 7 and 8 words, which decide the rank, `mha_roles`, one of whose "
    "heads points at words to copy, writes {oov_copy/mha_roles} of a string before its first "
    "error, `copynet` {oov_copy/copynet}, `conv_copy` {oov_copy/conv_copy}, `pointer_generator` "
    "{oov_copy/pointer_generator} (undecided), `unk_replacement` "
    "{oov_copy[decode=true]/unk_replacement} and `scaled_dot` {oov_copy/scaled_dot}. A program "
    "that translates word for word writes {oov_copy/word for word}.",
    "- **Attention by content alone does not count places.** On `offset`, `scaled_dot` without "
    "positions names {offset/scaled_dot} of the symbols right, no more than the uniform "
    "baseline ({offset/uniform}); with sinusoids or rotary positions it is {offset/rope}.",
    "- **Some location-based and monotonic mechanisms copy beyond the lengths of training.** On "
    "`transduction[rule=copy]`, trained on up to 8 symbols and tested on 10 and 12, the "
    "location-based `ntm_addressing` writes {transduction[rule=copy]/ntm_addressing} of a "
    "string before its first error and `location_aware` "
    "{transduction[rule=copy]/location_aware}, the monotonic `ssnt` "
    "{transduction[rule=copy]/ssnt} and `mma_h` {transduction[rule=copy]/mma_h}. `scaled_dot` "
    "writes {transduction[rule=copy]/scaled_dot}. The monotonic `raffel_monotonic` "
    "({transduction[rule=copy]/raffel_monotonic}) and `mocha` ({transduction[rule=copy]/mocha}) "
    "are not significantly different from it. Encoder and decoder are recurrent; softmax attention "
    "with positions of its own was not among the variants. A program that copies the source would "
    "score {transduction[rule=copy]/copy the source}; the question is whether attention learns it.",
    "- **With more pairs than in training, softmax attention still finds the values; small "
    "states and windows find fewer.** On `recall`, in one layer of width 32, trained on up to 8 "
    "pairs and tested on 20 and 32, `scaled_dot`, which keeps every pair, finds "
    "{recall/scaled_dot} of the values. `linear_attention` and `gated_deltanet`, with states of "
    "about 1 kB, find {recall/linear_attention} and {recall/gated_deltanet}, `sliding_window` "
    "{recall/sliding_window}. With 8 pairs `scaled_dot` finds "
    "{recall/scaled_dot|token_accuracy} and the other three are behind already: "
    "{recall/linear_attention|token_accuracy}, {recall/gated_deltanet|token_accuracy} and "
    "{recall/sliding_window|token_accuracy}. Recurrences stand here without the norm and the gate "
    "of their papers, so the gap cannot be ascribed to the size of the state alone.",
)
FLAGSHIP_FINDINGS = (
    "- **On copies four and eight times as long as in training, some location-based and monotonic "
    "mechanisms lead again.** Trained on copying up to 8 symbols until validation got no better "
    "or for 12,000 steps, and tested on 32 and 64 (preset `flagship`), `ntm_addressing` writes "
    "{transduction/ntm_addressing} of a string before its first error, `mma_h` "
    "{transduction/mma_h}, `location_aware` {transduction/location_aware} and `ssnt` "
    "{transduction/ssnt}. `raffel_monotonic` writes {transduction/raffel_monotonic}, which is not "
    "significantly different from uniform attention, `scaled_dot` {transduction/scaled_dot} and "
    "uniform attention {transduction/uniform}. All of them have learned the lengths of training: "
    "of these strings `scaled_dot` writes {transduction/scaled_dot|prefix_accuracy} and uniform "
    "attention {transduction/uniform|prefix_accuracy}.",
)
MODERN_FINDINGS = (
    "- **A delta rule follows swaps far beyond the lengths of training if its state matrix may "
    "have negative eigenvalues (option `reach=2.0`).** Trained on products of up to 12 swaps of "
    "five things and tested on up to 48 (`composition[group=s5,moves=swaps]`), "
    "`deltanet[reach=2.0]` names {composition[group=s5]/deltanet[reach=2.0]} of the products "
    "right and `gated_deltaproduct` {composition[group=s5]/gated_deltaproduct}. `deltanet` "
    "without this option names {composition[group=s5]/deltanet}, the softmax of `scaled_dot` "
    "{composition[group=s5]/scaled_dot}. One swap is what one step of such a rule can express. "
    "With any of the 120 permutations as input no variant learned in 600 steps "
    "([limits](docs/limits.md#the-preset-modern)).",
    "- **In one copying task networks with rotary positions copy less of long strings than "
    "networks without positions.** On `causal_copy`, in networks with a causal convolution of "
    "width 3, trained on up to 32 tokens and tested on up to 128, `rope` copies "
    "{causal_copy/rope} of the tokens. Without any positions in attention, with the convolution "
    "alone, the share is {causal_copy/nope}, with `alibi` {causal_copy/alibi}, with `fox` "
    "{causal_copy/fox}. With 32 tokens all of these copy nearly everything (`rope` "
    "{causal_copy/rope|token_accuracy}); the recurrence `gated_deltanet` copies "
    "{causal_copy/gated_deltanet|token_accuracy} there, so it has not learned the task.",
    "- **After 400 steps on `wikitext2_mini`, the best networks are hardly better than "
    "trigrams.** With equally large networks, `gated_deltanet` has a perplexity of "
    "{wikitext2_mini/gated_deltanet} and `rope` of {wikitext2_mini/rope}; interpolated trigrams "
    "have {wikitext2_mini/trigram, interpolated}. `scaled_dot` without positions has "
    "{wikitext2_mini/scaled_dot}, `uniform` {wikitext2_mini/uniform}. On `tinyshakespeare`, after "
    "1,000 steps, half of the variants are better than trigrams in every seed; on `stdlib_code`, "
    "after 500, none is ([limits](docs/limits.md#the-preset-modern)).",
)
LIMITS = (
    "Networks here have widths of 32 to 256 and train for seconds to minutes on a CPU; their "
    "scores say nothing about large models. The baseline `scaled_dot` has no positions unless they "
    "are named. Learning rates are the best of three on one seed, or that of the task. Learning "
    "rates, the last step and the checkpoint that is tested were chosen on validation that holds "
    "longer inputs where the test does. Sizes of some tasks and a few recipes were chosen by "
    "scores of published seeds, so distances to uniform attention are optimistic "
    "([limits](docs/limits.md)). Scores are means of {} paired seeds with 95% t intervals; where "
    "an interval would leave the range of the metric, the lowest and the highest seed follow the "
    "mean. p values are those of moderated paired t tests "
    "with Holm's correction ([statistics](docs/statistics.md)). “Decided” means that a test finds "
    "a difference, or shows it to be smaller than a margin."
)


def findings(root: Path) -> Part:
    """Results with their numbers, and how far they reach."""
    folder = read_folder(root / PUBLISHED / RUN)
    trained = (one.cell for one in folder.of_kind("quality") if one.record.status == "ok")
    seeds = Counter((cell.task, cell.backbone, cell.slot, cell.variant) for cell in trained)
    limits = LIMITS.format(least_to_most(seeds.values()))
    told = _filled(FINDINGS, folder)
    flagship = read_folder(root / PUBLISHED / FLAGSHIP)
    told += _filled(FLAGSHIP_FINDINGS, flagship)
    task, place = FLAGSHIP_FIGURE
    section = quotable_section(flagship)
    blocks = () if section is None else section.blocks
    drawn = [one for one in blocks if isinstance(one, Figure) and task in one.title]
    shown = f"![{escape(drawn[0].description)}]({place}){_caption(drawn[0])}"
    return Part("\n".join([limits, "", *told, "", shown]), {place: drawn[0].svg})


def _filled(texts: Sequence[str], folder: RunFolder) -> list[str]:
    """Texts with the numbers of a run in their places."""
    return [_PLACE.sub(lambda match: _number(folder, *match.groups()), one) for one in texts]


def _number(folder: RunFolder, task: str, name: str, metric: str) -> str:
    """The score of a variant, or of a non-neural baseline, on a task.

    By a metric, or by that which ranks if none is named.
    """
    known = folder.catalog
    # the network in which most variants stand, where there are several
    for comparison in sorted(folder.comparisons, key=lambda one: -len(one.means)):
        here = [one for one in comparison.means if known.label(one) == name]
        if here and known.task_label(comparison.task) == task:
            told = replace(comparison, metric=metric) if metric else comparison
            if here[0] in told.means:
                return escape(told.short_score(here[0]))
        if known.task_label(comparison.task) == task and name in comparison.without:
            return escape(plain(fmean(comparison.without[name].values())))
    raise LookupError(f"README.md: {folder.name} has no score of {name} on {task} {metric}".strip())


def choice(root: Path) -> Part:
    """The headline of the published run, and where a variant is better than the baseline."""
    folder = read_folder(root / PUBLISHED / RUN)
    report = document(folder, publish=True)
    parts = [escape(report.headline)] if report.headline else []
    if report.choices is not None:
        heads = [escape(column.title) for column in report.choices.columns]
        chosen = heads.index("Variant")
        neither = (NONE_YET, folder.catalog.label(folder.catalog.baseline))
        shown = [row for row in report.choices.rows if row[chosen].text not in neither]
        rows = [[_cell(cell) for cell in row] for row in shown]
        lines = [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]
        parts.append("\n".join(lines))
        notes = [
            note for note in report.choices.notes if not note.startswith(TESTS)
        ]  # the report has it
        parts.append(" ".join(map(escape, notes)))
    return Part("\n\n".join(parts), {})


def _caption(figure: Figure) -> str:
    """Title and caption, below a drawing."""
    return f"<br>**{escape(figure.title.rstrip('.'))}.** {escape(figure.caption)}"


def _cell(cell: TableCell) -> str:
    return escape(f"{cell.text} ({', '.join(cell.marks)})" if cell.marks else cell.text)


def modern(root: Path) -> Part:
    """Results of the published run of the preset `modern`, and drawings, if there is one.

    A drawing that has several parts is shown whole. Recall against the size of the state is that
    of `quick`, which holds more mechanisms.
    """
    pack = root / PUBLISHED / MODERN
    if not pack.exists():
        return Part("", {})
    folder = read_folder(pack)
    shown: list[str] = []
    drawings: dict[str, str] = {}
    for run, drawn, task, name in MODERN_FIGURES:
        section = drawn(folder if run == MODERN else read_folder(root / PUBLISHED / run))
        blocks = () if section is None else section.blocks
        found = [one for one in blocks if isinstance(one, Figure) and task in one.title]
        parts = []
        for at, figure in enumerate(found, start=1):
            place = name if at == 1 else name.replace(".svg", f"-{at}.svg")
            drawings[place] = figure.svg
            caption = f"{_caption(figure)} Run `{Path(run).stem}`." if at == 1 else ""
            parts.append(f"![{escape(figure.description)}]({place}){caption}")
        shown.append("<br>".join(parts))
    text = "\n".join([*_filled(MODERN_FINDINGS, folder), "", "\n\n".join(shown)])
    return Part(text, drawings)


PARTS: dict[str, Callable[[Path], Part]] = {
    "findings": findings,
    "choice": choice,
    "modern": modern,
}
"""Name of each marked part, and what writes it."""
