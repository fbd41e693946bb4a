"""Jobs in this very process, one after another: for debuggers and tests."""

import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

from bench.api.foreign_prints import prints_to_standard_error
from bench.running.job import Job, JobResult
from bench.running.processes import POLL_S
from bench.running.runner import failed_result, run_job
from bench.running.worker import WorkerSettings, prepare_process
from bench.timing.reason import Reason


class InlineExecutor:
    """Does each job at once; a crash of the interpreter is not survived."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings

    def run(
        self, jobs: Iterable[Job | None], jobs_at_once: int, watch: Callable[[Job, float], None]
    ) -> Generator[tuple[Job, JobResult]]:
        """Do jobs in order."""
        prepare_process(self.settings)
        data_dir = Path(self.settings.data_dir) if self.settings.data_dir else None
        for job in jobs:
            if job is None:
                time.sleep(POLL_S)
            else:
                yield job, self._done(job, data_dir, watch)

    @staticmethod
    def _done(job: Job, data_dir: Path | None, watch: Callable[[Job, float], None]) -> JobResult:
        try:
            with prints_to_standard_error():
                return run_job(job, data_dir, lambda share: watch(job, share))
        except SystemExit as error:  # the cell's, and not of the program
            reason = Reason("failed", f"it asked to end the process with exit code {error.code}.")
            return failed_result(job, reason, 0.0)
