import torch


def test_with_one_decay_for_all_units_it_is_gated_deltanet(beneath, answer, draw, beside):
    drawn = draw(2, 2, 80, 80)
    kda, gdn = (beneath(name, regime="causal") for name in ("kda", "gated_deltanet"))
    with torch.no_grad():
        kda.rate.copy_(gdn.rate)
        kda.bias.copy_(gdn.bias.expand_as(kda.bias))
    source = beside(gdn, drawn.source)
    expected = answer(gdn, drawn.query, source).output
    found = answer(kda, drawn.query, beside(kda, drawn.source, **source.extras)).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_a_unit_that_forgets_all_leaves_the_others_alone(beneath, answer, draw, beside):
    drawn = draw(1, 1, 3, 3, lengths=())
    variant = beneath("kda", heads=1, regime="causal")
    with torch.no_grad():
        variant.rate.fill_(0.0)
        variant.bias.zero_()
    said = torch.zeros(3, 5)
    beta = torch.tensor([[0.0], [-60.0], [-60.0]])
    kept = answer(variant, drawn.query, beside(variant, drawn.source, beta=beta, step=said)).state
    said[2, 1] = 200.0
    lost = answer(variant, drawn.query, beside(variant, drawn.source, beta=beta, step=said)).state
    one, two = kept.carried["matrix"][0, 0].clone(), lost.carried["matrix"][0, 0]
    assert one[1].abs().max() > 1e-3
    one[1] = 0
    torch.testing.assert_close(two, one)
