import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.source import Source
from variants.mechanisms.gated_deltaproduct import GatedDeltaProductConfig

NEVER, ALWAYS = -60.0, 60.0


@pytest.mark.parametrize("reach", [1.0, 2.0])
def test_with_one_product_it_is_gated_deltanet(beneath, answer, draw, beside, reach):
    drawn = draw(2, 2, 70, 70)
    one = beneath(f"gated_deltaproduct[products=1,reach={reach}]", regime="causal")
    two = beneath(f"gated_deltanet[reach={reach}]", regime="causal")
    found = answer(one, drawn.query, beside(one, drawn.source)).output
    expected = answer(two, drawn.query, beside(two, drawn.source)).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_a_second_product_that_erases_nothing_changes_nothing(beneath, answer, draw, beside):
    drawn = draw(2, 2, 40, 40)
    one, two = (
        beneath(f"gated_deltaproduct[products={count}]", regime="causal") for count in (1, 2)
    )
    source = beside(one, drawn.source)
    expected = answer(one, drawn.query, source).output
    beta = torch.cat((source.extras["beta"], torch.full_like(source.extras["beta"], NEVER)), -1)
    more = beside(two, drawn.source, beta=beta, step=source.extras["step"])
    found = answer(two, drawn.query, more).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_two_reflections_turn_three_things_around_in_a_circle(beneath, answer, beside):
    # the first three tokens store three values, the fourth moves each one place on
    variant = beneath("gated_deltaproduct", heads=1, widths=(3, 3, 3), regime="causal")
    eye = torch.eye(3, dtype=torch.float64)
    first, second = eye[0] - eye[1], eye[1] - eye[2]
    key = torch.cat((eye, first[None]))
    value = torch.cat((eye, torch.zeros(1, 3, dtype=torch.float64)))
    beta = torch.tensor([[0.0, NEVER]] * 3 + [[ALWAYS, ALWAYS]])
    given = {"step": -200.0, "beta": beta, "more_keys": second, "more_values": 0.0}
    source = beside(variant, Source(key[None, None], value[None, None]), **given)
    state = answer(variant, key[None, None], source).state.carried["matrix"][0, 0]
    torch.testing.assert_close(state, eye[[1, 2, 0]].T.contiguous().T, rtol=0, atol=1e-4)


@pytest.mark.parametrize("options", [{"products": 0}, {"reach": 3.0}])
def test_no_product_and_a_matrix_that_could_grow_are_refused(options):
    with pytest.raises(InvalidConfig, match="products must be at least 1"):
        GatedDeltaProductConfig(**options)
