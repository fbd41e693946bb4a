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
    equals_oracle("additive_normed[width=3,history=tu_coverage[width=2]]", queries=3)


def test_with_the_norm_of_v_as_length_it_is_the_additive_score(component, ask, draw):
    drawn = draw()
    normed = component("score", "additive_normed[width=4]")
    plain = component("score", "additive[width=4]", seed=1)
    assert not torch.allclose(energy_of(normed, drawn, ask), energy_of(plain, drawn, ask))
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            getattr(normed, name).copy_(parameter)
        normed.length.copy_(plain.v.norm(dim=1, keepdim=True))
    torch.testing.assert_close(
        energy_of(normed, drawn, ask), energy_of(plain, drawn, ask), rtol=0, atol=1e-12
    )


def test_only_the_direction_of_v_matters_and_the_length_scales(component, ask, draw):
    drawn = draw()
    score = component("score", "additive_normed[width=4]")
    plain = energy_of(score, drawn, ask)
    with torch.no_grad():
        score.v.mul_(7.0)
        score.length.mul_(3.0)
    torch.testing.assert_close(energy_of(score, drawn, ask), 3 * plain, rtol=0, atol=1e-12)


def test_the_gradient_of_v_is_at_right_angles_to_v(component, ask, draw):
    score = component("score", "additive_normed[width=4]")
    energy_of(score, draw(), ask).square().sum().backward()
    assert score.v.grad.abs().max() > 1e-3
    assert (score.v.grad * score.v).sum(1).abs().max() < 1e-12


def test_the_length_starts_at_the_root_of_one_over_the_width():
    place = Dims(2, 2, 5, 5, 4, 10, regime="cross")
    score = registry.make("score", parse("additive_normed[width=16]"), place)
    assert score.length.flatten().tolist() == [0.25, 0.25]
    assert not score.bias.any()


def test_a_width_below_one_is_refused():
    with pytest.raises(InvalidConfig, match="width must be at least 1, got 0"):
        registry.make(
            "score", parse("additive_normed[width=0]"), Dims(1, 1, 2, 2, 2, 2, regime="cross")
        )
