from dataclasses import replace

import pytest
import torch

from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode
from tasks.probes.gradient_path import _last, _norms


def measured(seen):
    found = make("probe", parse("gradient_path")).measure(seen)
    return {s.x: s.value for s in found if s.axis == "distance"}


def test_norms_equal_finite_differences(subject):
    seen = subject("additive", batches=5)
    batch, backbone = seen.batches[-1], seen.backbone
    tokens = batch.sources[0].tokens
    embedding = backbone.source_embeddings[0]
    norms = _norms(seen, batch)
    row, place, step = 0, 1, 1e-6
    slopes = []
    for unit in range(embedding.weight.shape[1]):
        losses = []
        for sign in (1, -1):

            def bump(module, given, out, sign=sign, unit=unit):
                out = out.clone()
                out[row, place, unit] += sign * step
                return out

            hook = embedding.register_forward_hook(bump)
            nll = backbone.output.nll(backbone(batch, Mode()), backbone.emit, batch)
            hook.remove()
            losses.append(float(nll[row, _last(batch)[row]]))
        slopes.append((losses[0] - losses[1]) / (2 * step))
    assert float(norms[row, place]) == pytest.approx(torch.tensor(slopes).norm().item(), rel=1e-4)
    assert tokens.shape == norms.shape


def test_shares_are_of_the_whole_norm(subject):
    curve = measured(subject("additive"))
    assert set(curve) >= {0.0, 1.0}
    assert all(0 <= value <= 1 for value in curve.values())


def test_shares_of_one_example_go_from_its_last_word_to_its_first(subject):
    seen = subject("additive", batches=6)
    one = seen.batches[-1].select(torch.tensor([0]))
    seen = replace(seen, batches=(one,))
    norms = _norms(seen, one)[0]
    curve = measured(seen)
    shares = (norms / norms.norm()).tolist()
    assert len(shares) > 2
    assert [curve[float(at)] for at in range(len(shares))] == pytest.approx(shares[::-1])
    assert shares != pytest.approx(shares[::-1])


def test_attention_shortens_the_path_to_the_first_word(subject):
    def first(variant):
        seen = subject(
            variant,
            backbone="rnn_seq2seq[encoder=uni_rnn]",
            task="transduction[min_length=12,max_length=12,beyond=13,vocab=6]",
        )
        found = make("probe", parse("gradient_path")).measure(seen)
        return next(s.value for s in found if s.metric == "gradient_first_share")

    with_attention, without = first("additive"), first("none_state")
    assert with_attention > 10 * without


def test_the_network_is_left_as_it_was(subject):
    seen = subject("additive")
    measured(seen)
    assert all(not m._forward_hooks for m in seen.backbone.modules())
    assert all(p.grad is None for p in seen.backbone.parameters())


def test_decoders_alone_are_measured_over_their_inputs(subject):
    assert measured(subject("scaled_dot", task="recall"))
