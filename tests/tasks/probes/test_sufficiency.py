"""Sufficiency and comprehensiveness of the tokens with the largest weights."""

from types import SimpleNamespace

import pytest
import torch

from bench.api.batch import Text
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import make
from bench.api.selector import parse
from tasks.probes import sufficiency
from tasks.probes.observations import observations, probabilities
from tasks.probes.sufficiency import _largest, cut

KEYWORD = "keyword_cls[length=12,noise=10,evaluate=32]"


def measured(seen, selector="sufficiency"):
    return {s.metric: s.value for s in make("probe", parse(selector)).measure(seen)}


def pooled(subject, **changed):
    return subject("scaled_dot", task=KEYWORD, backbone="pooling", slot="pool", **changed)


def test_a_cut_text_has_the_tokens_that_were_kept_in_their_order(subject):
    batch = pooled(subject).batches[0]
    keep = torch.zeros_like(batch.sources[0].mask)
    keep[0, [1, 4]] = True
    keep[1, 3] = True
    text = cut(batch, keep).sources[0]
    tokens = batch.sources[0].tokens
    assert text.tokens[0].tolist() == tokens[0, [1, 4]].tolist()
    assert text.tokens[1].tolist() == [int(tokens[1, 3]), 0]
    assert text.mask[:3].tolist() == [[True, True], [True, False], [False, False]]


def test_the_largest_are_those_of_a_sort_and_padding_is_never_kept():
    score = torch.tensor([[0.1, 0.5, 0.4, 0.9], [0.3, 0.3, 0.3, 0.3]])
    real = torch.tensor([[True, True, True, False], [True, True, True, True]])
    draws = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.2, 0.9, 0.1, 0.5]])
    assert _largest(score, draws, real, 2).tolist() == [
        [False, True, True, False],
        [False, True, False, True],
    ]


def test_accuracies_equal_those_of_texts_that_are_cut_by_hand(subject):
    seen = pooled(subject)
    right = lost = texts = 0
    for each in observations(seen):
        whole = probabilities(seen, each)[:, 0]
        for row in range(len(each.weights)):
            best = int(each.weights[row, 0].argmax())
            tokens = each.batch.sources[0].tokens[row, best].view(1, 1)
            alone = SimpleNamespace(
                sources=(Text(tokens, torch.ones(1, 1, dtype=torch.bool)),),
            )
            batch = sufficiency.replace(
                each.batch, sources=alone.sources, inputs=each.batch.inputs[row : row + 1],
                targets=each.batch.targets[row : row + 1], mask=each.batch.mask[row : row + 1],
                gold=None, extended=None,
            )  # fmt: skip
            p = sufficiency._ask(seen, batch)[0]
            right += int(p.argmax()) == int(each.batch.targets[row, 0])
            decision = int(whole[row].argmax())
            lost += float(whole[row, decision] - p[decision])
            texts += 1
    found = measured(seen)
    assert found["kept_accuracy"] == pytest.approx(right / texts)
    assert found["sufficiency_share"] == pytest.approx(lost / texts)


def test_all_tokens_are_as_good_as_the_whole_text(subject):
    found = measured(pooled(subject), "sufficiency[tokens=64]")
    assert found["sufficiency_share"] == pytest.approx(0.0, abs=1e-9)
    assert found["kept_accuracy"] == found["kept_random_accuracy"]


def test_networks_that_answer_at_many_places_are_refused(subject):
    with pytest.raises(Refused, match="one answer for one text"):
        measured(subject("additive"))


def test_no_tokens_are_refused():
    with pytest.raises(InvalidConfig, match="tokens must be at least 1"):
        make("probe", parse("sufficiency[tokens=0]"))
