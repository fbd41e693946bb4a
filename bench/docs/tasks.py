"""The page of tasks: every task by use of attention, as the registry has it."""

from collections.abc import Iterator
from pathlib import Path

from bench.api import registry
from bench.api.answer import Answer
from bench.api.batch import Batch
from bench.api.calibration import Choice, stored_choices
from bench.api.comparison import Entry
from bench.api.errors import DataDamaged, DataUnavailable
from bench.api.registry import Registration
from bench.api.selector import Selector, parse
from bench.api.task import TASKS, Task
from bench.running.families import tasks_by_family
from bench.running.quality_cells import sized_task
from reports.markdown import code_span, escape, with_code
from reports.numbers import plain
from tasks.data.hub_sets import FETCHABLE
from tasks.data.originals import ORIGINALS

NO_FAMILY = "Further tasks"
SIZE = "quick"
EXAMPLE_SIZE = "smoke"
"""Examples are the same in every size, so the cheapest one is made."""
MOST_WORDS, MOST_NUMBERS = 40, 8
HEAD = (
    "Every task by the use of attention that it stands for. Sizes and backbones are those of the "
    "presets `quick` and `families`. A published result is not comparable with ours, and each says "
    "why. A comparison also holds the uniform baseline and the baseline."
)
NEEDS_DATA = ("**Non-neural baselines.**", "**Example.**")
"""How lines begin that are made from data, which may not be on every machine."""


def tasks_page(data_dir: Path | None = None) -> str:
    """The whole page; lines that need data which are not here are left out.

    Args:
        data_dir: A data directory, or None for the environment's.
    """
    parts = ["# Tasks", HEAD]
    for family, entries in tasks_by_family().items():
        parts.append(f"## {family[:1].upper()}{family[1:]}" if family else f"## {NO_FAMILY}")
        for registered in entries:
            parts += [
                f"### {code_span(registered.name)}",
                *facts_of(registered),
                *_made(registered, data_dir),
            ]
    return "\n\n".join(parts) + "\n"


def facts_of(registered: Registration[type[Task]]) -> list[str]:
    """Paragraphs about a task that need no data."""
    target = registered.target
    cited = registered.citation
    lines = [f"{with_code(registered.title)}.".replace("..", "."), f"**Data.** {_data(registered)}"]
    metrics = [
        f"{escape(metric.title)} ({escape(metric.unit)}, {metric.better} is better)"
        if metric.better != "none"
        else f"{escape(metric.title)} ({escape(metric.unit)})"
        for metric in target.all_metrics()
    ]
    lines.append(f"**Metrics.** {'; '.join(metrics)}; the first one ranks.")
    if target.pipeline_check:
        lines.append(f"**Pipeline check, not evidence.** {with_code(target.pipeline_check)}")
    lines += [
        f"**Pipeline check over {code_span(name)}, not evidence.** {with_code(why)}"
        for name, why in target.pipeline_check_over.items()
    ]
    if target.seen_in_training:
        lines.append(f"**Seen in training.** {with_code(target.seen_in_training)}")
    if SIZE in target.presets:
        lines.append(f"**Backbone.** {code_span(target.presets[SIZE].backbone)}")
    lines += [_calibrated(choice) for choice in stored_choices(registered.name)]
    if target.comparison:
        lines.append(f"**Comparison.** {', '.join(_entry(one) for one in target.comparison)}")
    lines += [f"**Published.** {text}" for text in _published_results(target)]
    if cited is not None:
        where = f", {with_code(cited.where)}" if cited.where else ""
        lines.append(f"**Source.** [{escape(cited.text)}]({cited.url}){where}")
    return lines


def _calibrated(choice: Choice) -> str:
    """What calibration has chosen, and why."""
    chosen = code_span(choice.chosen.name) if choice.chosen else "no setting keeps the rule"
    rates = " Every variant has a learning rate of its own." if choice.rates else ""
    asked = f"{code_span(choice.task)} at the size of {choice.preset}"
    return f"**Calibrated.** {asked}: {chosen}.{rates} {with_code(choice.why)}"


def _data(registered: Registration[type[Task]]) -> str:
    target = registered.target
    parts = []
    for name in target.data_sets:
        known = FETCHABLE.get(name)
        if known is None:
            parts.append(f"{code_span(name)} of the data directory{_copied(name)}")
            continue
        fetched = f"hub {code_span(known.dataset)}" + ("" if known.pinned else ", unpinned")
        parts.append(f"{code_span(name)} ({fetched}; rows: {known.size}{_beside(known.differs)})")
    where = ", ".join(parts) or ("downloaded" if target.needs_download else "no download")
    offline = [
        code_span(other.name)
        for other in registry.registrations(TASKS).values()
        if target.family and other.target.family == target.family
        if not other.target.needs_download
    ]
    beside = ""
    if target.needs_download and offline:
        beside = f" Offline beside it: {', '.join(sorted(offline))}."
    return f"{where}. Terms: {with_code(target.data_license.name)}.{beside}"


def _copied(name: str) -> str:
    """Which files its folder holds, and whose they are; empty where that is not known."""
    files = [
        f"{code_span(here)} is {code_span(there)} of <{one.address}>"
        for one in ORIGINALS.get(name, ())
        for here, there in one.files.items()
    ]
    return f" (copied by hand: {'; '.join(files)})" if files else ""


def _beside(differs: str) -> str:
    """How the copy differs from the directory, of which the published numbers are."""
    return f"; beside the directory: {with_code(differs)}" if differs else ""


def _entry(one: Entry) -> str:
    places = [text for text in (one.slot, one.backbone, one.task) if text]
    return code_span(one.variant) + "".join(f" @ {code_span(text)}" for text in places)


def _published_results(target: type[Task]) -> Iterator[str]:
    titles = {metric.name: metric for metric in target.metrics}
    for result in target.published_results:
        metric = titles.get(result.metric)
        unit = f" {escape(metric.unit)}" if metric else ""
        title = escape(metric.title if metric else result.metric)
        where = f", {with_code(result.where)}" if result.where else ""
        about = f"For {code_span(result.about)}: " if result.about else ""
        yield (
            f"{about}{with_code(result.what)}: {title} {plain(result.value)}{unit} "
            f"([{escape(result.text)}]({result.url}){where}). {with_code(result.differs)}"
        )


def _made(registered: Registration[type[Task]], data_dir: Path | None) -> list[str]:
    """Paragraphs that are made from data, in the order of `NEEDS_DATA`."""
    chosen, _, _ = sized_task(Selector(registered.name).show(), EXAMPLE_SIZE)
    try:
        task = registry.make(TASKS, parse(chosen.show()), 0, data_dir)
    except (DataUnavailable, DataDamaged):
        source, target = registered.target.written_example
        return [f"{NEEDS_DATA[1]} {_told(source, target)}"] if source else []
    lines = []
    names = ", ".join(escape(name) for name in task.baselines())
    if names:
        lines.append(f"{NEEDS_DATA[0]} {names}.")
    example = _example(task)
    return [*lines, f"{NEEDS_DATA[1]} {example}"] if example else lines


def _example(task: Task) -> str:
    """One example that may be shown: of the task's own, or one that was generated."""
    batch = task.examples()
    if batch is None and task.is_generated():
        batch = task.evaluation("test")[0]
    if batch is None:
        return ""
    source, target = _source(task, batch), _target(task, batch)
    if not source.strip():
        # places that hold numbers or pictures: as the task shows its examples itself
        right = Answer(batch, predicted=batch.targets, values=batch.values)
        source, target = next((one.source, one.reference) for one in task.samples([right], 1))
    return _told(source, target)


def _told(source: str, target: str) -> str:
    told = target.strip() and target != source  # a language model says what it reads
    return code_span(source) + (f" → {code_span(target)}" if told else "")


def _source(task: Task, batch: Batch) -> str:
    if batch.names:
        return _cut(batch.names[0].split())
    if not batch.sources:
        return _cut(task.tokens(batch.inputs[0].tolist(), source=True))
    text = batch.sources[0]
    if text.frames is not None:
        return ""
    shown = (text.tokens if batch.extended is None else batch.extended)[0]
    real = shown if text.mask is None else shown[text.mask[0]]
    return _cut(_words(task, batch, real.tolist(), source=True))


def _words(task: Task, batch: Batch, ids: list[int], *, source: bool) -> list[str]:
    """Names of ids of the first row, those beyond the vocabulary as the row spells them."""
    extra = batch.extra_words[0] if batch.extra_words else ()
    beyond = [number - task.sizes.target_vocab for number in ids]
    return [
        extra[at] if 0 <= at < len(extra) else task.tokens([number], source=source)[0]
        for number, at in zip(ids, beyond, strict=True)
    ]


def _target(task: Task, batch: Batch) -> str:
    if batch.references:
        return _cut(batch.references[0].split())
    if batch.values is not None:
        numbers = batch.values[0][batch.mask[0]].flatten().tolist()
        return _cut([plain(number) for number in numbers], MOST_NUMBERS)
    return _cut(_words(task, batch, batch.targets[0][batch.mask[0]].tolist(), source=False))


def _cut(words: list[str], most: int = MOST_WORDS) -> str:
    more = " ..." if len(words) > most else ""
    return " ".join(words[:most]) + more
