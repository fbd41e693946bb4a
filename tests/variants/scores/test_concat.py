import pytest
import torch

from bench.api import registry
from bench.api.call import Dims
from bench.api.errors import InvalidConfig
from bench.api.selector import parse


def energy_of(score, drawn, ask):
    parts = {"score": score.prepare(drawn.source)}
    return score.energy(ask(drawn.query, drawn.source, parts=parts), None)


def test_features_enter(equals_oracle):
    equals_oracle("concat[width=3,history=tu_coverage[width=2]]", queries=3)


def test_golden_energies_of_two_identities_side_by_side(component, ask, golden):
    score = component("score", "concat[width=2]", heads=1, widths=(2, 2, 2))
    with torch.no_grad():
        score.weight.copy_(torch.cat((torch.eye(2), torch.eye(2)))[None])
        score.v.copy_(torch.tensor([[[1.0], [-1.0]]]))
    energy = energy_of(score, golden, ask)
    assert energy.flatten().tolist() == pytest.approx([0.964028, 0.0, 0.202433], abs=1e-6)


def test_one_matrix_on_both_is_the_additive_score_without_bias(component, ask, draw):
    drawn = draw(widths=(5, 3, 4))
    concat = component("score", "concat[width=4]", widths=(5, 3, 4))
    additive = component("score", "additive[width=4]", widths=(5, 3, 4), seed=1)
    with torch.no_grad():
        additive.bias.zero_()
        concat.weight.copy_(torch.cat((additive.query_map, additive.key_map), 1))
        concat.v.copy_(additive.v)
    torch.testing.assert_close(
        energy_of(concat, drawn, ask), energy_of(additive, drawn, ask), rtol=0, atol=1e-12
    )
    joined = torch.cat(
        (
            drawn.query[:, :, :, None].expand(-1, -1, -1, 6, -1),
            drawn.source.key[:, :, None].expand(-1, -1, 4, -1, -1),
        ),
        -1,
    )
    whole = torch.tanh(torch.einsum("bhlse,hed->bhlsd", joined, concat.weight))
    whole = torch.einsum("bhlsd,hdo->bhls", whole, concat.v)
    torch.testing.assert_close(energy_of(concat, drawn, ask), whole, rtol=0, atol=1e-12)


def test_it_has_no_bias(component):
    names = {name for name, _ in component("score", "concat[width=4]").named_parameters()}
    assert names == {"weight", "v"}


def test_a_width_below_one_is_refused():
    with pytest.raises(InvalidConfig, match="width must be at least 1, got 0"):
        registry.make("score", parse("concat[width=0]"), Dims(1, 1, 2, 2, 2, 2, regime="cross"))
