"""`bench new`: write a variant or a task that is certified as it stands, and its test."""

import importlib.util
import keyword
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from bench.api.errors import BenchError, InvalidConfig, UnknownName
from bench.cli.command_group import BenchGroup

ROOT = Path(__file__).parents[2]
TEMPLATES = Path(__file__).parent / "templates"
FOLDERS = {
    "score": "scores",
    "position": "positions",
    "mask": "masks",
    "normalizer": "normalizers",
    "readout": "readouts",
    "history": "history",
    "head": "heads",
    "output": "outputs",
    "loss": "losses",
    "mechanism": "mechanisms",
    "recurrence": "mechanisms",
    "recipe": "recipes",
}
"""Axis -> its folder in `variants/`; each has a template of its name. A recurrence is a mechanism
whose tokens write to a matrix, and a recipe is a name for a combination."""
NOT_USES = ("backbones", "data", "metrics", "probes")
"""Folders of `tasks/` that hold no tasks."""
LONGEST = 28
"""Characters of the longest name that keeps every line of a template within the limit."""
OUT_HELP = "Write a plug-in into this folder, for --plugin, in the place of this project."


@dataclass(frozen=True, kw_only=True)
class Scaffold:
    """Two files that are to be written."""

    name: str
    module: Path
    test: Path
    texts: tuple[str, str]
    """Of the module and of its test."""
    next_commands: tuple[str, ...]

    def write(self) -> str:
        """Write both files or none; returns what was written and what to do next.

        Raises:
            InvalidConfig: One of the files is there already.
            BenchError: The folder cannot be written.
        """
        paths = (self.module, self.test)
        for path in paths:
            if path.exists():
                raise InvalidConfig(f"{_shown(path)} exists already; choose another name.")
        try:
            for path, text in zip(paths, self.texts, strict=True):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        except OSError as error:
            for path in paths:
                if path.is_file():
                    path.unlink()
            raise BenchError(
                f"cannot write {error.filename}: {error.strerror}; name a folder with --out."
            ) from error
        lines = [f"wrote {_shown(path)}" for path in paths]
        lines += ["", "Both pass as they are. Check, then put your own mathematics in:"]
        return "\n".join([*lines, *(f"  {command}" for command in self.next_commands)])


@click.group("new", cls=BenchGroup)
def command() -> None:
    """Write a new variant or task with a test that passes."""


@command.command("variant")
@click.argument("name")
@click.option("--axis", required=True, help=f"One of {', '.join(FOLDERS)}.")
@click.option("--out", type=click.Path(path_type=Path), help=OUT_HELP)
def new_variant(name: str, axis: str, out: Path | None) -> None:
    """Write a component, a mechanism or a recipe called NAME."""
    click.echo(variant_scaffold(name, axis, out).write())


@command.command("task")
@click.argument("name")
@click.option("--use", default="diagnostics", show_default=True, help="A folder of tasks/.")
@click.option("--out", type=click.Path(path_type=Path), help=OUT_HELP)
def new_task(name: str, use: str, out: Path | None) -> None:
    """Write a task called NAME for a use of attention."""
    click.echo(task_scaffold(name, use, out).write())


def variant_scaffold(name: str, axis: str, out: Path | None = None) -> Scaffold:
    """The files of a new variant.

    Args:
        name: Name that will be registered.
        axis: An axis of `FOLDERS`.
        out: Folder of a plug-in; None for this project.

    Raises:
        UnknownName: There is no such axis.
        InvalidConfig: The name cannot be used or is taken.
    """
    if axis not in FOLDERS:
        raise UnknownName.among("axis of variants", axis, FOLDERS)
    _check_word(name)
    module, test = _paths(Path("variants") / FOLDERS[axis], name, out)
    _refuse_taken(name, module)
    plugin = "" if out is None else f" --plugin {_typed(module)}"
    return Scaffold(
        name=name,
        module=module,
        test=test,
        texts=(
            _filled(f"{axis}.py", name),
            _filled(f"tests/{axis if out is None else 'plug_in'}.py", name),
        ),
        next_commands=(
            f"python -m bench verify {name}{plugin}",
            f"python -m pytest {_typed(test)}",
            f"python -m bench run --variants {name} --preset smoke --no-speed{plugin}",
        ),
    )


def task_scaffold(name: str, use: str = "diagnostics", out: Path | None = None) -> Scaffold:
    """The files of a new task.

    Args:
        name: Name that will be registered.
        use: Use of attention, a folder of `tasks/`.
        out: Folder of a plug-in; None for this project.

    Raises:
        UnknownName: There is no such use.
        InvalidConfig: The name cannot be used or is taken.
    """
    if use not in uses():
        raise UnknownName.among("use of attention", use, uses())
    _check_word(name)
    module, test = _paths(Path("tasks") / use, name, out)
    _refuse_taken(name, module)
    plugin = "" if out is None else f" --plugin {_typed(module)}"
    everywhere = () if out else (f"python -m pytest tests/tasks/test_every_task.py -k {name}",)
    return Scaffold(
        name=name,
        module=module,
        test=test,
        texts=(
            _filled("task.py", name, use),
            _filled(f"tests/{'task' if out is None else 'plug_in_task'}.py", name, use),
        ),
        next_commands=(
            f"python -m pytest {_typed(test)}",
            *everywhere,
            f"python -m bench run --variants additive --tasks {name} "
            f"--preset smoke --no-speed{plugin}",
        ),
    )


def uses() -> Sequence[str]:
    """Uses of attention that have a folder of tasks."""
    folders = (path.parent.name for path in (ROOT / "tasks").glob("*/__init__.py"))
    return sorted(set(folders) - set(NOT_USES))


def _refuse_taken(name: str, module: Path) -> None:
    """Refuse a word of the selectors, a name that is registered, and a module of Python.

    A file that this command would write may be there already, and then it is no module of Python:
    `write` refuses it.

    Args:
        name: Name that will be registered.
        module: The file that would be written.
    """
    from bench.api import registry
    from bench.api.axes import AXES
    from bench.api.loading import load_package

    load_package("variants")
    load_package("tasks")
    if name in (*AXES, "all", "auto", "none"):
        raise InvalidConfig(f"{name!r} is a word of the selectors; choose another name.")
    for axis in AXES:
        taken = registry.registrations(axis).get(name)
        if taken is not None:
            raise InvalidConfig(
                f"{name!r} is already a {axis}, in {taken.module}; choose another name."
            )
    if not module.exists() and _is_a_module(name):
        raise InvalidConfig(
            f"{name!r} is a module of Python, which a file of this name would hide; choose "
            "another name."
        )


def _check_word(name: str) -> None:
    """Refuse what is no name of Python, or too long for a line of a template."""
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise InvalidConfig(
            f"{name!r} cannot be a name; use lower-case letters, digits and underscores."
        )
    if not name[0].isalpha():
        raise InvalidConfig(f"{name!r} cannot be a name; a name must begin with a letter.")
    if keyword.iskeyword(name):
        raise InvalidConfig(f"{name!r} is a word of Python; choose another name.")
    if len(name) > LONGEST:
        raise InvalidConfig(
            f"{name!r} has {len(name)} characters; use a name of at most {LONGEST}."
        )


def _is_a_module(name: str) -> bool:
    """Whether `import name` finds something; a mere folder, as of --out, is nothing."""
    if name in sys.stdlib_module_names:
        return True
    found = importlib.util.find_spec(name)
    return found is not None and found.origin is not None


def _paths(folder: Path, name: str, out: Path | None) -> tuple[Path, Path]:
    if out is not None:
        return out / f"{name}.py", out / f"test_{name}.py"
    return ROOT / folder / f"{name}.py", ROOT / "tests" / folder / f"test_{name}.py"


def _filled(template: str, name: str, use: str = "") -> str:
    """A template with its names put in; lines that grew too long are broken by ruff, if it is here.

    A machine without the tools of developers gets the same code with longer lines.
    """
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    camel = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    put_in = {"new_name": name, "NewName": camel, "new_use": use.replace("_", " ")}
    # at once, so that a name that holds one of these words stays whole
    text = re.sub("|".join(put_in), lambda found: put_in[found[0]], text)
    if importlib.util.find_spec("ruff") is None:
        return text
    command = [sys.executable, "-m", "ruff", "format", "--line-length", "100", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else text


def _typed(path: Path) -> str:
    """The same for a shell, quoted where it must be."""
    return shlex.quote(_shown(path))


def _shown(path: Path) -> str:
    """A path as short as it can be typed here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
