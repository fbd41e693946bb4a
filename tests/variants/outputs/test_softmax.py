"""Plain softmax output: only scored words cost, and copied words count as UNK."""

import torch

from variants.outputs import softmax


def test_the_loss_is_read_off_the_distribution_and_zero_where_nothing_is_scored(scene):
    output, trace, batch = scene.output("softmax"), scene.trace(), scene.batch()
    known = output.log_probs(trace, scene.emit, batch)
    targets = torch.where(batch.targets < scene.vocab, batch.targets, scene.unk)
    chosen = known.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    wanted = torch.where(batch.mask, -chosen, 0.0)
    torch.testing.assert_close(output.nll(trace, scene.emit, batch), wanted)
    assert not bool(batch.mask.all())


def test_an_unknown_target_is_trained_as_unk(scene):
    output, trace = scene.output("softmax"), scene.trace()
    found = [
        output.nll(trace, scene.emit, scene.batch(targets=torch.full((3, 4), word)))
        for word in (scene.vocab, scene.unk)
    ]
    assert torch.equal(*found)


def test_a_word_beyond_the_vocabulary_is_never_said(scene):
    found = scene.output("softmax").log_probs(scene.trace(), scene.emit, scene.batch())
    assert bool((found[..., scene.vocab :] == float("-inf")).all())


def test_many_targets_in_slices_cost_what_they_cost_at_once(scene, monkeypatch):
    output, batch = scene.output("softmax"), scene.batch()
    found = []
    for size in (softmax.SLICE, 3):
        monkeypatch.setattr(softmax, "SLICE", size)
        trace = scene.trace()
        leaves = [trace.states.requires_grad_(), trace.context.requires_grad_()]
        losses = output.nll(trace, scene.emit, batch)
        weighted = (losses * scene.normal(*losses.shape, seed=9)).sum()
        found.append((losses, *torch.autograd.grad(weighted, leaves)))
    assert int(batch.mask.sum()) > 2 * 3
    for whole, sliced in zip(*found, strict=True):
        torch.testing.assert_close(sliced, whole)
