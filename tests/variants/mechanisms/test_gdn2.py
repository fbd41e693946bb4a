import torch

NEVER = -60.0


def test_with_one_gate_for_all_it_is_kimi_delta_attention(beneath, answer, draw, beside):
    drawn = draw(2, 2, 80, 80)
    gdn2, kda = (beneath(name, regime="causal") for name in ("gdn2", "kda"))
    with torch.no_grad():
        gdn2.rate.copy_(kda.rate)
        gdn2.bias.copy_(kda.bias)
    source = beside(kda, drawn.source)
    expected = answer(kda, drawn.query, source).output
    beta, step = source.extras["beta"], source.extras["step"]
    same = beside(gdn2, drawn.source, erase=beta, write=beta, step=step)
    found = answer(gdn2, drawn.query, same).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_it_can_erase_without_writing(beneath, answer, draw, beside):
    drawn = draw(1, 1, 2, 2, lengths=())
    drawn.source.key[:, :, 1] = drawn.source.key[:, :, 0]
    variant = beneath("gdn2", heads=1, regime="causal")
    write = torch.tensor([[-NEVER], [NEVER]])
    source = beside(variant, drawn.source, step=-200.0, erase=-NEVER, write=write)
    found = answer(variant, drawn.query, source).state.carried["matrix"]
    torch.testing.assert_close(found, torch.zeros_like(found), rtol=0, atol=1e-5)


def test_without_erasing_it_is_gated_linear_attention(beneath, answer, draw, beside):
    drawn = draw(1, 2, 40, 40, lengths=())
    variant = beneath("gdn2", regime="causal")
    source = beside(variant, drawn.source, step=-200.0, erase=NEVER, write=-NEVER)
    query, key = (torch.nn.functional.normalize(x, dim=-1) for x in (drawn.query, source.key))
    expected = (query @ key.mT).tril() @ source.value
    found = answer(variant, drawn.query, source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
