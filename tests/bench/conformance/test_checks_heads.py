"""The check `heads`: planted defects of projections and merges."""

from dataclasses import replace

import pytest
import torch

from bench.api.registry import registrations
from bench.conformance import as_text, certify
from variants.heads.cla import ClaConfig, ClaHeads
from variants.heads.multi import MultiConfig, MultiHeads
from variants.heads.value_residual import ValueResidualConfig, ValueResidualHeads


def red(plant, target, others=("oracle", "splits", "shapes")):
    """Only the check of heads sees it: all else looks beneath them."""
    plant("head", target, MultiConfig)
    assert certify("dot[head=planted]", checks=others).green()
    found = certify("dot[head=planted]", checks=["heads"])
    assert not found.green(), "the defect was not found"
    return found.failed["heads"]


def test_outputs_of_two_heads_that_are_swapped(plant):
    class Swapped(MultiHeads):
        def merge(self, output):
            return super().merge(output.flip(1))

    assert "through the heads, row 0 differs" in red(plant, Swapped)


def test_keys_of_two_heads_that_are_swapped(plant):
    class Swapped(MultiHeads):
        def source(self, x, mask, tokens):
            found = super().source(x, mask, tokens)
            return replace(found, key=found.key.flip(1))

    assert "differs" in red(plant, Swapped)


def test_heads_that_are_merged_before_their_masks(plant):
    class Merged(MultiHeads):
        def source(self, x, mask, tokens):
            found = super().source(x, mask, tokens)
            seen = found.value.mean((1, 2), keepdim=True)  # of every key, padding too
            return replace(found, value=found.value + 0.1 * seen)

    assert "differs" in red(plant, Merged)


def test_a_mask_that_is_lost_in_the_projection(plant):
    class Lost(MultiHeads):
        def source(self, x, mask, tokens):
            return super().source(x, None, tokens)

    assert "differs" in red(plant, Lost)


def test_a_projection_without_a_gradient(plant):
    class Still(MultiHeads):
        def merge(self, output):
            return super().merge(output.detach())

    assert "the gradient of" in red(plant, Still)


@pytest.mark.parametrize("rows", [4])
def test_rows_behind_the_fourth_that_are_projected_by_other_code(plant, rows):
    class Blocked(MultiHeads):
        def merge(self, output):
            found = super().merge(output)
            return torch.cat((found[:rows], 2 * found[rows:]))

    assert "row 4 differs" in red(plant, Blocked)


@pytest.mark.parametrize("head", [*registrations("head"), "multi[bias=true,heads=2]"])
def test_all_heads_hold(head):
    found = certify(f"scaled_dot[head={head}]", checks=["heads"])
    assert found.green(), as_text([found])


def linked(plant, target, checks=("heads",)):
    """A planted kind of cross-layer attention, where it reads a layer below."""
    plant("head", target, ClaConfig)
    return certify("scaled_dot[head=planted]", checks=checks)


def test_heads_that_read_a_layer_are_certified_above_it(plant):
    class Fine(ClaHeads):
        pass

    assert linked(plant, Fine, ("heads", "splits", "causality")).green()


def test_a_layer_above_that_reads_its_own_values(plant):
    class Own(ValueResidualHeads):
        def own_above(self, x, mask, tokens, past, below):
            return self.own(x, mask, tokens, past)

    plant("head", Own, ValueResidualConfig)
    found = certify("scaled_dot[head=planted]", checks=["heads"])
    assert "above another layer: through the heads, row 0 differs" in found.failed["heads"]


def test_the_future_of_the_layer_below(plant):
    class Early(ValueResidualHeads):
        def own_above(self, x, mask, tokens, past, below):
            later = replace(below, value=below.value.roll(-1, 2))
            return super().own_above(x, mask, tokens, past, later)

    plant("head", Early, ValueResidualConfig)
    found = certify("scaled_dot[head=planted]", checks=["causality"])
    assert "through the heads, output 0 depends on its future" in found.failed["causality"]


def test_values_of_the_layer_below_that_get_no_gradient(plant):
    class Still(ValueResidualHeads):
        def own_above(self, x, mask, tokens, past, below):
            still = replace(below, value=below.value.detach())
            return super().own_above(x, mask, tokens, past, still)

    plant("head", Still, ValueResidualConfig)
    found = certify("scaled_dot[head=planted]", checks=["heads"])
    assert "gradient of the values below differs" in found.failed["heads"]


def test_what_stands_as_a_first_layer_alone_is_not_green():
    found = certify("linear_attention[head=cla]")
    assert (
        "reads the cache of another layer, and linear_attention" in found.failed["runs_somewhere"]
    )


def test_another_merge_where_networks_are_scored(plant):
    class Scored(MultiHeads):
        def merge(self, output):
            found = super().merge(output)
            return found if self.training else 2 * found

    assert "where no weights are wanted" in red(plant, Scored)
