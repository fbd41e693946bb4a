"""What a report must know about names, written beside the rows so that it outlives the code."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from bench.api import registry
from bench.api.config import build_config
from bench.api.metric import Metric
from bench.api.options import complete
from bench.api.probe import PROBES
from bench.api.registry import Recipe, Registration
from bench.api.resolve import VariantSpec
from bench.api.selector import Selector, parse
from bench.api.task import TASKS, Task
from bench.running.calibrated import calibrated_choice, whole_task
from bench.running.common_metrics import COMMON_METRICS, on_devices
from bench.running.presets import sizes_of
from bench.running.request import AskedTask, AskedVariant
from results.catalog import CatalogTask, CatalogVariant, RunCatalog


def catalog_of(
    variants: Iterable[AskedVariant],
    tasks: Iterable[AskedTask],
    *,
    baseline: VariantSpec | None,
    command: str,
    preset: str,
    ranks: bool,
    plugins: Sequence[str] = (),
    data_dir: str = "",
    data_variable: str = "",
    devices: Collection[str] = ("cpu",),
) -> RunCatalog:
    """Describe everything that a run names.

    Args:
        variants: Every variant of the run; the text that asked first stays.
        tasks: Every task that is trained.
        baseline: The variant that all others are compared with; None without one.
        command: The command line of the run.
        preset: Name of the preset.
        ranks: Whether the report may rank.
        plugins: Plug-in files.
        data_dir: Data directory, as typed; empty if the command named none.
        data_variable: Environment variable that named the directory, if one did.
        devices: Kinds of devices that cells of the run folder run on.
    """
    tasks = list(tasks)
    asked: dict[str, AskedVariant] = {}
    for one in variants:
        asked.setdefault(one.spec.canonical.show(), one)
    targets = [registry.find(TASKS, one.selector.name).target for one in tasks]
    return RunCatalog(
        variants={name: describe_variant(*one) for name, one in asked.items()},
        tasks={one.selector.show(): describe_task(*one, preset) for one in tasks},
        metrics=known_metrics(targets, devices),
        baseline=baseline.canonical.show() if baseline else "",
        commands=(command,),
        preset=preset,
        ranks=ranks,
        plugins=tuple(plugins),
        data_dir=data_dir,
        data_variable=data_variable,
    )


def describe_variant(asked: str, spec: VariantSpec) -> CatalogVariant:
    """Title, paper and marks of a variant."""
    registered = spec.registered
    cited = registered.citation
    return CatalogVariant(
        short=asked,
        name=registered.name,
        title=registered.title,
        formula=_formula(spec),
        made_of=_made_of(registered),
        default_task=registered.default_task.task if registered.default_task else "",
        paper=cited.text if cited else "",
        url=cited.url if cited else "",
        where=cited.where if cited else "",
        family=registered.axis,
        control=registered.control,
        decoder_differs=bool(set(spec.fixes) - {"search"}),
        search_differs="search" in spec.fixes,
        tells_places=any("places" in part.gives for _, part in spec.parts),
        deviations=registered.differences(),
        does_not_show=registered.does_not_show,
    )


def describe_task(asked: str, task: Selector, preset: str = "") -> CatalogTask:
    """Title, paper, ranking metric, license and published numbers of a task with its options.

    Args:
        asked: As it was typed.
        task: With its options.
        preset: Whose size it has; empty where none is known.
    """
    chosen = complete(TASKS, task)
    registered = registry.find(TASKS, chosen.name)
    target = registered.target
    cited = registered.citation
    config = build_config(registered.config, chosen.options, chosen.name)
    telling = {name: chosen.options[name] for name in target.named_by}
    return CatalogTask(
        short=parse(asked).with_options(**telling).show(),
        title=registered.title,
        paper=cited.text if cited else "",
        url=cited.url if cited else "",
        primary=target.ranking_metric().name,
        family=target.family,
        counts_with=target.counts_with,
        whole=whole_task(chosen).show() if target.ablated_inputs else "",
        pipeline_check=target.pipeline_check_at(preset),
        pipeline_check_over={
            name: why
            for name in target.pipeline_check_over
            if (why := target.pipeline_check_at(preset, name))
        },
        rule_baseline=target.rule_baseline_of(config),
        published_results=tuple(one for one in target.published_results if one.holds_for(chosen)),
        needs_download=target.needs_download,
        generated=target.is_generated(),
        license=target.data_license,
        chance=target.chance_of(config),
        ceiling=target.ceiling,
        margin=target.margin,
        trained_to=target.trained_to_of(config),
        tuned=_tuned(parse(asked), chosen, preset),
    )


def _tuned(asked: Selector, task: Selector, preset: str) -> dict[str, int] | None:
    """How many learning rates calibration tried of each competitor, at the size that was chosen.

    Args:
        asked: The task without the options of a preset.
        task: The same with every option.
        preset: Whose size it has; nothing is known without one.
    """
    if not preset:
        return None
    choice = calibrated_choice(asked, sizes_of(preset))
    sizes = choice.options.options if choice and choice.options else {}
    if choice is None or any(task.options.get(key) != value for key, value in sizes.items()):
        return {}
    tried = {(trial["competitor"], trial["lr"]) for trial in choice.trials}
    return dict(Counter(name for name, _ in tried if name in choice.rates))


def known_metrics(
    tasks: Iterable[type[Task]], devices: Collection[str] = ("cpu",)
) -> dict[str, Metric]:
    """Every metric that can occur where these tasks are run, by name, with its margin."""
    probes = [registered.target for registered in registry.registrations(PROBES).values()]
    metrics = [
        *COMMON_METRICS,
        *(metric for task in tasks for metric in (*task.all_metrics(), task.choosing_metric())),
        *(metric for probe in probes for metric in probe.metrics),
    ]
    return {
        metric.name: replace(on_devices(metric, devices), margin=metric.declared_margin)
        for metric in metrics
    }


def _formula(spec: VariantSpec) -> str:
    """First paragraph of the class behind the name; for a recipe, of what its options go to."""
    target = spec.registered.target
    if isinstance(target, Recipe):
        axis = target.main or next(iter(target.fixes or target.axes), "")
        chosen = [spec.fixes[axis]] if axis in spec.fixes else spec.axes.get(axis, ())
        classes = [registry.find(axis, one.name).target for one in chosen if one.name != "auto"]
    else:
        classes = [target]
    texts = [" ".join((one.__doc__ or "").partition("\n\n")[0].split()) for one in classes]
    return " ".join(texts)


def _made_of(registered: Registration[object]) -> str:
    """The axes of a recipe, as they are typed."""
    if not isinstance(registered.target, Recipe):
        return ""
    return ", ".join(
        f"{a}={text}" for a, text in {**registered.target.axes, **registered.target.fixes}.items()
    )
