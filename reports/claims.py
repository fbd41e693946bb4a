"""What stored rows say of claims, as data: parts, verdict, how far it was tested, and why."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from bench.api.claim import Bound, Claim, Contrast
from reports.claim_words import bounds_in_words, expected_in_words, range_in_words, seen_in_words
from reports.numbers import counted
from reports.prose import join
from results.statistics.primary import MOST_SEEDS
from results.statistics.verdicts import (
    LEVEL,
    SECOND_LEVEL,
    ClaimVerdict,
    Finding,
    Observed,
    distances,
    same_on_both_sides,
)

Standing = Literal[
    "supported",
    "contradicted",
    "equivalent",
    "undecided",
    "in part run",
    "not run",
    "cannot be tested here",
]
"""A verdict; where it is open, whether the runs left it open or were never made."""
STANDINGS: tuple[Standing, ...] = (
    "supported",
    "contradicted",
    "equivalent",
    "undecided",
    "in part run",
    "not run",
    "cannot be tested here",
)
"""In the order in which they are shown."""


BELOW = "below the margin"
"""Said where a difference has the expected sign and is shown to be too small."""


@dataclass(frozen=True, kw_only=True)
class ContrastOutcome:
    """One contrast and what the seeds show of it."""

    contrast: Contrast
    seen: Observed
    finding: Finding

    @property
    def ran(self) -> bool:
        """Whether any seed of it is stored."""
        return bool(self.finding.difference.count)

    @property
    def failed(self) -> bool:
        """Whether the seeds refute it."""
        return self.finding.verdict == "contradicted"

    @property
    def falls_short(self) -> bool:
        """Whether the seeds refute its size alone: the difference has the expected direction."""
        signs = {"higher": 1.0, "lower": -1.0, "equal": 0.0}
        return self.failed and signs[self.contrast.expect] * self.finding.difference.estimate > 0

    @property
    def result(self) -> str:
        """The verdict, and how far it reaches."""
        if not self.ran:
            return "not run"
        verdict = self.finding.verdict
        if self.falls_short:
            return f"{verdict} ({BELOW})"
        return f"{verdict}, no seed differs" if verdict == "equivalent" and self.same else verdict

    @property
    def holds(self) -> bool:
        """Whether it is as the claim expects."""
        return self.finding.verdict in ("supported", "equivalent")

    @property
    def same(self) -> bool:
        """Whether no seed has a difference."""
        return self.ran and same_on_both_sides(self.seen)

    def means(self) -> str:
        """Mean of each side, so that a limit of the metric shows: of scores, sums or distances.

        A number beside a right side is no part of it; where there is none, the number is the side.
        """
        if not self.ran:
            return ""
        sides = (self.seen.left, self.seen.right)
        if self.contrast.of == "spread":
            sides = (distances(self.seen.left), distances(self.seen.right))
        left, right = (fmean(side.values()) for side in sides)
        if self.contrast.right and self.contrast.of != "spread":
            right -= self.contrast.against
        most = max(len(self.contrast.left), len(self.contrast.right))
        return f"{left:.3g} and {right:.3g}{f' (sums of {most})' if most > 1 else ''}"

    def seen_text(self) -> str:
        """What was seen."""
        return f"{self.contrast.title}: {seen_in_words(self.finding)}"

    def failure(self) -> str:
        """What was seen, and what was expected."""
        seen = f"{self.finding.difference.estimate:+.3g}"
        return f"{self.contrast.title}: {seen}, expected {expected_in_words(self.contrast)}"


@dataclass(frozen=True, kw_only=True)
class BoundOutcome:
    """One bound and the numbers that were computed for it."""

    bound: Bound
    values: Mapping[float | None, float]
    """Place on the axis -> number; empty where nothing is stored."""
    axis: str = ""
    """What the places count; empty for a number that has none."""

    @property
    def title(self) -> str:
        """What the number is, for people."""
        return self.bound.title or self.bound.metric.replace("_", " ")

    @property
    def low(self) -> float | None:
        """The least number; None where nothing is stored."""
        return min(self.values.values(), default=None)

    @property
    def high(self) -> float | None:
        """The greatest number; None where nothing is stored."""
        return max(self.values.values(), default=None)

    @property
    def ran(self) -> bool:
        """Whether a number of it is stored."""
        return bool(self.values)

    @property
    def holds(self) -> bool:
        """Whether numbers are stored and all of them lie inside."""
        return self.ran and all(self.inside(value) for value in self.values.values())

    @property
    def failed(self) -> bool:
        """Whether a number lies outside."""
        return self.ran and not self.holds

    @property
    def falls_short(self) -> bool:
        """A number outside of its bounds has no direction that could be right."""
        return False

    @property
    def same(self) -> bool:
        """No two sides are compared."""
        return False

    @property
    def result(self) -> str:
        """Where the numbers lie."""
        if not self.ran:
            return "not run"
        if not self.bound.decides:
            return ""
        return "inside" if self.holds else "outside"

    def inside(self, value: float) -> bool:
        """Whether a number lies between the ends."""
        return self.bound.low <= value <= self.bound.high

    def seen_text(self) -> str:
        """What was computed."""
        return f"{self.title}: {range_in_words(self.values, self.axis)}"

    def failure(self) -> str:
        """What was computed, and what was expected."""
        seen = range_in_words(self.values, self.axis)
        return f"{self.title}: {seen}, expected {bounds_in_words(self.bound)}"


def claims_command(keys: str, plugins: Sequence[str]) -> str:
    """What runs claims, with the plug-ins that they may come from.

    >>> claims_command("C08", ["my claims.py"])
    "python -m bench claims run C08 --plugin 'my claims.py'"
    """
    return " ".join(
        ["python -m bench claims run", keys, *(f"--plugin {shlex.quote(one)}" for one in plugins)]
    )


@dataclass(frozen=True, kw_only=True)
class ClaimOutcome:
    """A claim with its verdict and the numbers behind it."""

    claim: Claim
    verdict: ClaimVerdict
    contrasts: tuple[ContrastOutcome, ...]
    unfinished: bool = False
    """Whether cells are missing without which nothing is decided: seeds that were planned, or
    scores that say what was learned."""
    waiting: bool = False
    """Whether some of these were not run."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """How many of these ended without the number that is read, by how they ended. A run does not
    ask them again by itself."""
    first_sample: tuple[ContrastOutcome, ...] = ()
    """What the first sample showed, where a second one decides."""
    bounds: tuple[BoundOutcome, ...]
    minutes: float
    """What is trained for it takes on one core: as measured where it was trained, or as expected
    (min)."""
    timed: bool = False
    """Whether that was measured."""
    commits: tuple[str, ...] = ()
    """Commits of the cells whose numbers decide it, the one with most of them first."""

    plugins: tuple[str, ...] = ()
    """Plug-in files that the commands of its page load."""

    @property
    def command(self) -> str:
        """What computes it again."""
        return claims_command(self.claim.key, self.plugins)

    @property
    def parts(self) -> "tuple[ContrastOutcome | BoundOutcome, ...]":
        """Everything that can hold or fail."""
        return (*self.contrasts, *self.bounds)

    @property
    def ran(self) -> bool:
        """Whether any number of it is stored."""
        return any(part.ran for part in self.parts)

    @property
    def standing(self) -> Standing:
        """The verdict; an open claim says whether its runs left it open or were never made."""
        if self.verdict != "undecided":
            return self.verdict
        if self.claim.missing:
            return "cannot be tested here"
        if self._not_run:
            return "not run"
        return "in part run" if self._in_part else "undecided"

    @property
    def _holding(self) -> "list[ContrastOutcome | BoundOutcome]":
        """Parts that could have failed, and did not."""
        return [
            *(one for one in self.contrasts if one.holds),
            *(one for one in self.bounds if one.holds and one.bound.decides),
        ]

    @property
    def _not_run(self) -> bool:
        return not self.ran and not self.lost

    @property
    def _in_part(self) -> bool:
        return self.unfinished or not all(part.ran for part in self.parts)

    @property
    def level(self) -> float:
        """Error rate at which its contrasts are decided."""
        return SECOND_LEVEL if self.first_sample else self.first_level

    @property
    def first_level(self) -> float:
        """Error rate of its first sample."""
        return SECOND_LEVEL if self.claim.rewritten else LEVEL

    @property
    def falls_short(self) -> bool:
        """Whether it is contradicted by effects alone that are smaller than was claimed."""
        failed = [part for part in self.parts if part.failed]
        return self.verdict == "contradicted" and all(part.falls_short for part in failed)

    def grounds(self) -> str:
        """What a claim that holds rests on: one of its parts, and the count of others. Else empty.

        The part is the first one in which any seed differs, because two sides at a limit of the
        metric show little.
        """
        if self.verdict not in ("supported", "equivalent"):
            return ""
        holding = self._holding
        shown = next((one for one in holding if not one.same), holding[0])
        return f"{shown.seen_text()}{_others_in_words(len(holding) - 1, 'more')}."

    def reason(self) -> str:
        """Why it is open, and what would decide it; or what contradicts it. Else empty."""
        if self.verdict == "contradicted":
            failed = "; ".join(part.failure() for part in self.parts if part.failed)
            return f"{failed}{_others_in_words(len(self._holding), 'other')}."
        if self.verdict != "undecided":
            return ""
        if self.claim.missing:
            return self.claim.missing
        if self._not_run:
            return f"It was not run; `{self.command}` runs it."
        if self._in_part:
            return self._missing_in_words()
        open_ = [one for one in self.contrasts if one.finding.verdict == "undecided"]
        whys = [_why_no_seeds_decide(one) for one in open_]
        hopeful = [one for one, why in zip(open_, whys, strict=True) if not why]
        if self.claim.needed == "any" and hopeful:
            return _seeds_in_words(_decided_first(hopeful))
        return next(filter(None, whys), "") or _seeds_in_words(open_)

    def _missing_in_words(self) -> str:
        """What a claim that was run in part lacks, and what runs it."""
        planned = len(self.claim.sample)
        fewest = min((one.finding.difference.count for one in self.contrasts), default=planned)
        has = f"It has {fewest} of {planned} seeds" if fewest < planned else ""
        said = [f"{has}."] if has else []
        if self.waiting or not all(bound.ran for bound in self.bounds):
            lacking = f"{has}; `{self.command}` runs the others."
            none = f"Some of its cells were not run; `{self.command}` runs them."
            said = [lacking if has else none]
        if self.lost:
            said.append(_lost_in_words(self.lost, self.command))
        return " ".join(said)


def _lost_in_words(lost: Mapping[str, int], command: str) -> str:
    """How cells ended that have no number, and what asks them again."""
    count = sum(lost.values())
    ways = join([f"{number} {how.replace('_', ' ')}" for how, number in sorted(lost.items())])
    retried = "".join(f" --retry {how}" for how in sorted(lost) if how != "ok")
    again = f"; `{command}{retried}` runs {'it' if count == 1 else 'them'} again" if retried else ""
    return f"{counted(count, 'cell')} ended without the number that is read ({ways}){again}."


def _why_no_seeds_decide(one: ContrastOutcome) -> str:
    """Why more seeds of an open contrast would not decide it; empty where they would."""
    title, finding = one.contrast.title, one.finding
    if finding.unlearned:
        low = max(wanted.low for wanted in one.contrast.learned)
        return (
            f"A network of “{title}” has not learned its task (a mean of at least {low:g} was "
            "asked for), and what such a network does decides nothing."
        )
    if finding.cramped:
        room = "no" if one.seen.room < one.contrast.margin else "little"
        return (
            f"“{title}” leaves {room} room: the right side is {one.seen.room:.2g} from the end of "
            f"its metric, where a difference of {one.contrast.margin:g} was expected. A harder "
            "setting would decide, and not more seeds."
        )
    if finding.still:
        return (
            f"No seed has any difference in “{title}”: both sides are at a limit of the metric, or "
            "compute the same, and more seeds would not decide."
        )
    return ""


def _decided_first(open_: Sequence[ContrastOutcome]) -> Sequence[ContrastOutcome]:
    """The part that fewest seeds would decide, where one part is enough; all if none tells."""
    counted = [
        (one.finding.seeds_to_decide, at)
        for at, one in enumerate(open_)
        if one.finding.seeds_to_decide is not None
    ]
    return [open_[min(counted)[1]]] if counted else open_


def _others_in_words(count: int, which: str) -> str:
    """How many further parts of a claim are as it says; empty for none."""
    return f"; {count} {which} {'part holds' if count == 1 else 'parts hold'}" if count else ""


def _seeds_in_words(open_: Sequence[ContrastOutcome]) -> str:
    """How many seeds would decide what is open."""
    needed = [(one.finding.seeds_to_decide, one.contrast.title) for one in open_]
    known = [(seeds, title) for seeds, title in needed if seeds is not None]
    if len(known) < len(needed) or not known:
        return "The seeds so far do not tell how many would decide."
    seeds, title = max(known)
    few = min(one.finding.difference.count for one in open_)
    if seeds > MOST_SEEDS:
        return (
            f"More than {MOST_SEEDS} seeds would decide (seen: {few}), because “{title}” lies so "
            "close to where its verdict changes."
        )
    return f"About {seeds} seeds would decide (seen: {few})."
