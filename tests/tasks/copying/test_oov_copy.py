"""Known words are translated, unknown ones are copied by ids of their own row."""

from dataclasses import replace

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.copying.oov_copy import OovCopy, OovCopyConfig

BOS, EOS, UNK = 1, 2, 3
VOCAB = 4 + 6


def make(**options) -> OovCopy:
    sizes = {"vocab": 6, "length": 5, "beyond": 8, "unknown": 0.5, "evaluate": 60, **options}
    return OovCopy(OovCopyConfig(**sizes), seed=1)


def batches(task: OovCopy):
    stream = task.training(60, torch.Generator().manual_seed(0))
    return [next(stream), *task.evaluation("validation"), *task.evaluation("test")]


def test_known_words_go_through_the_dictionary_and_unknown_ones_are_copied():
    task = make()
    kinds = set()
    for batch in batches(task):
        assert batch.mask.all()
        assert batch.sources[0].mask is None
        for source, extended, targets, inputs in zip(
            batch.sources[0].tokens.tolist(),
            batch.extended.tolist(),
            batch.targets.tolist(),
            batch.inputs.tolist(),
            strict=True,
        ):
            assert source[-1] == extended[-1] == targets[-1] == EOS
            for seen, own, said in zip(source[:-1], extended[:-1], targets[:-1], strict=True):
                kinds.add(seen == UNK)
                if seen == UNK:
                    assert VOCAB <= own < VOCAB + batch.num_extra
                    assert said == own
                else:
                    assert own == seen
                    assert said == int(task.table[seen])
            new = [word for word in extended if word >= VOCAB]
            assert len(new) == len(set(new)), "ids of unknown words are unique in their row"
            shown = [UNK if word >= VOCAB else word for word in targets]
            assert inputs == [BOS, *shown[:-1]]
            assert max(inputs) < VOCAB
            assert max(source) < VOCAB
    assert kinds == {True, False}


def test_gold_keeps_the_order_and_ids_say_nothing_of_the_place():
    batch = make(evaluate=200, unknown=1.0).evaluation("validation")[0]
    assert torch.equal(batch.gold, torch.eye(6).expand(200, 6, 6))
    place = torch.arange(5).expand(200, 5)
    order = batch.extended[:, :5] - VOCAB
    assert 0.1 < (order == place).float().mean() < 0.3


def test_the_share_of_unknown_words_is_what_was_asked():
    for share in (0.0, 0.3, 1.0):
        batch = make(unknown=share, evaluate=300).evaluation("validation")[0]
        found = (batch.sources[0].tokens[:, :-1] == UNK).float().mean()
        assert float(found) == pytest.approx(share, abs=0.04 if 0 < share < 1 else 0)


def test_a_model_that_says_unk_is_right_on_known_words_alone():
    task = make()
    answers = [
        Answer(batch, predicted=torch.where(batch.targets >= VOCAB, UNK, batch.targets))
        for batch in task.evaluation("test")
    ]
    plain = {s.metric: s.value for s in task.score("test", answers) if not s.axis}
    exact = next(a.batch for a in answers if a.batch.targets.shape[1] == 6)
    known = exact.targets < VOCAB
    assert plain["oov_accuracy"] == 0.0
    assert plain["token_accuracy"] == pytest.approx(float(known.float().mean()))
    assert plain["sequence_accuracy"] == pytest.approx(float(known.all(1).float().mean()))


def test_oov_accuracy_counts_unknown_words_of_the_training_length_alone():
    task = make()
    answers = []
    for batch in task.evaluation("test"):
        said = batch.targets.clone()
        if batch.targets.shape[1] == 6:
            said[:30] = UNK
        else:
            said[:] = UNK
        answers.append(Answer(batch, predicted=said))
    exact = next(a for a in answers if a.batch.targets.shape[1] == 6)
    unknown = exact.batch.targets >= VOCAB
    expected = int(unknown[30:].sum()) / int(unknown.sum())
    plain = {s.metric: s.value for s in task.score("test", answers) if not s.axis}
    assert plain["oov_accuracy"] == pytest.approx(expected)
    assert 0 < expected < 1


@pytest.mark.parametrize("options", [{"unknown": 1.5}, {"length": 0}, {"beyond": 4}, {"vocab": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="oov_copy: "):
        make(**options)


def test_examples_are_shown_where_states_are_no_words():
    """Encoders that fold several words into a state leave no ids to copy."""
    task = make()
    (batch, *_) = task.evaluation("test")
    folded = replace(batch, extended=None)
    (sample,) = task.samples([Answer(folded, predicted=folded.targets)], 1)
    assert "<unk>" in sample.source
