"""The cells behind a claim: of each side one for each seed, at the sizes of its preset."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bench.api import registry
from bench.api.cell import Cell
from bench.api.claim import CLAIMS, FIRST_SEED, Claim, Side
from bench.api.command import EXAMPLES
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.running.left_out import LeftOut
from bench.running.plan import Plan
from bench.running.quality_cells import PlannedCell, quality_cell
from bench.running.request import AskedVariant, Request
from bench.training.analysis import analysis_cell
from reports.claims import claims_command

EVERY = "all"
PROBE_S = 2.0
"""What a probe of one model takes, for the budget (CPU s)."""


@dataclass(frozen=True, kw_only=True)
class SideCells:
    """What a side needs of one seed."""

    trained: PlannedCell
    probed: Cell | None
    """The probe of the trained network, where it has the number."""

    @property
    def read(self) -> Cell:
        """The cell whose row is the number."""
        return self.probed or self.trained.cell


def asked_claims(keys: Sequence[str]) -> list[Claim]:
    """Claims by their keys, each once; `all` is every registered one in the order of the keys.

    Raises:
        UnknownName: Nobody registered one of the keys.
        InvalidConfig: `all` was given together with keys.
    """
    if not keys or EVERY in keys:
        if len(keys) > 1:
            raise InvalidConfig(f"claims: {EVERY} stands alone; give {EVERY}, or keys.")
        return [entry.target for entry in registry.registrations(CLAIMS).values()]
    return [_claim(key) for key in dict.fromkeys(keys)]


def _claim(key: str) -> Claim:
    """The claim of a key; one that lacks a zero is near to no other than the one with it."""
    padded = re.sub(r"\d+", lambda digits: digits.group().zfill(2), key.upper())
    if key not in (known := registry.registrations(CLAIMS)) and padded in known:
        raise UnknownName(f"no claim named {key!r}; did you mean {padded!r}?")
    return registry.find(CLAIMS, key).target


def cells_of(side: Side, request: Request, seed: int) -> SideCells:
    """The cells of one side under one seed.

    Args:
        side: What is measured.
        request: Device, number type and implementation; the rest is the side's.
        seed: At least `FIRST_SEED` but for pilots.
    """
    place = DefaultTask(task=side.task, backbone=side.backbone, slot=side.slot)
    # a claim fixes its sizes itself: what calibration chooses later must not change the question
    mine = replace(request, preset=side.preset, training=side.training, calibrated=False)
    trained = quality_cell(mine, resolve(parse(side.variant)), place, seed)
    probe = parse(side.probe) if side.probe else None
    probed = analysis_cell(trained.cell, probe, side.examples or EXAMPLES) if probe else None
    return SideCells(trained=trained, probed=probed)


def expected_minutes(claim: Claim, request: Request) -> float:
    """What the trained part of a claim takes on one core (min)."""
    cells = [cells_of(side, request, FIRST_SEED) for side in claim.sides]
    return len(claim.sample) * sum(_seconds(cells).values()) / 60


def _seconds(sides: Iterable[SideCells]) -> dict[str, float]:
    """Expected time of every cell by its id (CPU s); sides that read one network share it."""
    found = {}
    for one in sides:
        found[one.trained.cell.id] = one.trained.seconds
        if one.probed:
            found[one.probed.id] = PROBE_S
    return found


def plan_of(claims: Iterable[Claim], request: Request) -> Plan:
    """The cells of some claims, claim by claim in order of priority, while they fit the budget.

    A claim is planned as a whole, because half of its sides decide nothing.

    Raises:
        InvalidConfig: More seeds are asked for than decide one of the claims.
    """
    made = Plan(request)
    made.add([request.asked_baseline])
    room, seen = 60 * request.minutes * request.jobs or float("inf"), set[str]()
    for claim in sorted(claims, key=lambda one: (one.priority, one.key)):
        if claim.sides and request.seeds > len(claim.sample):
            raise InvalidConfig(
                f"claim {claim.key} is decided on {len(claim.sample)} seeds, a number that was "
                f"fixed before its run; got --seeds {request.seeds}. Give at most "
                f"{len(claim.sample)}, or leave the option out."
            )
        seeds = claim.sample[: request.seeds or None]
        cells = [cells_of(side, request, seed) for side in claim.sides for seed in seeds]
        new = [one for one in cells if one.read.id not in seen]
        cost = sum(took for id_, took in _seconds(cells).items() if id_ not in seen)
        if cost > room:
            minutes = f"it takes about {cost / 60:.0f} CPU minutes, and --minutes leaves less"
            command = claims_command(claim.key, request.plugin)
            made.left_out.append(LeftOut(f"claim {claim.key}", minutes, command))
            continue
        room -= cost
        for one in new:
            spec = one.trained.spec
            made.add([AskedVariant(spec.canonical.show(), spec)])
            if one.trained.cell.id not in seen:
                made.quality.append(one.trained)
            if one.probed and one.probed.id not in seen:
                made.analysis.append(one.probed)
            seen |= {one.trained.cell.id, one.read.id}
    return made
