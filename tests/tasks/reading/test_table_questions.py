"""Tables of numbers and questions about them."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.reading.table_questions import TableQuestions, TableQuestionsConfig


def make(**options) -> TableQuestions:
    sizes = {"rows": 4, "more_rows": 7, "columns": 3, "names": 5, "evaluate": 60, **options}
    return TableQuestions(TableQuestionsConfig(**sizes), seed=1)


def batches(task: TableQuestions):
    stream = task.training(60, torch.Generator().manual_seed(0))
    return [next(stream), *task.evaluation("validation"), *task.evaluation("test")]


def answered(words, place, table, pivot):
    """The answer of one question, word by word."""
    column = [] if words[0] == "count" else [row[place[words[1]]] for row in table]
    chosen = range(len(table))
    if words[-2] in ("greater", "lesser"):
        other = [row[place[words[-1]]] for row in table]
        above = words[-2] == "greater"
        chosen = [i for i in chosen if (other[i] > pivot if above else other[i] < pivot)]
        assert 0 < len(chosen) < len(table), "a condition selects some rows and not all"
    else:
        assert pivot == 0, "a question without a condition has no number"
    if words[0] == "count":
        return len(chosen), None
    kept = [column[i] for i in chosen]
    return {"sum": sum, "max": max, "min": min}[words[0]](kept), place[words[1]]


def test_every_answer_is_what_the_words_ask_for():
    task = make()
    kinds = set()
    for batch in batches(task):
        for row in range(len(batch.values)):
            words = task.tokens(batch.sources[1].tokens[row].tolist(), source=True)
            words = [word for word in words if word]
            assert len(words) == int(batch.sources[1].mask[row].sum()), "padded on the right"
            names = task.tokens(batch.sources[0].tokens[row].tolist(), source=True)
            assert len(set(names)) == 3
            place = {name: j for j, name in enumerate(names)}
            table, pivot = batch.features[row].tolist(), float(batch.frames[row, 0, 0])
            number, column = answered(words, place, table, pivot)
            assert float(batch.values[row, 0, 0]) == pytest.approx(number, abs=1e-5)
            gold = [float(column == j) for j in range(3)]
            assert batch.gold[row, 0].tolist() == gold
            kinds.add((words[0], len(words)))
    statistics = {(word, count) for word in ("sum", "max", "min") for count in (2, 4)}
    assert kinds == {*statistics, ("count", 3)}


def test_without_conditions_every_question_is_about_a_whole_column():
    for batch in batches(make(conditions=False)):
        assert not batch.sources[1].tokens[:, 2:].any()
        assert not batch.frames.any()


def test_scores_are_shares_of_near_answers_by_the_size_of_tables():
    task = make()
    answers = []
    for batch in task.evaluation("test"):
        off = 0.04 if batch.features.shape[1] == 4 else 0.06
        answers.append(Answer(batch, values=batch.values + off))
    found = task.score("test", answers)
    plain = {s.metric: s.value for s in found if not s.axis}
    assert plain["answer_accuracy"] == 1.0
    assert plain["mse"] == pytest.approx(0.04**2)
    assert {s.x: s.value for s in found if s.axis} == {4.0: 1.0, 5.0: 0.0, 7.0: 0.0}
    assert task.samples(answers, 2)[0].reference != ""


@pytest.mark.parametrize("options", [{"rows": 1}, {"columns": 6}, {"more_rows": 3}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="table_questions: "):
        make(**options)
