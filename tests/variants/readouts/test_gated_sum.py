import pytest
import torch

from bench.api.source import Source


@pytest.mark.parametrize("gate", ["value", "query"])
@pytest.mark.parametrize(("bias", "share"), [(50.0, 1.0), (-50.0, 0.0), (0.0, 0.5)])
def test_open_gates_leave_the_weighted_sum_shut_ones_nothing_and_even_ones_half(
    component, ask, weigh, draw, gate, bias, share
):
    drawn = draw(2, 2, 3, 5, (4, 4, 4), lengths=())
    part = component("readout", f"gated_sum[gate={gate}]", widths=(4, 4, 4), seed=None)
    with torch.no_grad():
        part.gate.zero_()
        part.bias.fill_(bias)
    parts = {"readout": part.prepare(drawn.source)}
    weights = weigh(2, 2, 3, 5)
    found = part.read(ask(drawn.query, drawn.source, parts=parts), weights, None)
    plain = weights @ drawn.source.value
    torch.testing.assert_close(found, share * plain, rtol=0, atol=1e-12)


def test_a_gate_of_a_value_shuts_that_value_alone(component, ask):
    part = component("readout", "gated_sum", heads=1, widths=(1, 1, 1), seed=None)
    with torch.no_grad():
        part.gate.fill_(100.0)
    value = torch.tensor([2.0, -3.0, 1.0], dtype=torch.float64).view(1, 1, 3, 1)
    source = Source(value, value)
    weights = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).view(1, 1, 1, 3)
    call = ask(value[:, :, :1], source, parts={"readout": part.prepare(source)})
    assert part.read(call, weights, None).item() == pytest.approx(0.5 * 2 + 0.2 * 1)


def test_a_gate_of_the_query_is_the_same_for_every_value(component, ask, weigh, draw):
    drawn = draw(1, 1, 4, 5, (3, 3, 3), lengths=())
    part = component("readout", "gated_sum[gate=query]", heads=1, widths=(3, 3, 3))
    weights = weigh(1, 1, 4, 5)
    ratio = part.read(ask(drawn.query, drawn.source), weights, None)
    ratio = ratio / (weights @ drawn.source.value)
    other = Source(drawn.source.key, drawn.source.value.flip(2) + 1)
    again = part.read(ask(drawn.query, other), weights, None) / (weights @ other.value)
    torch.testing.assert_close(again, ratio, rtol=0, atol=1e-10)
    assert ((ratio > 0) & (ratio < 1)).all()
