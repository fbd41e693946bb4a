import pytest
import torch

import variants
from bench.api import registry
from bench.api.errors import InvalidConfig
from bench.api.loading import load_package
from bench.api.resolve import resolve

MINE = (
    "bahdanau",
    "luong_global",
    "luong_local_p",
    "mha",
    "none_position",
    "none_state",
    "aa_control",
    "tu_coverage",
)


@pytest.fixture(scope="module", autouse=True)
def _decoders_are_loaded():
    load_package("tasks")


@pytest.mark.parametrize("name", MINE)
def test_a_recipe_resolves_has_a_default_task_and_prints_every_choice(name):
    spec = resolve(name)
    assert spec.registered.default_task is not None
    assert resolve(spec.canonical).canonical == spec.canonical


def test_aa_control_is_the_scaled_dot_product_under_another_name():
    assert registry.find("recipe", "aa_control").control
    aa_control, plain = resolve("aa_control"), resolve("scaled_dot")
    assert aa_control.axes == plain.axes
    assert aa_control.canonical != plain.canonical
    torch.manual_seed(0)
    one = variants.build("aa_control", dim=8, heads=2, regime="self")
    torch.manual_seed(0)
    other = variants.build("scaled_dot", dim=8, heads=2, regime="self")
    x = torch.randn(2, 5, 8)
    outputs = [s.attend(x, None, s.start(None, x), own=(x, None, None))[0] for s in (one, other)]
    assert torch.equal(*outputs)


def test_mha_takes_its_number_of_heads_without_an_axis_name():
    slot = variants.build("mha[heads=4]", dim=8, regime="self")
    assert slot.variant.dims.heads == 4
    assert resolve("mha").canonical == resolve("mha[heads=4,head=multi]").canonical


def test_mha_of_one_head_and_identity_projections_is_the_scaled_dot_product():
    slot = variants.build("mha[heads=1]", dim=6, regime="self").double()
    with torch.no_grad():
        for parameter in slot.heads.parameters():
            parameter.copy_(torch.eye(6))
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    found = slot.attend(x, None, slot.start(None, x), own=(x, None, None))[0]
    expected = torch.softmax(x @ x.mT / 6**0.5, -1) @ x
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_bahdanau_fixes_its_decoder_and_passes_options_to_the_score():
    spec = resolve("bahdanau[width=32]")
    assert spec.fixes["decoder"].name == "bahdanau"
    assert spec.axes["score"][0].show() == "additive[width=32]"


def test_luong_global_passes_input_feeding_to_its_decoder():
    assert resolve("luong_global").fixes["decoder"].options["input_feeding"] is False
    spec = resolve("luong_global[input_feeding=true,score=dot]")
    assert spec.fixes["decoder"].options["input_feeding"] is True
    assert spec.axes["score"][0].name == "dot"
    with pytest.raises(InvalidConfig, match="did you mean 'input_feeding'"):
        resolve("luong_global[input_fed=true]")


def test_none_state_is_a_control_that_fixes_its_decoder():
    assert registry.find("recipe", "none_state").control
    assert resolve("none_state").fixes["decoder"].name == "none_state"


def test_local_p_leaves_the_decoder_open():
    spec = resolve("luong_local_p[window=3]")
    assert spec.fixes == {}
    assert spec.axes["mask"][0].show() == "luong_local_p[window=3]"
    assert spec.axes["score"][0].name == "general"


def test_coverage_options_go_to_the_history():
    spec = resolve("tu_coverage[kind=linguistic,max_fertility=5.0]")
    assert spec.axes["history"][0].options["max_fertility"] == 5.0
    assert spec.axes["score"][0].name == "additive"


def test_without_positions_self_attention_follows_the_order_of_its_input():
    slot = variants.build("none_position", dim=8, heads=2, regime="self").double()
    x = torch.randn(1, 6, 8, dtype=torch.float64)
    order = torch.tensor([3, 1, 0, 5, 4, 2])
    plain = slot.attend(x, None, slot.start(None, x), own=(x, None, None))[0]
    moved = x[:, order]
    found = slot.attend(moved, None, slot.start(None, moved), own=(moved, None, None))[0]
    torch.testing.assert_close(found, plain[:, order], rtol=0, atol=1e-12)
    assert (slot.variant.embed(x, 3) == x).all()
