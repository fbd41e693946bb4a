"""Tests at several looks: seeds are added while something is undecided.

Each look spends a share of the error rate (Lan & DeMets, 1983, Biometrika 70(3)), and the shares of
all looks are at most 1, however many there are. So the p value of a pair after some looks is the
least of `p of the look / its share`: a weighted Bonferroni correction, which holds whenever a run
stops and for whatever reason (ADR 24). Looks whose mean difference has another sign than that of
the last look do not count, so that a claim has the direction of the last look. With fewer looks
claims are rarer, so the error rate holds.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from results.looks import Looks
from results.statistics.moderated import ModeratedDifference, ModeratedTable, Scores

Ended = Mapping[str, Collection[int]]
"""Variant -> seeds that have been run, with a score or without."""
Look = tuple[float, ModeratedDifference]
"""What a look may spend of the error rate, and what it saw of a pair."""


@dataclass(frozen=True, kw_only=True)
class SequentialDifference(ModeratedDifference):
    """A mean difference at the last look at a pair; its p values are of all looks together.

    The interval is a repeated confidence interval (Jennison & Turnbull, 1989, J. R. Stat. Soc. B
    51(3)): those of all looks together hold the true difference at their level.
    """

    looked: tuple[Look, ...]
    """What each look at the pair saw, with its share."""

    def p_outside(self, margin: float) -> float:
        """P value of "the true difference is at least the margin, either way", over all looks."""
        return _over_looks((share, one.p_outside(margin)) for share, one in self.looked)

    def p_short(self, bound: float) -> float:
        """P value of "the true difference is at least `bound`", over all looks."""
        return _over_looks((share, one.p_short(bound)) for share, one in self.looked)

    def p_beyond(self, margin: float) -> float:
        """P value of "the true difference is at most the margin", over looks of the last sign."""
        agreeing = _of_one_sign(self.looked, self.estimate)
        return _over_looks((share, one.p_beyond(margin)) for share, one in agreeing)


class SequentialTable:
    """The scores of one task, as a run with several looks saw them."""

    def __init__(self, scores: Scores, ended: Ended, looks: Looks, last: int | None = None) -> None:
        """Replay the looks on stored scores.

        A pair is looked at as often as all seeds of a look have been run for both, so that no look
        is counted before it is complete, and none twice.

        Args:
            scores: Score by seed of each variant, finite; seeds may be missing.
            ended: What has been run.
            looks: When the run looks.
            last: Number of the last look that counts; None for as many as there are.

        Raises:
            ValueError: A score is not finite.
        """
        self._scores, self._ended, self._looks = scores, ended, looks
        self._last = math.inf if last is None else last
        self._whole = ModeratedTable(scores)
        self._known: dict[int, tuple[ModeratedTable, set[str]]] = {}

    def difference(self, left: str, right: str, level: float = 0.95) -> SequentialDifference:
        """Score of one variant minus that of another, at the last look at both.

        Args:
            left: A variant of the table.
            right: Another one.
            level: Of all repeated intervals together.
        """
        looked: list[Look] = []
        for number in range(1, min(self._complete[left], self._complete[right]) + 1):
            table, names = self._at(number)
            if left in names and right in names:
                share = self._looks.share(number)
                looked.append((share, table.difference(left, right, 1 - (1 - level) * share)))
        if looked:
            share, shown = looked[-1]
        else:  # before the first look there is an estimate, and no evidence
            share = self._looks.share(1)
            shown = self._whole.difference(left, right, 1 - (1 - level) * share)
        p = _over_looks((share, one.p) for share, one in _of_one_sign(looked, shown.estimate))
        together = {**vars(shown), "p": p, "share": share, "looked": tuple(looked)}
        return SequentialDifference(**together)

    @cached_property
    def _complete(self) -> dict[str, int]:
        """Looks of which all seeds have been run, by variant."""
        found = {}
        for name in self._scores:
            number, ended = 0, set(self._ended.get(name, ()))
            while number < self._last and all(
                map(ended.__contains__, self._looks.seeds(number + 1))
            ):
                number += 1
            found[name] = number
        return found

    def _at(self, number: int) -> tuple[ModeratedTable, set[str]]:
        """The table of a look, and the variants that have a score in it."""
        if number not in self._known:
            seeds = self._looks.seeds(number)
            seen = {
                name: {seed: value for seed, value in by_seed.items() if seed in seeds}
                for name, by_seed in self._scores.items()
            }
            names = {name for name, by_seed in seen.items() if by_seed}
            self._known[number] = ModeratedTable(seen), names
        return self._known[number]


def _of_one_sign(looked: Sequence[Look], estimate: float) -> Sequence[Look]:
    """The looks whose mean difference has the sign of the last one; that one alone without any."""
    return [one for one in looked if one[1].estimate * estimate > 0] or looked[-1:]


def _over_looks(found: Iterator[tuple[float, float]]) -> float:
    """P value of several looks, of the share and the p value of each; 1 without any."""
    return min(1.0, *(p / share for share, p in found), 1.0)
