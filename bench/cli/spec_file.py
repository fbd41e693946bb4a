"""The spec file of a run: what was asked, so that it can be asked again."""

import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from bench.api.errors import InvalidConfig, UnknownName
from bench.cli.run_options import RunOptions

NOT_ASKED = ("spec", "out", "data_dir", "as_json", "jobs", "retry", "inline")
"""Options that say where and how, not what."""
BESIDE = ("command", "base", "axis", "tuning")
"""Keys of a spec file that are not options of every command."""


def spec_of(options: RunOptions) -> dict[str, Any]:
    """The options that say what was asked; not where it went nor on how many cores."""
    return {key: value for key, value in asdict(options).items() if key not in NOT_ASKED}


def read_spec(options: RunOptions, command: str) -> tuple[RunOptions, dict[str, Any]]:
    """Take what to run from a spec file; where and how stay as typed.

    Results go where the spec lies if that is a run folder, so that finished cells are found.

    Returns:
        The options, and what the spec says besides; nothing without a spec.

    Raises:
        InvalidConfig: The file is not there, has unknown keys, or is of another command.
    """
    if not options.spec:
        return options, {}
    path = Path(options.spec)
    given = _read_json(path)
    beside = {key: given.pop(key) for key in BESIDE if key in given}
    writer = beside.get("command", "run")
    if writer != command:
        raise InvalidConfig(
            f"{path} is of another command; run: python -m bench {writer} --spec {path}"
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
    said = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    typed = {key: value for key, value in asdict(options).items() if key in NOT_ASKED}
    if not options.out and (path.parent / "ledger").is_dir():
        typed["out"] = str(path.parent)
    return RunOptions(**{**said, **typed}), beside


def refuse_beside_spec(typed: Iterable[str]) -> None:
    """Refuse options that a spec file has already answered."""
    for name in typed:
        raise InvalidConfig(
            f"--spec already says what to run; leave out the option for {name!r}, or the spec."
        )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidConfig(
            f"cannot read the spec {path} ({error}); give the spec.json of a run folder."
        ) from error
    if not isinstance(given, dict):
        raise InvalidConfig(f"{path} is no spec; give the spec.json of a run folder.")
    return given
