import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode
from tasks.probes.effective_attention import _projected, effective


def measured(seen):
    found = make("probe", parse("effective_attention")).measure(seen)
    return {s.metric: s.value for s in found}


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_effective_weights_give_the_same_output():
    weights, values = torch.softmax(draw(4, 9), -1), draw(9, 3, seed=1)
    kept, whole = effective(weights, values)
    assert not whole
    assert not torch.allclose(kept, weights)
    torch.testing.assert_close(kept @ values, weights @ values, atol=1e-10, rtol=0)


def test_nothing_is_lost_where_values_are_independent():
    weights, values = torch.softmax(draw(4, 3), -1), draw(3, 8, seed=1)
    kept, whole = effective(weights, values)
    assert whole
    torch.testing.assert_close(kept, weights, atol=1e-12, rtol=0)


def test_equal_values_share_their_weight():
    values = draw(1, 5).expand(2, 5)
    kept, whole = effective(torch.tensor([[0.9, 0.1]], dtype=torch.float64), values)
    assert not whole
    assert kept[0].tolist() == pytest.approx([0.5, 0.5])


def test_what_heads_add_sums_to_the_output_of_the_slot(subject):
    seen = subject("additive[head=multi[heads=2]]", batches=4)
    batch = seen.batches[-1]
    trace = seen.backbone(batch, Mode())
    slot = seen.backbone.variant_slots()[0]
    parts = _projected(slot, trace.memories[0].source)
    weights = trace.attended[0].weights
    nothing = slot.heads.merge(torch.zeros_like(trace.memories[0].source.value))[:, :1]
    torch.testing.assert_close((weights @ parts).sum(1) + nothing, trace.context)


def test_short_sources_are_identifiable_and_decoders_alone_work(subject):
    found = measured(subject("additive", batches=3))
    assert found["identifiable_share"] == 1.0
    assert found["null_norm_share"] == pytest.approx(0.0, abs=1e-9)
    assert 0 <= measured(subject("scaled_dot", task="recall"))["null_norm_share"] < 1


def test_values_that_a_cache_keeps_as_factors_are_written_out(subject):
    assert 0 <= measured(subject("tpa", task="recall"))["null_norm_share"] < 1


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        ("gated_attention", "gates or norms"),
        ("sliding_window[window=3]", "does not keep the values"),
    ],
)
def test_gated_heads_and_forgotten_values_are_refused(variant, reason, subject):
    with pytest.raises(Refused, match=reason):
        measured(subject(variant, task="recall"))
