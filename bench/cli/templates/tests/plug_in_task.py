from pathlib import Path

import pytest
import torch

from bench.api.loading import load_package, load_plugin
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.task import TASKS


@pytest.fixture(autouse=True, scope="module")
def _plug_in():
    load_package("tasks")
    load_plugin(Path(__file__).with_name("new_name.py"))


def test_each_answer_is_the_token_before_and_the_first_is_not_scored():
    task = make(TASKS, parse("new_name[length=6,beyond=9,evaluate=5]"), 1)
    stream = task.training(5, torch.Generator().manual_seed(0))
    for batch in (next(stream), *task.evaluation("validation"), *task.evaluation("test")):
        for inputs, targets in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
            assert targets == [0, *inputs[:-1]]
