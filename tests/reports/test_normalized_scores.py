"""Runs of a use: the mean over its tasks of each seed, whatever the order of the rows."""

from types import SimpleNamespace
from typing import Any

import pytest

from reports.normalized_scores import runs_of_a_use


def scored(*scores: tuple[int, float]) -> Any:
    """A comparison in which uniform attention has 0 and the best possible score is 1."""
    task = SimpleNamespace(ceiling=1.0)
    return SimpleNamespace(
        uniform_baseline="uniform",
        catalog=SimpleNamespace(task=lambda _: task),
        task="t",
        scores={"uniform": {0: 0.0}, "new": dict(scores)},
    )


def test_scores_of_one_seed_are_averaged_in_whatever_order_they_were_stored() -> None:
    there = scored((0, 0.1), (1, 0.5), (2, 0.9))
    back = scored((2, 0.9), (1, 0.5), (0, 0.1))
    assert runs_of_a_use([there, back], "new") == pytest.approx([0.1, 0.5, 0.9])


def test_a_seed_that_one_task_lacks_is_left_out() -> None:
    whole, part = scored((0, 0.1), (1, 0.5), (2, 0.9)), scored((1, 0.7), (2, 0.7))
    assert runs_of_a_use([whole, part], "new") == pytest.approx([0.6, 0.8])


def test_tasks_that_share_no_seed_are_one_run() -> None:
    first, second = scored((0, 0.2), (1, 0.4)), scored((7, 0.9))
    assert runs_of_a_use([first, second], "new") == pytest.approx([0.6])
