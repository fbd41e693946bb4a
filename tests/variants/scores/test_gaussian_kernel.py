import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source


def regress(beneath, answer, beta, place, **options):
    """Kernel regression on the points (0, 0), (1, 1), (2, 4)."""
    variant = beneath(
        f"gaussian_kernel[learned=false,beta={float(beta)}]", heads=1, widths=(1, 1, 1), **options
    )
    x = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64).view(1, 1, 3, 1)
    query = torch.full((1, 1, 1, 1), place, dtype=torch.float64)
    return answer(variant, query, Source(x, x**2)).output.item()


@pytest.mark.parametrize(
    ("beta", "place", "expected"),
    [(0, 0.5, 1.666667), (2, 0.5, 0.721826), (8, 0.5, 0.500587), (8, 0.6, 0.691679)],
)
def test_golden_regression(beneath, answer, beta, place, expected):
    assert regress(beneath, answer, beta, place) == pytest.approx(expected, abs=1e-6)


def test_it_goes_from_the_mean_to_the_nearest_neighbor_and_stays_between_the_values(
    beneath, answer
):
    assert regress(beneath, answer, 0, 0.6) == pytest.approx(5 / 3, abs=1e-12)
    assert regress(beneath, answer, 1000, 0.6) == pytest.approx(1.0, abs=1e-12)
    for place in (-5.0, 0.3, 1.7, 9.0):
        assert 0 <= regress(beneath, answer, 2, place) <= 4


def test_keys_of_one_length_make_it_the_dot_product_times_beta(component, ask, draw):
    drawn = draw(lengths=())
    source = Source(torch.nn.functional.normalize(drawn.source.key, dim=-1), drawn.source.value)
    score = component("score", "gaussian_kernel[learned=false,beta=3.0]")
    call = ask(drawn.query, source, parts={"score": score.prepare(source)})
    dot = component("score", "dot").energy(call, None)
    found = torch.softmax(score.energy(call, None), -1)
    torch.testing.assert_close(found, torch.softmax(3.0 * dot, -1), rtol=0, atol=1e-12)


def test_its_dot_form_is_its_energy(component, ask, draw):
    drawn = draw()
    score = component("score", "gaussian_kernel")
    call = ask(drawn.query, drawn.source, parts={"score": score.prepare(drawn.source)})
    query, key, scale = score.dot_form(call)
    found = query @ key.mT * scale
    torch.testing.assert_close(found, score.energy(call, None), rtol=0, atol=1e-12)


def test_the_constant_of_the_density_drops_out_of_its_weights(component, ask, draw):
    """The weights are those of Gaussian densities written in full (section 15.4.2)."""
    drawn = draw(lengths=())
    score = component("score", "gaussian_kernel[learned=false,beta=3.0]")
    call = ask(drawn.query, drawn.source, parts={"score": score.prepare(drawn.source)})
    spread = torch.tensor(3.0**-0.5, dtype=torch.float64)
    differences = drawn.query.unsqueeze(-2) - drawn.source.key.unsqueeze(-3)
    density = torch.distributions.Normal(0.0, spread).log_prob(differences).sum(-1).exp()
    found = torch.softmax(score.energy(call, None), -1)
    expected = density / density.sum(-1, keepdim=True)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sink", ["softmax_off_by_one", "learned_sink"])
def test_beside_a_sink_fused_code_reads_what_the_weights_say(beneath, draw, sink):
    """A sink has an energy of its own, so that no part of the others may be left out."""
    drawn = draw()
    variant = beneath(f"gaussian_kernel[normalizer={sink}]")
    rows, heads, _, width = drawn.query.shape
    like = QueryShape(rows, heads, width, drawn.query.dtype, drawn.query.device)
    memory = variant.prepare(drawn.source)
    outputs = [
        variant.attend(drawn.query, memory, variant.start(memory, like), want_weights=wanted).output
        for wanted in (True, False)
    ]
    torch.testing.assert_close(*outputs)


@pytest.mark.parametrize("regime", ["cross", "causal"])
def test_fused_attention_gives_what_the_plain_code_gives(draw, regime):
    slot = variants.build("gaussian_kernel", dim=8, heads=2, regime=regime).double()
    x = torch.randn(2, 6, 8, dtype=torch.float64)
    own = (x, None, None) if regime == "causal" else None
    memory = None if own else slot.prepare(x)
    outputs = [
        slot.attend(x, memory, slot.start(memory, x), own=own, want_weights=wanted)[0]
        for wanted in (True, False)
    ]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)


def test_the_bandwidth_starts_where_it_was_set(component):
    score = component("score", "gaussian_kernel[beta=0.25]", heads=3, seed=None)
    expected = torch.full((3, 1, 1), 0.25, dtype=torch.float64)
    torch.testing.assert_close(score.beta(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", ["beta=-1.0,learned=false", "beta=0.0"])
def test_impossible_bandwidths_and_unequal_widths_are_refused(options):
    with pytest.raises(InvalidConfig, match="gaussian_kernel: beta must be positive"):
        variants.build(f"gaussian_kernel[{options}]", dim=4, heads=1)
    with pytest.raises(Refused, match="gaussian_kernel needs queries and keys of equal width"):
        variants.build("gaussian_kernel", dim=4, source_dim=6, regime="cross")
