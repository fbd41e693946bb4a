import pytest
import torch

from bench.api.errors import Refused


@pytest.mark.parametrize("heads", [1, 3])
def test_vectorized_code_equals_the_loops(scene, example, heads):
    output, trace, batch = scene.output("pointer_net"), scene.trace(heads=heads), scene.batch()
    found = output.log_probs(trace, scene.emit, batch)
    for row in range(scene.rows):
        one, alone = example(trace, batch, row)
        expected = output.oracle(one, scene.emit, alone)
        assert (found[row] - expected.log()).abs().max() < 1e-10


def test_the_distribution_is_the_attention(scene):
    output, trace, batch = scene.output("pointer_net"), scene.trace(), scene.batch()
    found = output.log_probs(trace, scene.emit, batch).exp()
    weights = trace.weights
    torch.testing.assert_close(found[0, :, 5], weights[0, :, 0] + weights[0, :, 2])
    torch.testing.assert_close(found[0, :, 7], weights[0, :, 1])
    torch.testing.assert_close(found[2, :, 4], weights[2, :, 0])
    assert (found.sum(-1) - 1).abs().max() < 1e-12


def test_what_can_be_said_follows_the_source(scene):
    output, trace = scene.output("pointer_net"), scene.trace(real=(5, 5, 5))
    for ids in ([4, 4, 4, 4, 4], [4, 5, 4, 5, 4], [4, 5, 6, 7, 8]):
        batch = scene.batch(extended=torch.tensor([ids] * scene.rows))
        sayable = output.log_probs(trace, scene.emit, batch) > -40
        assert (sayable.sum(-1) == len(set(ids))).all()


def test_the_loss_is_read_off_the_distribution_and_zero_where_nothing_is_scored(scene):
    output, trace, batch = scene.output("pointer_net"), scene.trace(heads=2), scene.batch()
    expected = scene.at_targets(output.log_probs(trace, scene.emit, batch), batch)
    found = output.nll(trace, scene.emit, batch)
    assert (found - expected).abs().max() < 1e-12
    assert found[0, 3] > 40, "EOS is not in this source, and costs much but not everything"


def test_the_vocabulary_is_never_asked(scene):
    def emit(*_given):
        raise AssertionError("a pointer network has no vocabulary")

    output, trace, batch = scene.output("pointer_net"), scene.trace(), scene.batch()
    assert output.nll(trace, emit, batch).shape == batch.targets.shape
    assert output.log_probs(trace, emit, batch).shape[:2] == batch.targets.shape


def test_a_query_without_keys_has_a_finite_loss_and_gradient(scene):
    trace = scene.trace(real=(5, 4, 0))
    weights = trace.attended[0].weights.clone().requires_grad_()
    trace = trace._replace(attended=(trace.attended[0]._replace(weights=weights),))
    losses = scene.output("pointer_net").nll(trace, scene.emit, scene.batch())
    losses.sum().backward()
    assert losses.isfinite().all()
    assert weights.grad.isfinite().all()


def test_it_is_refused_without_source_ids(scene):
    with pytest.raises(Refused, match="pointer_net copies source words"):
        scene.output("pointer_net").nll(scene.trace(), scene.emit, scene.batch(extended=None))
