import pytest
import torch

from bench.api.axes import ABSENT
from bench.api.errors import InvalidConfig, Refused
from bench.api.resolve import resolve


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("padded", [True, False])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, padded):
    equals_oracle("raw_scores[temperature=2]", regime, padded=padded)


def test_energies_are_the_weights_and_hidden_keys_have_none(row):
    assert row("none", [1, -2, 3]) == [1, -2, 3]
    assert row("none[temperature=2]", [1, -2, 3], [True, True, False]) == [0.5, -1, 0]
    assert row("none", [1, -2], [False, False]) == [0, 0]


def test_with_a_dot_product_it_is_one_matrix_for_all_queries(beneath, answer, draw):
    drawn = draw(lengths=())
    variant = beneath("raw_scores[score=dot]")
    state = drawn.source.key.transpose(-1, -2) @ drawn.source.value
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, drawn.query @ state, rtol=0, atol=1e-12)


def test_the_answer_is_linear_in_the_query(beneath, answer, draw):
    drawn = draw()
    variant = beneath("raw_scores")
    once = answer(variant, drawn.query, drawn.source).output
    thrice = answer(variant, -3 * drawn.query, drawn.source).output
    torch.testing.assert_close(thrice, -3 * once, rtol=0, atol=1e-12)


def test_it_is_a_name_of_its_own_and_not_the_absence_of_an_normalizer():
    assert "normalizer" not in ABSENT
    chosen = resolve("scaled_dot[normalizer=none]").axes["normalizer"]
    assert [s.name for s in chosen] == ["none"]


@pytest.mark.parametrize(
    ("other", "who"),
    [("history=tu_coverage", "tu_coverage"), ("output=pointer_generator", "pointer_generator")],
)
def test_what_needs_to_know_where_a_query_looked_is_refused(beneath, other, who):
    with pytest.raises(Refused, match=f"{who} needs"):
        beneath(f"additive[normalizer=none,{other}]")


def test_temperatures_must_be_positive(beneath):
    with pytest.raises(InvalidConfig, match="none: temperature must be above 0, got 0"):
        beneath("scaled_dot[normalizer=none[temperature=0]]")
