import pytest

from bench.api.errors import BenchError
from bench.running.plan import plan
from bench.running.presets import PRESETS
from bench.running.request import Request
from bench.timing.asked_shapes import NAMED, asked_shapes
from bench.timing.shape import AttendShape, parse_rounds, parse_shape


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
        ("L=99999999999999", "above 0 and at most 2147483647, got '99999999999999'"),
        ("L=8+2147483648", "a size is a whole number above 0 and at most 2147483647"),
        (f"L={'9' * 5000}", "above 0 and at most 2147483647, got '999"),
        ("slot,L=268435457,B=1,H=1,E=64", "B * H * L * E is at most 17179869184, got 17179869248"),
        ("B=99999,H=1024,L=1024,E=128", "B * H * L * E is at most 17179869184, got 13421638"),
        ("B=1,L=1,H=2,E=65537", "H * E is at most 131072, got 131074; ask for less at once."),
    ],
)
def test_a_shape_that_is_none_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(BenchError, match=r".") as refused:
        asked_shapes([text])
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_largest_shapes_are_planned():
    largest = asked_shapes(["B=1,H=1,L=268435456,E=64", "B=1,L=1,H=2,E=65536"])
    assert [shape.length for shape in largest] == [2**28, 1]


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


def slots(variants, *shapes):
    made = plan(Request(variants=variants, preset="quick", quality=False, shape=shapes))
    return [(one.cell, parse_rounds(one.cell.protocol)) for one in made.speed]


def test_slots_of_a_name_have_limits_and_those_that_were_typed_have_none():
    typed = "slot,B=1,H=8,L=256,E=64"
    found = {parse_shape(one.task): rounds.most_s for one, rounds in slots("gqa", "serving", typed)}
    free = [shape for shape, seconds in found.items() if not seconds]
    assert free == asked_shapes([typed])
    assert len(found) == 3 * 4
    assert all(rounds.asked == ("forward", "decode_step") for _, rounds in slots("gqa", typed))


def test_slots_are_timed_where_text_is_continued_and_elsewhere_if_nothing_else_is_possible():
    places = {(one.variant, one.slot) for one, _ in slots("gqa", "slot,L=8")}
    assert places == {("gqa", "causal"), ("scaled_dot", "causal")}
    places = {(one.variant, one.slot) for one, _ in slots("gqa,milk", "slot,L=8")}
    assert ("milk", "cross") in places
    assert {slot for name, slot in places if name == "scaled_dot"} == {"causal", "cross"}
    assert {slot for name, slot in places if name == "gqa"} == {"causal"}


def test_attention_beneath_its_heads_keeps_the_protocol_of_the_preset():
    ((_, rounds), *_) = slots("gqa", "L=8")
    assert len(rounds.asked) == 4


def test_a_long_slot_is_expected_to_take_long_and_compiled_code_longer():
    def seconds(variant, length, impl="auto"):
        shape = (f"slot,B=1,H=8,L={length},E=64",)
        asked = Request(variants=variant, preset="smoke", quality=False, shape=shape, impl=impl)
        return {one.cell.variant: one.seconds for one in plan(asked).speed}[variant]

    assert seconds("mha", 8192) > 20 * seconds("mha", 256)
    assert seconds("retnet", 8192) < seconds("mha", 8192) / 3
    assert seconds("mha", 256, "compiled") > 10 * seconds("mha", 256)
