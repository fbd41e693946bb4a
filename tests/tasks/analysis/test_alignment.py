from dataclasses import replace

import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from tasks.analysis._weights import looks
from tasks.analysis.alignment import OFFSETS, _shifted


def measured(seen):
    found = make("instrument", parse("alignment")).measure(seen)
    plain = {s.metric: s.value for s in found if not s.axis}
    return plain, {s.x: s.value for s in found if s.axis == "offset"}


def test_it_equals_loops_over_links(subject):
    seen = subject("additive")
    (batch,) = seen.batches
    second = batch.gold.roll(1, -1) * (torch.arange(batch.gold.shape[1]) % 2)[:, None]
    batch = replace(batch, gold=(batch.gold + second) / 2)
    seen = replace(seen, batches=(batch,))
    links = found = hits = targets = 0
    mass = []
    for one in looks(seen):
        for row, line in enumerate(one.batch.mask.tolist()):
            for t, scored in enumerate(line):
                gold = {s for s, g in enumerate(one.gold[row, t].tolist()) if g > 0}
                if not scored or not gold:
                    continue
                weights = one.weights[row, t].tolist()
                order = sorted(range(len(weights)), key=lambda s: -weights[s])
                links += len(gold)
                found += len(gold & set(order[: len(gold)]))
                hits += order[0] in gold
                targets += 1
                mass.append(sum(weights[s] for s in gold))
    plain, _ = measured(seen)
    assert links > targets > 10
    assert plain["align_match_share"] == pytest.approx(found / links)
    assert plain["align_prob_share"] == pytest.approx(sum(mass) / len(mass))
    assert plain["alignment_error_share"] == pytest.approx(1 - 2 * hits / (targets + links))


@pytest.mark.parametrize("shift", [-1, 0, 2])
def test_attention_that_looks_at_a_neighbors_word_is_off_by_that_much(subject, shift, monkeypatch):
    from tasks.analysis import alignment

    def shifted_looks(seen):
        for one in looks(seen):
            moved, _ = _shifted(one.gold > 0, one.batch.mask, shift)
            yield one._replace(weights=moved.double())

    monkeypatch.setattr(alignment, "looks", shifted_looks)
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
