import pytest
import torch

import variants
from bench.api.build import SlotPlace, build_slot
from bench.api.config import build_config
from bench.api.errors import InvalidConfig
from bench.api.resolve import resolve
from bench.api.selector import parse
from tasks.backbones.transformer_blocks import Block, BlockConfig, LayerPath
from variants.heads.sagan import SaganConfig


def slot_of(dim: int = 16, options: str = ""):
    return variants.build(f"sagan{options}", dim=dim, regime="self").double()


def ask(slot, x):
    return slot.attend(x, None, slot.start(None, x), own=(x, None, None))


def test_at_the_start_it_adds_nothing_so_that_a_residual_is_the_identity():
    slot = slot_of()
    x = torch.randn(2, 9, 16, dtype=torch.float64)
    output, found = ask(slot, x)
    assert torch.equal(x + output, x)
    assert found.output.abs().max() > 0.01, "the attention itself is not zero"


def test_a_block_of_a_transformer_begins_as_the_identity():
    config = BlockConfig(width=16, heads=1, feed_forward=0)
    place = SlotPlace(regime="self", query_width=16, source_width=16, head="raw")
    block = Block(config, build_slot(resolve("sagan"), place))
    x = torch.randn(2, 9, 16)
    from bench.api.trace import Mode

    y = block(x, None, (), LayerPath(), (Mode(), Mode()))[0]
    assert torch.equal(x, y)
    with torch.no_grad():
        block.own.heads.gamma.fill_(0.5)
    y = block(x, None, (), LayerPath(), (Mode(), Mode()))[0]
    assert (x - y).abs().max() > 1e-3


def test_the_gate_opens_by_its_own_gradient():
    slot = slot_of()
    x = torch.randn(2, 9, 16, dtype=torch.float64)
    (ask(slot, x)[0] * torch.randn_like(x)).sum().backward()
    assert slot.heads.gamma.grad.abs() > 0
    assert not slot.heads.to_value.weight.grad.any(), "behind a closed gate nothing learns"


def test_it_equals_the_published_equations():
    slot = slot_of()
    with torch.no_grad():
        slot.heads.gamma.fill_(0.7)
    heads = slot.heads
    x = torch.randn(1, 9, 16, dtype=torch.float64)
    output, found = ask(slot, x)
    f, g = heads.to_key.weight, heads.to_query.weight
    assert f.shape == g.shape == heads.to_value.weight.shape == (2, 16)
    for j in range(9):
        energies = [(f @ x[0, i]) @ (g @ x[0, j]) for i in range(9)]
        exps = [torch.exp(e) for e in energies]
        read = sum(
            exp / sum(exps) * (heads.to_value.weight @ x[0, i]) for i, exp in enumerate(exps)
        )
        expected = 0.7 * heads.to_output.weight @ read
        torch.testing.assert_close(output[0, j], expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(found.weights[0, 0, j].sum(), torch.ones(()).double())


def test_places_in_another_order_give_the_same_in_that_order():
    slot = slot_of()
    with torch.no_grad():
        slot.heads.gamma.fill_(1.0)
    x = torch.randn(1, 9, 16, dtype=torch.float64)
    order = torch.randperm(9)
    torch.testing.assert_close(ask(slot, x[:, order])[0], ask(slot, x)[0][:, order])


def test_shares_of_the_width_are_options_and_at_least_one_unit_is_left():
    slot = slot_of(16, "[reduction=4,value=2]")
    assert slot.heads.to_key.weight.shape == (4, 16)
    assert slot.heads.to_value.weight.shape == (8, 16)
    assert slot_of(4).heads.dims.key_width == 1


def test_wrong_shares_are_refused():
    asked = parse("sagan[reduction=0]")
    with pytest.raises(InvalidConfig, match="at least 1"):
        build_config(SaganConfig, asked.options, asked.name)
