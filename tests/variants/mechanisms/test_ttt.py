import pytest
import torch
from torch.nn import functional

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.api.kept_bytes import state_bytes
from bench.conformance.question import cut
from variants.mechanisms.ttt import TttConfig

WIDTHS = (5, 5, 5)
NEVER = -60.0


def learned(variant, drawn, source, batch):
    """Output and map of the first head, by autograd through the loss of each batch."""
    matrix = variant.first[0].detach()
    rates = source.extras["rate"][0, 0].sigmoid() / 5
    norm = (variant.gain[0].detach(), variant.shift[0].detach(), 1e-6)
    found = []
    for at in range(0, source.num_keys, batch):
        before = matrix.clone()
        for t in range(at, min(at + batch, source.num_keys)):
            one = before.clone().requires_grad_()
            key, value = source.key[0, 0, t], source.value[0, 0, t]
            guess = key + functional.layer_norm(key @ one, (5,), *norm)
            (gradient,) = torch.autograd.grad((guess - value).square().sum() / 2, one)
            matrix = matrix - rates[t] * gradient
            query = drawn.query[0, 0, t]
            found.append(query + functional.layer_norm(query @ matrix, (5,), *norm))
    return torch.stack(found), matrix


@pytest.mark.parametrize("batch", [1, 4, 16])
def test_gradients_of_a_batch_are_taken_at_the_map_before_it(beneath, answer, draw, beside, batch):
    drawn = draw(1, 1, 22, 22, WIDTHS, lengths=())
    variant = beneath(f"ttt[batch={batch}]", heads=1, widths=WIDTHS, regime="causal")
    source = beside(variant, drawn.source)
    found = answer(variant, drawn.query, source)
    output, matrix = learned(variant, drawn, source, batch)
    torch.testing.assert_close(found.output[0, 0], output, rtol=0, atol=1e-10)
    torch.testing.assert_close(found.state.carried["matrix"][0, 0], matrix, rtol=0, atol=1e-10)


@pytest.mark.parametrize("split", [[16, 6], [3, 1, 18], [1] * 22])
def test_calls_may_begin_and_end_within_a_batch(beneath, answer, draw, beside, split):
    drawn = draw(2, 2, 22, 22, WIDTHS, lengths=[22, 9])
    variant = beneath("ttt[batch=8]", widths=WIDTHS, regime="causal")
    source = beside(variant, drawn.source)
    whole = answer(variant, drawn.query, source)
    like = QueryShape(2, 2, 5, torch.float64, drawn.query.device)
    state, at, found = variant.start(None, like), 0, []
    for count in split:
        some = slice(at, at + count)
        one = variant.attend(drawn.query[:, :, some], None, state, new=cut(source, keys=some))
        state, at = one.state, at + count
        found.append(one.output)
    torch.testing.assert_close(torch.cat(found, 2), whole.output, rtol=0, atol=1e-10)
    for name, leaf in whole.state.carried.items():
        torch.testing.assert_close(state.carried[name], leaf, rtol=0, atol=1e-10)


@pytest.mark.parametrize("count", [15, 16, 17])
def test_as_much_is_kept_at_the_end_of_a_batch_as_within_it(beneath, answer, draw, beside, count):
    drawn = draw(1, 2, count, count, WIDTHS, lengths=())
    variant = beneath("ttt[batch=8]", widths=WIDTHS, regime="causal")
    found = answer(variant, drawn.query, beside(variant, drawn.source))
    maps = 2 * 2 * 5 * 5  # two of each head
    assert state_bytes([found.state]) == 8 * (maps + 1)


def test_where_nothing_is_learned_the_first_map_answers(beneath, answer, draw, beside):
    drawn = draw(1, 2, 6, 6, WIDTHS, lengths=())
    variant = beneath("ttt", widths=WIDTHS, regime="causal")
    found = answer(variant, drawn.query, beside(variant, drawn.source, rate=NEVER)).output
    read = functional.layer_norm(drawn.query @ variant.first, (5,), eps=1e-6)
    expected = drawn.query + read * variant.gain[:, None] + variant.shift[:, None]
    torch.testing.assert_close(found, expected)


def test_the_state_stays_in_float32():
    slot = variants.build("ttt", dim=8, heads=2, regime="causal").bfloat16()
    x = torch.randn(1, 5, 8, dtype=torch.bfloat16)
    output, found = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
    assert output.dtype == torch.bfloat16
    assert {leaf.dtype for leaf in found.state.carried.values()} == {torch.float32}


def test_values_of_another_width_and_no_batch_are_refused(beneath):
    with pytest.raises(Refused, match="values must be as wide as keys, got 4 and 5"):
        beneath("ttt", regime="causal")
    with pytest.raises(InvalidConfig, match="batch must be at least 1"):
        TttConfig(batch=0)
