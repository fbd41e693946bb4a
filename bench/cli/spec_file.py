"""The spec file of a run: what was asked, so that it can be asked again."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.core import ParameterSource

from bench.api.errors import InvalidConfig, UnknownName
from bench.api.plain_text import message_of, shortened
from bench.cli.light_start import is_light, need_real_packages
from bench.cli.option_groups import jobs_on
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
NEEDED = {"run": ("variants",), "study": ("variants",), "ablate": ("base", "axis")}
"""What a spec of each command that takes one must name; a run may name cells instead."""
GIVE = "give the spec.json of a run folder"
"""What to do about a file that is no spec."""


def spec_of(options: RunOptions) -> dict[str, object]:
    """The options that say what was asked; not where it went nor on how many cores."""
    asked = {key: value for key, value in asdict(options).items() if key not in NOT_ASKED}
    return {**asked, "plugin": options.plugin_paths}


def write_spec(store: "Store", asked: Mapping[str, object]) -> None:
    """Write what a command asked for; what other commands asked for in this folder is kept."""

    def with_earlier(held: Json) -> object:
        before: dict[str, Json] = {**as_object(held)}
        earlier = [*as_list(before.pop(EARLIER, []))]
        now: Json = json.loads(json.dumps(asked))
        others = [one for one in (*earlier, before) if one and one != now]
        return {**asked, EARLIER: others} if others else asked

    store.update_json(SPEC, with_earlier)


def stored_specs(store: "Store") -> list[JsonObject]:
    """What commands asked for in a run folder, the last one first."""
    last = as_object(store.read_json(SPEC))
    earlier = [as_object(one) for one in as_list(last.get(EARLIER, []))]
    return [one for one in (last, *reversed(earlier)) if one]


def read_spec(options: RunOptions, command: str) -> tuple[RunOptions, JsonObject]:
    """Take what to run from a spec file; where and how stay as typed.

    Results go where the spec lies if that is a run folder, so that finished cells are found. A
    plug-in that was typed takes the place of the one of the spec that has its name.

    Returns:
        The options, and what the spec says besides; nothing without a spec.

    Raises:
        InvalidConfig: The file is not there, has unknown keys, is of another command, names nothing
            to run, or names code that nobody trusts or that is not here; or options say what to
            run, too; or there is no spec to trust.
    """
    if not options.spec:
        if options.trust:
            raise InvalidConfig("--trust is for what a spec names; give --spec, or leave it out.")
        return options, {}
    path = Path(options.spec)
    given = _read_json(path)
    earlier = len(as_list(given.pop(EARLIER, [])))
    beside = {key: given.pop(key) for key in BESIDE if key in given}
    writer = as_text(beside.get("command", "run"))
    if writer != command:
        raise InvalidConfig(_of_another_command(path, writer))
    _refuse_unknown_keys(path, given)
    _refuse_beside_spec()
    found = from_spec(replace(options, variants=RunOptions.variants, plugin=()), given)
    lacking = [key for key in NEEDED[command] if {**given, **beside}.get(key, "") == ""]
    if lacking and not (command == "run" and found.cells):
        raise InvalidConfig(
            f"{path} is no spec of `bench {command}`: it names no {lacking[0]}; {GIVE}."
        )
    found = replace(found, plugin=_plugins_here(path, found.plugin, options.plugin))
    found = replace(found, jobs=jobs_on([found.device], options.jobs))
    _ask_for_trust(path, found, options.plugin, beside)
    if not options.out and (path.parent / "ledger").is_dir():
        found = replace(found, out=str(path.parent))
    if earlier and not is_light():  # the command that starts over says it
        those = "command of this folder is" if earlier == 1 else "commands of this folder are"
        click.echo(f"{earlier} earlier {those} not run again.", err=True)
    return found, beside


def _refuse_unknown_keys(path: Path, given: JsonObject) -> None:
    """Refuse keys that are no option that says what was asked.

    Raises:
        InvalidConfig: There is one.
    """
    known = {field.name for field in fields(RunOptions)} - set(NOT_ASKED)
    for key in given:
        if key not in known:
            raise InvalidConfig(str(UnknownName.among(f"key in {path}", key, known)))


def _of_another_command(path: Path, writer: str) -> str:
    """What to say of the spec of another command, some of which take none."""
    if writer in NEEDED:
        runs_it = f"python -m bench {writer} --spec {shlex.quote(str(path))}"
        return f"{path} is of another command; run: {runs_it}"
    named = shortened(repr(writer), MOST_QUOTED)
    return (
        f"{path} is of the command {named}, which takes no --spec; give the spec.json of a run, an "
        "ablation or a study."
    )


def _plugins_here(path: Path, named: Sequence[str], typed: Sequence[str]) -> tuple[str, ...]:
    """The plug-ins that a spec names, where they lie on this machine.

    Args:
        path: The spec.
        named: What it names.
        typed: Plug-ins of the command line, each in the place of the one of its name.

    Raises:
        InvalidConfig: One that was typed has the name of none, or one that was not is not here.
    """
    known = [Path(one).name for one in named]
    here = {Path(one).name: one for one in typed}
    for name in here:
        if name not in known:
            raise InvalidConfig(
                f"{path} names no plug-in {name}; --plugin beside --spec says where one that the "
                "spec names lies now."
            )
    found = tuple(here.get(name, one) for name, one in zip(known, named, strict=True))
    for one in found:
        if one not in typed and not _is_here(one):
            name = shortened(Path(one).name, MOST_QUOTED)
            raise InvalidConfig(
                f"{path} names the plug-in {shortened(one, MOST_QUOTED)}, which is not here; add "
                f"--plugin with the path of {name}."
            )
    return found


def _is_here(path: str) -> bool:
    """Whether there is such a file; none has a name that is too long."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def _ask_for_trust(path: Path, asked: RunOptions, typed: Sequence[str], beside: JsonObject) -> None:
    """Ask before code or a database that a file alone names is opened.

    Args:
        path: The file.
        asked: What it says.
        typed: Plug-ins of the command line, which whoever typed them trusts.
        beside: What the file says beside the options.

    Raises:
        InvalidConfig: Nobody said yes.
    """
    loaded = [one for one in asked.plugin if one not in typed]
    if storage := as_text(as_object(beside.get("tuning")).get("storage")):
        loaded.append(storage)
    if not loaded:
        return
    need_real_packages()  # code of others sees no stand-in, and nobody is asked twice
    if asked.trust:
        return
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
                    f"the spec says {one.name}={_quoted(said)}, and the default is "
                    f"{_quoted(one.default)}; give a value of the same type."
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


def _quoted(value: object) -> str:
    """A value as JSON has it."""
    return shortened(json.dumps(value, ensure_ascii=False), MOST_QUOTED)


def typed_options() -> dict[str, str]:
    """Options of the command line by their names, also those that repeat a default, as typed.

    Values do not tell whether somebody typed them. Without a command line nobody typed anything.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return {}
    return {
        option.name: _shown(option, context.params[option.name])
        for option in context.command.params
        if option.name is not None
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    }


def _refuse_beside_spec() -> None:
    """Refuse options that a spec file has already answered.

    Raises:
        InvalidConfig: Some were typed.
    """
    beside = (*NOT_ASKED, "plugin")
    typed = [text for name, text in typed_options().items() if name not in beside]
    if typed:
        raise InvalidConfig(
            f"--spec already says what to run; leave out {', '.join(typed)}, or the spec."
        )


def _shown(option: click.Parameter, value: object) -> str:
    """An option as it was typed; a flag that was turned off has a name of its own."""
    return (option.secondary_opts if value is False else option.opts)[-1]


def _read_json(path: Path) -> dict[str, Json]:
    """The object in a file.

    Raises:
        InvalidConfig: There is none; the sentence has no words of Python.
    """
    try:
        given = read_value(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidConfig(f"there is no file {path}; {GIVE}.") from error
    except OSError as error:
        why = error.strerror or message_of(error)
        raise InvalidConfig(f"cannot read the spec {path} ({why}); {GIVE}.") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidConfig(f"{path} is no JSON: {where}; {GIVE}.") from error
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{path} is no text; {GIVE}.") from error
    except ValueError as error:
        raise InvalidConfig(f"{path} is no spec ({message_of(error)}); {GIVE}.") from error
    if not isinstance(given, dict):
        raise InvalidConfig(f"{path} is no spec; {GIVE}.")
    return given
