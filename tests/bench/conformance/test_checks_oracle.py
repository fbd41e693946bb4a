"""The check `gradients` where training draws: both sides get the same noise."""

import pytest
import torch

from bench.api.config import NoOptions
from bench.conformance import certify
from variants.masks.full import FullMask
from variants.normalizers.hard_gumbel_st import HardGumbelConfig, HardGumbelNormalizer
from variants.normalizers.hard_reinforce import HardReinforceConfig, HardReinforceNormalizer
from variants.normalizers.raffel_monotonic import RaffelMonotonicConfig, RaffelMonotonicNormalizer
from variants.readouts.dropped_sum import DroppedSum, DroppedSumConfig
from variants.scores.scaled_dot import ScaledDotScore


def red_in_its_gradient_alone(plant, axis, target, config, selector="additive"):
    """Values agree, so that nothing but a gradient can tell."""
    plant(axis, target, config)
    asked = f"{selector}[{axis}=planted]"
    assert certify(asked, checks=("oracle", "splits", "determinism")).green()
    found = certify(asked, checks=["gradients"])
    assert not found.green(), "the defect was not found"
    return found.failed["gradients"]


def test_a_straight_through_estimator_without_its_gradient(plant):
    class Stopped(HardGumbelNormalizer):
        def normalize(self, energy, allowed, state, call):
            found = super().normalize(energy, allowed, state, call)
            if call.read == "train":
                found.weights = found.weights.detach()
            return found

    sentence = red_in_its_gradient_alone(plant, "normalizer", Stopped, HardGumbelConfig)
    assert sentence.startswith("cross with raw heads: read=train: the gradient of query differs")


def test_a_straight_through_estimator_of_another_temperature(plant):
    class Tepid(HardGumbelNormalizer):
        def normalize(self, energy, allowed, state, call):
            found = super().normalize(energy, allowed, state, call)
            if call.read == "train":
                soft = found.weights - found.weights.detach()
                found.weights = found.weights.detach() + 2 * soft
            return found

    assert "read=train" in red_in_its_gradient_alone(plant, "normalizer", Tepid, HardGumbelConfig)


def test_an_offset_that_training_cannot_reach(plant):
    class Fixed(RaffelMonotonicNormalizer):
        def stop_probability(self, energy):
            return torch.sigmoid(energy + self.offset)

        def normalize(self, energy, allowed, state, call):
            if call.read == "train":
                energy = energy - self.offset + self.offset.detach()
            return super().normalize(energy, allowed, state, call)

    sentence = red_in_its_gradient_alone(plant, "normalizer", Fixed, RaffelMonotonicConfig)
    assert "read=train: the gradient of normalizer.offset differs" in sentence


def test_dropped_weights_whose_gradient_is_not_scaled(plant):
    class Unscaled(DroppedSum):
        def read(self, call, weights, allowed):
            found = super().read(call, weights, allowed)
            if call.read == "train":
                kept = (1 - self.share) * found
                found = found.detach() + kept - kept.detach()
            return found

    assert "read=train" in red_in_its_gradient_alone(plant, "readout", Unscaled, DroppedSumConfig)


class Sampled(HardReinforceNormalizer):
    """Draws a key; `change` spoils a term."""

    def normalize(self, energy, allowed, state, call):
        found = super().normalize(energy, allowed, state, call)
        self.change(found.terms)
        return found


def test_a_log_probability_without_a_gradient(plant):
    class Stopped(Sampled):
        def change(self, terms):
            terms["log_prob"] = terms["log_prob"].detach()

    plant("normalizer", Stopped, HardReinforceConfig)
    asked = "additive[loss=reinforce,normalizer=planted]"
    found = certify(asked, checks=("oracle", "gradients", "loss"))
    assert found.passed == ("oracle", "loss")
    assert "read=train: the gradient of" in found.failed["gradients"]


def test_an_entropy_of_the_wrong_sign(plant):
    class Negative(Sampled):
        def change(self, terms):
            terms["entropy"] = -terms["entropy"]

    plant("normalizer", Negative, HardReinforceConfig)
    found = certify("additive[loss=reinforce,normalizer=planted]", checks=["oracle"])
    assert "in the terms, leaf 'entropy'" in found.failed["oracle"]


def test_a_term_that_only_one_side_has(plant):
    class Talking(Sampled):
        def change(self, terms):
            terms["surprise"] = terms["entropy"]

    plant("normalizer", Talking, HardReinforceConfig)
    found = certify("additive[loss=reinforce,normalizer=planted]", checks=["oracle"])
    assert "branch 'surprise' on one side only" in found.failed["oracle"]


def test_a_gradient_that_is_cut_in_fused_code_alone(plant):
    class Cut(ScaledDotScore):
        def dot_form(self, call):
            query, key, scale = super().dot_form(call)
            return query.detach(), key, scale

    plant("score", Cut)
    found = certify("planted", checks=("oracle", "gradients"))
    assert found.passed == ("oracle",)
    assert "the gradient" in found.failed["gradients"]


@pytest.mark.parametrize("row", [4])
def test_a_row_behind_the_fourth(plant, row):
    class Blocked(FullMask):
        def window(self, call):
            allowed, gain = super().window(call)
            rows, keys = call.query.shape[0], call.memory.num_keys
            seen = torch.ones(rows, 1, 1, keys, dtype=torch.bool)
            seen[row:, ..., 1:] = False
            return seen if allowed is None else allowed & seen, gain

    plant("mask", Blocked, NoOptions)
    found = certify("dot[mask=planted]", checks=["oracle"])
    assert f"row {row} differs from the loops" in found.failed["oracle"]
