"""Places of a text that numbers of published runs fill.

A number is written as `{task/variant|metric@length}`: of a variant or a non-neural baseline on a
task, by the metric that ranks if none is named, on inputs of one length if one is named. A length
is a number, `trained` or `longest`. `{run:task/variant}` is a number of another run than that of
the text. `{decode/…@n}` is how many times as fast as the baseline a variant decodes with n keys in
the cache of a layer, `{decode[batch=64]/…@n}` the same with so many rows.
`{task@trained}` is the longest input of training, `{task@longest}` that of the test, and
`{task@beyond}` names all lengths of the test that are longer than any of training.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple, Self

from bench.api.headline import made_of
from reports.folder import RunFolder
from reports.markdown import escape
from reports.numbers import UNBOUNDED, Seen, leaves_range, plain, with_interval
from reports.prose import join
from reports.ranked_table.comparison import Comparison
from reports.sections.timed_slots import (
    DECODE,
    Line,
    main_place,
    places_by_length,
    timed_slots,
)
from results.statistics import Interval, t_interval

_PLACE = re.compile(r"\{(?:(\w+):)?([^{}]+)\/([^{}\/|@]+)\|?([^{}@]*)@?([^{}]*)\}")
_LENGTH = re.compile(r"\{([^{}\/@]+)@(trained|longest|beyond)\}")
WIDE, WIDE_SHARE = 0.1, 1 / 6
"""Half a width that a short text tells: more than this, and than this share of the mean."""
DECODING = "decode"
"""Written where a task is otherwise, for the speed of decoding."""
NO_OTHERS: Mapping[str, RunFolder] = MappingProxyType({})


def runs_of(text: str) -> set[str]:
    """The other runs that places of a text name.

    >>> runs_of("{families:recall/mqa} and {recall/mqa}")
    {'families'}
    """
    return {match[1] for match in _PLACE.finditer(text) if match[1]}


def filled(
    text: str,
    folder: RunFolder,
    others: Mapping[str, RunFolder] = NO_OTHERS,
    *,
    short: bool = False,
) -> str:
    """A text with the numbers of runs in their places.

    Args:
        text: With places.
        folder: The run of the places that name none.
        others: Runs by the stems of their packs.
        short: Whether to leave narrow intervals out.

    Raises:
        LookupError: A run has no such number.
    """

    def printed(match: re.Match[str]) -> str:
        run, *asked = match.groups()
        found = score(others[run] if run else folder, *asked)
        return escape(found.short if short else found.text)

    def lengths(match: re.Match[str]) -> str:
        task, which = match.groups()
        trained, beyond = _lengths(_first(folder, task))
        known = {"trained": [trained], "longest": beyond[-1:], "beyond": beyond}
        return join([plain(one, 0) for one in known[which]])

    return _LENGTH.sub(lengths, _PLACE.sub(printed, text))


class Score(NamedTuple):
    """A number, and how it is printed."""

    value: float
    half: float
    """Half the width of its interval, or of its extremes where these are printed."""
    text: str
    """The number with its interval."""

    @classmethod
    def of(
        cls,
        mean: Interval,
        limits: tuple[float, float] = UNBOUNDED,
        seen: Seen | None = None,
    ) -> Self:
        """A mean, printed with its interval, or with its extremes where that cannot be."""
        value, low, high = mean.estimate, mean.low, mean.high
        text = with_interval(value, low, high, limits=limits, seen=seen)
        if seen is not None and leaves_range(low, high, limits, seen):
            low, high = seen.low, seen.high
        return cls(value, (high - low) / 2, text)

    @property
    def short(self) -> str:
        """The number with three digits, alone unless its interval is wide.

        >>> Score(1.4749, 0.013, "1.475 ± 0.013").short, Score(0.35, 0.31, "0.35 ± 0.31").short
        ('1.47', '0.35 ± 0.31')
        """
        wide = math.isfinite(self.half) and self.half > max(WIDE, WIDE_SHARE * abs(self.value))
        return self.text if wide else plain(self.value)


def score(folder: RunFolder, task: str, name: str, metric: str = "", length: str = "") -> Score:
    """The score of a variant, or of a non-neural baseline, on a task.

    Args:
        folder: The run.
        task: Label of the task.
        name: Label of the variant, or name of the baseline.
        metric: By which it is scored; that which ranks if empty.
        length: Of the inputs; the whole test if empty.

    Raises:
        LookupError: The run has no such number.
    """
    if task.startswith(DECODING):
        return _speed(folder, task.removeprefix(DECODING).strip("[]"), name, float(length))
    for comparison in _comparisons(folder, task):
        here = [one for one in comparison.means if folder.catalog.label(one) == name]
        told = replace(comparison, metric=metric) if metric else comparison
        found = _of_variant(told, here[0], length) if here else None
        if found is not None:
            return found
        if name in comparison.without:
            mean = fmean(comparison.without[name].values())
            return Score(mean, 0.0, plain(mean))
    wanted = f"{name} on {task} {metric} {length}".strip()
    raise LookupError(f"README.md: {folder.name} has no score of {wanted}")


def _comparisons(folder: RunFolder, task: str) -> Iterator[Comparison]:
    """Those on a task, the network in which most variants stand first."""
    for comparison in sorted(folder.comparisons, key=lambda one: -len(one.means)):
        if folder.catalog.task_label(comparison.task) == task:
            yield comparison


def _first(folder: RunFolder, task: str) -> Comparison:
    for comparison in _comparisons(folder, task):
        return comparison
    raise LookupError(f"README.md: {folder.name} has no comparison on {task}")


def _of_variant(comparison: Comparison, variant: str, length: str) -> Score | None:
    """The score of a variant, or a size of its network; None where there is neither."""
    if length:
        return _at(comparison, variant, length)
    if variant in comparison.means:
        seen = Seen.of(comparison.scores[variant].values())._replace(seeds=0)
        return Score.of(comparison.means[variant], comparison.ranked_by.limits, seen)
    size = comparison.cells.trained(variant, comparison.metric)
    return Score.of(size) if math.isfinite(size.estimate) else None


def _at(comparison: Comparison, variant: str, length: str) -> Score:
    """The score on inputs of one length."""
    trained, beyond = _lengths(comparison)
    at = {"trained": trained, "longest": beyond[-1]}.get(length)
    at = float(length) if at is None else at
    by_seed = comparison.stored.parts(made_of(comparison.metric), "length").get((variant, at))
    if by_seed is None:
        raise LookupError(f"README.md: no inputs of length {at:g} for {variant}")
    seen = Seen.of(by_seed.values())._replace(seeds=0)
    return Score.of(t_interval([*by_seed.values()]), comparison.ranked_by.limits, seen)


def _lengths(comparison: Comparison) -> tuple[float, list[float]]:
    """The longest inputs of training, and the lengths of the test that are longer."""
    trained = comparison.catalog.task(comparison.task).trained_to
    parts = comparison.stored.parts(made_of(comparison.metric), "length")
    beyond = sorted({at for _, at in parts if trained is not None and at > trained})
    if trained is None or not beyond:
        raise LookupError(f"README.md: no inputs of {comparison.title} are longer than in training")
    return trained, beyond


def _speed(folder: RunFolder, rows: str, variant: str, keys: float) -> Score:
    """How many times as fast as the baseline a variant decodes, as layers of a run are timed.

    Args:
        folder: The run.
        rows: Such as `batch=64`; those of the main table if empty.
        variant: Label of the variant.
        keys: In the cache.

    Raises:
        LookupError: The run has no such speed.
    """
    for name, line in _timed(folder, rows, keys).items():
        if folder.catalog.label(name) == variant:
            ratio = line[DECODE]
            found = (ratio["ratio"], ratio["ratio_low"], ratio["ratio_high"])
            return Score(found[0], (found[2] - found[1]) / 2, with_interval(*found))
    raise LookupError(f"README.md: {folder.name} has no speed of {variant} with {keys:g} keys")


def _timed(folder: RunFolder, rows: str, keys: float) -> Mapping[str, Mapping[str, Line]]:
    """Lines of the layers that were timed with some rows and keys, by variant and metric."""
    slots = timed_slots(folder)
    main = main_place(slots)
    if main is None:
        return {}
    shape = re.sub(r"batch=\d+", rows, main[0]) if rows else main[0]
    place = places_by_length((shape, *main[1:]), slots).get(keys)
    return {} if place is None else slots.lines[place]
