import pytest
import torch

from bench.api import registry
from bench.api.call import Dims
from bench.api.errors import InvalidConfig
from bench.api.selector import parse
from bench.timing.memory import peak_bytes
from variants.scores import pair_blocks


def energy_of(score, drawn, ask, features=None):
    parts = {"score": score.prepare(drawn.source)}
    return score.energy(ask(drawn.query, drawn.source, parts=parts), features)


@pytest.mark.parametrize("layers", [2, 3, 5])
def test_any_number_of_layers_equals_the_loops(equals_oracle, layers):
    equals_oracle(f"deep_mlp[width=3,layers={layers}]")


def test_features_enter(equals_oracle):
    equals_oracle("deep_mlp[width=3,history=tu_coverage[width=2]]", queries=3)


def test_golden_energies_of_three_small_layers(component, ask, golden):
    """Layer 1 is q + k, which is ((2,0), (1,1), (2,1)); layer 2 (a - b - 1/2, b - a/2)."""
    score = component("score", "deep_mlp[width=2]", heads=1, widths=(2, 2, 2))
    with torch.no_grad():
        score.query_map.copy_(torch.eye(2)[None])
        score.key_map.copy_(torch.eye(2)[None])
        score.bias.zero_()
        score.maps[0].copy_(torch.tensor([[[1.0, -0.5], [-1.0, 1.0]]]))
        score.biases[0].copy_(torch.tensor([[[-0.5, 0.0]]]))
        score.v.copy_(torch.tensor([[[2.0], [10.0]]]))
    energy = energy_of(score, golden, ask)
    assert energy.flatten().tolist() == pytest.approx([3.0, 5.0, 1.0], abs=1e-12)


def test_with_two_layers_and_tanh_it_is_the_additive_score(component, ask, draw):
    drawn = draw()
    deep = component("score", "deep_mlp[width=4,layers=2,activation=tanh]")
    plain = component("score", "additive[width=4]", seed=1)
    deep.load_state_dict(plain.state_dict())
    torch.testing.assert_close(
        energy_of(deep, drawn, ask), energy_of(plain, drawn, ask), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("axis", [1, 4])
def test_blocks_give_what_the_whole_gives_with_its_gradients(
    component, ask, draw, monkeypatch, axis
):
    drawn = draw()
    features = torch.randn(3, 1, axis, 6, 2, dtype=torch.float64)
    found = []
    for block in (2**18, 200, 20):
        monkeypatch.setattr(pair_blocks, "BLOCK", block)
        score = component("score", "deep_mlp[width=4]", num_features=2)
        energy = energy_of(score, drawn, ask, features.requires_grad_())
        leaves = (features, *score.parameters())
        found.append((energy, *torch.autograd.grad(energy.square().sum(), leaves)))
    for blocks in found[1:]:
        for one, two in zip(found[0], blocks, strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


def test_training_keeps_no_number_for_each_unit_of_a_pair(component, ask, draw):
    drawn = draw(2, 2, 100, 100, lengths=())
    score = component("score", "deep_mlp[width=64,layers=4]").float()
    query, key = drawn.query.float(), drawn.source.key.float()
    small = drawn._replace(query=query, source=type(drawn.source)(key, key))

    def work():
        score.zero_grad(set_to_none=True)
        energy_of(score, small, ask).sum().backward()

    work()
    score.zero_grad(set_to_none=True)
    one_layer = 4 * 2 * 2 * 100 * 100 * 64
    assert peak_bytes(work, torch.device("cpu")) < 1.2 * one_layer


@pytest.mark.parametrize("options", ["width=0", "layers=1"])
def test_wrong_sizes_are_refused(options):
    name = options.partition("=")[0]
    with pytest.raises(InvalidConfig, match=f"deep_mlp: {name} must be at least"):
        registry.make(
            "score", parse(f"deep_mlp[{options}]"), Dims(1, 1, 2, 2, 2, 2, regime="cross")
        )
