import pytest
import torch

import variants
from bench.api.errors import Refused
from bench.api.source import Source
from variants.positions.alibi import slopes

NEAR = {"rtol": 0, "atol": 1e-12}


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_vectorized_code_equals_the_loops(equals_oracle, heads):
    equals_oracle("fox", "causal", heads=heads)


@pytest.fixture
def forgetting(answer, beneath, draw):
    """`forgetting(gates)` -> what is answered where tokens keep these shares; a head, or all."""

    def make(gates, selector="fox"):
        drawn = draw(2, 2, 6, 6)
        variant = beneath(selector, regime="causal")
        if selector == "fox":
            with torch.no_grad():
                variant.positions[0].bias.zero_()
        raw = torch.as_tensor(gates, dtype=torch.float64).logit()
        raw = raw.expand(2, 2, 6).unsqueeze(-1)
        source = Source(drawn.source.key, drawn.source.value, drawn.source.mask, None)
        return answer(
            variant,
            drawn.query,
            Source(source.key, source.value, source.mask, None, {"forget": raw}),
        )

    return make


def test_golden_energies_are_sums_of_logarithms_of_what_lies_between(component, ask, draw):
    drawn = draw(1, 1, 3, 3, lengths=())
    gate = torch.tensor([0.9, 0.5, 0.25], dtype=torch.float64).logit().view(1, 1, 3, 1)
    source = Source(drawn.source.key, drawn.source.value, extras={"forget": gate})
    position = component("position", "fox", heads=1, regime="causal")
    with torch.no_grad():
        position.bias.zero_()
    parts = {"position0": position.prepare(source)}
    energy = position.energy(ask(drawn.query, source, parts=parts, causal=True))[0, 0].tril()
    wanted = [[0.0, 0.0, 0.0], [-0.693147, 0.0, 0.0], [-2.079442, -1.386294, 0.0]]
    for row, expected in zip(energy.tolist(), wanted, strict=True):
        assert row == pytest.approx(expected, abs=1e-6)


def test_gates_that_are_constant_are_alibi(forgetting):
    slope = slopes(2, torch.zeros((), dtype=torch.float64))
    gates = (-slope).exp()[None, :, None]
    torch.testing.assert_close(forgetting(gates).output, forgetting(gates, "alibi").output, **NEAR)


def test_gates_of_one_forget_nothing(forgetting):
    one = 1 - 1e-15
    torch.testing.assert_close(
        forgetting(one).output, forgetting(one, "scaled_dot").output, rtol=0, atol=1e-10
    )


def test_a_gate_of_zero_hides_all_that_came_before_its_token(forgetting):
    weights = forgetting([0.9, 0.9, 0.9, 1e-300, 0.9, 0.9]).weights[0]
    assert (weights[:, 3:, :3] < 1e-200).all()
    assert (weights[:, 4, 3:5] > 1e-6).all()
    assert (weights[:, 2, :3] > 1e-6).all()


def test_sums_of_many_gates_are_kept_in_single_precision(component, ask, draw):
    """In bfloat16 a sum of some 300 would not change by one more gate of 0.7."""
    drawn = draw(1, 1, 1, 1000, lengths=())
    gate = torch.full((1, 1, 1000, 1), 0.7, dtype=torch.float64).logit().bfloat16()
    key, value = drawn.source.key.bfloat16(), drawn.source.value.bfloat16()
    source = Source(key, value, extras={"forget": gate})
    position = component("position", "fox", heads=1, regime="causal")
    with torch.no_grad():
        position.bias.zero_()
    parts = {"position0": position.prepare(source)}
    call = ask(drawn.query.bfloat16(), source, parts=parts, offset=999, causal=True)
    found = position.energy(call)[0, 0, 0, -3:].double()
    one = float(gate[0, 0, 0, 0].double().sigmoid().log())
    assert found.tolist() == pytest.approx([2 * one, one, 0], abs=4e-3)


def test_at_the_start_every_token_keeps_nearly_all(component):
    position = component("position", "fox", seed=None)
    assert position.bias.sigmoid().tolist() == pytest.approx([0.982014, 0.982014], abs=1e-6)


def test_gates_come_from_the_states_of_the_slot():
    slot = variants.build("fox", dim=8, heads=2, regime="causal")
    (gate,) = slot.key_maps["forget"].parameters()
    assert gate.shape == (2, 8)
    x = torch.randn(1, 5, 8)
    slot.attend(x, None, slot.start(None, x), own=(x, None, None))[0].square().sum().backward()
    assert (gate.grad.abs().sum(1) > 0).all()


def test_two_sequences_both_directions_and_pooling_are_refused():
    for regime, reason in (("cross", "two"), ("self", "order of time"), ("pool", "not in it")):
        with pytest.raises(Refused, match=reason):
            variants.build("fox", dim=8, heads=2, regime=regime)
