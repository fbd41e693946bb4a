from dataclasses import replace

import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from tasks.probes.alignment import OFFSETS, _largest, _shifted
from tasks.probes.observations import observations


def measured(seen):
    found = make("probe", parse("alignment")).measure(seen)
    plain = {s.metric: s.value for s in found if not s.axis}
    return plain, {s.x: s.value for s in found if s.axis == "offset"}


def test_it_equals_loops_over_links(subject):
    seen = subject("additive")
    (batch,) = seen.batches
    second = batch.gold.roll(1, -1) * (torch.arange(batch.gold.shape[1]) % 2)[:, None]
    batch = replace(batch, gold=(batch.gold + second) / 2)
    seen = replace(seen, batches=(batch,))
    links = found = targets = 0
    told, true = set(), set()
    mass = []
    for one in observations(seen):
        for row, line in enumerate(one.batch.mask.tolist()):
            ends = {s for s, word in enumerate(one.batch.sources[0].tokens[row]) if word == 2}
            for t, scored in enumerate(line):
                gold = {s for s, g in enumerate(one.gold[row, t].tolist()) if g > 0}
                if not scored:
                    continue
                weights = one.weights[row, t].tolist()
                order = sorted(range(len(weights)), key=lambda s: -weights[s])
                if one.batch.targets[row, t] != 2:
                    told |= {(row, s, t) for s in order[:1] if s not in ends}
                    true |= {(row, s, t) for s in gold - ends}
                if not gold:
                    continue
                links += len(gold)
                found += len(gold & set(order[: len(gold)]))
                targets += 1
                mass.append(sum(weights[s] for s in gold))
    plain, _ = measured(seen)
    assert links > targets > 10
    assert plain["align_match_share"] == pytest.approx(found / links)
    assert plain["align_prob_share"] == pytest.approx(sum(mass) / len(mass))
    error = 1 - 2 * len(told & true) / (len(told) + len(true))
    assert 0 < error < 1
    assert plain["alignment_error_share"] == pytest.approx(error)


@pytest.mark.parametrize("shift", [-1, 0, 2])
def test_attention_that_looks_at_a_neighbors_word_is_off_by_that_much(subject, shift, monkeypatch):
    from tasks.probes import alignment

    def shifted_observations(seen):
        for one in observations(seen):
            moved, _ = _shifted(one.gold > 0, one.batch.mask, shift)
            yield one._replace(weights=moved.double())

    monkeypatch.setattr(alignment, "observations", shifted_observations)
    plain, curve = measured(subject("additive", batches=4))
    assert plain["best_offset_count"] == shift
    assert curve[shift] == 1.0
    assert set(curve) <= set(OFFSETS)
    if shift == 0:
        assert plain["alignment_error_share"] == pytest.approx(0.0)
        assert plain["align_prob_share"] == pytest.approx(1.0)


def test_a_batch_without_gold_is_refused(subject):
    seen = subject("additive")
    (batch,) = seen.batches
    with pytest.raises(Refused, match="no gold alignment"):
        measured(replace(seen, batches=(replace(batch, gold=None),)))


def test_links_outside_the_sequence_are_no_links():
    gold = torch.eye(3, dtype=torch.bool)[None]
    there, known = _shifted(gold, torch.ones(1, 3, dtype=torch.bool), 1)
    assert there[0].tolist() == [[False, True, False], [False, False, True], [False] * 3]
    assert known[0].tolist() == [True, True, False]


@pytest.mark.parametrize("weight", [0.0, 0.25])
def test_weights_that_are_all_alike_find_nothing(subject, weight, monkeypatch):
    from tasks.probes import alignment

    def flat_observations(seen):
        for one in observations(seen):
            yield one._replace(weights=torch.full_like(one.weights, weight))

    monkeypatch.setattr(alignment, "observations", flat_observations)
    plain, curve = measured(subject("additive", batches=4))
    assert plain["align_match_share"] == 0
    assert plain["alignment_error_share"] == 1
    assert set(curve.values()) == {0}


def test_of_two_links_both_of_the_two_largest_weights_are_found_though_they_are_equal(subject):
    *_, seen = observations(subject("additive", batches=4))
    gold = torch.zeros_like(seen.gold, dtype=torch.bool)
    weights = torch.zeros_like(seen.weights)
    gold[0, 0, :2] = gold[0, 1, :2] = True
    weights[0, 0, :2], weights[0, 1, 0] = 0.5, 1.0
    found = _largest(seen._replace(weights=weights), gold)
    assert found[0].nonzero().tolist() == [[0, 0], [0, 1], [1, 0]]
