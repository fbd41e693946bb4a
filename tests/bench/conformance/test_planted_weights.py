"""Planted defects of weights that are signed, independent of each other, or of the past alone."""

import torch

from bench.api.normalizer import Normalized
from bench.api.resolve import resolve
from bench.conformance import certify
from bench.conformance.place import gives
from variants.mechanisms.talking_heads import TalkingHeads
from variants.normalizers.masked_softmax import masked_softmax
from variants.readouts.weighted_sum import WeightedSum


def test_signed_rows_that_do_not_sum_to_what_is_declared(plant):
    class Louder(TalkingHeads):
        def row_sums(self):
            return self.after.sum(0)

    plant("mechanism", Louder)
    sentence = plant.red("planted", "weight_law")["weight_law"]
    assert "does not sum to what is declared" in sentence


def test_signed_weights_may_promise_no_sum(plant):
    class Silent(TalkingHeads):
        def row_sums(self):
            return None

    plant("mechanism", Silent)
    assert certify("planted", checks=["weight_law"]).green()


def test_signed_weights_on_hidden_keys(plant):
    class Leaking(TalkingHeads):
        def mix(self, call, carried, want_weights):
            found = super().mix(call, carried, want_weights)
            weights = found.weights.roll(1, -1)
            return found._replace(output=weights @ call.memory.source.value, weights=weights)

    plant("mechanism", Leaking)
    assert "hidden key" in plant.red("planted", "weight_law")["weight_law"]


def test_signed_weights_have_no_entropy_and_say_so():
    found = certify("talking_heads", checks=["start_entropy", "weight_law"])
    assert found.passed == ("weight_law",)
    assert found.skipped == {"start_entropy": "weights of either sign have no entropy"}


UNIT = {"gives": frozenset({"unit_weights"}), "removes": frozenset({"weights"})}


def test_independent_weights_above_one(plant):
    def normalize(self, energy, allowed, state, call):
        return Normalized(1.5 * masked_softmax(energy, allowed))

    plant.normalizer(normalize, **UNIT, softmax_temperature=None)
    assert "more than one" in plant.red("planted", "weight_law")["weight_law"]


def test_independent_weights_below_zero(plant):
    def normalize(self, energy, allowed, state, call):
        return Normalized(-masked_softmax(energy, allowed))

    plant.normalizer(normalize, **UNIT, softmax_temperature=None)
    assert "a weight is negative" in plant.red("planted", "weight_law")["weight_law"]


def test_independent_weights_may_sum_to_more_than_one(plant):
    def normalize(self, energy, allowed, state, call):
        weights = torch.sigmoid(energy + 4)
        return Normalized(weights if allowed is None else torch.where(allowed, weights, 0.0))

    plant.normalizer(normalize, **UNIT, softmax_temperature=None)
    assert certify("planted", checks=["weight_law", "one_key"]).green()


PAST = {"gives": frozenset({"strictly_past"})}


def test_a_query_that_promised_not_to_read_its_own_key_does(plant):
    def normalize(self, energy, allowed, state, call):
        return Normalized(masked_softmax(energy, allowed))

    plant.normalizer(normalize, **PAST, softmax_temperature=None)
    failed = plant.red("planted", "causality", "weight_law")
    assert "query 0 depends on the value at 0" in failed["causality"]
    assert "hidden key" in failed["weight_law"]


def test_a_query_of_the_past_alone_that_misses_the_key_before_it(plant):
    def normalize(self, energy, allowed, state, call):
        past = call.key_position < call.position[:, None] - 1
        return Normalized(masked_softmax(energy, past if allowed is None else past & allowed))

    plant.normalizer(normalize, **PAST, softmax_temperature=None)
    sentence = plant.red("planted", "causality")["causality"]
    assert "does not see the value before it" in sentence


def test_weights_that_are_no_distribution_are_not_called_weights():
    for name in ("sigmoid_attention", "logistic_sigmoid", "talking_heads", "differential"):
        assert "weights" not in gives(resolve(name)), name


def test_a_single_key_that_gives_more_than_its_value(plant):
    def louder(self, call, weights, allowed):
        output = WeightedSum.read(self, call, weights, allowed)
        return output * 3 if weights.shape[-1] == 1 else output

    class Louder(WeightedSum):
        read = louder

    plant("readout", Louder)
    sentence = plant.red("scaled_dot[readout=planted]", "one_key")["one_key"]
    assert "not weights times values" in sentence
