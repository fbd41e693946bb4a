import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig
from bench.api.noise import Noise
from bench.api.source import Source
from variants.normalizers.hard_reinforce import HardReinforceConfig

NOISE = Noise(seed=3)
READS = ("train", "expected", "hard", "sample")


@pytest.fixture
def normalize(component, ask):
    """`normalize(energy, allowed, selector, ...)` -> `Normalized` of given energies."""

    def make(energy, allowed=None, selector="hard_reinforce", **options):
        rows, heads, length, keys = energy.shape
        normalizer = component("normalizer", selector, heads=heads)
        blank = torch.zeros(rows, heads, keys, 1, dtype=energy.dtype)
        call = ask(blank.new_zeros(rows, heads, length, 1), Source(blank, blank), **options)
        return normalizer.normalize(energy, allowed, {}, call)

    return make


def energies(*shape, seed=0, grad=False):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64).requires_grad_(grad)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("sampling", [0.5, 1.0])
def test_vectorized_code_equals_the_loops(equals_oracle, read, sampling):
    selector = f"hard_reinforce[score=scaled_dot,sampling={sampling}]"
    equals_oracle(selector, read=read, noise=NOISE, rows=4)


def test_a_sampling_example_reads_one_key_a_query_and_the_others_read_the_expectation(normalize):
    energy = energies(12, 2, 5, 6)
    weights = normalize(energy, read="train", noise=NOISE).weights
    one_hot = (weights == 1).sum(-1).eq(1) & (weights == 0).sum(-1).eq(5)
    by_example = one_hot.flatten(1)
    samples = by_example.all(1)
    assert torch.equal(samples, by_example.any(1)), "an example samples for all queries or for none"
    assert 0 < samples.sum() < 12
    torch.testing.assert_close(weights[~samples], torch.softmax(energy[~samples], -1))


def test_log_prob_is_that_of_the_drawn_keys_summed_over_heads(normalize):
    energy = energies(12, 2, 5, 6)
    aligned = normalize(energy, read="train", noise=NOISE)
    samples = (aligned.weights == 1).flatten(1).any(1)
    drawn = aligned.weights.argmax(-1, keepdim=True)
    expected = torch.log_softmax(energy, -1).gather(-1, drawn).squeeze(-1).sum(1)
    expected = torch.where(samples[:, None], expected, 0.0)
    torch.testing.assert_close(aligned.terms["log_prob"], expected)
    assert (aligned.terms["log_prob"][samples] < 0).all()


def test_entropy_is_that_of_the_softmax_summed_over_heads(normalize):
    energy = energies(3, 2, 4, 5)
    expected = torch.distributions.Categorical(logits=energy).entropy().sum(1)
    for read in READS:
        aligned = normalize(energy, read=read, noise=NOISE)
        torch.testing.assert_close(aligned.terms["entropy"], expected)


def test_nothing_is_rewarded_where_nothing_was_drawn(normalize):
    for read in ("expected", "hard"):
        assert not normalize(energies(3, 2, 4, 5), read=read).terms["log_prob"].any()


def test_keys_are_drawn_as_often_as_the_softmax_says(normalize):
    energy = energies(1, 1, 1, 4).expand(1, 1, 20000, 4)
    weights = normalize(
        energy, selector="hard_reinforce[sampling=1]", read="train", noise=NOISE
    ).weights
    alpha = torch.softmax(energy[0, 0, 0], -1)
    sigma = (alpha * (1 - alpha) / 20000).sqrt()
    assert ((weights.mean(2).flatten() - alpha).abs() < 3 * sigma).all()


def test_sampled_inference_draws_one_key_in_every_example_and_says_how_likely(normalize):
    energy = energies(1, 1, 1, 4).expand(1, 1, 20000, 4)
    aligned = normalize(energy, read="sample", noise=NOISE)
    alpha = torch.softmax(energy[0, 0, 0], -1)
    sigma = (alpha * (1 - alpha) / 20000).sqrt()
    assert ((aligned.weights.mean(2).flatten() - alpha).abs() < 3 * sigma).all()
    assert (aligned.weights.max(-1).values == 1).all()
    chance = (aligned.weights @ alpha)[:, 0]
    torch.testing.assert_close(aligned.terms["log_prob"], chance.log())


@pytest.mark.parametrize(
    ("inference", "read"), [("argmax", "hard"), ("sample", "sample"), ("expected", "expected")]
)
def test_a_trained_model_reads_as_the_inference_option_says(inference, read):
    selector = f"hard_reinforce[score=scaled_dot,inference={inference}]"
    slot = variants.build(selector, dim=8, heads=2, regime="cross", attention_only=True).eval()
    rng = torch.Generator().manual_seed(0)
    memory = slot.prepare(torch.randn(2, 6, 8, generator=rng))
    x = 3 * torch.randn(2, 4, 8, generator=rng)
    state = slot.start(memory, x)
    default = slot.attend(x, memory, state, noise=NOISE)[1].weights
    found = {
        name: slot.attend(x, memory, state, noise=NOISE, read=name)[1].weights
        for name in ("hard", "sample", "expected")
    }
    assert torch.equal(default, found[read])
    assert not torch.equal(found["hard"], found["sample"])
    assert not torch.equal(found["hard"], found["expected"])


@pytest.mark.parametrize("read", ["train", "hard", "sample"])
def test_what_is_read_is_exactly_the_value_of_one_key(draw, beneath, read):
    variant = beneath("hard_reinforce[score=scaled_dot,sampling=1]")
    drawn = draw()
    memory = variant.prepare(drawn.source)
    shape = QueryShape(3, 2, 5, torch.float64, torch.device("cpu"))
    found = variant.attend(
        drawn.query, memory, variant.start(memory, shape), read=read, noise=NOISE
    )
    same = (found.output.unsqueeze(3) == drawn.source.value.unsqueeze(2)).all(-1)
    assert (same.sum(-1) == 1).all()


def test_with_one_key_every_way_of_reading_is_soft_attention(normalize):
    energy = energies(6, 2, 3, 1)
    for read in READS:
        aligned = normalize(energy, read=read, noise=NOISE)
        assert torch.equal(aligned.weights, torch.ones_like(energy))
        assert not aligned.terms["log_prob"].any()
        assert not aligned.terms["entropy"].any()


def test_half_of_the_examples_sample_by_default(normalize):
    weights = normalize(energies(4000, 1, 1, 3), read="train", noise=NOISE).weights
    share = (weights == 1).any(-1).double().mean().item()
    assert abs(share - 0.5) < 3 * (0.25 / 4000) ** 0.5


def test_padding_changes_neither_draws_nor_terms(normalize):
    energy = energies(4, 2, 5, 6)
    wide = torch.cat((energy, 50 + energies(4, 2, 5, 3)), -1)
    allowed = (torch.arange(9) < 6).view(1, 1, 1, 9)
    narrow, padded = (
        normalize(e, m, read="train", noise=NOISE) for e, m in ((energy, None), (wide, allowed))
    )
    torch.testing.assert_close(padded.weights[..., :6], narrow.weights)
    assert not padded.weights[..., 6:].any()
    for name, value in narrow.terms.items():
        torch.testing.assert_close(padded.terms[name], value)


@pytest.mark.parametrize("read", READS)
def test_a_row_without_keys_gives_zeros_and_finite_gradients(normalize, read):
    energy = energies(6, 2, 3, 4, grad=True)
    allowed = torch.ones(6, 1, 3, 4, dtype=torch.bool)
    allowed[:, :, 1] = False
    aligned = normalize(energy, allowed, read=read, noise=NOISE)
    assert not aligned.weights[:, :, 1].any()
    assert all(not term[:, 1].any() for term in aligned.terms.values())
    total = aligned.weights.square().sum() + sum(term.sum() for term in aligned.terms.values())
    total.backward()
    assert torch.isfinite(energy.grad).all()
    assert not energy.grad[:, :, 1].any()


def test_a_drawn_read_has_no_gradient_but_through_its_terms(normalize):
    energy = energies(2, 1, 3, 4, grad=True)
    selector = "hard_reinforce[sampling=1]"
    aligned = normalize(energy, selector=selector, read="train", noise=NOISE)
    aligned.weights.square().sum().backward(retain_graph=True)
    assert not energy.grad.any()
    aligned.terms["log_prob"].sum().backward()
    expected = aligned.weights - torch.softmax(energy.detach(), -1)
    torch.testing.assert_close(energy.grad, expected)


def test_sampling_must_be_a_probability_above_zero():
    with pytest.raises(InvalidConfig, match="got 0"):
        HardReinforceConfig(sampling=0.0)
