"""The check `start`: planted starts, and the documented ones by hand."""

import math

import pytest
import torch
from torch import nn

from bench.api.resolve import resolve
from bench.conformance import as_text, certify
from bench.conformance.place import PLACEMENTS, build_subject
from variants.heads.sagan import SaganConfig, SaganHeads
from variants.normalizers.raffel_monotonic import RaffelMonotonicConfig, RaffelMonotonicNormalizer
from variants.outputs.pointer_sentinel import PointerSentinelConfig, PointerSentinelOutput
from variants.scores.additive_normed import AdditiveNormedConfig, AdditiveNormedScore
from variants.scores.scaled_dot import ScaledDotScore


def red(selector):
    found = certify(selector, checks=["start"])
    assert not found.green(), "the defect was not found"
    return found.failed["start"]


def test_an_offset_that_starts_elsewhere(plant):
    class Eager(RaffelMonotonicNormalizer):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            nn.init.zeros_(self.offset)

    plant("normalizer", Eager, RaffelMonotonicConfig)
    sentence = red("additive[normalizer=planted]")
    assert "Eager: offset starts elsewhere than declared: off by 0.5" in sentence


def test_a_gate_that_starts_open(plant):
    class Open(SaganHeads):
        def __init__(self, config, *place):
            super().__init__(config, *place)
            nn.init.ones_(self.gamma)

    plant("head", Open, SaganConfig)
    assert "Open: gamma starts elsewhere" in red("dot[head=planted]")


def test_a_length_that_is_not_normalized(plant):
    class Long(AdditiveNormedScore):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            nn.init.ones_(self.length)

    plant("score", Long, AdditiveNormedConfig)
    assert "Long: length starts elsewhere" in red("planted")


def test_a_sentinel_of_an_output(plant):
    class Sure(PointerSentinelOutput):
        def __init__(self, config, sizes):
            super().__init__(config, sizes)
            nn.init.ones_(self.sentinel)

    plant("output", Sure, PointerSentinelConfig)
    assert "Sure: sentinel starts elsewhere" in red("scaled_dot[output=planted]")


def test_a_parameter_that_is_neither_drawn_nor_declared(plant):
    class Silent(ScaledDotScore):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            self.temperature = nn.Parameter(torch.full((1,), 2.0))

    plant("score", Silent)
    sentence = red("planted")
    assert "Silent: temperature is not drawn" in sentence
    assert "begins with 2)" in sentence


def test_a_declared_start_of_nothing(plant):
    class Boasting(ScaledDotScore):
        starts = {"temperature": 1.0}

    plant("score", Boasting)
    assert "declares a start of temperature, and has none" in red("planted")


DOCUMENTED = {
    "additive[normalizer=raffel_monotonic]": ("normalizer.offset", -1.0),
    "raffel_monotonic[offset=-4.0]": ("normalizer.offset", -4.0),
    "additive_normed[width=16]": ("score.length", 0.25),  # one over the root of the width
    "cosine": ("score.raw_strength", math.log(math.expm1(10.0))),
    "act": ("halt_bias", 1.0),
    "additive[normalizer=entmax[adaptive=true]]": ("normalizer.sparsity", 0.0),  # alpha is 1.5
}
"""Where a parameter begins, by hand."""


@pytest.mark.parametrize("selector", DOCUMENTED)
def test_documented_starts_by_hand(selector):
    name, wanted = DOCUMENTED[selector]
    fresh = build_subject(resolve(selector), PLACEMENTS[0], fresh=3)
    found = fresh.variant.get_parameter(name)
    torch.testing.assert_close(found, torch.full_like(found, wanted), rtol=0, atol=1e-5)


WITHIN = {
    "concat": ("score.weight", 0.1),
    "concat[width=16]": ("score.v", 0.1),
    "location": ("score.weight", 0.1),
    "luong_local_p": ("mask.query_map", 0.1),
    "luong_local_p[window=3]": ("mask.v", 0.1),
    "mlp_dot": ("score.query_in", 0.1),
    "mlp_dot[width=16]": ("score.key_out", 0.1),
    "decomposable": ("score.first", 0.05),  # five standard deviations
}
"""Bounds of what is drawn, by hand: Luong et al., section 4.1, has 0.1 for all parameters."""


@pytest.mark.parametrize("selector", WITHIN)
def test_drawn_starts_use_their_range_and_stay_within_it(selector):
    name, bound = WITHIN[selector]
    fresh = build_subject(resolve(selector), PLACEMENTS[0], fresh=3)
    largest = float(fresh.variant.get_parameter(name).detach().abs().max())
    assert 0.4 * bound < largest <= bound


@pytest.mark.parametrize("name", ["general", "general_biased", "general_activated"])
def test_bilinear_matrices_start_within_a_tenth_and_unit_states_get_energies_of_variance_one(name):
    placed = build_subject(resolve(name), PLACEMENTS[0], fresh=3, width=64)
    score = placed.variant.get_submodule("score")
    matrix = score.scale * score.weight.detach()[0]
    assert float(matrix.abs().max()) <= 0.1
    query, key = (torch.randn(64, 64, dtype=torch.float64) for _ in range(2))
    assert float((query @ matrix @ key.T).var()) == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize(
    "selector",
    [
        "memn2n[tying=layer_wise]",
        "deep_mlp[layers=4]",
        "scaled_dot[position=distance_bias]",
        "additive[output=lexicon_linear[gate=state,start=0.2]]",
        "additive[normalizer=entmax[adaptive=true]]",
        "nadaraya_watson",
    ],
)
def test_choices_that_bring_parameters_of_their_own(selector):
    found = certify(selector, checks=["start"])
    assert found.green(), as_text([found])
