import pytest

from bench.api.errors import BenchError
from bench.running.plan import plan
from bench.running.presets import PRESETS
from bench.running.request import Request
from bench.timing.asked_shapes import NAMED, asked_shapes
from bench.timing.shape import AttendShape, parse_shape


def test_lists_of_sizes_are_combined_and_no_shape_comes_twice():
    found = asked_shapes(["B=4,H=16,L=1024+4096,E=64", "L=4096,H=16,B=4,E=64", "L=8"])
    assert found == [
        AttendShape(batch=4, heads=16, length=1024, width=64),
        AttendShape(batch=4, heads=16, length=4096, width=64),
        AttendShape(length=8),
    ]


def test_every_name_is_a_list_of_shapes():
    assert all(asked_shapes([name]) for name in NAMED)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_the_shape_of_a_preset_leaves_the_lengths_to_it(preset):
    (shape,) = asked_shapes([preset.shape])
    assert shape.length == AttendShape().length


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("modle", "did you mean 'model'"),
        ("Q=3", "no letter of a shape named 'Q'"),
        ("L=8,L=16", "says L twice; join its sizes by +"),
        ("L=0", "a size is a whole number above 0, got '0'"),
        ("L=8+", "a size is a whole number above 0, got ''"),
        ("L=-8", "a size is a whole number above 0"),
        ("", "no shape named ''"),
    ],
)
def test_a_shape_that_is_none_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(BenchError, match=r".") as refused:
        asked_shapes([text])
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def planned(**asked):
    made = plan(Request(variants="additive", preset="smoke", quality=False, **asked))
    return [one.cell for one in made.speed]


def test_shapes_that_were_asked_for_replace_the_lengths_of_the_preset():
    cells = planned(shape=("B=1,H=3,L=16+32,E=8",))
    assert {parse_shape(cell.task) for cell in cells} == {
        AttendShape(batch=1, heads=3, length=length, width=8, regime=regime)
        for length in (16, 32)
        for regime in ("cross", "causal")
    }
    assert all(parse_shape(cell.task).regime == cell.slot for cell in cells)


def test_ids_of_speed_cells_are_those_from_before_there_were_shapes():
    ids = {f"{cell.task} {cell.variant}": cell.id for cell in planned()}
    assert ids["attend[length=64] additive"] == "c2d850641653"
    assert ids["attend[length=32,regime=cross] scaled_dot"] == "8f9722b5ebc1"


def test_a_preset_without_lengths_is_timed_at_the_shapes_that_were_asked_for():
    made = plan(Request(variants="additive", preset="demo", quality=False, shape=("small",)))
    assert len(made.speed) == 2 * 2 * 3
    assert made.seconds > 0
    assert not plan(Request(variants="additive", preset="demo", quality=False)).speed


def test_the_command_of_what_was_left_out_asks_for_the_same_shapes():
    asked = Request(
        variants="additive,general,dot",
        preset="quick",
        quality=False,
        shape=("L=8", "L=16"),
        minutes=0.1,
    )
    made = plan(asked)
    assert made.left_out
    assert all("--shape L=8 --shape L=16" in one.command for one in made.left_out)
