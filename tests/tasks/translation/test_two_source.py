"""Two halves of a string: what each source hides, what one of them can know, what both can say."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from bench.api.options import canonical
from bench.api.selector import parse
from bench.running.catalog import describe_task
from tasks.translation.two_source import EOS, HIDDEN, TwoSource, TwoSourceConfig


def make(**options) -> TwoSource:
    return TwoSource(TwoSourceConfig(**{"evaluate": 64, **options}), seed=0)


def test_every_place_is_hidden_in_exactly_one_source():
    for batch in make().evaluation("test"):
        one, two = (text.tokens for text in batch.sources)
        symbols = batch.mask & (batch.targets != EOS)
        assert ((one == HIDDEN) ^ (two == HIDDEN))[symbols].all()
        shown = torch.where(one == HIDDEN, two, one)
        assert torch.equal(shown[batch.mask], batch.targets[batch.mask])


def test_gold_links_what_the_first_source_shows():
    batch = make().evaluation("validation")[0]
    told = (batch.sources[0].tokens == batch.targets) & batch.mask
    assert torch.equal(batch.gold.diagonal(dim1=1, dim2=2) > 0, told)
    assert torch.equal(batch.gold.sum(-1) > 0, told)


def test_a_shuffled_second_source_tells_nothing_of_what_is_hidden():
    right = total = 0
    for batch in make(shuffle=True, evaluate=256).evaluation("test"):
        one, two = (text.tokens for text in batch.sources)
        assert torch.equal(one > 0, two > 0), "lengths are still the same"
        hidden = (one == HIDDEN) & batch.mask
        right += int((two == batch.targets)[hidden].sum())
        total += int(hidden.sum())
    assert right / total == pytest.approx(1 / 16, abs=0.02)


def test_one_source_alone_is_read_where_it_is_asked_for():
    both, first, second = (make(read=name) for name in ("both", "first", "second"))
    assert [len(t.sizes.source_vocabs) for t in (both, first, second)] == [2, 1, 1]
    whole, one, two = (t.evaluation("validation")[0] for t in (both, first, second))
    assert torch.equal(whole.sources[0].tokens, one.sources[0].tokens)
    assert torch.equal(whole.sources[1].tokens, two.sources[0].tokens)


def test_the_baseline_is_half_of_the_symbols_the_ends_and_lucky_guesses():
    batches = make(evaluate=256).evaluation("test")[3:]
    lengths = [batch.targets.shape[1] - 1 for batch in batches]
    expected = sum(n / 2 * (1 + 1 / 16) + 1 for n in lengths) / sum(n + 1 for n in lengths)
    assert make(evaluate=256).baselines()["one source"] == pytest.approx(expected, abs=0.02)


def test_the_right_answer_has_accuracy_one():
    task = make()
    answers = [Answer(batch, predicted=batch.targets) for batch in task.evaluation("test")]
    found = {s.metric: s.value for s in task.score("test", answers) if not s.axis}
    assert found["token_accuracy"] == found["sequence_accuracy"] == 1.0
    assert len(task.samples(answers, 2)) == 2
    assert len(task.examples().targets) == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"min_length": 9, "max_length": 8}, "lengths must satisfy"),
        ({"evaluate": 0}, "at least 1"),
        ({"shuffle": True, "read": "first"}, "use read=both"),
    ],
)
def test_options_that_make_no_sense_raise(options, says):
    with pytest.raises(InvalidConfig, match=says):
        TwoSourceConfig(**options)


def test_tasks_with_something_ablated_name_the_whole_one():
    less = canonical("task", parse("two_source[read=first,shuffle=false]"))
    whole = canonical("task", parse("two_source"))
    assert describe_task("less", less).whole == whole.show()
    assert describe_task("whole", whole).whole == whole.show()
    assert describe_task("recall", canonical("task", parse("recall"))).whole == ""
