import math

import pytest
import torch

from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Memory, Source

SMALL = "conv_copy[filters1=3,filters2=2,width1=3,width2=4,width3=2]"


def convolve(layer, x):
    """A convolution by loops; an even width reaches one further to the left."""
    found, width = [], layer.kernel_size[0]
    for place in range(len(x)):
        total = layer.bias.clone()
        for tap in range(width):
            at = place + tap - width // 2
            if 0 <= at < len(x):
                total = total + layer.weight[:, :, tap] @ x[at]
        found.append(total)
    return torch.stack(found)


def leaky(x, slope):
    return torch.where(x > 0, x, slope * x)


def by_hand(output, trace, row, t):
    """The second head's weights and the copy gate, layer after layer."""
    memory = trace.memories[0].source
    states = memory.value[row].transpose(0, 1).flatten(1)[memory.key_mask()[row]]
    layer2 = convolve(output.conv2, leaky(convolve(output.conv1, states), 0.1))
    gate = trace.states[row, t]
    if output.gate_map is not None:
        gate = output.gate_map.weight @ gate
    gated = layer2 * leaky(gate, 0.01)
    gated = gated / gated.square().sum().sqrt()
    energy = convolve(output.point, gated)[:, 0].exp()
    chosen = torch.stack([1 / (1 + torch.exp(-x)) for x in convolve(output.choose, gated)[:, 0]])
    return energy / energy.sum(), chosen.max()


@pytest.mark.parametrize("selector", [SMALL, SMALL.replace("filters2=2", "filters2=4")])
def test_vectorized_code_equals_the_loops(scene, selector):
    output, trace, batch = scene.output(selector), scene.trace(), scene.batch()
    assert (output.gate_map is None) == ("filters2=4" in selector)
    found = output.log_probs(trace, scene.emit, batch).exp()
    assert (found.sum(-1) - 1).abs().max() < 1e-10
    for row in range(scene.rows):
        for t in range(scene.steps):
            kappa, share = by_hand(output, trace, row, t)
            plain = scene.emit(trace.states, trace.context, trace.embedded)[row, t].softmax(-1)
            expected = torch.zeros(scene.vocab + scene.extra, dtype=torch.float64)
            expected[: scene.vocab] = (1 - share) * plain
            for weight, word in zip(kappa, batch.extended[row], strict=False):
                expected[word] += share * weight
            assert (found[row, t] - expected).abs().max() < 1e-10


def test_the_published_widths_equal_the_loops_on_a_shorter_source(scene):
    output, trace, batch = scene.output("conv_copy"), scene.trace(), scene.batch()
    kappa, choice = output._point(trace)
    for row, length in enumerate((5, 4, 2)):
        expected, share = by_hand(output, trace, row, 1)
        assert (kappa[row, 1, :length] - expected).abs().max() < 1e-9
        assert not kappa[row, 1, length:].any()
        assert abs(torch.sigmoid(choice[row, 1]) - share) < 1e-9
    assert output.nll(trace, scene.emit, batch).isfinite().all()


def test_training_uses_the_published_loss_and_scoring_the_mixture(scene):
    output, trace, batch = scene.output(SMALL), scene.trace(), scene.batch()
    plain = scene.emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    found = output.train().nll(trace, scene.emit, batch)
    absent = 0
    for row in range(scene.rows):
        for t in range(int(batch.mask[row].sum())):
            kappa, share = by_hand(output, trace, row, t)
            target = int(batch.targets[row, t])
            pairs = zip(kappa, batch.extended[row], strict=False)
            right = [weight for weight, word in pairs if word == target]
            copied = torch.log(sum(right) + 1e-7) if right else -1000.0
            absent += not right
            known = plain[row, t, min(target, scene.unk) if target >= 7 else target]
            known = known - 10 * (target >= 7 or target == scene.unk)
            parts = torch.stack([share.log() + copied, (1 - share).log() + known])
            assert abs(found[row, t] + parts.logsumexp(0)) < 1e-9
    assert absent > 1
    scored = output.eval().nll(trace, scene.emit, batch)
    expected = scene.at_targets(output.log_probs(trace, scene.emit, batch), batch)
    assert (scored - expected).abs().max() < 1e-12
    unknown = scene.batch(targets=torch.full_like(batch.targets, scene.unk))
    dear, plain = (
        output.train(mode).nll(trace, scene.emit, unknown)[batch.mask] for mode in (True, False)
    )
    assert (dear - plain - 10).abs().max() < 1e-9, "UNK is dear in training"
    assert not found[~batch.mask].any()
    assert not scored[~batch.mask].any()


def test_shifting_the_source_shifts_where_it_points(scene):
    """Zeros around the content keep the norm and the borders out of it."""
    output, trace = scene.output(SMALL), scene.trace()
    with torch.no_grad():
        output.conv1.bias.zero_()
        output.conv2.bias.zero_()
    value = torch.zeros(scene.rows, 1, 24, 6, dtype=torch.float64)
    value[:, :, 8:12] = scene.normal(scene.rows, 1, 4, 6, seed=3)
    found = []
    for shift in (0, 5):
        moved = value.roll(shift, 2)
        found.append(output._point(trace._replace(memories=(Memory(Source(moved, moved)),))))
    torch.testing.assert_close(found[1][0], found[0][0].roll(5, 2), rtol=0, atol=1e-12)
    torch.testing.assert_close(found[1][1], found[0][1], rtol=0, atol=1e-12)
    assert found[0][0].std(-1).min() > 1e-4


def test_it_points_after_a_marker_by_its_place_alone(scene):
    """What stands before a place matters, unlike for a score of contents."""
    output, trace = scene.output(SMALL), scene.trace(real=(5, 5, 5))
    value = trace.memories[0].source.value.clone()
    value[:, :, 1] += 1
    changed = trace._replace(memories=(Memory(Source(value, value)),))
    one, two = (output._point(t)[0] for t in (trace, changed))
    ratios = [found[..., 3] / found[..., 4] for found in (one, two)]
    assert (ratios[0] - ratios[1]).abs().min() > 1e-8


def test_padding_and_a_source_of_padding_alone_do_no_harm(scene):
    output, trace, batch = scene.output(SMALL), scene.trace(real=(5, 4, 0)), scene.batch()
    memory = trace.memories[0].source
    value = memory.value.clone().detach()
    value[1, :, 4:] = math.nan
    moved = trace._replace(memories=(Memory(Source(value, value, memory.mask)),))
    for mode in (True, False):
        output.train(mode)
        clean, dirty = (output.nll(t, scene.emit, batch) for t in (trace, moved))
        assert torch.equal(clean[:2], dirty[:2])
        assert clean.isfinite().all()
    output.nll(trace, scene.emit, batch).sum().backward()
    assert all(p.grad.isfinite().all() for p in output.parameters())
    plain = scene.emit(trace.states, trace.context, trace.embedded).log_softmax(-1)
    found = output.log_probs(trace, scene.emit, batch)[2, :, : scene.vocab]
    torch.testing.assert_close(found, plain[2])


def test_gradients_are_right(scene):
    output, trace, batch = scene.output(SMALL).train(), scene.trace(), scene.batch()
    memory = trace.memories[0].source

    def loss(states, value):
        kept = Memory(Source(value, value, memory.mask))
        return output.nll(trace._replace(states=states, memories=(kept,)), scene.emit, batch)

    inputs = (trace.states.requires_grad_(), memory.value.clone().requires_grad_())
    assert torch.autograd.gradcheck(loss, inputs)


def test_it_is_refused_without_source_ids_and_with_empty_filters(scene):
    with pytest.raises(Refused, match="conv_copy copies source words"):
        scene.output(SMALL).nll(scene.trace(), scene.emit, scene.batch(extended=None))
    with pytest.raises(InvalidConfig, match="conv_copy: width2 must be at least 1, got 0"):
        scene.output("conv_copy[width2=0]")
