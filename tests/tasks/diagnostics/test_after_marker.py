"""The symbol after the only marker."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.diagnostics.after_marker import AfterMarker, AfterMarkerConfig

MARKER = 4


def make(**options) -> AfterMarker:
    sizes = {"length": 6, "beyond": 9, "vocab": 5, "evaluate": 60, **options}
    return AfterMarker(AfterMarkerConfig(**sizes), seed=1)


def test_the_answer_stands_after_the_one_marker():
    task = make()
    stream = task.training(60, torch.Generator().manual_seed(0))
    lengths, seen = [], set()
    for batch in (next(stream), *task.evaluation("validation"), *task.evaluation("test")):
        tokens = batch.sources[0].tokens
        lengths.append(tokens.shape[1])
        assert batch.sources[0].mask is None
        assert batch.mask.shape == (60, 1)
        assert batch.mask.all()
        assert (batch.inputs == 1).all()
        for row, words in enumerate(tokens.tolist()):
            assert words.count(MARKER) == 1
            at = words.index(MARKER)
            seen.add((len(words), at))
            assert all(5 <= word < 10 for word in words if word != MARKER)
            assert batch.targets[row].tolist() == [words[at + 1]]
            gold = [0.0] * len(words)
            gold[at + 1] = 1.0
            assert batch.gold[row].tolist() == [gold]
    assert lengths == [6, 6, 3, 6, 7, 9]
    assert {at for length, at in seen if length == 6} == {0, 1, 2, 3, 4}


def test_the_score_is_the_share_of_right_answers_with_a_curve_over_lengths():
    task = make()
    answers = []
    for batch in task.evaluation("test"):
        wrong = batch.targets.clone()
        if batch.sources[0].tokens.shape[1] == 6:
            wrong[:15] = 0
        answers.append(Answer(batch, predicted=wrong, weights=batch.gold.roll(1, -1)))
    found = task.score("test", answers)
    plain = {s.metric: s.value for s in found if not s.axis}
    assert plain == {"token_accuracy": 0.75, "alignment_match": 0.0, "alignment_entropy_nats": 0.0}
    assert {s.x: s.value for s in found if s.axis} == {3.0: 1.0, 6.0: 0.75, 7.0: 1.0, 9.0: 1.0}


def test_samples_and_tokens_name_the_marker():
    task = make(evaluate=3)
    (batch,) = task.evaluation("validation")
    shown = task.samples([Answer(batch, predicted=batch.targets)], 2)
    assert len(shown) == 2
    assert all(s.source.split().count("Mr.") == 1 for s in shown)
    assert all(s.output == s.reference != "Mr." for s in shown)


@pytest.mark.parametrize("options", [{"length": 1}, {"beyond": 5}, {"vocab": 0}, {"evaluate": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="after_marker: "):
        make(**options)
