"""The handbook of mechanisms: what each is, what it costs and where it shines, from one stored run.

Formulas, papers and default tasks are what the catalog of the run says; scores, costs and weights
are its rows and artifacts. Nothing is written by hand.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from reports.figures.maps import attention_maps
from reports.folder import RunFolder, read_folder
from reports.markdown import code_span, escape
from reports.numbers import plain
from reports.sections.examples import first_map
from results.catalog import CatalogVariant

PICTURES = "weights"
METRICS = {
    "forward_time_ms": "forward",
    "forward_backward_time_ms": "forward and backward",
    "peak_memory_bytes": "peak memory",
}
FAMILIES = {
    "score": "Scores",
    "position": "Positions",
    "pattern": "Patterns: which keys a query may see",
    "alignment": "Alignments: from energies to weights",
    "readout": "Aggregations: from weights to a context",
    "history": "History: what goes into the next step",
    "head": "Heads",
    "output": "Outputs: what the weights do to the prediction",
    "loss": "Losses",
    "mechanism": "Mechanisms that replace the chain",
    "recipe": "Recipes: named choices on several axes",
}


def write_handbook(path: Path, out: Path) -> Path:
    """Write `mechanisms.md` and the pictures beside it.

    Args:
        path: A run folder; pictures are drawn from its artifacts, and those already in `out` stay
            where it has none.
        out: Folder of the handbook.

    Raises:
        NotARunFolder: The folder has no ledger.
    """
    folder = read_folder(path)
    pictures = out / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    for variant, facts in _listed(folder).items():
        found = first_map(folder, variant, facts.default_task)
        if found is not None:
            figure = attention_maps(facts.name, _words(facts), [replace(found, title="")])
            (pictures / f"{facts.name}.svg").write_text(figure.svg, encoding="utf-8")
    drawn = {file.stem for file in pictures.glob("*.svg")}
    written = out / "mechanisms.md"
    written.write_text(handbook(folder, drawn), encoding="utf-8")
    return written


def handbook(folder: RunFolder, drawn: set[str]) -> str:
    """The text; `drawn` are the names that have a picture."""
    listed = _listed(folder)
    measured = _measured(folder)
    parts = [
        "# Mechanisms",
        f"Generated from the run {code_span(folder.name)} by `python -m bench report --handbook`; "
        "do not edit. Scores are test means with a 95% t interval over seeds. Costs are ratios to "
        f"{code_span(folder.catalog.label(folder.catalog.baseline))} in the same rounds at the "
        "longest length that was timed. Pictures show the weights of a trained model on one "
        "example: source across, output down, black is 0, white is 1; squares are gold.",
    ]
    known = {facts.family for facts in listed.values()}
    others = {family: family.capitalize() for family in sorted(known - set(FAMILIES))}
    for family, title in {**FAMILIES, **others}.items():
        names = [v for v, facts in listed.items() if facts.family == family]
        if names:
            parts.append(f"## {title}")
            parts += [_entry(folder, name, measured, drawn) for name in names]
    return "\n\n".join(parts) + "\n"


def _listed(folder: RunFolder) -> dict[str, CatalogVariant]:
    """Variants that were run under their own name, by name."""
    found = {
        variant: facts
        for variant, facts in folder.catalog.variants.items()
        if facts.short == facts.name
    }
    return dict(sorted(found.items(), key=lambda item: item[1].name))


def _entry(
    folder: RunFolder, variant: str, measured: Mapping[str, list[str]], drawn: set[str]
) -> str:
    facts = folder.catalog.variants[variant]
    name = facts.name
    lines = [f"### {code_span(name)}", f"{escape(facts.title)}.".replace("..", ".")]
    if facts.formula:
        lines.append(f"**Formula.** {code_span(facts.formula)}")
    if facts.made_of:
        lines.append(f"**Made of.** {code_span(facts.made_of)}")
    if facts.paper:
        where = f", {escape(facts.where)}" if facts.where else ""
        lines.append(f"**Paper.** [{escape(facts.paper)}]({facts.url}){where}")
    lines += measured.get(variant, [])
    if name in drawn:
        lines.append(f"![Weights of {name} on one example]({PICTURES}/{name}.svg)")
    if facts.deviations:
        lines.append(f"**Deviations.** {escape(facts.deviations)}")
    return "\n\n".join(lines)


def _measured(folder: RunFolder) -> dict[str, list[str]]:
    """Lines about scores and costs, by variant."""
    found: dict[str, list[str]] = {}
    for variant, facts in _listed(folder).items():
        scores = _scores(folder, variant, facts.default_task)
        costs = _costs(folder, variant)
        lines = [f"**Shines on.** {scores}"] if scores else []
        found[variant] = [*lines, f"**Cost.** {costs}"] if costs else lines
    return found


def _scores(folder: RunFolder, variant: str, default_task: str) -> str:
    if not default_task:
        return "no task of this bench yet."
    for comparison in folder.comparisons:
        means, base = comparison.means, folder.catalog.baseline
        if variant in means and folder.catalog.task_label(comparison.task) == default_task:
            metric = folder.catalog.metric(comparison.metric)
            text = f"{code_span(default_task)}: {comparison.score_text(variant)} {metric.unit}"
            if base in means and base != variant:
                name = code_span(folder.catalog.label(base))
                text += f", where {name} has {comparison.score_text(base)}"
            return f"{text} ({metric.title.lower()})."
    return f"{code_span(default_task)}."


def _costs(folder: RunFolder, variant: str) -> str:
    table = folder.speed
    mine = table[(table["variant"] == variant) & table["metric"].isin(METRICS)]
    parts = []
    for slot, group in mine.dropna(subset=["length", "ratio"]).groupby("slot"):
        last = group[group["length"] == group["length"].max()].set_index("metric")
        costs = [
            f"{words} ×{plain(float(last.loc[metric, 'ratio']))}"
            for metric, words in METRICS.items()
            if metric in last.index
        ]
        parts.append(f"{slot} at length {last['length'].iloc[0]:g}: {', '.join(costs)}")
    return f"{'; '.join(parts)}." if parts else ""


def _words(facts: CatalogVariant) -> dict[str, str]:
    return {
        "title": f"Weights of {facts.name}",
        "description": "Source across, output down; black is 0, white is 1.",
        "caption": "",
    }
