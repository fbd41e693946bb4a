"""The check `padding_invariance`: recurrences that go by places and do not say so."""

import pytest

from bench.conformance import certify
from variants.mechanisms.cosformer import Cosformer, CosformerConfig
from variants.mechanisms.retnet import RetNet, RetNetConfig

CHECK = ("padding_invariance",)
MOVED_UP = "where 4 tokens stand before it and its place is 4"


@pytest.mark.parametrize(
    ("original", "config"), [(RetNet, RetNetConfig), (Cosformer, CosformerConfig)]
)
def test_a_recurrence_that_goes_by_places_and_does_not_say_so(plant, original, config):
    plant("mechanism", original, config)
    assert certify("planted", checks=CHECK).green()

    class Silent(original):
        @property
        def counts_places(self):
            return False

        @counts_places.setter
        def counts_places(self, value):
            pass

    plant("mechanism", Silent, config)
    assert MOVED_UP in plant.red("planted", *CHECK)["padding_invariance"]


def test_what_goes_by_places_is_asked_without_them(plant):
    class Counting(RetNet):
        def mix(self, call, carried, want_weights):
            found = super().mix(call, carried, want_weights)
            return found._replace(output=found.output * (1 + call.position[:, None]))

    plant("mechanism", Counting, RetNetConfig)
    assert MOVED_UP in plant.red("planted[rotation=false]", *CHECK)["padding_invariance"]


@pytest.mark.parametrize("selector", ["retnet[rotation=false]", "gla", "gla[position=rope]"])
def test_recurrences_that_say_the_truth_of_places_are_green(selector):
    assert certify(selector, checks=CHECK).green()
