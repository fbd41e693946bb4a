from dataclasses import replace

import pytest
import torch

from bench.api.batch import Text
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode
from tasks.probes.observations import observations, probabilities
from tasks.probes.sufficiency import _largest, cut

TASK = "keyword_cls[length=14,noise=6,evaluate=48]"
RECURRENT = "pooling[embedding=8,encoder=birnn]"
SELECTS = "rationale[encoder=rationale[encoder=birnn]]"


def measured(seen, selector="sufficiency"):
    return {one.metric: one.value for one in make("probe", parse(selector)).measure(seen)}


def read(seen, batch, row, places):
    """What the network predicts of some tokens of one text, as a text of its own."""
    tokens = batch.sources[0].tokens[row, places][None]
    mask = None
    if not places:  # an empty text is padding alone
        tokens, mask = torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.bool)
    one = batch.select(torch.tensor([row]))
    one = replace(one, sources=(Text(tokens, mask),), extended=tokens, gold=None)
    trace = seen.backbone(one, Mode())
    return seen.backbone.output.log_probs(trace, seen.backbone.emit, one).exp()[0, 0]


@pytest.mark.parametrize("count", [1, 3, 9])
@pytest.mark.parametrize(
    ("variant", "backbone"), [("scaled_dot", RECURRENT), (SELECTS, "pooling[embedding=8]")]
)
def test_it_equals_a_loop_over_texts(subject, variant, backbone, count):
    seen = subject(variant, task=TASK, backbone=backbone, batches=9)
    found = measured(seen, f"sufficiency[tokens={count}]")
    kept, removed, lost, left = [], [], [], []
    for one in observations(seen):
        batch, whole = one.batch, probabilities(seen, one)[:, 0]
        for row, weights in enumerate(one.weights[:, 0].tolist()):
            real = [s for s in range(len(weights)) if one.real[row, 0, s]]
            best = sorted(real, key=lambda s: -weights[s])[:count]
            best = [s for s in sorted(best) if weights[s] > 0]
            alone = read(seen, batch, row, best)
            others = read(seen, batch, row, [s for s in real if s not in best])
            target, decision = int(batch.targets[row, 0]), int(whole[row].argmax())
            kept.append(int(alone.argmax()) == target)
            removed.append(int(others.argmax()) == target)
            lost.append(float(whole[row, decision] - alone[decision]))
            left.append(float(whole[row, decision] - others[decision]))
    count = len(kept)
    assert count >= 48
    assert found["kept_accuracy"] == pytest.approx(sum(kept) / count)
    assert found["removed_accuracy"] == pytest.approx(sum(removed) / count)
    assert found["sufficiency_share"] == pytest.approx(sum(lost) / count, abs=1e-9)
    assert found["comprehensiveness_share"] == pytest.approx(sum(left) / count, abs=1e-9)


def test_a_network_that_needs_one_word_and_looks_at_it_loses_nothing_without_the_others(subject):
    """Sharp weights on the word that decides: it suffices, and nothing is known without it."""
    seen = subject(
        "dot",
        task="keyword_cls[length=14,noise=6,decoys=0,evaluate=64]",
        backbone="pooling[embedding=8]",
        batches=9,
    )
    backbone = seen.backbone
    with torch.no_grad():
        backbone.embedding.weight.zero_()
        backbone.project.weight.zero_()
        backbone.project.bias.zero_()
        backbone.query.zero_()
        backbone.query[7] = 50.0
        for topic in range(4):
            words = slice(5 + 4 * topic, 9 + 4 * topic)
            backbone.embedding.weight[words, topic] = 1.0
            backbone.embedding.weight[words, 7] = 1.0
            backbone.project.weight[topic, topic] = 40.0
    found = measured(seen)
    assert found["kept_accuracy"] == 1
    assert found["removed_accuracy"] < 0.5
    assert found["kept_random_accuracy"] < 0.6
    assert abs(found["sufficiency_share"]) < 1e-6
    assert found["comprehensiveness_share"] > 0.5


def test_the_whole_text_suffices(subject):
    found = measured(subject("scaled_dot", task=TASK, backbone=RECURRENT), "sufficiency[tokens=64]")
    assert found["sufficiency_share"] == pytest.approx(0, abs=1e-9)
    assert found["kept_random_accuracy"] == found["kept_accuracy"]


def test_tokens_are_cut_out_in_their_order_and_a_text_may_become_empty(subject):
    seen = subject("scaled_dot", task=TASK, backbone=RECURRENT)
    batch = seen.batches[0].select(torch.tensor([0, 1, 2]))
    tokens = torch.zeros_like(batch.sources[0].tokens, dtype=torch.bool)
    tokens[0, [1, 4, 6]] = True
    tokens[1, 3] = True
    found = cut(batch, tokens).sources[0]
    before = batch.sources[0].tokens
    assert found.tokens.tolist() == [
        before[0, [1, 4, 6]].tolist(),
        [int(before[1, 3]), 0, 0],
        [0, 0, 0],
    ]
    assert found.mask.sum(1).tolist() == [3, 1, 0]


def test_equal_weights_are_no_order():
    """The first of several tokens with the same weight would be chosen for its place."""
    draws = torch.rand(400, 5, generator=torch.Generator().manual_seed(0))
    real = torch.tensor([True, True, True, True, False]).expand(400, 5)
    chosen = _largest(torch.ones(400, 5), draws, real, 2)
    assert (chosen.sum(1) == 2).all()
    shares = chosen.double().mean(0)
    assert shares[4] == 0
    assert ((shares[:4] - 0.5).abs() < 0.1).all()


def test_what_cannot_be_cut_is_refused(subject):
    with pytest.raises(InvalidConfig, match="at least 1"):
        make("probe", parse("sufficiency[tokens=0]"))
    with pytest.raises(Refused, match="one answer for one text"):
        measured(subject("additive"))
    folded = "pooling[embedding=8,encoder=pyramid[layers=1]]"
    with pytest.raises(Refused, match="one for one"):
        measured(subject("scaled_dot", task=TASK, backbone=folded))
