import torch


def parallel(variant, drawn, source):
    """The semiseparable matrix of the paper, section 3.2."""
    step = torch.nn.functional.softplus(source.extras["step"] + variant.bias[:, None])
    log_decay = -variant.rate.exp()[:, None, None] * step
    total = log_decay.cumsum(2)
    decay = (total - total.mT).tril().exp().tril()
    weights = drawn.query @ source.key.mT * decay
    return weights @ (step * source.value) + variant.skip[:, None, None] * source.value


def test_it_equals_the_semiseparable_matrix(beneath, answer, draw, beside):
    drawn = draw(2, 2, 100, 100, lengths=())
    variant = beneath("mamba2_ssd", regime="causal")
    source = beside(variant, drawn.source)
    found = answer(variant, drawn.query, source).output
    torch.testing.assert_close(found, parallel(variant, drawn, source), rtol=0, atol=1e-10)


def test_without_decay_it_is_unnormalized_linear_attention(beneath, answer, draw, beside):
    drawn = draw(2, 2, 70, 70, lengths=())
    variant = beneath("mamba2_ssd", regime="causal")
    with torch.no_grad():
        variant.rate.fill_(-80.0)
        variant.skip.zero_()
        variant.bias.zero_()
    source = beside(variant, drawn.source, step=0.0)
    step = torch.nn.functional.softplus(torch.zeros((), dtype=torch.float64))
    expected = (drawn.query @ source.key.mT).tril() @ (step * source.value)
    found = answer(variant, drawn.query, source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
