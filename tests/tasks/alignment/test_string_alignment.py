"""Links of generated strings: exact gold, weights that are off, links that lie."""

import itertools

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.alignment.string_alignment import StringAlignment, StringAlignmentConfig
from tasks.alignment.taught_strings import TaughtStrings, TaughtStringsConfig, misled
from tasks.metrics.links import gold_links

RULES = ("copy", "reverse", "swap", "dict", "svo", "fert")


def answers_of(task, shift: int = 0) -> list[Answer]:
    """Weights on the gold links, or on those of an earlier step."""
    return [
        Answer(
            batch=batch,
            predicted=batch.targets,
            nll=torch.zeros_like(batch.targets).float(),
            weights=batch.gold.roll(shift, 1),
        )
        for batch in task.evaluation("test")
    ]


def plain(found) -> dict[str, float]:
    return {s.metric: s.value for s in found if not s.axis}


@pytest.mark.parametrize("rule", RULES)
def test_weights_on_the_gold_make_no_error(rule):
    task = StringAlignment(StringAlignmentConfig(rule=rule, evaluate=16), 0)
    found = plain(task.score("test", answers_of(task)))
    assert found["alignment_error_proportion"] == 0
    assert found["link_recall_proportion"] == found["alignment_match"] == 1


def test_weights_one_step_late_are_seen_as_such():
    task = StringAlignment(StringAlignmentConfig(rule="reverse", evaluate=16), 0)
    found = plain(task.score("test", answers_of(task, shift=1)))
    assert found["alignment_error_proportion"] > 0.8
    assert found["shifted_alignment_error_proportion"] < 0.2


def test_strings_beyond_training_do_not_count():
    task = StringAlignment(StringAlignmentConfig(evaluate=16), 0)
    good, bad = answers_of(task), answers_of(task, shift=1)
    mixed = [
        one if one.batch.sources[0].tokens.shape[1] <= 9 else other
        for one, other in zip(good, bad, strict=True)
    ]
    assert plain(task.score("test", mixed))["alignment_error_proportion"] == 0


def test_a_network_without_weights_has_no_error_rate():
    task = StringAlignment(StringAlignmentConfig(evaluate=8), 0)
    answers = [Answer(batch=a.batch, predicted=a.predicted, nll=a.nll) for a in answers_of(task)]
    found = plain(task.score("test", answers))
    assert "alignment_error_proportion" not in found
    assert found["sequence_accuracy"] == 1


def test_counting_words_beats_the_diagonal_where_places_drift():
    found = StringAlignment(StringAlignmentConfig(), 0).baselines()
    assert 0 < found["IBM model 1"] < found["diagonal"] < 1


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_as_many_links_lie_as_were_asked_for(noise):
    task = TaughtStrings(TaughtStringsConfig(noise=noise, vocab=100), 0)
    honest = TaughtStrings(TaughtStringsConfig(vocab=100), 0)
    changed = total = 0
    draws = zip(
        task.training(256, torch.Generator().manual_seed(1)),
        honest.training(256, torch.Generator().manual_seed(1)),
        strict=False,
    )
    for batch, true in itertools.islice(draws, 1):
        assert torch.equal(batch.gold.sum(-1), true.gold.sum(-1))
        for told, right in zip(gold_links(batch), gold_links(true), strict=True):
            changed += len(right - told)
            total += len(right)
        ends = true.mask.sum(1) - 1
        rows = torch.arange(len(ends))
        assert torch.equal(batch.gold[rows, ends], true.gold[rows, ends])
    # a lie may hit the right word of up to eight by chance
    assert 0.7 * noise <= changed / total <= noise + 0.03


def test_a_lie_points_at_a_word_of_its_own_source():
    batch = next(
        TaughtStrings(TaughtStringsConfig(), 0).training(128, torch.Generator().manual_seed(2))
    )
    told = misled(batch, 1.0, torch.Generator().manual_seed(3))
    lengths = batch.sources[0].mask.sum(1) - 1
    for links, length in zip(gold_links(told), lengths.tolist(), strict=True):
        assert all(i < length for i, _ in links)


def test_tests_are_never_misled():
    noisy, honest = (TaughtStrings(TaughtStringsConfig(noise=n), 0) for n in (1.0, 0.0))
    for one, other in zip(noisy.evaluation("test"), honest.evaluation("test"), strict=True):
        assert torch.equal(one.gold, other.gold)


def test_a_share_beyond_one_is_refused():
    with pytest.raises(InvalidConfig, match="noise is a share from 0 to 1, got 2"):
        TaughtStringsConfig(noise=2.0)
