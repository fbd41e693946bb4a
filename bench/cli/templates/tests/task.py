import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.task import TASKS


def test_each_answer_is_the_token_before_and_the_first_is_not_scored():
    task = make(TASKS, parse("new_name[length=6,beyond=9,evaluate=5]"), 1)
    stream = task.training(5, torch.Generator().manual_seed(0))
    for batch in (next(stream), *task.evaluation("validation"), *task.evaluation("test")):
        for inputs, targets, mask in zip(
            batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist(), strict=True
        ):
            assert targets == [0, *inputs[:-1]]
            assert mask == [False, *[True] * (len(inputs) - 1)]


@pytest.mark.parametrize("options", ["length=1", "beyond=3", "vocab=0", "evaluate=0"])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="new_name: "):
        make(TASKS, parse(f"new_name[{options}]"), 0)
