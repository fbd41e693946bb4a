"""A run: certificates, then training on all jobs, then timing alone; every result is stored."""

import fcntl
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from bench.api.cell import Cell
from bench.api.selector import parse
from bench.executors.inline import InlineExecutor
from bench.executors.processes import Executor, ProcessExecutor
from bench.executors.progress import Display
from bench.executors.worker import WorkerSettings
from bench.measure.block import group_blocks
from bench.plan import PlannedCell
from bench.runner import Job, JobResult, Outcome
from results.environment import collect
from results.row import Record, Status
from results.store import Store

SLACK = 30.0
"""A cell may take this many times its expected seconds before it is ended."""
LEAST_TIMEOUT_S = 120.0


@dataclass
class Tally:
    """What became of the cells of a run."""

    counts: dict[str, int] = field(default_factory=dict)
    already: int = 0
    """Cells that had finished in an earlier run."""

    def add(self, status: str) -> None:
        """Count one cell."""
        self.counts[status] = self.counts.get(status, 0) + 1

    @property
    def failed(self) -> int:
        """Cells that ended without a value for another reason than a refusal."""
        return sum(n for status, n in self.counts.items() if status not in ("ok", "refused"))


@dataclass
class Session:
    """Runs cells into a folder; finished ones are never run again."""

    store: Store
    settings: WorkerSettings
    jobs: int = 2
    inline: bool = False
    retry: frozenset[Status] = frozenset()
    """Statuses that are asked again."""
    stream: TextIO = sys.stderr
    keep_models: bool = False
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        kind = InlineExecutor if self.inline else ProcessExecutor
        self.executor: Executor = kind(self.settings)
        self.environment = self.store.write_environment(collect(self.settings.threads))
        self._finished = self.store.finished()
        self._attempts = {record.id: record.attempt for record in self.store.records()}

    def certify(self, variants: Iterable[str], impl: str) -> dict[str, Any]:
        """Certify variants whose code has not been certified before; returns all certificates."""
        known = self.store.read_json("certificates.json") or {}
        cache = CertificateCache(self.settings.plugins)
        missing = []
        for variant in dict.fromkeys(variants):
            stored = cache.read(variant, impl)
            if stored is None:
                missing.append(variant)
            else:
                known[variant] = stored
        jobs = [
            Job(
                kind="certificate",
                label=f"certificate {parse(variant).name}",
                variant=variant,
                impl=impl,
                seconds=3.0,
            )
            for variant in missing
        ]
        for job, result in self._run(jobs, self.jobs, exclusive=False):
            known[job.variant] = result.certificate
            cache.write(job.variant, impl, result.certificate)
        self.store.write_json("certificates.json", known)
        return dict(known)

    def train(self, planned: Sequence[PlannedCell], repeats: Sequence[int] = ()) -> list[Outcome]:
        """Train cells that have not finished; returns the outcomes of this call."""
        jobs = []
        for index, one in enumerate(planned):
            if self._skip(one.cell):
                continue
            jobs.append(
                Job(
                    kind="quality",
                    label=_label(one),
                    cells=(one.cell,),
                    repeat=repeats[index] if repeats else 0,
                    seconds=one.seconds,
                    timeout_s=max(LEAST_TIMEOUT_S, SLACK * one.seconds),
                    keep_models=str(self.store.folder / "models") if self.keep_models else "",
                )
            )
        found: list[Outcome] = []
        for _, result in self._run(jobs, self.jobs, exclusive=False):
            found += result.outcomes
        return found

    def measure(self, planned: Sequence[PlannedCell], baseline: str) -> None:
        """Time cells that have not finished, block by block, with nothing else running."""
        cells = [one.cell for one in planned]
        seconds = {one.cell.id: one.seconds for one in planned}
        todo = {cell.id for cell in cells if not self._skip(cell)}
        jobs = []
        for block in group_blocks(cells):
            wanted = tuple(cell for cell in block if cell.id in todo)
            if not wanted:
                continue
            reference = next((c for c in block if c.variant == baseline), block[0])
            expected = sum(seconds[cell.id] for cell in wanted)
            jobs.append(
                Job(
                    kind="speed",
                    label=f"speed {block[0].task} ({len(wanted)} variants)",
                    cells=wanted,
                    reference=reference,
                    seconds=expected,
                    timeout_s=max(LEAST_TIMEOUT_S, SLACK * expected),
                )
            )
        for _ in self._run(jobs, 1, exclusive=True):
            pass

    def _skip(self, cell: Cell) -> bool:
        status = self._finished.get(cell.id)
        if status is None or status in self.retry:
            return False
        self.tally.already += 1
        return True

    def _run(
        self, jobs: list[Job], at_once: int, *, exclusive: bool
    ) -> Iterator[tuple[Job, JobResult]]:
        if not jobs:
            return
        display = Display(jobs, at_once, self.stream)
        try:
            with machine_lock(exclusive=exclusive):
                for job, result in self.executor.run(jobs, at_once, display.watch):
                    self._keep(job, result)
                    display.finish(job, _said(job, result))
                    yield job, result
        finally:
            display.close()

    def _keep(self, job: Job, result: JobResult) -> None:
        """Store what a job left, before anything else is done with it."""
        if result.trace:
            with (self.store.folder / "log.txt").open("a", encoding="utf-8") as log:
                log.write(f"{datetime.now(UTC).isoformat()} {job.label}\n{result.trace}\n")
        for outcome in result.outcomes:
            self.tally.add(outcome.status)
            if outcome.artifact:
                self.store.write_artifact(outcome.cell.id, outcome.artifact)
            self.store.append(self._record(outcome))

    def _record(self, outcome: Outcome) -> Record:
        cell = outcome.cell
        attempt = self._attempts.get(cell.id, 0) + 1
        self._attempts[cell.id] = attempt
        return Record(
            cell={name: getattr(cell, name) for name in cell.__dataclass_fields__},
            id=cell.id,
            status=outcome.status,
            detail=outcome.detail,
            environment=self.environment,
            attempt=attempt,
            seconds=round(outcome.seconds, 3),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            rows=outcome.rows,
        )


class CertificateCache:
    """Certificates by variant and by the code that decides them; a change of code misses."""

    def __init__(self, plugins: Sequence[str]) -> None:
        root = Path(__file__).parents[2]
        digest = sha256(version("torch").encode())
        paths = [*root.glob("variants/**/*.py"), *root.glob("bench/api/*.py")]
        paths += [*root.glob("bench/certify/*.py"), *(Path(plugin) for plugin in plugins)]
        for path in sorted(paths):
            digest.update(path.read_bytes())
        base = os.environ.get("BENCH_CACHE_DIR") or Path.home() / ".cache" / "attention-bench"
        self.folder = Path(base) / "certificates" / digest.hexdigest()[:16]

    def read(self, variant: str, impl: str) -> dict[str, Any] | None:
        """The stored certificate, or None."""
        try:
            found: dict[str, Any] = json.loads(self._path(variant, impl).read_text())
        except (OSError, ValueError):
            return None
        return found

    def write(self, variant: str, impl: str, certificate: dict[str, Any]) -> None:
        """Store a certificate."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(variant, impl)
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(json.dumps(certificate))
        draft.replace(path)

    def _path(self, variant: str, impl: str) -> Path:
        return self.folder / f"{sha256(f'{variant} {impl}'.encode()).hexdigest()[:16]}.json"


@contextmanager
def machine_lock(*, exclusive: bool) -> Iterator[None]:
    """Keep timed cells alone on the machine: training shares the lock, timing owns it."""
    path = Path(tempfile.gettempdir()) / f"attention-bench-{os.getuid()}.lock"
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield


def _label(planned: PlannedCell) -> str:
    cell = planned.cell
    name = parse(cell.variant).name
    extra = "" if cell.kind == "quality" else f" {cell.kind}"
    return f"{planned.shown_task} @ {name} seed {cell.seed}{extra}"


def _said(job: Job, result: JobResult) -> str:
    if job.kind == "certificate":
        good = not result.certificate.get("failed")
        return "green" if good and result.certificate.get("passed") else "red"
    statuses = [outcome.status for outcome in result.outcomes]
    for status in statuses:
        if status != "ok":
            return status if len(statuses) == 1 else f"ok but {status}"
    return "ok"
