"""Products of permutations, against permutations that are applied one by one."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.diagnostics.composition import Composition, CompositionConfig


def make(**options) -> Composition:
    sizes = {"length": 6, "beyond": 10, "evaluate": 20, **options}
    return Composition(CompositionConfig(**sizes), seed=1)


def batches(task):
    stream = task.training(20, torch.Generator().manual_seed(0))
    return [next(stream), *task.evaluation("validation"), *task.evaluation("test")]


@pytest.mark.parametrize("moves", ["all", "swaps"])
@pytest.mark.parametrize("group", ["s3", "s5"])
def test_each_answer_is_where_things_stand_after_every_permutation_so_far(group, moves):
    task = make(group=group, moves=moves)
    for batch in batches(task):
        assert batch.mask.all()
        for row, answers in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
            things = list(range(int(group[1])))
            for name, answer in zip(
                task.tokens(row, source=True), task.tokens(answers, source=False), strict=True
            ):
                things = [int(name[thing]) - 1 for thing in things]
                assert answer == "".join(str(thing + 1) for thing in things)


def test_swaps_leave_all_but_two_in_place_and_reach_every_permutation():
    task = make(group="s3", moves="swaps", length=8)
    read, answered = set(), set()
    for batch in batches(task):
        read |= {name for row in batch.inputs.tolist() for name in task.tokens(row, source=True)}
        answered |= set(batch.targets.flatten().tolist())
    assert read == {"132", "213", "321"}
    assert len(answered) == 6


@pytest.mark.parametrize(("group", "count"), [("s3", 6), ("s5", 120)])
def test_chance_is_one_of_all_permutations(group, count):
    task = make(group=group)
    assert len(task.elements) == count
    assert task.chance == 1 / count
    assert task.sizes.target_vocab == 4 + count


def best_constant(task: Composition, lengths: list[int]) -> float:
    """How often the best constant is right: exact, mean over the lengths."""
    now = torch.zeros(len(task.elements), dtype=torch.float64)
    now[0] = 1.0
    seen, means = torch.zeros_like(now), []
    for step in range(1, max(lengths) + 1):
        moved = [now[task.products[:, move].argsort()] for move in task.read.tolist()]
        now = torch.stack(moved).mean(0)
        seen += now
        means += [seen / step] * (step in lengths)
    return float(torch.stack(means).mean(0).max())


@pytest.mark.parametrize(
    ("group", "moves", "best"),
    [("s3", "all", 1 / 6), ("s5", "all", 1 / 120), ("s3", "swaps", 1 / 6), ("s5", "swaps", 0.0112)],
)
def test_chance_is_the_best_constant_where_all_permutations_are_read_and_about_it_else(
    group, moves, best
):
    task = Composition(CompositionConfig(group=group, moves=moves), seed=0)
    assert best_constant(task, [30, 48]) == pytest.approx(best, abs=5e-5)
    assert task.chance == pytest.approx(best, abs=0.003)


def test_validation_has_the_lengths_beyond_training_that_rank():
    task = make()
    for split in ("validation", "test"):
        found = task.evaluation(split)
        assert [batch.inputs.shape[1] for batch in found] == [3, 6, 8, 10]
        answers = [
            Answer(batch, predicted=batch.targets + (batch.inputs.shape[1] == 8)) for batch in found
        ]
        scores = {s.metric: s.value for s in task.scores(split, answers) if not s.axis}
        assert scores["beyond_training_token_accuracy"] == pytest.approx(0.5)
        assert scores["token_accuracy"] == 1.0


@pytest.mark.parametrize("options", [{"length": 1}, {"beyond": 6}, {"evaluate": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="composition: "):
        make(**options)
