"""How far a run is: a live bar on a terminal, plain lines in a log."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from bench.running.durations import spoken
from bench.running.job import Job

HEARTBEAT_S = 30.0
"""Longest silence in a plain log."""
PRIOR = 0.1
"""Share of a run that counts as done at the planned pace, before any of it is done.

The first seconds go into starting processes, and would promise hours."""


class Estimate:
    """Time left, from expected seconds of the jobs and how wrong they were so far."""

    def __init__(self, jobs: list[Job], at_once: int, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.started = clock()
        self.at_once = at_once
        self.total = sum(job.seconds for job in jobs)
        self.done = 0.0
        self.found = 0.0
        """Expected seconds of what an earlier run had done of jobs that go on from there."""
        self.running: dict[int, tuple[Job, float]] = {}

    def watch(self, job: Job, share: float) -> None:
        """Hear how far a running job is; it tells first where it begins, which is 0 or near it."""
        if id(job) not in self.running:
            self.found += job.seconds * share
        self.running[id(job)] = (job, share)

    def finish(self, job: Job) -> None:
        """Count a finished job."""
        self.running.pop(id(job), None)
        self.done += job.seconds

    @property
    def share(self) -> float:
        """Share of the expected work that is done."""
        return min(1.0, self._behind / self.total) if self.total else 1.0

    @property
    def _behind(self) -> float:
        """Expected seconds of what is done, by an earlier run, too."""
        return self.done + sum(job.seconds * share for job, share in self.running.values())

    @property
    def left_s(self) -> float:
        """Expected seconds until the end."""
        here, ahead = self._behind - self.found, max(0.0, self.total - self._behind)
        planned = PRIOR * self.total
        took = self.clock() - self.started + planned / self.at_once
        return took * ahead / (here + planned)


class Display:
    """Tells what finishes and what is left."""

    def __init__(self, jobs: list[Job], at_once: int, stream: TextIO) -> None:
        self.console = Console(file=stream, highlight=False, soft_wrap=True, emoji=False)
        self.estimate = Estimate(jobs, at_once, time.monotonic)
        self.count = len(jobs)
        self.finished = 0
        self.spoke = time.monotonic()
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        if self.console.is_terminal:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:3.0f}% {task.fields[left]} left"),
                console=self.console,
                transient=True,
            )
            self.task = self.bar.add_task("running", total=1.0, left="")
            self.bar.start()

    def watch(self, job: Job, share: float) -> None:
        """Hear how far a running job is."""
        self.estimate.watch(job, share)
        if self.bar is not None:
            self._move()
        elif time.monotonic() - self.spoke > HEARTBEAT_S:
            self.say(f"{self.estimate.share:4.0%} done, {spoken(self.estimate.left_s)} left")

    def finish(self, job: Job, outcome: str) -> None:
        """Say what a finished job came to."""
        self.finished += 1
        self.estimate.finish(job)
        left = spoken(self.estimate.left_s)
        self.say(f"[{self.finished}/{self.count}] {outcome:<13} {job.label} | {left} left")
        if self.bar is not None:
            self._move()

    def expect(self, jobs: Sequence[Job], instead_of: Job | None = None) -> None:
        """Hear of jobs that come on top, or in the place of one."""
        gone = [] if instead_of is None else [instead_of]
        self.count += len(jobs) - len(gone)
        self.estimate.total += sum(job.seconds for job in jobs) - sum(job.seconds for job in gone)

    def say(self, line: str) -> None:
        """Print a line above the bar; where nothing can be printed, the work goes on in silence."""
        self.spoke = time.monotonic()
        with suppress(OSError):
            self.console.print(line, markup=False)

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            with suppress(OSError):
                self.bar.stop()

    def _move(self) -> None:
        if self.bar is not None and self.task is not None:
            share = self.estimate.share
            with suppress(OSError):
                self.bar.update(self.task, completed=share, left=spoken(self.estimate.left_s))
