"""Which modules are of this project, and not of a plug-in."""

OURS = ("bench", "variants", "tasks", "results", "reports")
"""Packages of this project; other modules register what is not ours."""


def is_ours(module: str) -> bool:
    """Whether a module belongs to this project.

    >>> is_ours("variants.scores.dot"), is_ours("bench_plugin_mine")
    (True, False)
    """
    return module.partition(".")[0] in OURS
