import torch
from torch.nn import functional

NEVER = -60.0


def test_it_reads_the_ridge_regression_of_values_on_keys(beneath, answer, draw, beside):
    drawn = draw(1, 2, 40, 40, lengths=())
    variant = beneath("mesa", regime="causal")
    source = beside(variant, drawn.source, keep=-NEVER)
    key, query = (functional.normalize(x, dim=-1) for x in (source.key, drawn.query))
    ridge = torch.diag_embed(functional.softplus(variant.ridge) + 0.25)
    root = source.extras["beta"].sigmoid().sqrt()
    found = answer(variant, drawn.query, source).output
    for t in (0, 7, 39):
        weighted, wanted = ((root * x)[0, :, : t + 1] for x in (key, source.value))
        solution = torch.linalg.solve(weighted.mT @ weighted + ridge, weighted.mT @ wanted)
        expected = (query[0, :, t : t + 1] @ solution).squeeze(1)
        torch.testing.assert_close(found[0, :, t], expected, rtol=0, atol=1e-5)


def test_conjugate_gradients_come_to_the_same_answer(beneath, answer, draw, beside):
    drawn = draw(1, 1, 12, 12, lengths=())
    variant = beneath("mesa", heads=1, regime="causal")
    source = beside(variant, drawn.source)
    found = answer(variant, drawn.query, source)
    products = found.state.carried["products"][0, 0].detach()
    system = products + torch.diag(functional.softplus(variant.ridge[0]) + 0.25).detach()
    right = functional.normalize(drawn.query[0, 0, -1], dim=0)
    guess, rest = torch.zeros(5, dtype=torch.float64), right.clone()
    along = rest.clone()
    for _ in range(5):
        step = rest.square().sum() / (along @ system @ along)
        guess, before = guess + step * along, rest.square().sum()
        rest = rest - step * (system @ along)
        along = rest + rest.square().sum() / before * along
    expected = guess @ found.state.carried["matrix"][0, 0]
    torch.testing.assert_close(found.output[0, 0, -1], expected, rtol=0, atol=1e-5)


def test_with_a_large_ridge_it_is_gated_linear_attention(beneath, answer, draw, beside):
    drawn = draw(1, 2, 50, 50, lengths=())
    variant = beneath("mesa", regime="causal")
    with torch.no_grad():
        variant.ridge.fill_(1e7)
    source = beside(variant, drawn.source, keep=-NEVER)
    key, query = (functional.normalize(x, dim=-1) for x in (source.key, drawn.query))
    expected = (query @ key.mT).tril() @ (source.extras["beta"].sigmoid() * source.value)
    found = 1e7 * answer(variant, drawn.query, source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
