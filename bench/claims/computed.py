"""Computed claims: their numbers as a cell of their own, stored like any other."""

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from types import FunctionType

from bench.api import registry
from bench.api.cell import Cell
from bench.api.claim import Claim, Exact
from bench.api.errors import BenchError
from bench.api.metric import Scored
from bench.api.plain_text import named_message_of
from bench.api.registry import watch_made
from bench.running.source_code import Root, loaded_source
from results.environment import collect
from results.plain_data import plain_rows
from results.row import Record, Row
from results.store import Store


def exact_cell(key: str) -> Cell:
    """The cell that holds the computed numbers of a claim.

    >>> exact_cell("C08").label
    'exact C08 @ none @ none / none / exact'
    """
    return Cell(
        kind="exact", task=key, backbone="none", variant="none", slot="none", protocol="exact"
    )


def compute(claim: Claim, store: Store) -> bool:
    """Compute the numbers of a claim, unless they are stored and their code is that of today.

    Returns:
        Whether they were computed now.

    Raises:
        BenchError: The claim's code fails, a number is not finite, or a bound has no number.
    """
    assert claim.exact is not None, "asked only of computed claims"
    cell = exact_cell(claim.key)
    before = store.newest_of(cell.id)
    if before and before.status == "ok" and before.code == _code(claim, before.made):
        return False
    start = time.perf_counter()
    with watch_made() as built:
        numbers = _numbers(claim, claim.exact)
    made = tuple(sorted(f"{axis}:{name}" for axis, name in built))
    try:
        rows = plain_rows(
            Row(metric=one.metric, value=one.value, axis=one.axis, x=one.x) for one in numbers
        )
    except (TypeError, ValueError) as error:
        raise BenchError(f"claim {claim.key}: {error}; mend its computation.") from error
    store.append(
        Record(
            cell={name: getattr(cell, name) for name in cell.__dataclass_fields__},
            id=cell.id,
            status="ok",
            environment=store.write_environment(collect(1)),
            attempt=before.attempt + 1 if before else 1,
            seconds=round(time.perf_counter() - start, 3),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            rows=rows,
            code=_code(claim, made),
            made=made,
        )
    )
    return True


def _numbers(claim: Claim, exact: Exact) -> Sequence[Scored]:
    """What a claim computes, with a number for each of its bounds."""
    try:
        numbers = [*exact.compute()]
    except BenchError:
        raise
    except Exception as error:  # code of a plug-in may raise anything
        raise BenchError(
            f"claim {claim.key}: its computation failed: {named_message_of(error)}."
        ) from error
    places = Counter((one.metric, one.axis, one.x) for one in numbers)
    for (metric, axis, x), count in places.items():
        if count > 1 or any(name == metric and other != axis for name, other, _ in places):
            at = f"{axis} {x:g}" if axis and x is not None else "one place"
            raise BenchError(
                f"claim {claim.key}: it computes {metric} twice at {at}, or along two axes; give "
                "every number a name, or a place on one axis, of its own."
            )
    found = sorted({one.metric for one in numbers})
    lacking = sorted({bound.metric for bound in exact.bounds} - {*found})
    if lacking:
        raise BenchError(
            f"claim {claim.key}: its bounds are on {', '.join(lacking)}, and what it computes is "
            f"{', '.join(found) or 'nothing'}; give both the same name."
        )
    return numbers


def _code(claim: Claim, made: tuple[str, ...]) -> str:
    """Hash of the computation and of every part that it built; empty if a part has gone."""
    assert claim.exact is not None, "asked only of computed claims"
    compute = claim.exact.compute
    assert isinstance(compute, FunctionType), "as the contract says"
    roots: list[Root] = [compute]
    try:
        for one in made:
            axis, _, name = one.partition(":")
            target = registry.find(axis, name).target
            if isinstance(target, type):
                roots.append(target)
    except BenchError:
        return ""
    return loaded_source().digest(roots, [f"claim={claim.key}"])
