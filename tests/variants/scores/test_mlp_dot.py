import pytest
import torch

import variants
from bench.api.errors import InvalidConfig


def test_it_is_the_product_of_two_modules_of_torch(component, ask, draw):
    drawn = draw(2, 1, 3, 4, (3, 2, 2), lengths=())
    score = component("score", "mlp_dot[width=5]", heads=1, widths=(3, 2, 2))
    said = []
    for side, x in (("query", drawn.query), ("key", drawn.source.key)):
        entering, leaving = (getattr(score, f"{side}_{end}")[0] for end in ("in", "out"))
        layers = torch.nn.Sequential(
            torch.nn.Linear(entering.shape[0], 5), torch.nn.Tanh(), torch.nn.Linear(5, 5)
        ).double()
        with torch.no_grad():
            layers[0].weight.copy_(entering.T)
            layers[0].bias.copy_(getattr(score, f"{side}_bias")[0, 0])
            layers[2].weight.copy_(leaving.T)
            layers[2].bias.zero_()
        said.append(layers(x))
    call = ask(drawn.query, drawn.source, parts={"score": score.prepare(drawn.source)})
    expected = torch.einsum("bhle,bhse->bhls", *said)
    torch.testing.assert_close(score.energy(call, None), expected, rtol=0, atol=1e-12)


def test_its_dot_form_is_its_energy_and_fused_attention_gives_the_same(beneath, answer, draw):
    drawn = draw(2, 2, 4, 6)
    eager = beneath("mlp_dot[width=8]", impl="eager")
    fused = beneath("mlp_dot[width=8]", impl="sdpa")
    memory = fused.prepare(drawn.source)
    state = fused.start(memory, None)
    found = fused.attend(drawn.query, memory, state, want_weights=False).output
    expected = answer(eager, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_the_perceptron_of_the_keys_runs_once_a_source(beneath, draw):
    drawn = draw()
    variant = beneath("mlp_dot[width=3]")
    memory = variant.prepare(drawn.source)
    with torch.no_grad():
        variant.score.key_in.zero_()
    kept = memory.parts["score"]["key"]
    assert kept.shape == (3, 2, 6, 3)
    assert kept.abs().max() > 0


def test_a_width_below_one_is_refused():
    with pytest.raises(InvalidConfig, match="width must be at least 1, got 0"):
        variants.build("mlp_dot[width=0]", dim=8, heads=2)
