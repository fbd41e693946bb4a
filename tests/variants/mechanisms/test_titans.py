import torch

from bench.api.source import Source

NEVER = -60.0


def test_without_momentum_and_forgetting_it_is_deltanet(beneath, answer, draw, beside):
    drawn = draw(2, 2, 70, 70)
    titans, delta = (beneath(name, regime="causal") for name in ("titans", "deltanet"))
    source = beside(delta, drawn.source)
    expected = answer(delta, drawn.query, source).output
    given = {"rate": source.extras["beta"], "momentum": NEVER, "forget": NEVER}
    found = answer(titans, drawn.query, beside(titans, drawn.source, **given)).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_momentum_writes_a_surprise_again_and_again(beneath, answer, draw, beside):
    drawn = draw(1, 1, 3, 3, lengths=())
    key = torch.eye(5, dtype=torch.float64)[:3].view(1, 1, 3, 5)
    variant = beneath("titans", heads=1, regime="causal")
    rate = torch.tensor([[-NEVER], [NEVER], [NEVER]])
    source = beside(variant, Source(key, drawn.source.value), rate=rate, momentum=0.0, forget=NEVER)
    asked = key[:, :, :1].expand(-1, -1, 3, -1).clone()
    found = answer(variant, asked, source).output[0, 0]
    first = drawn.source.value[0, 0, 0]
    # 1, 1 + 1/2, 1 + 1/2 + 1/4
    expected = torch.stack([share * first for share in (1.0, 1.5, 1.75)])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_each_step_goes_down_the_gradient_of_the_squared_error(beneath, answer, draw, beside):
    drawn = draw(1, 1, 9, 9, lengths=())
    variant = beneath("titans", heads=1, regime="causal")
    source = beside(variant, drawn.source, momentum=NEVER, forget=NEVER)
    early = Source(source.key[:, :, :8], source.value[:, :, :8])
    early = beside(
        variant, early, rate=source.extras["rate"][:, :, :8], momentum=NEVER, forget=NEVER
    )
    before = answer(variant, drawn.query[:, :, :8], early).state.carried["matrix"][0, 0]
    after = answer(variant, drawn.query, source).state.carried["matrix"][0, 0]
    memory = before.detach().requires_grad_()
    key = torch.nn.functional.normalize(source.key[0, 0, 8], dim=0)
    loss = (key @ memory - source.value[0, 0, 8]).square().sum() / 2
    (gradient,) = torch.autograd.grad(loss, memory)
    rate = source.extras["rate"][0, 0, 8].sigmoid()
    torch.testing.assert_close(after, before - rate * gradient, rtol=0, atol=1e-5)
