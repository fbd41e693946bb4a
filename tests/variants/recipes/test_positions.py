import torch

import variants
from bench.api.resolve import resolve


def test_nope_is_attention_without_positions_under_another_name():
    nope, plain = resolve("nope"), resolve("none_position")
    assert nope.axes == plain.axes
    assert nope.canonical != plain.canonical


def test_without_positions_the_past_is_a_set():
    slot = variants.build("nope", dim=8, heads=2, regime="causal").double()
    x = torch.randn(1, 6, 8, dtype=torch.float64)
    moved = x[:, [3, 1, 0, 4, 2, 5]]
    last = [slot.attend(s, None, slot.start(None, s), own=(s, None, None))[0] for s in (x, moved)]
    torch.testing.assert_close(last[0][:, -1], last[1][:, -1], rtol=0, atol=1e-12)
