"""Planted defects of mathematics: weights, gradients, positions, precision."""

from dataclasses import replace

import pytest
import torch

from bench.api.normalizer import Normalized
from bench.api.source import leaf
from bench.conformance import certify
from variants.history.mi_coverage import MiCoverage, MiCoverageConfig
from variants.history.tu_coverage import TuCoverage, TuCoverageConfig
from variants.masks.luong_local_p import LocalPredictedConfig, LocalPredictedMask
from variants.normalizers.dsa import DsaConfig, DsaNormalizer
from variants.normalizers.masked_softmax import masked_softmax
from variants.positions import alibi
from variants.positions.shaw_rpr import ShawConfig, ShawPosition
from variants.positions.sinusoid import SinusoidConfig, SinusoidPosition
from variants.readouts.weighted_sum import WeightedSum
from variants.scores.scaled_dot import ScaledDotScore


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_weights_that_do_not_sum_to_one(plant, factor):
    def normalize(self, energy, allowed, state, call):
        return Normalized(factor * masked_softmax(energy, allowed))

    plant.normalizer(normalize)
    assert "sums to" in plant.red("planted", "weight_law")["weight_law"]


def test_an_exponential_without_its_maximum(plant):
    def normalize(self, energy, allowed, state, call):
        weights = energy.exp() if allowed is None else torch.where(allowed, energy.exp(), 0.0)
        return Normalized(weights / weights.sum(-1, keepdim=True).clamp_min(1e-30))

    plant.normalizer(normalize)
    said = plant.red("scaled_dot[normalizer=planted]", "dtypes")["dtypes"]
    assert "queries and keys of deviation 30 give no finite output" in said


def test_a_gain_by_a_mask_that_does_not_say_that_it_takes_the_simplex_away(plant):
    class Gaining(LocalPredictedMask):
        removes = frozenset()

    plant("mask", Gaining, LocalPredictedConfig)
    assert "less than one" in plant.red("planted", "weight_law")["weight_law"]


def test_positions_before_the_projection_that_start_at_one(plant):
    class Late(SinusoidPosition):
        def embed(self, x, offset):
            return super().embed(x, offset + 1)

    plant("position", Late, SinusoidConfig)
    failed = plant.red("planted", "oracle", "splits")
    assert set(failed) == {"oracle"}
    assert "embedded unlike by the loops" in failed["oracle"]


def test_weights_that_are_negative(plant):
    def normalize(self, energy, allowed, state, call):
        weights = masked_softmax(energy, allowed)
        return Normalized(weights * torch.where(call.key_position == 0, -1.0, 1.0))

    plant.normalizer(normalize)
    assert "negative" in plant.red("planted", "weight_law")["weight_law"]


def test_coverage_with_wrong_mathematics_agrees_with_itself_and_not_with_the_loops(plant):
    class Corrupted(TuCoverage):
        def update(self, call, weights, state):
            after = dict(super().update(call, weights, state))
            coverage = leaf(after, "coverage")
            return {**after, "coverage": coverage + 0.1 * leaf(state, "coverage")}

    plant("history", Corrupted, TuCoverageConfig)
    found = certify("additive[history=planted]", checks=("splits", "oracle"))
    assert found.passed == ("splits",)
    assert "differs from the loops" in found.failed["oracle"]


def test_relative_positions_without_scaling(plant):
    class Unscaled(ShawPosition):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            self.scale = 1.0

    plant("position", Unscaled, ShawConfig)
    assert set(plant.red("planted", "oracle", "gradients", "splits")) == {"oracle", "gradients"}


def test_a_gradient_that_is_cut(plant):
    def energy(self, call, features):
        return ScaledDotScore.energy(self, call, features).detach()

    plant.score(energy)
    failed = plant.red("planted", "oracle", "gradients")
    assert set(failed) == {"gradients"}


def test_places_of_keys_in_a_score_that_claims_not_to_look_at_them(plant):
    def energy(self, call, features):
        return ScaledDotScore.energy(self, call, features) + 0.1 * call.key_position

    plant.score(energy)
    assert "order of keys" in plant.red("planted", "permutation_law")["permutation_law"]


def test_places_of_queries_counted_from_the_call(plant):
    def energy(self, call, features):
        places = torch.arange(call.query.shape[2])[:, None]
        return ScaledDotScore.energy(self, call, features) * (1 + places)

    plant.score(energy)
    assert "differ from all at once" in plant.red("planted", "splits")["splits"]


def test_a_single_key(plant):
    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        return found / found.detach().std(-1, keepdim=True).mean()

    plant.score(energy)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert "one key" in plant.red("planted", "one_key")["one_key"]


def test_a_sum_that_overflows_half_precision(plant):
    def normalize(self, energy, allowed, state, call):
        raised = torch.exp(energy + 8.0)
        raised = raised if allowed is None else torch.where(allowed, raised, 0.0)
        total = raised.sum(-1, keepdim=True)
        return Normalized(torch.where(total > 0, raised / total.clamp(min=1e-30), 0.0))

    plant.normalizer(normalize)
    found = certify("planted", checks=("oracle", "dtypes"))
    assert found.passed == ("oracle",)
    assert "float16" in found.failed["dtypes"]


def test_arithmetic_in_less_than_the_precision_asked_for(plant):
    def normalize(self, energy, allowed, state, call):
        return Normalized(masked_softmax(energy.float(), allowed).to(energy.dtype))

    plant.normalizer(normalize)
    assert "differs from the loops" in plant.red("planted", "oracle")["oracle"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_four_fifths_of_the_values_in_a_half_format(plant, dtype):
    class Less(WeightedSum):
        gives = frozenset()
        removes = frozenset({"weighted_sum"})

        def read(self, call, weights, allowed):
            found = super().read(call, weights, allowed)
            return 0.8 * found if found.dtype == dtype else found

    plant("readout", Less)
    said = plant.red("scaled_dot[readout=planted]", "dtypes")["dtypes"]
    assert str(dtype).removeprefix("torch.") in said


def test_a_warm_up_with_energies_of_another_sign(plant):
    class Warm(DsaNormalizer):
        def normalize(self, energy, allowed, state, call):
            begins = call.progress < self.config.warm_up
            return super().normalize(-energy if begins else energy, allowed, state, call)

    plant("normalizer", Warm, DsaConfig)
    failed = plant.red("dsa[normalizer=planted]", "oracle", "gradients")
    assert set(failed) == {"oracle", "gradients"}
    assert all("when training begins" in sentence for sentence in failed.values())


def test_a_score_that_only_the_second_half_of_training_has(plant):
    def energy(self, call, features):
        found = ScaledDotScore.energy(self, call, features)
        return found if call.progress >= 0.5 else found * torch.nan

    plant.score(energy)
    assert "when training begins" in plant.red("planted", "oracle")["oracle"]


def test_words_without_a_gradient(plant):
    class Still(MiCoverage):
        def advance(self, call, state):
            word = leaf(call.extras, "word").detach()
            return super().advance(replace(call, extras={**call.extras, "word": word}), state)

    plant("history", Still, MiCoverageConfig)
    failed = plant.red("additive[history=planted]", "oracle", "gradients")
    assert set(failed) == {"gradients"}
    assert "finite differences" in failed["gradients"]


def test_slopes_of_the_third_head(monkeypatch):
    slopes = alibi.slopes

    def broken(heads, like):
        found = slopes(heads, like).clone()
        found[2:] = 0
        return found

    monkeypatch.setattr(alibi, "slopes", broken)
    assert "multi[heads=3]" in certify("alibi", checks=["oracle"]).failed["oracle"]
