"""Metrics that cells of every task and every shape have: costs, sizes, delays and selections."""

from collections.abc import Collection
from dataclasses import replace

from bench.api.metric import DELAYS, SELECTIONS, Metric

WALL_UNITS = {
    "target tokens per CPU second": "target tokens per wall second",
    "tokens per CPU second": "tokens per wall second",
    "ms of CPU time": "ms of wall time",
}
"""Units of what a clock measured in training: on a CPU, and on a GPU."""


def on_devices(metric: Metric, devices: Collection[str]) -> Metric:
    """The same metric with the unit of the clock that its values were taken with."""
    wall = WALL_UNITS.get(metric.unit)
    if wall is None or "cuda" not in devices:
        return metric
    both = f"{metric.unit}, {wall} on a GPU"
    return replace(metric, unit=both if set(devices) - {"cuda"} else wall)


COMMON_METRICS = (
    Metric(
        name="train_tokens_per_s",
        title="Training speed",
        unit="target tokens per CPU second",
        low=0.0,
        high=None,
        better="higher",
        group="speed",
    ),
    Metric(
        name="train_step_time_ms",
        title="Training step",
        unit="ms of CPU time",
        low=0.0,
        high=None,
        better="lower",
        group="speed",
    ),
    Metric(
        name="train_cpu_s",
        title="Training time",
        unit="CPU s",
        low=0.0,
        high=None,
        better="lower",
        group="speed",
    ),
    Metric(
        name="fit_cpu_s",
        title="Counting before training",
        unit="CPU s",
        low=0.0,
        high=None,
        better="lower",
        group="speed",
    ),
    Metric(
        name="train_wall_s",
        title="Training time",
        unit="wall s",
        low=0.0,
        high=None,
        better="lower",
        group="speed",
    ),
    Metric(
        name="fit_wall_s",
        title="Counting before training",
        unit="wall s",
        low=0.0,
        high=None,
        better="lower",
        group="speed",
    ),
    Metric(
        name="train_steps_count",
        title="Updates",
        unit="steps",
        low=0.0,
        high=None,
        better="none",
        group="diagnostic",
    ),
    Metric(
        name="train_loss_nats",
        title="Training loss",
        unit="nats per token",
        low=0.0,
        high=None,
        better="lower",
        group="diagnostic",
    ),
    Metric(
        name="decode_tokens_per_s",
        title="Greedy decoding",
        unit="tokens per CPU second",
        low=0.0,
        high=None,
        better="higher",
        group="speed",
    ),
    Metric(
        name="parameters_count",
        title="Parameters",
        unit="count",
        low=0.0,
        high=None,
        better="none",
        group="size",
    ),
    Metric(
        name="slot_parameters_count",
        title="Parameters in the slot",
        unit="count",
        low=0.0,
        high=None,
        better="none",
        group="size",
    ),
    Metric(
        name="forward_time_ms",
        title="Forward",
        unit="ms",
        low=0.0,
        high=None,
        better="lower",
        group="speed",
    ),
    Metric(
        name="forward_backward_time_ms",
        title="Forward and backward",
        unit="ms",
        low=0.0,
        high=None,
        better="lower",
        group="speed",
    ),
    Metric(
        name="forward_weights_time_ms",
        title="Forward with weights",
        unit="ms",
        low=0.0,
        high=None,
        better="lower",
        group="speed",
    ),
    Metric(
        name="decode_step_time_ms",
        title="One decode step",
        unit="ms",
        low=0.0,
        high=None,
        better="lower",
        group="speed",
    ),
    Metric(
        name="peak_memory_bytes",
        title="Peak memory, forward and backward",
        unit="bytes",
        low=0.0,
        high=None,
        better="lower",
        group="memory",
    ),
    Metric(
        name="forward_peak_memory_bytes",
        title="Peak memory, forward",
        unit="bytes",
        low=0.0,
        high=None,
        better="lower",
        group="memory",
    ),
    Metric(
        name="forward_flops_analytic_count",
        title="FLOPs by formula",
        unit="count",
        low=0.0,
        high=None,
        better="none",
        group="size",
    ),
    Metric(
        name="forward_flops_counted_count",
        title="FLOPs counted (matrix products)",
        unit="count",
        low=0.0,
        high=None,
        better="none",
        group="size",
    ),
    Metric(
        name="forward_elementwise_count",
        title="Elementwise operations",
        unit="count",
        low=0.0,
        high=None,
        better="none",
        group="size",
    ),
    Metric(
        name="forward_transcendental_count",
        title="Transcendental functions",
        unit="count",
        low=0.0,
        high=None,
        better="none",
        group="size",
    ),
    *DELAYS,
    *SELECTIONS,
)
