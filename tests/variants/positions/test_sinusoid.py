import math

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused


def table(position, length, width, offset=0):
    return position.embed(torch.zeros(1, length, width, dtype=torch.float64), offset)[0]


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
@pytest.mark.parametrize("spacing", ["paper", "ends"])
@pytest.mark.parametrize("width", [1, 2, 3, 6, 7])
def test_vectorized_code_equals_the_loops(component, layout, spacing, width):
    selector = f"sinusoid[layout={layout},spacing={spacing}]"
    position = component("position", selector, regime="causal")
    x = torch.randn(2, 5, width, dtype=torch.float64)
    found = position.embed(x, 3)
    for row in range(2):
        for place in range(5):
            expected = position.oracle_embed(x[row, place], 3 + place)
            torch.testing.assert_close(found[row, place], expected, rtol=0, atol=1e-10)


def test_golden_values_for_width_four(component):
    found = table(component("position", "sinusoid", regime="causal"), 4, 4)
    assert found[1].tolist() == pytest.approx([0.841471, 0.540302, 0.010000, 0.999950], abs=1e-6)
    assert found[3].tolist() == pytest.approx([0.141120, -0.989992, 0.029996, 0.999550], abs=1e-6)


def test_the_layouts_differ_by_the_order_of_units_only(component):
    turns = table(component("position", "sinusoid", regime="causal"), 9, 6)
    halves = table(component("position", "sinusoid[layout=halves]", regime="causal"), 9, 6)
    assert torch.equal(torch.cat((turns[:, 0::2], turns[:, 1::2]), 1), halves)


def test_tensor2tensor_reaches_the_longest_wavelength_and_the_paper_does_not(component):
    """The angle of the last pair at place one; the first pair is the same everywhere."""
    ours = "sinusoid[layout=halves,spacing={}]"
    for width in (4, 8, 64):
        ends = table(component("position", ours.format("ends"), regime="causal"), 2, width)[1]
        paper = table(component("position", ours.format("paper"), regime="causal"), 2, width)[1]
        assert ends[width // 2 - 1].item() == pytest.approx(math.sin(1e-4), rel=1e-12)
        assert paper[width // 2 - 1].item() > 1.1e-4
        assert ends[0] == paper[0] == pytest.approx(math.sin(1.0))
    middle = table(component("position", ours.format("ends"), regime="causal"), 2, 6)[1]
    assert middle[1].item() == pytest.approx(math.sin(0.01), rel=1e-12)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_an_odd_width_ends_in_a_zero_as_in_tensor2tensor_or_in_a_sine(component, layout):
    ends, paper = (
        table(
            component("position", f"sinusoid[layout={layout},spacing={s}]", regime="causal"), 30, 5
        )
        for s in ("ends", "paper")
    )
    assert not ends[:, 4].any()
    assert (ends[1:, :4] != 0).all()
    last = paper[:, 4] if layout == "interleaved" else paper[:, 2]
    places = torch.arange(30, dtype=torch.float64)
    torch.testing.assert_close(last, torch.sin(places / 10000 ** (4 / 5)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("spacing", ["paper", "ends"])
def test_a_step_is_the_same_rotation_everywhere(component, spacing):
    found = table(component("position", f"sinusoid[spacing={spacing}]", regime="causal"), 40, 8)
    step = 5
    for pair in range(4):
        angle = step / 10000 ** (2 * pair / 8 if spacing == "paper" else pair / 3)
        turn = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]],
            dtype=torch.float64,
        )
        units = found[:, 2 * pair : 2 * pair + 2]
        torch.testing.assert_close(units[:-step] @ turn.T, units[step:], rtol=0, atol=1e-12)


def test_products_of_places_depend_on_their_distance_only(component):
    found = table(component("position", "sinusoid", regime="causal"), 20, 8)
    products = found @ found.T
    torch.testing.assert_close(products[:-1, :-1], products[1:, 1:], rtol=0, atol=1e-12)
    torch.testing.assert_close(products.diagonal(), torch.full((20,), 4.0, dtype=torch.float64))


def test_a_later_start_continues_the_table(component):
    position = component("position", "sinusoid", regime="causal")
    assert torch.equal(table(position, 9, 6)[4:], table(position, 5, 6, offset=4))


def test_half_precision_inputs_get_angles_of_full_precision(component):
    position = component("position", "sinusoid", regime="causal")
    found = position.embed(torch.zeros(1, 1, 6, dtype=torch.bfloat16), 3001)
    exact = position.embed(torch.zeros(1, 1, 6, dtype=torch.float64), 3001)
    assert found.dtype == torch.bfloat16
    assert (found - exact).abs().max() < 2**-8


def test_the_slot_adds_positions_before_the_projection():
    slot = variants.build("sinusoid", dim=8, heads=2, regime="causal", attention_only=True)
    x = torch.zeros(1, 3, 8)
    assert slot.variant.embed(x, 2)[0, 0, 0].item() == pytest.approx(math.sin(2), abs=1e-6)


def test_places_without_a_stack_are_refused():
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="sinusoid: it acts on the input of self-attention"):
            variants.build("sinusoid", dim=8, heads=2, regime=regime)
    with pytest.raises(InvalidConfig, match="thirds"):
        variants.build("sinusoid[layout=thirds]", dim=8, heads=2, regime="self")
