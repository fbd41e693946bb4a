"""What calibration has chosen is that of the whole task, at the size of the preset."""

from bench.api.calibration import stored_choices
from bench.api.options import canonical
from bench.api.selector import parse
from bench.cli.registered import load_registry
from bench.running.calibrated import calibrated_choice, whole_task
from bench.running.presets import PRESETS, sizes_of

load_registry(())


def test_a_task_with_less_of_its_input_is_the_whole_one_again() -> None:
    less = parse("two_source[read=first,vocab=20]")
    assert whole_task(less) == canonical("task", parse("two_source[vocab=20]"))
    assert whole_task(parse("recall[pairs=6]")) == canonical("task", parse("recall[pairs=6]"))


def test_a_choice_is_that_of_the_task_at_its_size() -> None:
    choices = stored_choices("recall")
    assert choices
    for choice in choices:
        assert calibrated_choice(parse(choice.task), choice.preset) == choice
    assert calibrated_choice(parse("recall[pairs=6]"), "quick") is None


def test_presets_that_have_the_sizes_of_another_one_name_it() -> None:
    assert {name: sizes_of(name) for name in PRESETS if sizes_of(name) != name} == {
        "demo": "quick",
        "families": "quick",
    }
