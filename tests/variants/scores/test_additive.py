import pytest
import torch


def test_golden_energies_weights_and_context(component, ask, golden):
    score = component("score", "additive[width=2]", heads=1, widths=(2, 2, 2))
    with torch.no_grad():
        score.query_map.copy_(torch.eye(2)[None])
        score.key_map.copy_(torch.eye(2)[None])
        score.bias.zero_()
        score.v.copy_(torch.tensor([[[1.0], [-1.0]]]))
    parts = {"score": score.prepare(golden.source)}
    energy = score.energy(ask(golden.query, golden.source, parts=parts), None)
    assert energy.flatten().tolist() == pytest.approx([0.964028, 0.0, 0.202433], abs=1e-6)
    weights = torch.softmax(energy, -1)
    assert weights.flatten().tolist() == pytest.approx([0.541045, 0.206330, 0.252626], abs=1e-6)
    context = weights @ golden.source.value
    assert context.flatten().tolist() == pytest.approx([1.298921, 1.170536], abs=1e-6)


def test_energies_stay_within_the_sum_of_absolute_v(component, ask, draw):
    drawn = draw()
    score = component("score", "additive[width=4]")
    parts = {"score": score.prepare(drawn.source)}
    energy = score.energy(ask(10 * drawn.query, drawn.source, parts=parts), None)
    bound = score.v.detach().abs().sum((1, 2)).view(1, -1, 1, 1)
    assert (energy.abs() <= bound).all()


def test_energies_are_linear_in_v_and_not_in_the_query(component, ask, draw):
    drawn = draw()
    score = component("score", "additive[width=4]")
    parts = {"score": score.prepare(drawn.source)}
    plain = score.energy(ask(drawn.query, drawn.source, parts=parts), None)
    twice = score.energy(ask(2 * drawn.query, drawn.source, parts=parts), None)
    with torch.no_grad():
        score.v.mul_(2)
    heavier = score.energy(ask(drawn.query, drawn.source, parts=parts), None)
    torch.testing.assert_close(heavier, 2 * plain, rtol=0, atol=1e-12)
    assert (twice - 2 * plain).abs().max() > 1e-2


def test_no_weight_is_more_than_the_bound_times_another(component, ask, draw):
    drawn = draw()
    score = component("score", "additive[width=4]")
    parts = {"score": score.prepare(drawn.source)}
    weights = score.energy(ask(9 * drawn.query, drawn.source, parts=parts), None).softmax(-1)
    ratio = weights.amax(-1) / weights.amin(-1)
    bound = torch.exp(2 * score.v.detach().abs().sum((1, 2)))[None, :, None]
    assert (ratio <= bound).all()


def test_long_rows_give_the_same_energies_as_short_ones(component, ask, draw):
    """Where both axes are long another form of the same sum is used."""
    drawn = draw(2, 2, 150, 150, lengths=())
    score = component("score", "additive[width=4]")
    parts = {"score": score.prepare(drawn.source)}
    whole = score.energy(ask(drawn.query, drawn.source, parts=parts), None)
    steps = [
        score.energy(ask(query, drawn.source, parts=parts), None)
        for query in drawn.query.split(1, 2)
    ]
    torch.testing.assert_close(torch.cat(steps, 2), whole, rtol=0, atol=1e-12)
