"""The check `start_entropy`: planted starts that see one key, reasons, and entropies by hand."""

import pytest
import torch
from torch import nn

from bench.api.resolve import resolve
from bench.conformance import certify
from bench.conformance.checks_start_entropy import _shares
from bench.conformance.place import PLACEMENTS, build_subject
from variants.scores.additive import AdditiveConfig, AdditiveScore
from variants.scores.general import GeneralScore
from variants.scores.scaled_dot import ScaledDotScore

RANGE = "weights start between 0.3 and 1, or a part declares `starts_outside`"


def check(selector):
    return certify(selector, checks=["start_entropy"])


def red(selector):
    found = check(selector)
    assert not found.green(), "the defect was not found"
    return found.failed["start_entropy"]


def test_an_output_vector_that_starts_thirty_times_too_large(plant):
    class Loud(AdditiveScore):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            with torch.no_grad():
                self.v.mul_(30)

    plant("score", Loud, AdditiveConfig)
    assert RANGE in red("planted")


def test_a_bilinear_matrix_of_standard_normals(plant):
    class Normal(GeneralScore):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            nn.init.normal_(self.weight)

    plant("score", Normal)
    assert "of the uniform entropy, cross with raw heads, width 32" in red("planted")


def test_a_bilinear_matrix_of_a_scale_for_linear_layers(plant):
    class Xavier(GeneralScore):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            self.scale = 1.0

    plant("score", Xavier)
    assert RANGE in red("planted")


def test_a_scale_that_is_right_for_narrow_states_only(plant):
    class Narrow(ScaledDotScore):
        def __init__(self, config, dims):
            super().__init__(config, dims)
            self.scale = dims.key_width**-0.5 * max(1, dims.key_width / 32)

    plant("score", Narrow)
    assert "width 256" in red("planted")


def test_a_declared_reason_is_printed_and_passes(plant):
    class Sharp(ScaledDotScore):
        starts_outside = "it is meant to see one key"

        def __init__(self, config, dims):
            super().__init__(config, dims)
            self.scale = 10.0

    plant("score", Sharp)
    found = check("planted")
    assert found.green()
    assert found.told["start_entropy"].endswith("width 32; it is meant to see one key")


@pytest.mark.parametrize(
    "selector", ["luong_global", "scaled_dot[head=multi[heads=6]]", "similarity[kind=cosine]"]
)
def test_a_start_inside_says_nothing(selector):
    found = check(selector)
    assert found.passed == ("start_entropy",)
    assert not found.told


def test_what_gives_no_weights_is_left_out():
    found = check("linear_attention")
    assert found.skipped == {"start_entropy": "gives no explicit weights"}
    assert not found.expected


def test_one_key_to_see_is_no_start():
    assert "no query sees more than one key" in check("last_state").told["start_entropy"]


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("mask", ["full", "luong_local_m[window=1]"])
def test_equal_weights_have_all_of_the_entropy_that_their_window_leaves(placement, mask):
    if placement.regime == "pool" and mask != "full":
        pytest.skip("pooling has no window")
    subject = build_subject(resolve(f"uniform[mask={mask}]"), placement, fresh=1, width=32)
    shares = _shares(subject, 0)
    torch.testing.assert_close(shares, torch.ones_like(shares))


def test_half_of_the_keys_have_the_logarithm_of_half(plant):
    class Half(ScaledDotScore):
        gives = frozenset({"key_local"})

        def energy(self, call, features):
            found = super().energy(call, features)
            hidden = torch.arange(found.shape[-1]) >= 4
            return torch.zeros_like(found).masked_fill(hidden, -1e9)

        def dot_form(self, call):
            return None

    plant("score", Half)
    subject = build_subject(resolve("planted"), PLACEMENTS[0], fresh=1, width=32)
    shares = _shares(subject, 0)
    assert float(shares.min()) == pytest.approx(0.5)  # log 4 over log 16


def test_a_precision_that_was_asked_for_starts_where_it_was_put():
    found = check("nadaraya_watson[beta=100.0,learn=false]").told["start_entropy"]
    assert found.endswith("the precision is the one that was asked for")
    assert check("nadaraya_watson").passed == ("start_entropy",)
