"""A string and the same string again."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.diagnostics.causal_copy import MARK, CausalCopy, CausalCopyConfig


def make(**options) -> CausalCopy:
    sizes = {"shortest": 2, "length": 5, "beyond": 9, "vocab": 4, "evaluate": 20, **options}
    return CausalCopy(CausalCopyConfig(**sizes), seed=1)


def test_every_symbol_of_the_string_is_asked_for_once_in_its_order():
    task = make()
    stream = task.training(20, torch.Generator().manual_seed(0))
    for batch in (next(stream), *task.evaluation("validation"), *task.evaluation("test")):
        rows = (batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist())
        for row, targets, mask in zip(*rows, strict=True):
            at = row.index(MARK)
            assert len(row) == 2 * at
            assert all(MARK < word <= MARK + 4 for word in row[:at])
            assert mask == [False] * at + [True] * at
            assert targets[at:] == row[:at]
            assert row[at + 1 :] == row[: at - 1], "a copied symbol is read before the next one"


def test_training_draws_every_length_of_its_range_and_none_beyond():
    stream = make().training(4, torch.Generator().manual_seed(0))
    assert {next(stream).inputs.shape[1] for _ in range(60)} == {4, 6, 8, 10}


def test_lengths_of_the_curve_are_those_of_the_string():
    task = make()
    found = task.evaluation("test")
    scores = task.score("test", [Answer(batch, predicted=batch.targets) for batch in found])
    assert {s.x for s in scores if s.axis} == {2.0, 5.0, 7.0, 9.0}
    assert task.sizes.max_length == 18


@pytest.mark.parametrize("options", [{"shortest": 0}, {"shortest": 6}, {"beyond": 5}, {"vocab": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="causal_copy: "):
        make(**options)
