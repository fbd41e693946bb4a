"""What calibration has chosen for a task as it was asked."""

from bench.api import registry
from bench.api.calibration import Choice, choice_of
from bench.api.options import canonical
from bench.api.selector import Selector
from bench.api.task import TASKS


def whole_task(task: Selector) -> Selector:
    """The same task with nothing of its input left out, canonical."""
    ablated = registry.find(TASKS, task.name).target.ablated_inputs
    kept = {key: value for key, value in task.options.items() if key not in ablated}
    return canonical("task", Selector(task.name, kept))


def calibrated_choice(asked: Selector, sizes: str) -> Choice | None:
    """What calibration has chosen for a task; one with less of its input has that of the whole.

    Args:
        asked: The task without the options of a preset.
        sizes: Preset that has the sizes of tasks.
    """
    return choice_of(whole_task(asked), sizes)
