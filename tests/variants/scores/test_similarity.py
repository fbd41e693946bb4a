import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source

KINDS = ("neg_l1", "neg_l2_squared", "cosine")


def energies(component, ask, query, source, selector, **options):
    score = component("score", selector, **options)
    return score.energy(ask(query, source, parts={"score": score.prepare(source)}), None)


def test_golden_energies_of_every_kind(component, ask, golden):
    expected = {"neg_l1": [0, -2, -1], "neg_l2_squared": [0, -2, -1], "cosine": [1, 0, 0.5**0.5]}
    for kind in KINDS:
        found = energies(
            component, ask, *golden[:2], f"similarity[kind={kind}]", heads=1, widths=(2, 2, 2)
        )
        assert found.flatten().tolist() == pytest.approx(expected[kind], abs=1e-12)


def test_its_cosine_and_its_square_are_other_scores_at_a_fixed_strength(component, ask, draw):
    drawn = draw(lengths=())
    for kind, other in (
        ("cosine", "cosine[learned=false,strength=1.0]"),
        ("neg_l2_squared", "gaussian_kernel[learned=false,beta=2.0]"),
    ):
        one, two = (
            energies(component, ask, drawn.query, drawn.source, name)
            for name in (f"similarity[kind={kind}]", other)
        )
        torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["neg_l1", "neg_l2_squared"])
def test_a_key_equal_to_the_query_is_the_nearest_and_moving_both_changes_nothing(
    component, ask, draw, kind
):
    drawn = draw(1, 2, 6, 6, lengths=())
    source = Source(drawn.query, drawn.source.value)
    found = energies(component, ask, drawn.query, source, f"similarity[kind={kind}]")
    assert (found.argmax(-1) == torch.arange(6)).all()
    assert found.diagonal(dim1=-2, dim2=-1).abs().max() < 1e-12
    moved = Source(source.key + 2.5, source.value)
    again = energies(component, ask, drawn.query + 2.5, moved, f"similarity[kind={kind}]")
    torch.testing.assert_close(again, found, rtol=0, atol=1e-11)


def test_gradients_stay_finite_where_query_and_key_are_equal_or_zero(component, ask):
    for kind in KINDS:
        query = torch.zeros(1, 2, 3, 5, dtype=torch.float64).requires_grad_()
        source = Source(torch.zeros_like(query), torch.zeros_like(query))
        found = energies(component, ask, query, source, f"similarity[kind={kind}]")
        found.sum().backward()
        assert query.grad.isfinite().all()


def test_it_learns_nothing_and_needs_equal_widths(component):
    assert not list(component("score", "similarity").parameters())
    with pytest.raises(Refused, match="similarity needs queries and keys of equal width"):
        variants.build("similarity", dim=4, source_dim=6, regime="cross")
    with pytest.raises(InvalidConfig, match=r"kind.*neg_l3"):
        variants.build("similarity[kind=neg_l3]", dim=4, heads=1)
