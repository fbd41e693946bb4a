import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source
from variants.mechanisms import lstmn

SMALL = "lstmn[width=3]"


def as_lstm(variant, head):
    """The gates of one head as an LSTM of torch, which orders them input, forget, fresh, output."""
    own = torch.nn.LSTM(
        variant.dims.value_width, variant.dims.value_width, batch_first=True, dtype=torch.float64
    )

    def turned(matrix):
        entering, forgetting, leaving, fresh = matrix.chunk(4, -1)
        return torch.cat((entering, forgetting, fresh, leaving), -1).mT

    with torch.no_grad():
        own.weight_ih_l0.copy_(turned(variant.gates_of_value[head]))
        own.weight_hh_l0.copy_(turned(variant.gates_of_recalled[head]))
        own.bias_ih_l0.copy_(turned(variant.gates_bias[head])[:, 0])
        own.bias_hh_l0.zero_()
    return own


def test_with_all_weight_on_the_last_state_it_is_the_lstm(answer, beneath, draw, monkeypatch):
    def newest(energy, allowed):
        weights = torch.zeros_like(energy)
        weights[..., -1:] = 1.0
        return weights

    drawn = draw(2, 2, 6, 6, lengths=())
    variant = beneath(SMALL, regime="causal")
    attending = answer(variant, drawn.query, drawn.source).output
    monkeypatch.setattr(lstmn, "masked_softmax", newest)
    found = answer(variant, drawn.query, drawn.source)
    for head in range(2):
        expected, _ = as_lstm(variant, head)(drawn.source.value[:, head])
        torch.testing.assert_close(found.output[:, head], expected, rtol=0, atol=1e-12)
    assert (found.output - attending).abs().max() > 1e-3, "attention changes nothing"
    last = torch.eye(6, dtype=torch.float64)[:-1].expand(2, 2, -1, -1)
    assert torch.equal(found.weights[:, :, 1:, :], last)


def test_two_steps_are_two_steps_of_the_lstm_because_the_tape_has_one_state(answer, beneath, draw):
    drawn = draw(3, 2, 3, 3, lengths=())
    variant = beneath(SMALL, regime="causal")
    found = answer(variant, drawn.query, drawn.source)
    for head in range(2):
        expected, _ = as_lstm(variant, head)(drawn.source.value[:, head])
        torch.testing.assert_close(found.output[:, head, :2], expected[:, :2], rtol=0, atol=1e-12)
        assert (found.output[:, head, 2] - expected[:, 2]).abs().max() > 1e-4
    assert not found.weights[:, :, 0].any()
    torch.testing.assert_close(found.weights[:, :, 1, 0], torch.ones(3, 2, dtype=torch.float64))


def test_a_blind_score_recalls_the_mean_of_the_tape(answer, beneath, draw):
    drawn = draw(1, 1, 5, 5, lengths=())
    variant = beneath(SMALL, regime="causal", heads=1)
    with torch.no_grad():
        variant.v.zero_()
    found = answer(variant, drawn.query, drawn.source)
    recalled = found.state.carried["recalled"][0, 0, 0]
    torch.testing.assert_close(recalled, found.output[0, 0, :4].mean(0), rtol=0, atol=1e-12)
    expected = torch.ones(5, 5, dtype=torch.float64).tril(-1)
    expected /= expected.sum(1, keepdim=True).clamp(min=1)
    torch.testing.assert_close(found.weights[0, 0], expected, rtol=0, atol=1e-12)


def test_weights_cover_the_past_alone_and_sum_to_one_from_the_second_step_on(answer, beneath, draw):
    drawn = draw(2, 2, 7, 7, lengths=())
    weights = answer(beneath(SMALL, regime="causal"), drawn.query, drawn.source).weights
    assert not weights.triu(0).any()
    assert (weights.tril(-1)[:, :, 1:].sum(-1) - 1).abs().max() < 1e-12


def test_what_was_recalled_last_takes_part_in_the_next_score(answer, beneath, draw):
    drawn = draw(1, 2, 5, 5, lengths=())
    variant = beneath(SMALL, regime="causal")
    before = answer(variant, drawn.query, drawn.source).weights
    with torch.no_grad():
        variant.of_recalled.zero_()
    after = answer(variant, drawn.query, drawn.source).weights
    assert torch.equal(before[:, :, :2], after[:, :, :2])
    assert (before[:, :, 3:] - after[:, :, 3:]).abs().max() > 1e-4


def test_steps_with_padding_between_them_leave_nothing_on_the_tape(answer, beneath, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = beneath(SMALL, regime="causal")
    kept = torch.tensor([True, True, False, True, False, True])
    source = Source(drawn.source.key, drawn.source.value, kept[None])
    found = answer(variant, drawn.query, source)
    assert not found.output[:, :, ~kept].any()
    assert not found.weights[..., ~kept].any()


def test_tokens_behind_padding_are_read_as_if_it_were_not_there(answer, beneath, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = beneath(SMALL, regime="causal")
    kept = torch.tensor([True, True, False, True, False, True])
    padded = Source(drawn.source.key, drawn.source.value, kept[None])
    found = answer(variant, drawn.query, padded).output[:, :, kept]
    alone = Source(drawn.source.key[:, :, kept], drawn.source.value[:, :, kept])
    wanted = answer(variant, drawn.query[:, :, kept], alone).output
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_in_half_precision_the_tape_stays_in_float32():
    slot = variants.build("lstmn", dim=8, heads=2, regime="causal").bfloat16()
    x = torch.randn(1, 5, 8, dtype=torch.bfloat16)
    output, found = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
    assert output.dtype == torch.bfloat16
    assert {leaf.dtype for leaf in found.state.carried.values()} == {torch.float32}


def test_other_places_and_wrong_options_are_refused():
    for regime, why in (
        ("cross", "another sequence has none"),
        ("self", "keys lie on both sides"),
        ("pool", "a single query has none"),
    ):
        with pytest.raises(Refused, match=f"lstmn: .*{why}"):
            variants.build("lstmn", dim=8, heads=2, regime=regime)
    with pytest.raises(Refused, match="lstmn has no impl=sdpa; use auto or eager"):
        variants.build("lstmn", dim=8, heads=2, regime="causal", impl="sdpa")
    with pytest.raises(InvalidConfig, match="width must be at least 1, got 0"):
        variants.build("lstmn[width=0]", dim=8, heads=2, regime="causal")
