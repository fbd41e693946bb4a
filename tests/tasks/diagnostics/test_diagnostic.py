"""Generated diagnostics: what their examples are, levels, scores, baselines."""

import pytest
import torch

from bench.api import registry
from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from bench.api.selector import parse
from bench.api.task import Task

FORMS = {
    "induction": "induction[length=12,beyond=20,vocab=10,evaluate=20]",
    "needle": "needle[length=8,beyond=32,vocab=5,evaluate=20]",
    "parity": "parity[length=6,beyond=12,evaluate=20]",
    "two_lookup": "two_lookup[pairs=3,more_pairs=5,vocab=6,evaluate=20]",
    "nesting": "nesting[depth=2,deeper=4,sums=true,evaluate=20]",
    "selective_copy": "selective_copy[length=8,beyond=16,chosen=3,evaluate=20]",
    "sorting": "sorting[shortest=2,length=5,beyond=9,evaluate=20]",
}
LEVELS = {
    "induction": (8, 12, 16, 20),
    "needle": (4, 8, 16, 32),
    "parity": (3, 6, 9, 12),
    "two_lookup": (2, 3, 4, 5),
    "nesting": (1, 2, 3, 4),
    "selective_copy": (4, 8, 12, 16),
    "sorting": (2, 5, 7, 9),
}


def make(name: str, seed: int = 1) -> Task:
    return registry.make("task", parse(FORMS[name]), seed)


def batches(task):
    stream = task.training(20, torch.Generator().manual_seed(0))
    return [next(stream), next(stream), *task.evaluation("validation"), *task.evaluation("test")]


def rows(task):
    """Inputs (or source), target and mask of each example, as lists."""
    for batch in batches(task):
        read = batch.sources[0].tokens if batch.sources else batch.inputs
        yield from zip(read.tolist(), batch.targets.tolist(), batch.mask.tolist(), strict=True)


def test_induction_asks_for_what_followed_the_same_symbol():
    for row, targets, mask in rows(make("induction")):
        period = mask.index(True)
        assert len(row) // 4 <= period <= len(row) // 2
        assert len(set(row[:period])) == period
        for t in range(period, len(row)):
            assert mask[t]
            assert targets[t] == row[row.index(row[t]) + 1]


def test_induction_has_no_one_distance_at_which_the_answer_stands():
    (batch,) = make("induction").evaluation("validation")
    assert len(set(batch.mask.float().argmax(1).tolist())) >= 3


def test_the_needle_is_behind_the_one_mark_before_the_last():
    for row, targets, mask in rows(make("needle")):
        assert row.count(4) == 2
        assert row[-1] == 4
        assert mask == [False] * (len(row) - 1) + [True]
        assert targets[-1] == row[row.index(4) + 1] != 4


def test_parity_is_that_of_the_bits_so_far():
    for row, targets, mask in rows(make("parity")):
        assert all(mask)
        for t in range(len(row)):
            assert targets[t] - 4 == sum(n == 5 for n in row[: t + 1]) % 2


def test_two_lookups_go_through_both_tables_and_training_asks_for_one_too():
    task = make("two_lookup")
    for row, targets, mask in rows(task):
        pairs = len(row) // 6
        first, second = row[: 2 * pairs], row[2 * pairs : 4 * pairs]
        place = dict(zip(first[::2], first[1::2], strict=True))
        answer = dict(zip(second[::2], second[1::2], strict=True))
        assert len(place) == len(answer) == pairs
        assert sorted(row[4 * pairs : 5 * pairs]) == sorted(answer)
        assert sorted(row[5 * pairs :]) == sorted(place)
        for t in range(4 * pairs, 6 * pairs):
            assert targets[t] == answer[place.get(row[t], row[t])]
        assert mask[5 * pairs :] == [True] * pairs
        assert not any(mask[: 4 * pairs])
    (batch,) = task.evaluation("validation")
    assert (batch.mask.sum(1) == 3).all()
    trained = next(task.training(2, torch.Generator()))
    assert (trained.mask.sum(1) == 6).all()


def value_of(words):
    """Evaluate the list that a row of names begins with: its value and what is left."""
    name, words, values = words[0], words[1:], []
    while words[0] != "]":
        if words[0].startswith("["):
            value, words = value_of(words)
        else:
            value, words = int(words[0]), words[1:]
        values.append(value)
    found = {"[MAX": max, "[MIN": min, "[SM": lambda v: sum(v) % 10}[name](values)
    return found, words[1:]


def test_nested_lists_have_the_value_that_is_asked_for():
    task = make("nesting")
    for row, targets, mask in rows(task):
        names = [name for name in task.tokens(row, source=True) if name != "·"]
        value, rest = value_of(names)
        assert rest == []
        assert [n == 4 for n in row] == mask
        closed = [t for t, one in zip(targets, mask, strict=True) if one]
        assert task.tokens(closed, source=False)[-1] == str(value)
        assert len(closed) == sum(name.startswith("[") for name in names)


def test_lists_may_be_deeper_than_functions_may_call_themselves():
    task = registry.make("task", parse("nesting[depth=1,deeper=1200,evaluate=1]"), 0)
    batch = task.draw(1, 1200, torch.Generator().manual_seed(0))
    assert batch.mask.sum() == 1200
    assert batch.inputs.shape[1] <= task.sizes.max_length


def test_the_depth_of_a_list_is_its_level():
    for level, batch in enumerate(make("nesting").evaluation("test"), 1):
        assert (batch.mask.sum(1) == level).all()


def test_selective_copy_says_what_is_no_noise_in_its_order_and_is_aligned_with_it():
    task = make("selective_copy")
    for row, targets, _ in rows(task):
        assert [n for n in row if n >= 8] == targets[:-1]
        assert len(targets) == 4
        assert row[-1] == targets[-1] == 2
    (batch,) = task.evaluation("validation")
    aligned = batch.sources[0].tokens.gather(1, batch.gold.argmax(-1))
    assert torch.equal(aligned, batch.targets)
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])


def test_sorting_sorts():
    for row, targets, _ in rows(make("sorting")):
        assert targets == [*sorted(row[:-1]), 2]


def test_training_draws_all_lengths_of_its_range_and_none_beyond():
    stream = make("sorting").training(4, torch.Generator().manual_seed(0))
    lengths = {next(stream).sources[0].tokens.shape[1] - 1 for _ in range(60)}
    assert lengths == {2, 3, 4, 5}


def right_at(task, batches, level):
    """Answers that are right at one level and wrong elsewhere."""
    return [
        Answer(batch, predicted=batch.targets if at == level else batch.targets + 1)
        for at, batch in zip(task.tested, batches, strict=True)
    ]


@pytest.mark.parametrize("name", FORMS)
def test_plain_scores_are_of_the_hardest_level_of_training_and_the_curve_of_all(name):
    task = make(name)
    assert task.tested == LEVELS[name]
    test = task.evaluation("test")
    found = task.score("test", right_at(task, test, task.inside))
    assert {s.metric: s.value for s in found if not s.axis} == {
        "token_accuracy": 1.0,
        "sequence_accuracy": 1.0,
    }
    curve = {s.x: s.value for s in found if s.axis and s.metric == "token_accuracy"}
    assert curve == {float(level): float(level == task.inside) for level in LEVELS[name]}
    expected = "difficulty" if name in ("nesting", "two_lookup") else "length"
    assert {s.axis for s in found if s.axis} == {expected}


@pytest.mark.parametrize("name", FORMS)
def test_the_most_frequent_answer_is_far_from_everything_and_examples_are_shown(name):
    task = make(name)
    (share,) = task.baselines().values()
    assert 0 <= share < 0.65
    shown = task.examples()
    assert torch.equal(
        shown.targets, task.evaluation("test")[task.tested.index(task.inside)].targets[:2]
    )
    (batch,) = task.evaluation("validation")
    samples = task.samples([Answer(batch, predicted=batch.targets)], 2)
    assert len(samples) == 2
    assert all(sample.reference == sample.output for sample in samples)


@pytest.mark.parametrize(
    "options",
    [
        "induction[length=7]",
        "induction[beyond=66]",
        "needle[length=3]",
        "needle[beyond=8]",
        "parity[length=1]",
        "parity[beyond=4]",
        "two_lookup[pairs=7]",
        "two_lookup[more_pairs=9]",
        "nesting[depth=6]",
        "nesting[arguments=1]",
        "selective_copy[chosen=25]",
        "selective_copy[noise=0]",
        "sorting[shortest=13]",
        "sorting[evaluate=0]",
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match=f"{parse(options).name}: "):
        registry.make("task", parse(options), 0)


def test_tasks_of_a_decoder_alone_share_a_roster():
    shared = {"additive", "general", "linear_attention", "shaw_rpr", "last_state"}
    names = (
        "recall",
        "offset",
        "induction",
        "needle",
        "parity",
        "nesting",
        "two_lookup",
        "tinyshakespeare",
        "stdlib_code",
        "wikitext2_mini",
    )
    for name in names:
        comparison = registry.find("task", name).target.comparison
        assert shared <= {entry.variant for entry in comparison}, name
