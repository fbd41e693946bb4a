"""Invented inflections follow their rules; suffix rules alone cannot make all of them."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.inflection.infl import BACK, FRONT, InflConfig, RuleInflection, inflect
from tasks.inflection.word_forms import Inflected, apply_rules, rule_baselines, suffix_rules


def make(**options) -> RuleInflection:
    return RuleInflection(InflConfig(**{"evaluate": 60, **options}), seed=1)


def test_a_suffix_agrees_with_the_last_vowel_of_the_stem():
    assert inflect("tölo", ("V", "PST")) == "töloto"
    assert inflect("tolö", ("V", "PST")) == "tolötö"
    for row in make().rows("test"):
        if row.tags == ("N", "LOC", "SG"):
            last = max(
                row.lemma, key=lambda letter: row.lemma.rfind(letter) * (letter in BACK + FRONT)
            )
            assert row.form[-1] == ("ä" if last in FRONT else "a")


def test_every_tag_set_occurs_and_no_form_is_its_lemma():
    rows = make(evaluate=200).rows("test")
    assert len({row.tags for row in rows}) == 5
    assert all(row.form != row.lemma for row in rows)


def test_tags_come_before_the_letters_and_everything_is_known():
    task = make()
    (batch,) = task.evaluation("validation")
    assert batch.num_extra == 0
    assert batch.names[0].startswith(("+N", "+V"))
    stream = task.training(40, torch.Generator().manual_seed(0))
    longest = max(next(stream).sources[0].tokens.shape[1] for _ in range(5))
    assert longest <= task.sizes.max_length


def test_answers_score_one_where_they_are_the_form():
    task = make()
    answers = []
    for batch in task.evaluation("test"):
        rows = [
            tuple(row[mask][:-1].tolist())
            for row, mask in zip(batch.targets, batch.mask, strict=True)
        ]
        rows[0] = rows[0][1:]
        answers.append(Answer(batch, generated=tuple(rows)))
    found = {scored.metric: scored.value for scored in task.score("test", answers)}
    assert found["sequence_accuracy"] == pytest.approx(59 / 60)
    assert found["edit_distance_count"] == pytest.approx(1 / 60)


def test_rules_take_the_longest_end_that_was_seen_and_copy_where_none_was():
    seen = [Inflected("bake", ("PST",), "baked"), Inflected("cry", ("PST",), "cried")]
    rules = suffix_rules(seen)
    assert apply_rules(rules, Inflected("try", ("PST",), "")) == "tried"
    assert apply_rules(rules, Inflected("wake", ("PST",), "")) == "waked"
    assert apply_rules(rules, Inflected("wake", ("PRS",), "")) == "wake"
    found = rule_baselines(seen, [Inflected("fry", ("PST",), "fried")])
    assert found == {"copy the lemma": 0.0, "suffix rules": 1.0}


def test_baselines_are_those_of_rules_and_leave_something_to_learn():
    found = make(evaluate=200).baselines()
    assert found["copy the lemma"] == 0.0
    assert 0.4 < found["suffix rules"] < 0.9


@pytest.mark.parametrize("options", [{"syllables": 1}, {"evaluate": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="infl: "):
        make(**options)
