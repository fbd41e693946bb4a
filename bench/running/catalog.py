"""What a report must know about names, written beside the rows so that it outlives the code."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench.api import registry
from bench.api.config import build_config
from bench.api.registry import Recipe, Registration
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import Selector, parse
from bench.api.task import DELAYS, SELECTIONS, Metric, Task
from results.store import with_commands

COMMON_METRICS = (
    Metric(
        name="train_tokens_per_s",
        title="Training speed",
        unit="target tokens per CPU second",
        better="higher",
        group="speed",
    ),
    Metric(
        name="train_step_time_ms",
        title="Training step",
        unit="ms of CPU time",
        better="lower",
        group="speed",
    ),
    Metric(name="train_cpu_s", title="Training time", unit="CPU s", better="lower", group="speed"),
    Metric(
        name="fit_cpu_s",
        title="Counting before training",
        unit="CPU s",
        better="lower",
        group="speed",
    ),
    Metric(
        name="train_steps_count", title="Updates", unit="steps", better="none", group="diagnostic"
    ),
    Metric(
        name="train_loss_nats",
        title="Training loss",
        unit="nats per token",
        better="lower",
        group="diagnostic",
    ),
    Metric(
        name="decode_tokens_per_s",
        title="Greedy decoding",
        unit="tokens per CPU second",
        better="higher",
        group="speed",
    ),
    Metric(name="parameters_count", title="Parameters", unit="count", better="none", group="size"),
    Metric(
        name="slot_parameters_count",
        title="Parameters in the slot",
        unit="count",
        better="none",
        group="size",
    ),
    Metric(name="forward_time_ms", title="Forward", unit="ms", better="lower", group="speed"),
    Metric(
        name="forward_backward_time_ms",
        title="Forward and backward",
        unit="ms",
        better="lower",
        group="speed",
    ),
    Metric(
        name="forward_weights_time_ms",
        title="Forward with weights",
        unit="ms",
        better="lower",
        group="speed",
    ),
    Metric(
        name="decode_step_time_ms",
        title="One decode step",
        unit="ms",
        better="lower",
        group="speed",
    ),
    Metric(
        name="peak_memory_bytes",
        title="Peak memory, forward and backward",
        unit="bytes",
        better="lower",
        group="memory",
    ),
    Metric(
        name="forward_peak_memory_bytes",
        title="Peak memory, forward",
        unit="bytes",
        better="lower",
        group="memory",
    ),
    Metric(
        name="forward_flops_analytic_count",
        title="FLOPs by formula",
        unit="count",
        better="none",
        group="size",
    ),
    Metric(
        name="forward_flops_counted_count",
        title="FLOPs counted (matrix products)",
        unit="count",
        better="none",
        group="size",
    ),
    Metric(
        name="forward_elementwise_count",
        title="Elementwise operations",
        unit="count",
        better="none",
        group="size",
    ),
    Metric(
        name="forward_transcendental_count",
        title="Transcendental functions",
        unit="count",
        better="none",
        group="size",
    ),
    *DELAYS,
    *SELECTIONS,
)


def catalog_of(
    variants: Mapping[str, str],
    tasks: Mapping[str, str],
    *,
    baseline: str,
    command: str,
    preset: str,
    ranks: bool,
    plugins: Sequence[str] = (),
    data_dir: str = "",
    data_variable: str = "",
) -> dict[str, Any]:
    """Describe everything that a run names.

    Args:
        variants: Canonical selector to the text that asked for it.
        tasks: The same for tasks.
        baseline: Canonical selector of the baseline.
        command: The command line of the run.
        preset: Name of the preset.
        ranks: Whether the report may rank.
        plugins: Files that registered names beside the bench's own, as typed.
        data_dir: Data directory, as typed; empty if the command named none.
        data_variable: Environment variable that named the directory, if one did.
    """
    targets = [registry.find("task", parse(task).name).target for task in tasks]
    return {
        "variants": {name: variant_facts(resolve(name), asked) for name, asked in variants.items()},
        "tasks": {name: task_facts(name, asked) for name, asked in tasks.items()},
        "metrics": metric_facts(targets),
        "baseline": baseline,
        "commands": [command],
        "preset": preset,
        "ranks": ranks,
        "plugins": list(plugins),
        "data_dir": data_dir,
        "data_variable": data_variable,
    }


def merge_catalogs(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    """Add to what an earlier run into the same folder wrote; every command stays, once."""
    if not old:
        return dict(new)
    merged = {**old, **new}
    for key in ("variants", "tasks", "metrics", "study", "trials"):
        joined = {**(old.get(key) or {}), **(new.get(key) or {})}
        if joined:
            merged[key] = joined
    old = with_commands(old)
    for key in ("plugins", "commands"):
        joined_list = [*(old.get(key) or ()), *(new.get(key) or ())]
        merged[key] = list(dict.fromkeys(joined_list))
    for key in ("data_dir", "data_variable"):
        merged[key] = new.get(key) or old.get(key) or ""
    merged.pop("command", None)
    return merged


def variant_facts(spec: VariantSpec, asked: str) -> dict[str, Any]:
    """Title, paper and marks of a variant."""
    registered = spec.registered
    cited = registered.citation
    return {
        "short": asked,
        "name": registered.name,
        "title": registered.title,
        "formula": _formula(spec),
        "made_of": _made_of(registered),
        "default_task": registered.default_task.task if registered.default_task else "",
        "paper": cited.text if cited else "",
        "url": cited.url if cited else "",
        "where": cited.where if cited else "",
        "family": registered.axis,
        "control": registered.control,
        "aa_control": registered.name == "aa_control",
        "uniform_baseline": registered.name == "uniform",
        "decoder_differs": bool(set(spec.fixes) - {"search"}),
        "search_differs": "search" in spec.fixes,
        "deviations": registered.deviations or _deviations(registered),
    }


def task_facts(canonical: str, asked: str) -> dict[str, Any]:
    """Title, paper, ranking metric, license and published numbers of a task with its options."""
    chosen = registry.complete("task", parse(canonical))
    registered = registry.find("task", chosen.name)
    target: type[Task] = registered.target
    cited = registered.citation
    return {
        "short": asked,
        "title": registered.title,
        "paper": cited.text if cited else "",
        "url": cited.url if cited else "",
        "primary": target.metrics[0].name,
        "family": target.family,
        "whole": _whole(chosen, target.ablated_inputs),
        "published_results": [
            asdict(one) for one in target.published_results if one.holds_for(chosen)
        ],
        "needs_download": target.needs_download,
        "data_license": target.data_license,
        "chance": target.chance_of(build_config(registered.config, chosen.options, chosen.name)),
        "ceiling": target.ceiling,
    }


def _whole(task: Selector, ablated_inputs: Sequence[str]) -> str:
    """The same task with nothing ablated, empty where it has no such options."""
    if not ablated_inputs:
        return ""
    rest = {key: value for key, value in task.options.items() if key not in ablated_inputs}
    return registry.canonical("task", Selector(task.name, rest)).show()


def metric_facts(tasks: Iterable[type[Task]]) -> dict[str, Any]:
    """Title, unit and better side of every metric that can occur."""
    probes = [registered.target for registered in registry.registrations("probe").values()]
    metrics = [
        *COMMON_METRICS,
        *(metric for task in tasks for metric in task.metrics),
        *(metric for probe in probes for metric in probe.metrics),
    ]
    return {
        metric.name: {
            "title": metric.title,
            "unit": metric.unit,
            "better": metric.better,
            "group": metric.group,
        }
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


def _made_of(registered: Registration) -> str:
    """The axes of a recipe, as they are typed."""
    if not isinstance(registered.target, Recipe):
        return ""
    return ", ".join(
        f"{a}={text}" for a, text in {**registered.target.axes, **registered.target.fixes}.items()
    )


def _deviations(registered: Registration) -> str:
    """The `Deviations:` paragraph of the module that registered the entry."""
    text = sys.modules[registered.module].__doc__ or "" if registered.module in sys.modules else ""
    _, found, rest = text.partition("Deviations:")
    return " ".join(rest.split()) if found else ""
