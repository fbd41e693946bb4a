"""Runs of the command line in which nothing is trained: each cell scores what a test says."""

from dataclasses import replace

from bench.api import registry
from bench.api.cache import CACHE_VARIABLE
from bench.api.selector import parse
from bench.running.job import JobResult, Outcome
from results.row import Row

GREEN = {"passed": ["shapes"], "skipped": {}, "told": {}, "failed": {}, "expected": []}


class Pretended:
    """An executor that asks a function for what a cell scores, and what is stored beside that."""

    def __init__(self, scored, stop_after):
        self.scored, self.stop_after, self.trained = scored, stop_after, 0

    def run(self, jobs, jobs_at_once, watch):
        for job in jobs:
            if job.kind == "certificate":
                yield job, JobResult(certificate={**GREEN})
                continue
            if self.trained == self.stop_after:
                raise KeyboardInterrupt
            self.trained += 1
            (cell,) = job.cells
            yield job, JobResult((Outcome(cell, "ok", rows=self._rows(cell, job.repeat)),))

    def _rows(self, cell, repeat):
        value, *more = self.scored(cell)
        metric = registry.find("task", parse(cell.task).name).target.ranking_metric().name
        splits = ("validation",) if cell.kind == "trial" else ("validation", "test")
        found = [*(Row(metric=metric, value=value, split=split) for split in splits), *more]
        return tuple(replace(row, repeat=repeat) for row in found)


def pretend(monkeypatch, folder, scored, stop_after=None):
    """Let sessions of this process pretend to train.

    Args:
        monkeypatch: Takes all back.
        folder: For a cache, because certificates are pretended, too.
        scored: Gives the score of a cell, and further rows.
        stop_after: The run is stopped after so many trained cells; None to let it end.
    """
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    monkeypatch.setattr(
        "bench.running.session.ProcessExecutor", lambda settings: Pretended(scored, stop_after)
    )
