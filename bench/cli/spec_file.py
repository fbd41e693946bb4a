"""The spec file of a run: what was asked, so that it can be asked again."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from bench.api.errors import InvalidConfig, UnknownName
from bench.api.plain_text import message_of, shortened
from bench.cli.run_options import RunOptions
from results.json_values import Json, JsonObject, as_list, as_object, as_text, read_value
from results.stored_types import LARGEST

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from results.store import Store

D = TypeVar("D", bound="DataclassInstance")

SPEC = "spec.json"
"""Name of the file in a run folder."""
EARLIER = "earlier"
"""Key of what other commands asked for in the same folder."""
NOT_ASKED = (
    "spec",
    "out",
    "reuse",
    "data_dir",
    "as_json",
    "jobs",
    "retry",
    "keep_old",
    "inline",
    "fail_on",
    "trust",
)
"""Options that say where and how, not what."""
MOST_QUOTED = 200
"""Characters of a value that an error repeats."""
BESIDE = ("command", "base", "axis", "tuning")
"""Keys of a spec file that are not options of every command."""


def spec_of(options: RunOptions) -> dict[str, object]:
    """The options that say what was asked; not where it went nor on how many cores."""
    return {key: value for key, value in asdict(options).items() if key not in NOT_ASKED}


def write_spec(store: "Store", asked: Mapping[str, object]) -> None:
    """Write what a command asked for; what other commands asked for in this folder is kept."""

    def with_earlier(held: Json) -> object:
        before: dict[str, Json] = {**as_object(held)}
        earlier = [*as_list(before.pop(EARLIER, []))]
        now: Json = json.loads(json.dumps(asked))
        others = [one for one in (*earlier, before) if one and one != now]
        return {**asked, EARLIER: others} if others else asked

    store.update_json(SPEC, with_earlier)


def read_spec(options: RunOptions, command: str) -> tuple[RunOptions, JsonObject]:
    """Take what to run from a spec file; where and how stay as typed.

    Results go where the spec lies if that is a run folder, so that finished cells are found.

    Returns:
        The options, and what the spec says besides; nothing without a spec.

    Raises:
        InvalidConfig: The file is not there, has unknown keys, is of another command, or names code
            that nobody trusts.
    """
    if not options.spec:
        return options, {}
    path = Path(options.spec)
    given = _read_json(path)
    given.pop(EARLIER, None)
    beside = {key: given.pop(key) for key in BESIDE if key in given}
    writer = as_text(beside.get("command", "run"))
    if writer != command:
        raise InvalidConfig(
            f"{path} is of another command; run: python -m bench "
            f"{shortened(writer, MOST_QUOTED)} --spec {path}"
        )
    known = {field.name for field in fields(RunOptions)} - set(NOT_ASKED)
    for key in given:
        if key not in known:
            raise InvalidConfig(str(UnknownName.among(f"key in {path}", key, known)))
    refuse_beside_spec(
        field.name
        for field in fields(RunOptions)
        if field.name in known and getattr(options, field.name) not in (field.default, "")
    )
    found = from_spec(replace(options, variants=RunOptions.variants), given)
    loaded = [*found.plugin]
    if storage := as_text(as_object(beside.get("tuning")).get("storage")):
        loaded.append(storage)
    if loaded and not options.trust:
        _ask_for_trust(path, loaded)
    if not options.out and (path.parent / "ledger").is_dir():
        found = replace(found, out=str(path.parent))
    return found, beside


def _ask_for_trust(path: Path, loaded: Sequence[str]) -> None:
    """Ask before code or a database that a file names is opened.

    Raises:
        InvalidConfig: Nobody said yes.
    """
    what = f"{path} opens {', '.join(shortened(one, MOST_QUOTED) for one in loaded)}"
    if not sys.stdin.isatty():
        raise InvalidConfig(f"{what}; look at it, and add --trust if you trust it.")
    if not click.confirm(f"{what}. Do you trust it?", err=True):
        raise InvalidConfig(f"{what}, which is not trusted; nothing was run.")


def from_spec(options: D, given: JsonObject) -> D:
    """Options with what a spec file says of them.

    Raises:
        InvalidConfig: A value is of another type than the option.
    """
    values: dict[str, object] = {one.name: getattr(options, one.name) for one in fields(options)}
    for one in fields(options):
        if one.name in given:
            said = given[one.name]
            value = tuple(said) if isinstance(said, list) else said
            if not _fits(value, one.default, is_float=one.type is float):
                raise InvalidConfig(
                    f"the spec says {one.name}={shortened(repr(said), MOST_QUOTED)}, and the "
                    f"default is {one.default!r}; give a value of the same type."
                )
            values[one.name] = value
    return type(options)(**values)


def _fits(value: object, default: object, *, is_float: bool) -> bool:
    """Whether a value can stand in the place of a default; tuples of options hold texts."""
    if isinstance(value, tuple):
        return isinstance(default, tuple) and all(isinstance(one, str) for one in value)
    if isinstance(value, int) and abs(value) >= LARGEST:
        return False
    return type(value) is type(default) or (is_float and type(value) is int)


def refuse_beside_spec(typed: Iterable[str]) -> None:
    """Refuse options that a spec file has already answered."""
    for name in typed:
        raise InvalidConfig(
            f"--spec already says what to run; leave out the option for {name!r}, or the spec."
        )


def _read_json(path: Path) -> dict[str, Json]:
    try:
        given = read_value(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidConfig(
            f"cannot read the spec {path} ({message_of(error)}); give the spec.json of a run "
            "folder."
        ) from error
    if not isinstance(given, dict):
        raise InvalidConfig(f"{path} is no spec; give the spec.json of a run folder.")
    return given
