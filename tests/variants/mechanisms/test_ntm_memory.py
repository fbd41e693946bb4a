"""A memory that is written: erase, add, address, read."""

import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source

NEVER, ALWAYS = -1e3, 1e3
WIDTH = 4
"""Of values, and of slots."""


@pytest.fixture
def machine(beneath):
    """`machine(slots=.., erase=.., write_shift=.., read_shift=..)`: moves by shifts alone."""

    def make(*, slots=6, erase=NEVER, write_shift=1, read_shift=1, heads=1):
        made = beneath(f"ntm_memory[slots={slots}]", heads=heads, regime="causal", seed=None)
        with torch.no_grad():
            for weight in (made.reading, made.writing):
                weight.zero_()
            made.writing_bias[..., :WIDTH] = erase
            heads_of = (
                (made.writing_bias[..., WIDTH:], write_shift),
                (made.reading_bias, read_shift),
            )
            for bias, shift in heads_of:
                bias[..., WIDTH + 1] = NEVER  # the gate: no content
                bias[..., WIDTH + 3 :] = NEVER
                bias[..., WIDTH + 3 + 1 + shift] = 0.0
        return made

    return make


@pytest.mark.parametrize("options", ["slots=4", "slots=7,reach=2", "slots=3,reach=0"])
def test_vectorized_code_equals_the_loops(equals_oracle, options):
    equals_oracle(f"ntm_memory[{options}]", "causal")


def test_heads_that_move_together_read_what_was_just_written(machine, answer, draw):
    drawn = draw(2, 1, 5, 5, lengths=())
    found = answer(machine(), drawn.query, drawn.source)
    torch.testing.assert_close(found.output, drawn.source.value, rtol=0, atol=1e-12)
    assert found.weights is None


def test_a_reader_that_stays_behind_reads_an_empty_slot(machine, answer, draw):
    drawn = draw(2, 1, 5, 5, lengths=())
    found = answer(machine(read_shift=0), drawn.query, drawn.source)
    assert not found.output.any()


def test_without_erasing_one_slot_is_the_sum_of_all_values(machine, answer, draw):
    drawn = draw(2, 2, 6, 6, lengths=())
    made = machine(heads=2, write_shift=0, read_shift=0)
    found = answer(made, drawn.query, drawn.source)
    torch.testing.assert_close(found.output, drawn.source.value.cumsum(2), rtol=0, atol=1e-12)


def test_with_erasing_one_slot_is_the_last_value(machine, answer, draw):
    drawn = draw(2, 1, 6, 6, lengths=())
    found = answer(machine(erase=ALWAYS, write_shift=0, read_shift=0), drawn.query, drawn.source)
    torch.testing.assert_close(found.output, drawn.source.value, rtol=0, atol=1e-12)


def test_half_erased_slots_keep_half_of_what_they_held(machine, answer, draw):
    drawn = draw(1, 1, 3, 3, lengths=())
    found = answer(machine(erase=0.0, write_shift=0, read_shift=0), drawn.query, drawn.source)
    one, two, three = drawn.source.value[0, 0]
    expected = torch.stack((one, 0.5 * one + two, 0.25 * one + 0.5 * two + three))
    torch.testing.assert_close(found.output[0, 0], expected, rtol=0, atol=1e-12)


def test_the_memory_is_a_ring_that_writes_over_its_first_slots(machine, answer, draw):
    drawn = draw(1, 1, 5, 5, lengths=())
    after = answer(machine(slots=3, erase=ALWAYS), drawn.query, drawn.source).state
    value = drawn.source.value[0, 0]
    # places 0 to 4 went to the slots 1, 2, 0, 1, 2
    expected = torch.stack((value[2], value[3], value[4]))
    torch.testing.assert_close(after.carried["memory"][0, 0], expected, rtol=0, atol=1e-12)


def test_content_finds_the_slot_that_looks_like_the_query(machine, draw):
    made = machine(slots=4)
    memory = torch.zeros(1, 1, 4, WIDTH, dtype=torch.float64)
    memory[0, 0, 2, 1] = 5.0
    said = torch.zeros(1, 1, WIDTH + 6, dtype=torch.float64)
    said[..., 1], said[..., WIDTH], said[..., WIDTH + 1] = 0.1, 50.0, ALWAYS
    said[..., WIDTH + 3 :] = torch.tensor([NEVER, 0.0, NEVER])
    before = torch.full((1, 1, 4), 0.25, dtype=torch.float64)
    focus = made._addressed(memory, before, said)
    expected = torch.tensor([0.0, 0.0, 1.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(focus[0, 0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("split", [[1] * 9, [4, 5], [2, 1, 6]])
def test_every_split_of_the_sequence_gives_the_same_output_and_state(beneath, answer, draw, split):
    drawn = draw(2, 2, 9, 9, lengths=[9, 6])
    made = beneath("ntm_memory[slots=5]", regime="causal")
    whole = answer(made, drawn.query, drawn.source)
    state, at, parts = (
        made.start(None, QueryShape(2, 2, 5, torch.float64, torch.device("cpu"))),
        0,
        [],
    )
    for count in split:
        some, source = slice(at, at + count), drawn.source
        new = Source(source.key[:, :, some], source.value[:, :, some], source.mask[:, some])
        found = made.attend(drawn.query[:, :, some], None, state, new=new)
        state, at = found.state, at + count
        parts.append(found.output)
    torch.testing.assert_close(torch.cat(parts, 2), whole.output, rtol=0, atol=1e-12)
    for name, leaf in whole.state.carried.items():
        torch.testing.assert_close(state.carried[name], leaf, rtol=0, atol=1e-12)


def test_padding_changes_neither_the_memory_nor_a_head(beneath, answer, draw):
    made = beneath("ntm_memory[slots=5]", regime="causal")
    drawn = draw(1, 2, 8, 8, lengths=[5])
    padded = answer(made, drawn.query, drawn.source).state.carried
    query, source = drawn.query[:, :, :5], drawn.row(0)[1]
    alone = answer(made, query, source).state.carried
    for name in ("memory", "reads", "writes"):
        torch.testing.assert_close(padded[name], alone[name], rtol=0, atol=1e-12)


def test_the_state_does_not_grow_and_keeps_no_keys(beneath, answer, draw):
    made = beneath("ntm_memory[slots=5]", regime="causal")
    for length in (1, 30):
        drawn = draw(2, 2, length, length, lengths=())
        after = answer(made, drawn.query, drawn.source).state
        assert after.cache is None
        shapes = {name: tuple(leaf.shape) for name, leaf in after.carried.items()}
        assert shapes == {"memory": (2, 2, 5, 4), "reads": (2, 2, 5), "writes": (2, 2, 5)}
        for name in ("reads", "writes"):
            total = after.carried[name].sum(-1)
            torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-12)


def test_in_half_precision_the_memory_stays_in_float32():
    slot = variants.build("ntm_memory", dim=8, heads=2, regime="causal").bfloat16()
    x = torch.randn(1, 5, 8, dtype=torch.bfloat16)
    output, found = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
    assert output.dtype == torch.bfloat16
    assert found.state.carried["memory"].dtype == torch.float32


def test_wrong_sizes_other_regimes_and_other_code_are_refused():
    with pytest.raises(InvalidConfig, match="slots must be at least 1 and reach at least 0, got 0"):
        variants.build("ntm_memory[slots=0]", dim=8, heads=2, regime="causal")
    with pytest.raises(Refused, match="reads what it wrote at its own earlier steps"):
        variants.build("ntm_memory", dim=8, heads=2, regime="cross")
    with pytest.raises(Refused, match="ntm_memory has no impl=sdpa; use auto or eager"):
        variants.build("ntm_memory", dim=8, heads=2, regime="causal", impl="sdpa")
