import pytest
import torch

from bench.api.errors import InvalidConfig, Refused
from bench.api.resolve import resolve
from variants.losses.mi_coverage_norm import MiCoverageNormConfig, MiCoverageNormLoss


def term(inputs, **options):
    found, carry = MiCoverageNormLoss(MiCoverageNormConfig(**options))(inputs, {})
    assert carry == {}
    return found


def test_what_is_left_at_the_last_scored_word_is_added_up(seen, drawn_weights):
    left = torch.arange(15.0).view(3, 5).double().requires_grad_()
    mask = [[True] * 5, [True, True, False, False, False], [False] * 5]
    given = seen(drawn_weights(), mask=mask, terms={"coverage_left": left})
    found = term(given, weight=2.0)
    found.backward()
    assert found.item() == pytest.approx(2 * (4 + 6) / 7)
    expected = torch.zeros(3, 5).double()
    expected[0, 4] = expected[1, 1] = 2 / 7
    torch.testing.assert_close(left.grad, expected)


def test_where_nothing_is_covered_it_is_refused(seen, drawn_weights):
    with pytest.raises(Refused, match="needs coverage embeddings; use history=mi_coverage"):
        term(seen(drawn_weights()))


def test_it_needs_coverage_embeddings():
    reason = resolve("additive[loss=mi_coverage_norm]").refusal(frozenset({"cross", "padding"}))
    assert reason is not None
    assert "mi_coverage_norm needs coverage embeddings" in reason
    with pytest.raises(InvalidConfig, match="got -1"):
        MiCoverageNormConfig(weight=-1.0)
