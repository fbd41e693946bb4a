"""Several runs as one: by cell id, from run folders and from packs."""

import json
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from results.certificate import certificate_entries, with_checks
from results.json_values import Json, JsonObject, as_list, as_object, as_text, read_value
from results.ledger import Ledger, age_among_runs
from results.pack import Pack, open_run
from results.reproduced import ValueKey, values_on_test
from results.row import Record
from results.store import ENVIRONMENTS, Store
from results.stored_plan import PLAN, merged_plans, plan_to_json

CERTIFICATES = "certificates.json"
ASKED = "spec.json"
"""What was asked; that of the first run stays."""


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What a merge did."""

    added: int
    """Records copied: cells that were new or newer."""
    skipped: int
    """Records of the sources that the target already had as new or newer."""
    torn_tails: int
    """Unfinished last lines in the sources."""
    corrupt_lines: tuple[str, ...]
    """`file:line: reason` of unreadable lines in the sources."""
    differing: tuple[str, ...]
    """Ids of trained cells of which two runs have different test values, in order."""


def merge(
    into: Path | str,
    sources: Iterable[Path | str],
    wanted: Container[str] | None = None,
    as_of_today: Callable[[Record], Record] | None = None,
) -> Merged:
    """Copy runs of several machines into one folder, by cell id; merging twice changes nothing.

    The newest record of each cell wins, but what only its machine refused, as without data, takes
    the place of nothing. A result that the target has marked as one of other code stays marked.
    JSON files are united entry by entry, and where two disagree the target's value stays, but for
    the certificate of a variant of which all records are newer ones of the source. Sources are only
    read; `study.db` is not merged.

    Args:
        into: A run folder, which is made where it is missing.
        sources: Run folders, or packs, which have few artifacts.
        wanted: Ids of the cells to copy, for a target that has a plan of its own, and is told the
            plug-ins of these cells by whoever planned them; None for all cells, and for what the
            sources had planned.
        as_of_today: Gives the records of the sources the status that they have here; None where
            nobody knows the code of today.

    Raises:
        NotARunFolder: A source is neither, or the target holds something else.
    """
    stores = [open_run(source) for source in sources]
    ledgers = [_only(store.ledger(), wanted) for store in stores]
    if as_of_today is not None:
        # before they are copied, so that no value of other code ever stands there as one of today
        ledgers = [_restated(ledger, as_of_today) for ledger in ledgers]
    names = [name for name in MERGED_FILES if wanted is None or name != PLAN]
    with Store.create(into) as target:
        before = target.ledger()
        marked = {_result(one) for one in before.newest().values() if one.status == "other_code"}
        differing = _differing([before, *ledgers])
        added = sum(
            _copy(store, ledger, target, names, marked, whole=wanted is None)
            for store, ledger in zip(stores, ledgers, strict=True)
        )
    return Merged(
        added=added,
        skipped=sum(len(ledger.newest()) for ledger in ledgers) - added,
        torn_tails=sum(ledger.torn_tails for ledger in ledgers),
        corrupt_lines=tuple(place for ledger in ledgers for place in ledger.corrupt_lines),
        differing=differing,
    )


def _differing(ledgers: Iterable[Ledger]) -> tuple[str, ...]:
    """Ids of trained cells that have different test values in two ledgers.

    The same cell of the same code gives the same values on one machine. Timings differ always.
    """
    values: dict[str, set[frozenset[tuple[ValueKey, float]]]] = {}
    for ledger in ledgers:
        for record in ledger.newest().values():
            if record.status == "ok" and record.cell["kind"] == "quality":
                scores = frozenset(values_on_test(record).items())
                values.setdefault(record.id, set()).add(scores)
    return tuple(sorted(id_ for id_, found in values.items() if len(found) > 1))


def _only(ledger: Ledger, wanted: Container[str] | None) -> Ledger:
    if wanted is None:
        return ledger
    return replace(ledger, records=tuple(one for one in ledger.records if one.id in wanted))


def _restated(ledger: Ledger, as_of_today: Callable[[Record], Record]) -> Ledger:
    """The ledger with the newest record of each cell alone, as it stands today."""
    return replace(ledger, records=tuple(map(as_of_today, ledger.newest().values())))


def _result(record: Record) -> tuple[str, ...]:
    """What identifies a result, whatever its status is by now."""
    return record.id, record.environment, record.finished, record.code


def _copy(
    source: Store | Pack,
    ledger: Ledger,
    target: Store,
    names: Iterable[str],
    marked: Container[tuple[str, ...]],
    *,
    whole: bool,
) -> int:
    held = target.ledger().newest()
    fresh = [
        record
        for record in ledger.newest().values()
        if record.id not in held
        # the target has said of that very result that it is of other code
        or (
            _result(record) not in marked
            and age_among_runs(record) > age_among_runs(held[record.id])
        )
    ]
    for name in names:
        theirs = source.read_json(name)
        if theirs is not None:
            _join(target, name, theirs if whole else _of_some(name, theirs, fresh))
    _renew_certificates(source, target, _measured_anew(held.values(), fresh))
    asked = source.read_json(ASKED)
    if asked is not None and target.read_json(ASKED) is None:
        target.write_json(ASKED, asked)
    known = target.environments()
    for id_, facts in source.environments().items():
        if id_ not in known:
            target.write_json(f"{ENVIRONMENTS}/{id_}.json", facts)
    for record in fresh:
        artifact = source.read_artifact(record.id)
        if artifact is not None:
            target.write_artifact(record.id, artifact)
        else:  # maps and samples of an older record are those of another training
            target.remove_artifact(record.id)
        # attempts are counted run by run, and the highest of a folder is what counts there
        least = held[record.id].attempt + 1 if record.id in held else record.attempt
        target.append(replace(record, attempt=max(record.attempt, least)))
    return len(fresh)


def _of_some(name: str, theirs: Json, records: Iterable[Record]) -> Json:
    """What a source says in a file, for a target that gets these of its records alone."""
    said = as_object(theirs)
    if name == CERTIFICATES:
        variants = {str(record.cell.get("variant", "")) for record in records}
        return {variant: entry for variant, entry in said.items() if variant in variants}
    # no record says which plug-in it needs; whoever planned its cell has loaded that
    return {key: one for key, one in said.items() if key != "plugins"}


def _measured_anew(held: Iterable[Record], fresh: Iterable[Record]) -> set[str]:
    """Variants of which no record of the target stays, because all have newer ones."""
    newer = {record.id for record in fresh}
    kept: dict[str, bool] = {}
    for record in held:
        variant = str(record.cell.get("variant", ""))
        kept[variant] = kept.get(variant, False) or record.id not in newer
    return {variant for variant, stays in kept.items() if not stays}


def _renew_certificates(source: Store | Pack, target: Store, variants: Container[str]) -> None:
    """Take the certificates of variants of which all records come from the source."""
    found = certificate_entries(as_object(source.read_json(CERTIFICATES)))
    newer = {name: entry for name, entry in found.items() if name in variants}
    if not newer:
        return

    def renewed(ours: Json) -> Json:
        mine = certificate_entries(as_object(ours))
        both = {name: with_checks(mine[name], newer[name]) for name in newer}
        return read_value(json.dumps({**mine, **both}))

    target.update_json(CERTIFICATES, renewed)


def _join(target: Store, name: str, theirs: Json) -> None:
    target.update_json(name, lambda ours: MERGED_FILES[name](ours, theirs))


def with_commands(catalog: Json) -> Json:
    """A catalog whose one `command`, as older runs wrote it, is a list as newer ones have it.

    >>> with_commands({"command": "run b", "commands": ["run a"], "preset": "smoke"})
    {'commands': ['run b', 'run a'], 'preset': 'smoke'}
    """
    if not isinstance(catalog, dict) or "command" not in catalog:
        return catalog
    rest = {key: value for key, value in catalog.items() if key not in ("command", "commands")}
    ran = [as_text(one) for one in (catalog["command"], *as_list(catalog.get("commands"))) if one]
    return {"commands": [*dict.fromkeys(ran)], **rest}


SAID_BY_EITHER = ("baseline", "preset", "data_dir")
"""Texts of a catalog that are empty where a run has none."""


def _catalogs(ours: Json, theirs: Json) -> Json:
    """Cells that are too small to be ranked stay so beside others."""
    joined = _union(with_commands(ours), with_commands(theirs))
    if not isinstance(joined, dict):
        return joined
    # what has no baseline, such as a study, takes away none
    said = {name: as_text(as_object(theirs).get(name)) for name in SAID_BY_EITHER}
    studies = _studies(*(as_object(as_object(one).get("study")) for one in (ours, theirs)))
    lacking = {name: text for name, text in said.items() if text and not joined.get(name)}
    small = [one for one in (ours, theirs) if as_object(one).get("ranks") is False]
    if studies:
        joined = {**joined, "study": studies}
    return {**joined, **lacking, **({"ranks": False} if small else {})}


def _studies(ours: JsonObject, theirs: JsonObject) -> dict[str, Json]:
    """What a study chose is of one study as a whole; which cells are winners is known of both."""
    found: dict[str, Json] = {**theirs, **ours}
    for name in ours.keys() & theirs.keys():
        one, two = as_object(ours[name]), as_object(theirs[name])
        both: dict[str, Json] = {**one}
        for key in ("finals", "former"):
            ids = {as_text(id_) for held in (one, two) for id_ in as_list(held.get(key))}
            both |= {key: [*sorted(ids)]} if ids else {}
        found[name] = both
    return found


def _plans(ours: Json, theirs: Json) -> Json:
    return plan_to_json(merged_plans(ours, theirs))


def _certificates(ours: Json, theirs: Json) -> Json:
    """Of two certificates of one variant on one device, that of the target stays as a whole.

    A variant that the source has measured anew gets that of the source afterwards.
    """
    mine, other = certificate_entries(as_object(ours)), certificate_entries(as_object(theirs))
    both = {name: with_checks(other[name], mine[name]) for name in mine if name in other}
    return read_value(json.dumps({**other, **mine, **both}))


MERGED_FILES: Mapping[str, Callable[[Json, Json], Json]] = {
    "catalog.json": _catalogs,
    PLAN: _plans,
    CERTIFICATES: _certificates,
}
"""How what the target says (None where it has no file) and what a source says are joined."""


def _union(ours: Json, theirs: Json) -> Json:
    """Entries of both; where both have one, that of the target, unless it says nothing."""
    if ours is None:
        return theirs
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {
            key: _union(ours[key], theirs[key])
            if key in ours and key in theirs
            else ours.get(key, theirs.get(key))
            for key in [*ours, *(key for key in theirs if key not in ours)]
        }
    if isinstance(ours, list) and isinstance(theirs, list):
        return ours + [entry for entry in theirs if entry not in ours]
    return ours
