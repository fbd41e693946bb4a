import pytest
import torch

from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import LossInputs
from bench.api.resolve import resolve
from bench.api.source import State
from bench.api.trace import Trace
from variants.losses.span_penalty import SpanPenalty, SpanPenaltyConfig


def inputs(*spans):
    """Three scored targets of six, in layers with these spans; None says none."""
    blank = torch.zeros(2, 3, 1, dtype=torch.float64)
    words = torch.zeros(2, 3, dtype=torch.int64)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    terms = [{} if s is None else {"span": torch.full((2, 3), s).double()} for s in spans]
    attended = tuple(Attended(blank[:, None], None, State(), found) for found in terms)
    trace = Trace(blank, blank, blank, attended, (None,) * len(attended))
    return LossInputs(trace, blank[..., 0], Batch((), words, words, mask), 0.5)


def penalty(*spans, weight=0.5):
    found, _ = SpanPenalty(SpanPenaltyConfig(weight=weight))(inputs(*spans), {})
    return float(found)


def test_it_is_the_sum_over_layers_of_the_mean_span_of_their_heads():
    assert penalty(8.0) == 4.0
    assert penalty(8.0, 2.0) == 5.0
    assert penalty(8.0, None) == 4.0


def test_where_nothing_learns_a_span_it_is_refused():
    with pytest.raises(Refused, match="needs attention that learns its span; use adaptive_span"):
        penalty(None)


def test_the_weight_multiplies_and_must_not_be_negative():
    assert penalty(8.0, weight=0.25) == 2.0
    with pytest.raises(InvalidConfig, match="weight must be at least 0, got -1"):
        SpanPenaltyConfig(weight=-1.0)


def test_attention_that_learns_no_span_is_refused():
    given = frozenset({"causal", "padding", "equal_width"})
    reason = resolve("scaled_dot[loss=span_penalty]").refusal(given)
    assert reason == (
        "span_penalty needs a normalizer that learns how far it reads, which nothing here gives."
    )
    assert resolve("adaptive_span").refusal(given) is None


def test_spans_shrink_by_it_alone(beneath, answer, draw):
    drawn = draw(1, 2, 5, 5, lengths=())
    variant = beneath("adaptive_span[largest=20]", regime="causal", seed=None)
    span = answer(variant, drawn.query, drawn.source).terms["span"]
    assert span.tolist() == [[10.0] * 5]
    span.sum().backward()
    assert (variant.normalizer.share.grad > 0).all()
