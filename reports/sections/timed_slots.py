"""What was timed of slots with their heads, by place, variant and metric."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bench.api.selector import parse
from reports.blocks import Paragraph
from reports.catalog import red_reasons
from reports.folder import RunFolder
from reports.prose import join
from reports.speed_rows import TIMED_TOGETHER

PREFILL, DECODE, STATE = "prefill_tokens_per_s", "decode_tokens_per_s", "state_bytes"
PEAK, STEP_PEAK = "forward_peak_memory_bytes", "decode_step_peak_memory_bytes"
MANY = 0.4
"""Share of the variants of the fullest place that are many; few have the longest caches."""
STEP = "decode_step_time_ms"
HEADS = ("heads_count", "key_heads_count", "key_width_count", "value_width_count")
LAYERS = "layers_count"
SHOWN = frozenset((PREFILL, DECODE, STATE, STEP_PEAK, *HEADS, LAYERS))
"""Metrics of slots that no other table shows."""

Line = Mapping[str, Any]
"""A line of `speed_summary`."""


class Slots(NamedTuple):
    """Lines of slots by place, variant and metric.

    A place has the settings of `TIMED_TOGETHER`, and the length.
    """

    lines: Mapping[tuple[Any, ...], Mapping[str, Mapping[str, Line]]]

    def state(self, place: tuple[Any, ...], variant: str) -> float:
        """Bytes that one row keeps; NaN where that is not known."""
        line = self.lines.get(place, {}).get(variant, {}).get(STATE)
        return math.nan if line is None else float(line["median"])

    def grows(self, place: tuple[Any, ...], variant: str) -> float:
        """Bytes that a further token adds, from the next shorter or else the next longer length."""
        *where, length = place
        lengths = sorted(
            one[-1]
            for one in self.lines
            if list(one[:-1]) == where and math.isfinite(self.state(one, variant))
        )
        others = [one for one in lengths if one < length][-1:] or [
            one for one in lengths if one > length
        ][:1]
        if not others:
            return math.nan
        other = (*where, others[0])
        return (self.state(place, variant) - self.state(other, variant)) / (length - others[0])


def timed_slots(folder: RunFolder) -> Slots:
    """What was timed of slots, without variants whose certificate is red."""
    speed = folder.speed.dropna(subset="length")
    of_slots = speed[speed["shape"].map(is_slot)] if len(speed) else speed
    red = of_slots["variant"].map(lambda name: bool(red_reasons(folder.certificates, name)))
    found: dict[tuple[Any, ...], dict[str, dict[str, Line]]] = {}
    for line in of_slots[~red.astype(bool)].to_dict("records"):
        place = tuple(line[name] for name in (*TIMED_TOGETHER, "length"))
        mine = found.setdefault(place, {}).setdefault(str(line["variant"]), {})
        mine[str(line["metric"])] = {str(key): value for key, value in line.items()}
    return Slots(found)


def main_place(slots: Slots) -> tuple[Any, ...] | None:
    """The place with the longest cache where many variants were timed; of several the fullest."""
    counts = {place: len(lines) for place, lines in slots.lines.items()}
    least = MANY * max(counts.values(), default=0)
    many = [place for place, count in counts.items() if count >= least]
    return max(many, key=lambda place: (place[-1], counts[place]), default=None)


def places_by_length(chosen: tuple[Any, ...], slots: Slots) -> Mapping[float, tuple[Any, ...]]:
    """Places with the settings and the heads of a chosen one; of each length the fullest."""

    def settings(place: tuple[Any, ...]) -> tuple[Any, ...]:
        return place[:5]

    alike = [place for place in slots.lines if settings(place) == settings(chosen)]
    alike.sort(key=lambda place: (place[-1], len(slots.lines[place])))
    return {place[-1]: place for place in alike}


ON_A_GPU = (
    "Times on a GPU are those of its kernels, one behind the other. The host queues a call while "
    "the GPU waits, so that what the host takes to launch the kernels is left out. Code of many "
    "small kernels may be slower where it is used, unless its launches are captured in a graph."
)


def clocks(folder: RunFolder) -> tuple[Paragraph, ...]:
    """What times of a GPU leave out; nothing where all were taken on a CPU."""
    return (Paragraph(ON_A_GPU),) if set(folder.speed["device"]) - {"cpu"} else ()


def stacked(found: Mapping[int, Iterable[str]]) -> list[str]:
    """Say what stands for a layer where layers read each other, by how many were timed."""
    return [
        f"{join(sorted(names))}: layers read each other, so a stack of {layers} layers was timed. "
        "Numbers are those of a layer on average, but peaks are those of the stack, with the "
        "states of all of its layers."
        for layers, names in found.items()
    ]


def is_slot(shape: str) -> bool:
    """Whether a shape has its heads with it.

    >>> is_slot("attend[batch=1,place=slot]"), is_slot("attend[batch=1]")
    (True, False)
    """
    chosen = parse(shape).options.get("place", ())
    return isinstance(chosen, tuple) and [one.name for one in chosen] == ["slot"]


def batch_of(shape: str) -> int:
    """Rows that a shape reads at once."""
    return int(str(parse(shape).options.get("batch", 2)))
