"""The page of variants: what each is and what it costs, from the registry and a published run."""

from bench.api import registry
from bench.api.resolve import resolve
from bench.docs.use import use_of
from bench.running.catalog import describe_variant
from reports.folder import RunFolder
from reports.markdown import code_span, escape, with_code
from reports.numbers import plain
from results.catalog import CatalogVariant

HEAD = (
    "Every variant that has a name, by the axis on which it differs from the baseline. "
    "`python -m bench show NAME` prints the options of one."
)
MEASURED = (
    "Scores are test means with a 95% interval over seeds, from the published run {run}. Costs are "
    "ratios to {baseline} in the same timing rounds, at the longest length that was timed."
)
METRICS = {
    "forward_time_ms": "forward",
    "forward_backward_time_ms": "forward and backward",
    "peak_memory_bytes": "peak memory",
}
AXES = {
    "score": "Scores",
    "position": "Positions",
    "mask": "Masks: which keys a query may see",
    "normalizer": "Normalizers: from energies to weights",
    "readout": "Readouts: from weights to a context",
    "history": "Attention history: what earlier weights change in the next step",
    "head": "Heads",
    "output": "Outputs: what the weights do to the prediction",
    "loss": "Losses",
    "mechanism": "Mechanisms that replace the chain",
    "recipe": "Recipes: named choices on several axes",
}


def variants_page(folder: RunFolder | None = None) -> str:
    """The whole page.

    Args:
        folder: A published run with scores and costs; without one the page has neither.
    """
    parts = ["# Variants", HEAD]
    if folder is not None:
        baseline = code_span(folder.catalog.label(folder.catalog.baseline))
        parts.append(MEASURED.format(run=code_span(folder.name), baseline=baseline))
    listed = {name: describe_variant(name, resolve(name)) for name in registry.listed_variants()}
    for axis, title in AXES.items():
        here = {name: about for name, about in listed.items() if about.family == axis}
        if here:
            parts.append(f"## {title}")
            parts += [paragraph(about, measured(folder, about)) for about in here.values()]
    return "\n\n".join(parts) + "\n"


def paragraph(about: CatalogVariant, lines: list[str]) -> str:
    """One variant: title, formula, paper, scores and costs, deviations."""
    said = [f"### {code_span(about.name)}", f"{with_code(about.title)}."]
    said[-1] = said[-1].replace("..", ".")
    if about.control:
        said.append("A control: it is there to read the others by.")
    if about.formula:
        formula = code_span(about.formula).replace("\\|", "|")  # no table here
        said.append(f"**Formula.** {formula}")
    if about.made_of:
        said.append(f"**Made of.** {code_span(about.made_of)}")
    if about.paper:
        where = f", {with_code(str(about.where))}" if about.where else ""
        said.append(f"**Paper.** [{escape(about.paper)}]({about.url}){where}")
    used = use_of(about.name)
    if used:
        said.append(f"```pycon\n{used}\n```")
    said += lines
    if about.does_not_show:
        said.append(f"**Does not show here.** {with_code(about.does_not_show)}")
    if about.deviations:
        said.append(f"**Deviations.** {with_code(about.deviations)}")
    return "\n\n".join(said)


def measured(folder: RunFolder | None, about: CatalogVariant) -> list[str]:
    """Paragraphs about the score on the default task and about costs."""
    task = about.default_task
    said = [f"**Default task.** {code_span(task)}." if task else "**Default task.** none."]
    if folder is None:
        return said
    here = [
        name
        for name, known in folder.catalog.variants.items()
        if known.short == about.name == known.name
    ]
    for variant in here[:1]:
        found = score(folder, variant, task)
        said = [f"**Default task.** {code_span(task)}: {found}"] if found else said
        costs = cost(folder, variant)
        said += [f"**Cost.** {costs}"] if costs else []
    return said


def score(folder: RunFolder, variant: str, task: str) -> str:
    """The score of a variant on a task beside that of the baseline; empty without one."""
    known = folder.catalog
    for comparison in folder.comparisons:
        if variant in comparison.means and known.task_label(comparison.task) == task:
            metric = known.metric(comparison.metric)
            text = escape(f"{comparison.score_text(variant)} {metric.unit}".strip())
            if known.baseline in comparison.means and known.baseline != variant:
                name = code_span(known.label(known.baseline))
                text += f"; {name} has {escape(comparison.score_text(known.baseline))}"
            return f"{text} ({metric.title.lower()})."
    return ""


def cost(folder: RunFolder, variant: str) -> str:
    """Time and memory relative to the baseline, by slot; empty where nothing was timed."""
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
