import math

import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode
from tasks.probes.blur import _peaks, _variation, _widened


def blur(subject):
    found = make("probe", parse("blur")).measure(subject)
    return {scored.metric: scored.value for scored in found}


def test_uniform_weights_have_the_entropy_of_the_source_length(subject):
    seen = subject("uniform", batches=3)
    lengths = torch.cat(
        [
            torch.full((int(b.mask.sum()),), float(b.sources[0].tokens.shape[1]))
            for b in seen.batches
        ]
    )
    found = blur(seen)
    assert found["weight_entropy_nats"] == pytest.approx(float(lengths.log().mean()))
    assert found["effective_keys_count"] == pytest.approx(float(lengths.mean()))
    assert found["no_majority_share"] == pytest.approx(float((lengths > 2).double().mean()))


def test_it_equals_a_loop_over_targets(padded):
    seen = padded("additive")
    (batch,) = seen.batches
    weights = seen.backbone(batch, Mode()).weights
    entropies, blurred = [], []
    for row, line in enumerate(batch.mask.tolist()):
        for t, scored in enumerate(line):
            if scored:
                shares = [w for w in weights[row, t].tolist() if w > 0]
                entropies.append(-sum(w * math.log(w) for w in shares))
                blurred.append(max(shares) < 0.5)
    found = blur(seen)
    assert found["weight_entropy_nats"] == pytest.approx(sum(entropies) / len(entropies))
    assert found["no_majority_share"] == pytest.approx(sum(blurred) / len(blurred))
    assert found["weight_entropy_nats"] > 0
    peak = weights.amax(-1)[batch.mask].mean()
    assert found["largest_weight_share"] == pytest.approx(float(peak))
    far = [
        sum(w for s, w in enumerate(weights[row, t].tolist()) if min(abs(s - g) for g in gold) > 1)
        for row, t in batch.mask.nonzero().tolist()
        if (gold := batch.gold[row, t].nonzero().flatten().tolist())
    ]
    assert sum(far) > 0
    assert found["weight_off_gold_share"] == pytest.approx(sum(far) / len(far))


def test_granularity_of_known_rows():
    weights = torch.tensor([[0.5, 0.0, 0.5, 0.0], [0.1, 0.2, 0.7, 0.0], [0.25, 0.25, 0.5, 9.0]])
    real = torch.tensor([[True] * 4, [True] * 4, [True] * 3 + [False]])
    assert _variation(weights, real).tolist() == pytest.approx([1.5, 1.3, 0.25])
    assert _peaks(weights, real).tolist() == [2, 1, 1]


def test_weight_beyond_one_place_of_gold():
    assert _widened(torch.tensor([[0, 0, 1, 0, 0, 0]]).bool()).tolist() == [
        [False, True, True, True, False, False]
    ]


def test_a_network_without_weights_is_refused_in_a_sentence(subject):
    with pytest.raises(Refused, match="no attention weights"):
        blur(subject("none_state"))


def test_weights_of_the_source_itself_belong_to_no_target(subject):
    seen = subject("scaled_dot", backbone="transformer_seq2seq", slot="self")
    with pytest.raises(Refused, match="not from target to source"):
        blur(seen)


def test_an_edit_of_the_weights_reaches_the_prediction(subject):
    seen = subject("additive")
    (batch,) = seen.batches
    plain = seen.backbone(batch, Mode())
    same = seen.backbone(batch, Mode(edit=lambda weights, call: weights))
    torch.testing.assert_close(same.context, plain.context)
    first = seen.backbone(
        batch, Mode(edit=lambda w, call: torch.eye(w.shape[-1]).to(w)[0].expand_as(w))
    )
    value = first.memories[0].source.value[:, 0, :1]
    torch.testing.assert_close(first.context, value.expand_as(first.context))


def test_an_edit_of_weights_that_do_not_exist_is_refused(subject):
    seen = subject("linear_attention", task="recall")
    with pytest.raises(Refused, match="could be edited"):
        seen.backbone(seen.batches[0], Mode(edit=lambda weights, call: weights))
