"""Words that would be lost without a sentence: values given twice, and empty ones."""

import pytest

from bench.cli import main as command_line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("plan --tasks recall --tasks offset", "--tasks is given twice; separate names by commas."),
        ("run --variants dot --variants=additive", "--variants is given twice; separate names by"),
        ("run --out a --preset smoke --out b", "--out is given twice; give it once."),
        ("run --seeds 1 --seeds 1 --seeds 2", "--seeds is given 3 times; give it once."),
        ("claims run --minutes 1 --minutes 2", "--minutes is given twice; give it once."),
        ("new variant x --axis score --axis mask", "--axis is given twice; give it once."),
        ("report a --tasks b --tasks c", "--tasks is given twice; separate names by commas."),
    ],
)
def test_an_option_that_is_given_twice_is_refused(call, words, said):
    """The last one won, and nobody said so."""
    code, out, err = call(*words.split())
    assert (code, out) == (2, "")
    assert err.startswith(said)
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *(
            ("plan", f"--{name}")
            for name in ("tasks", "backbone", "slot", "training", "data-dir", "plugin", "variants")
        ),
        *(("run", f"--{name}") for name in ("out", "spec", "cell", "until", "reuse", "shape")),
        ("report folder", "--out"),
        ("claims report folder", "--pack"),
        ("new task my_task", "--out"),
        ("study", "--storage"),
    ],
)
@pytest.mark.parametrize("joined", [False, True])
def test_an_empty_value_is_refused(call, monkeypatch, tmp_path, command, option, joined):
    """An empty path was the folder from which the command was started."""
    monkeypatch.chdir(tmp_path)
    words = [f"{option}="] if joined else [option, ""]
    code, out, err = call(*command.split(), *words)
    assert (code, out) == (2, "")
    assert err == f"{option} is empty; give a value or leave it out.\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("report", "FOLDER"),
        ("claims report", "FOLDER"),
        ("analyze", "FOLDER"),
        ("verify dot", "NAMES"),
        ("show", "NAME"),
        ("new variant x --axis", "--axis"),
    ],
)
def test_what_must_be_given_may_not_be_empty(call, command, name):
    code, out, err = call(*command.split(), "")
    assert (code, out, err) == (2, "", f"{name} is empty; give a value.\n")


def test_flags_and_options_of_several_values_may_come_twice(call):
    asked = ("plan", "--variants", "dot", "--preset", "smoke", "--tasks", "recall")
    more = ("--json", "--json", "--shape", "small", "--shape", "long", "--no-speed", "--speed")
    code, out, err = call(*asked, *more)
    assert (code, err) == (0, "")
    assert out.startswith("{")


def test_every_group_of_commands_reads_every_word(call):
    """One that is no such group would lose words without a sentence."""
    groups = [one for one in command_line.cli.commands.values() if hasattr(one, "commands")]
    assert len(groups) > 2
    assert {type(one) for one in groups} == {type(command_line.cli)}
