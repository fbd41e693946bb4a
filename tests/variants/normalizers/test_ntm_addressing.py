import math

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source

STRENGTH, GATE, SHARPNESS, TAPS = 0, 1, 2, 3
NEVER, ALWAYS = -1e3, 1e3


@pytest.fixture
def addressing(component):
    """`addressing(strength=.., gate=.., sharpness=.., shift=.., reach=..)` with fixed controls."""

    def make(*, strength=0.0, gate=0.0, sharpness=NEVER, shift=None, heads=1, options=""):
        selector = f"ntm_addressing[{options}]" if options else "ntm_addressing"
        part = component("normalizer", selector, heads=heads, widths=(2, 2, 2), seed=None)
        with torch.no_grad():
            part.weight.zero_()
            part.bias[..., STRENGTH] = strength
            part.bias[..., GATE] = gate
            part.bias[..., SHARPNESS] = sharpness
            if shift is not None:
                part.bias[..., TAPS:] = NEVER
                part.bias[..., TAPS + part.most_shift + shift] = 0.0
        return part

    return make


@pytest.fixture
def walk(ask):
    """`walk(part, energy, lengths)` -> weights; a mask only where lengths are given."""

    def make(part, energy, lengths=None, state=None):
        rows, heads, length, keys = energy.shape
        mask = None if lengths is None else torch.arange(keys) < torch.tensor(lengths)[:, None]
        blank = torch.zeros(rows, heads, keys, 2, dtype=energy.dtype)
        query = torch.zeros(rows, heads, length, 2, dtype=energy.dtype)
        call = ask(query, Source(blank, blank, mask))
        return part.normalize(energy, call.allowed, state or {}, call)

    return make


def noisy(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("regime", ["cross", "self"])
@pytest.mark.parametrize("options", ["reach=1", "reach=2,start=uniform", "reach=0"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, options):
    equals_oracle(f"ntm_addressing[{options}]", regime)
    equals_oracle(f"ntm_addressing[{options},score=additive[width=3]]", regime, padded=False)


def test_without_content_a_shift_by_one_is_a_reader_that_comes_round(addressing, walk):
    part = addressing(gate=NEVER, shift=1)
    found = walk(part, noisy(3, 1, 7, 5), [5, 3, 1]).weights[:, 0]
    for row, length in enumerate((5, 3, 1)):
        places = [(t + 1) % length for t in range(7)]
        assert torch.equal(found[row], torch.eye(5, dtype=torch.float64)[places])


@pytest.mark.parametrize(("shift", "options"), [(-1, ""), (2, "reach=2"), (0, "")])
def test_other_shifts_move_by_as_much_the_other_way_or_not_at_all(addressing, walk, shift, options):
    part = addressing(gate=NEVER, shift=shift, options=options)
    found = walk(part, noisy(1, 1, 6, 4)).weights[0, 0]
    places = [(shift * (t + 1)) % 4 for t in range(6)]
    assert torch.equal(found, torch.eye(4, dtype=torch.float64)[places])


def test_content_alone_that_stays_where_it_is_is_a_softmax_of_the_strength(addressing, walk):
    part = addressing(strength=2.0, gate=ALWAYS, shift=0)
    energy = noisy(2, 1, 3, 5)
    beta = math.log1p(math.exp(2.0))
    found = walk(part, energy).weights
    torch.testing.assert_close(found, torch.softmax(beta * energy, -1), rtol=0, atol=1e-12)


def test_sharpening_is_a_power_over_its_sum(addressing, walk):
    part = addressing(gate=ALWAYS, shift=0, sharpness=3.0)
    energy, gamma = noisy(2, 1, 3, 5), 1 + math.log1p(math.exp(3.0))
    plain = walk(addressing(gate=ALWAYS, shift=0), energy).weights
    wanted = plain**gamma / (plain**gamma).sum(-1, keepdim=True)
    torch.testing.assert_close(walk(part, energy).weights, wanted, rtol=0, atol=1e-12)


def test_the_gate_mixes_content_with_the_weights_before(addressing, walk):
    part = addressing(gate=math.log(0.25 / 0.75), shift=0)
    energy = noisy(1, 1, 2, 4)
    content = torch.softmax(math.log(2) * energy, -1)[0, 0]
    first = 0.25 * content[0] + 0.75 * torch.eye(4, dtype=torch.float64)[0]
    second = 0.25 * content[1] + 0.75 * first
    found = walk(part, energy).weights[0, 0]
    torch.testing.assert_close(found, torch.stack((first, second)), rtol=0, atol=1e-12)


def test_every_stage_keeps_a_simplex(addressing, walk):
    for gate in (NEVER, 0.0, ALWAYS):
        for sharpness in (NEVER, 2.0, 50.0):
            part = addressing(gate=gate, sharpness=sharpness, options="reach=2")
            found = walk(part, 5 * noisy(3, 1, 9, 6), [6, 4, 1]).weights
            assert (found >= 0).all()
            assert found.sum(-1).sub(1).abs().max() < 1e-12
            assert not found[1, :, :, 4:].any()


def test_extreme_sharpness_keeps_the_best_key_in_single_precision(addressing, walk):
    part = addressing(gate=ALWAYS, shift=0, sharpness=200.0).float()
    found = walk(part, noisy(1, 1, 3, 500).float()).weights
    assert found.sum(-1).tolist()[0][0] == pytest.approx([1.0] * 3)
    assert found.max() > 0.99


def test_it_goes_on_from_the_state_of_an_earlier_call(addressing, walk):
    part = addressing(options="reach=2")
    energy = noisy(2, 1, 6, 5)
    whole = walk(part, energy, [5, 3])
    first = walk(part, energy[:, :, :2], [5, 3])
    rest = walk(part, energy[:, :, 2:], [5, 3], first.state)
    joined = torch.cat((first.weights, rest.weights), 2)
    torch.testing.assert_close(joined, whole.weights, rtol=0, atol=1e-14)


def test_the_first_query_comes_from_the_first_key_or_from_everywhere(addressing, walk):
    energy = noisy(2, 1, 1, 4)
    for start, wanted in (("first", [1, 0, 0, 0]), ("uniform", [1 / 3] * 3 + [0])):
        part = addressing(gate=NEVER, shift=0, options=f"start={start}")
        found = walk(part, energy, [3, 0]).weights
        assert found[0].flatten().tolist() == pytest.approx(wanted)
        assert not found[1].any()


def test_a_row_without_keys_reads_nothing_and_gradients_are_finite(addressing, walk):
    for sharpness in (NEVER, 3.0):
        part, energy = addressing(sharpness=sharpness), noisy(2, 1, 4, 3).requires_grad_()
        found = walk(part, energy, [3, 0]).weights
        assert not found[1].any()
        (found * noisy(2, 1, 4, 3, seed=1)).sum().backward()
        assert energy.grad.isfinite().all()
        assert not energy.grad[1].any()
        assert all(p.grad.isfinite().all() for p in part.parameters())


def test_growing_sources_pooling_and_negative_reach_are_refused():
    with pytest.raises(Refused, match="source that is still growing"):
        variants.build("ntm_addressing", dim=8, heads=2, regime="causal")
    with pytest.raises(Refused, match="no query before it"):
        variants.build("ntm_addressing", dim=8, heads=2, regime="pool")
    with pytest.raises(InvalidConfig, match="reach must be at least 0, got -1"):
        variants.build("ntm_addressing[reach=-1]", dim=8, heads=2, regime="cross")
