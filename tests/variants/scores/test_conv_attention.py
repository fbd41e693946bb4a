import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source

SMALL = "conv_attention[filters1=3,filters2=2,width1=3,width2=4,width3=2]"


def energies(score, ask, query, source):
    return score.energy(ask(query, source, parts={"score": score.prepare(source)}), None)


def test_a_query_of_the_gates_width_is_the_gate_itself(equals_oracle):
    found = equals_oracle("conv_attention[filters1=3,filters2=4,width1=2,width2=2,width3=3]")
    assert found.slot.variant.score.gate_map is None


def test_energies_equal_the_layers_done_one_after_the_other_by_torch(component, ask, draw):
    drawn = draw(1, 1, 2, 9, (2, 5, 4), lengths=())
    score = component("score", SMALL, heads=1, widths=(2, 5, 4))
    x = drawn.source.key[0]
    pad = torch.nn.functional.pad
    one = torch.nn.functional.leaky_relu(score.conv1(pad(x.mT, (1, 1))), 0.1)
    two = score.conv2(pad(one, (2, 1)))
    found = energies(score, ask, drawn.query, drawn.source)[0, 0]
    for t in range(2):
        gate = torch.nn.functional.leaky_relu(drawn.query[0, 0, t], 0.01)
        gated = two * gate[None, :, None]
        gated = gated / torch.linalg.matrix_norm(gated)
        expected = score.conv3(pad(gated, (1, 0)))[0, 0]
        torch.testing.assert_close(found[t], expected, rtol=0, atol=1e-9)


def test_shifting_the_source_shifts_the_energies(component, ask, draw):
    """Zeros around the content keep the norm and the borders out of it."""
    drawn = draw(1, 1, 1, 24, (5, 5, 4), lengths=())
    score = component("score", SMALL, heads=1)
    with torch.no_grad():
        score.conv1.bias.zero_()
        score.conv2.bias.zero_()
    key = torch.zeros_like(drawn.source.key)
    key[:, :, 8:12] = drawn.source.key[:, :, 8:12]
    here = energies(score, ask, drawn.query, Source(key, key))
    there = energies(score, ask, drawn.query, Source(key.roll(5, 2), key))
    assert here.std() > 1e-3
    torch.testing.assert_close(there, here.roll(5, 3), rtol=0, atol=1e-12)


def test_energy_depends_on_the_key_before_and_content_scores_do_not(component, ask, draw):
    drawn = draw(1, 1, 1, 12, (5, 5, 4), lengths=())
    key = drawn.source.key.clone()
    key[:, :, 5] += 1
    changed = Source(key, drawn.source.value)
    for selector, reacts in ((SMALL, True), ("additive", False), ("general", False)):
        score = component("score", selector, heads=1)
        before = energies(score, ask, drawn.query, drawn.source)
        after = energies(score, ask, drawn.query, changed)
        assert (before[..., 6] != after[..., 6]).all() == reacts, selector


def test_the_length_of_a_positive_query_does_not_matter(component, ask, draw):
    drawn = draw(1, 1, 2, 9, (2, 5, 4), lengths=())
    score = component("score", SMALL, heads=1, widths=(2, 5, 4))
    query = drawn.query.abs()
    torch.testing.assert_close(
        energies(score, ask, 7 * query, drawn.source),
        energies(score, ask, query, drawn.source),
        rtol=0,
        atol=1e-9,
    )


def test_filters_of_width_one_make_a_content_score_up_to_the_norm(component, ask, draw):
    drawn = draw(1, 1, 2, 6, (2, 5, 4), lengths=())
    selector = "conv_attention[filters1=3,filters2=2,width1=1,width2=1,width3=1]"
    score = component("score", selector, heads=1, widths=(2, 5, 4))
    order = torch.tensor([3, 1, 0, 5, 4, 2])
    shuffled = Source(drawn.source.key[:, :, order], drawn.source.value[:, :, order])
    plain = energies(score, ask, drawn.query, drawn.source)
    torch.testing.assert_close(
        energies(score, ask, drawn.query, shuffled), plain[..., order], rtol=0, atol=1e-12
    )


def test_appended_padding_changes_nothing_even_if_it_is_not_finite(component, ask, draw):
    drawn = draw(1, 2, 3, 8, lengths=[8])
    score = component("score", SMALL)
    key = torch.cat((drawn.source.key, torch.full((1, 2, 4, 5), torch.nan)), 2)
    mask = torch.arange(12)[None] < 8
    longer = energies(score, ask, drawn.query, Source(key, key, mask))
    short = energies(score, ask, drawn.query, drawn.source)
    torch.testing.assert_close(longer[..., :8], short, rtol=0, atol=1e-12)


def test_causal_attention_and_empty_filters_are_refused():
    reason = "conv_attention: its convolutions and its norm depend on future keys"
    with pytest.raises(Refused, match=reason):
        variants.build("conv_attention", dim=8, heads=2, regime="causal")
    with pytest.raises(InvalidConfig, match="conv_attention: width2 must be at least 1, got 0"):
        variants.build("conv_attention[width2=0]", dim=8, heads=2, regime="cross")


def test_a_source_without_keys_has_finite_gradients_in_half_precision():
    """Its map is zero, so that a gate over its norm is as large as numbers get."""
    torch.manual_seed(0)
    attention = variants.build("conv_attention", dim=8, heads=2, regime="cross").half()
    x, y = torch.randn(2, 3, 8).half(), torch.randn(2, 5, 8).half()
    mask = torch.tensor([[True] * 5, [False] * 5])
    attention(x, y, mask=mask).float().square().sum().backward()
    assert all(one.grad.isfinite().all() for one in attention.parameters())
