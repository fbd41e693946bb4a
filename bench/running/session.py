"""A run: certificates, then training on all jobs, then timing alone; every result is stored."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from bench.api.cell import Cell
from bench.api.resolve import VariantSpec
from bench.api.selector import parse
from bench.conformance import RunsOn
from bench.conformance.place import stands_nowhere
from bench.running.certificate_cache import CertificateCache
from bench.running.code_of_cells import CodeOfCells
from bench.running.devices import device_name
from bench.running.finished import Finished
from bench.running.inline import InlineExecutor
from bench.running.job import Job, JobResult, Outcome
from bench.running.machine_lock import machine_lock
from bench.running.processes import Executor, ProcessExecutor
from bench.running.progress import Display
from bench.running.quality_cells import PlannedCell
from bench.running.read_files import DataFiles
from bench.running.tally import Tally
from bench.running.worker import WorkerSettings
from bench.timing.block import group_blocks
from bench.training.analysis import analysis_label
from results.certificate import CertificateEntry, certificate_entries, with_checks
from results.environment import collect
from results.json_values import Json, as_object
from results.row import Record, Status
from results.store import Store

LOG = "log.txt"
"""File of a run folder with the traceback of every unexpected error."""
SLACK = 30.0
"""A cell may take this many times its expected seconds before it is ended."""
LEAST_TIMEOUT_S = 120.0


@dataclass
class Session:
    """Runs cells into a folder; finished ones are run again where code or data changed (ADR 17)."""

    store: Store
    settings: WorkerSettings
    jobs: int = 2
    inline: bool = False
    retry: frozenset[Status] = frozenset()
    """Statuses that are asked again."""
    keep_old: bool = False
    """Whether results of other code or other data stay, marked; else their cells run again."""
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    keep_models: bool = False
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        kind = InlineExecutor if self.inline else ProcessExecutor
        self.executor: Executor = kind(self.settings)
        self.environment = self.store.write_environment(collect(self.settings.threads))
        self._queue: deque[Job] = deque()
        self._code = CodeOfCells()
        data = DataFiles(Path(self.settings.data_dir) if self.settings.data_dir else None)
        before = self.store.records()
        self._finished = Finished(before, self._code, data, self.retry, keep_old=self.keep_old)

    def certify(
        self, variants: Iterable[VariantSpec], impl: str, on: RunsOn | None = None
    ) -> dict[str, CertificateEntry]:
        """Certify variants whose code has not been certified before; returns all certificates.

        With `on` they are also compared with float64 there, which adds checks to the certificates.

        What every place refuses has none: that is a refusal, which its cells tell, and no proof
        that failed.
        """
        asked = {spec.canonical.show(): spec for spec in variants}
        nowhere = {variant for variant, spec in asked.items() if stands_nowhere(spec)}
        names = {variant: spec.name for variant, spec in asked.items() if variant not in nowhere}
        known = self._certificates(names, impl, None)
        if on is not None:
            for variant, more in self._certificates(names, impl, on).items():
                known[variant] = with_checks(known[variant], more)
        every: dict[str, CertificateEntry] = {}

        def with_known(held: Json) -> object:
            every.update(certificate_entries(as_object(held)))
            for variant, entry in known.items():
                # what was proved on another device stays
                every[variant] = with_checks(every[variant], entry) if variant in every else entry
            for variant in nowhere:
                every.pop(variant, None)
            return every

        self.store.update_json("certificates.json", with_known)
        return every

    def _certificates(
        self, names: Mapping[str, str], impl: str, on: RunsOn | None
    ) -> dict[str, CertificateEntry]:
        """Certificates of one kind by variant, from the cache or from the jobs that it lacks."""
        cache = CertificateCache(self._code)
        place = "" if on is None else f"{on} {device_name(on.device)}"
        found, jobs = {}, []
        for variant, name in names.items():
            stored = cache.read(variant, impl, place)
            if stored is not None:
                found[variant] = stored
                continue
            where = "" if on is None else f" on {on.device} in {on.dtype}"
            jobs.append(
                Job(
                    kind="certificate",
                    label=f"certificate {name}{where}",
                    variant=variant,
                    impl=impl,
                    seconds=3.0,
                    on=on,
                )
            )
        for job, result in self._run(jobs, self.jobs, exclusive=False):
            assert result.certificate is not None, "what this job is for"
            found[job.variant] = result.certificate
            if not result.died:  # which may be the machine's fault
                cache.write(job.variant, impl, result.certificate, place)
        return found

    def train(self, planned: Sequence[PlannedCell], repeats: Sequence[int] = ()) -> list[Outcome]:
        """Train cells that have not finished; returns the outcomes of this call."""
        todo = self._todo([one.cell for one in planned])
        jobs = []
        for index, one in enumerate(planned):
            if one.cell.id not in todo:
                continue
            todo.remove(one.cell.id)
            jobs.append(
                Job(
                    kind="quality",
                    label=_label(one),
                    cells=(one.cell,),
                    repeat=repeats[index] if repeats else 0,
                    seconds=one.seconds,
                    timeout_s=max(LEAST_TIMEOUT_S, SLACK * one.seconds),
                    keep_models=str(self.models) if self.keep_models else "",
                    checkpoint=str(self._checkpoint(one.cell)),
                )
            )
        found: list[Outcome] = []
        for job, result in self._run(jobs, self.jobs, exclusive=False):
            found += result.outcomes
            # after the result is stored; what was killed may be asked again, and goes on then
            if not result.died:
                Path(job.checkpoint).unlink(missing_ok=True)
        return found

    def _checkpoint(self, cell: Cell) -> Path:
        """File of an unfinished training; that of other code has another name, and is removed."""
        folder = self.store.folder / "checkpoints"
        path = folder / f"{cell.id}-{self._code.digest(cell)[:12]}.pt"
        for other in folder.glob(f"{cell.id}-*"):
            if other != path:
                other.unlink(missing_ok=True)
        return path

    def analyze(self, cells: Sequence[Cell]) -> None:
        """Run probes on trained models; finished cells are not run again."""
        todo = self._todo(cells)
        jobs = [
            Job(
                kind="analysis",
                label=analysis_label(cell),
                cells=(cell,),
                seconds=5.0,
                timeout_s=10 * LEAST_TIMEOUT_S,
                keep_models=str(self.models),
            )
            for cell in cells
            if cell.id in todo
        ]
        for _ in self._run(jobs, self.jobs, exclusive=False):
            pass

    @property
    def models(self) -> Path:
        """Where trained weights are kept."""
        return self.store.folder / "models"

    def measure(self, planned: Sequence[PlannedCell], baseline: VariantSpec) -> None:
        """Time cells that have not finished, block by block, while no other job runs."""
        cells = [one.cell for one in planned]
        seconds = {one.cell.id: one.seconds for one in planned}
        todo = self._todo(cells)
        canonical = baseline.canonical.show()
        jobs = []
        for block in group_blocks(cells):
            wanted = tuple(cell for cell in block if cell.id in todo)
            if wanted:
                revisions = baseline.attention_revision
                outside = replace(block[0], variant=canonical, revisions=revisions)
                reference = next((c for c in block if c.variant == canonical), outside)
                expected = sum(seconds[cell.id] for cell in wanted)
                jobs.append(_speed_job(wanted, reference, expected))
        for _ in self._run(jobs, 1, exclusive=True):
            pass

    def _todo(self, cells: Iterable[Cell]) -> set[str]:
        """Ids of the cells to run; counts those that have finished."""
        newest = self.store.ledger().newest()
        asked = {cell.id for cell in cells}
        todo = {id_ for id_ in asked if self._finished.wants(newest.get(id_))}
        for id_ in asked - todo:
            self._found(newest[id_])
        return todo

    def _found(self, record: Record) -> None:
        """Count a finished cell, and write down whether its code and data are those of today."""
        today = self._finished.restated(record)
        if today is not record:
            self.store.append(today)
        self.tally.found(today)

    def _run(
        self, jobs: list[Job], at_once: int, *, exclusive: bool
    ) -> Iterator[tuple[Job, JobResult]]:
        if not jobs:
            return
        display = Display(jobs, at_once, self.stream)
        self._queue = deque(jobs)
        try:
            with (
                machine_lock(exclusive=exclusive, say=display.say),
                closing(self.executor.run(self._take(display), at_once, display.watch)) as done,
            ):
                for job, result in done:
                    if result.died and len(job.cells) > 1:
                        # one of them took the others along; each alone shows which
                        display.finish(job, "died; one by one")
                        display.expect(self._split(job))
                        continue
                    self._keep(job, result)
                    display.finish(job, _said(result))
                    yield job, result
        finally:
            display.close()

    def _split(self, job: Job) -> list[Job]:
        """Queue every cell of a block as a job of its own, which takes longer than its share."""
        alone = [_part(replace(job, seconds=2 * job.seconds), [cell]) for cell in job.cells]
        self._queue.extend(alone)
        return alone

    def _take(self, display: Display) -> Iterator[Job | None]:
        """Reserve jobs one by one; what another process holds is looked at again later."""
        while self._queue:
            waiting = len(self._queue)
            for _ in range(waiting):
                job = self._queue.popleft()
                if not job.cells:
                    yield job
                    continue
                mine, held = self._reserve(job.cells)
                if not mine and not held:
                    display.finish(job, "done elsewhere")
                    continue
                parts = [_part(job, cells) for cells in (mine, held) if cells]
                display.expect(parts, instead_of=job)
                if held:
                    self._queue.append(parts[-1])
                if mine:
                    yield parts[0]
            if self._queue:
                yield None

    def _reserve(self, cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
        """Cells that are ours to run, and cells that another process holds now."""
        free = [cell for cell in cells if self.store.reserve(cell.id)]
        held = [cell for cell in cells if cell not in free]
        newest = self.store.ledger().newest() if free else {}
        mine = []
        for cell in free:
            found = newest.get(cell.id)
            if self._finished.wants(found):
                mine.append(cell)
            elif found is not None:
                self._found(found)
                self.store.release(cell.id)
        return mine, held

    def _keep(self, job: Job, result: JobResult) -> None:
        """Store what a job left, before anything else is done with it."""
        for outcome in result.outcomes:
            self.tally.ended(outcome)
            if outcome.artifact:
                self.store.write_artifact(outcome.cell.id, outcome.artifact)
            self.store.append(self._record(outcome, result.plugins))
            self.store.release(outcome.cell.id)
        if result.trace:
            with (self.store.folder / LOG).open("a", encoding="utf-8") as log:
                log.write(f"{datetime.now(UTC).isoformat()} {job.label}\n{result.trace}\n")

    def _record(self, outcome: Outcome, plugins: str = "") -> Record:
        cell = outcome.cell
        # an edit between our import and that of the worker leaves nothing to say for certain
        same = plugins in ("", self._code.source.plugins)
        before = self.store.ledger().newest().get(cell.id)
        attempt = before.attempt + 1 if before else 1
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
            environmental=outcome.environmental,
            code=self._code.digest(cell, outcome.made) if same else "",
            made=outcome.made,
            data=dict(outcome.data),
            unmeasured=outcome.unmeasured,
        )


def _speed_job(cells: tuple[Cell, ...], reference: Cell, expected: float) -> Job:
    what = f"{len(cells)} variants" if len(cells) > 1 else parse(cells[0].variant).name
    return Job(
        kind="speed",
        label=f"speed {reference.task} ({what})",
        cells=cells,
        reference=reference,
        seconds=expected,
        timeout_s=max(LEAST_TIMEOUT_S, SLACK * expected),
    )


def _part(job: Job, cells: Sequence[Cell]) -> Job:
    """A job of some cells of a job, with their share of its time."""
    if len(cells) == len(job.cells):
        return job
    assert job.reference is not None, "only speed blocks have several cells"
    return _speed_job(tuple(cells), job.reference, job.seconds * len(cells) / len(job.cells))


def _label(planned: PlannedCell) -> str:
    cell = planned.cell
    task = planned.task.text if planned.task else cell.task
    name = planned.shown_variant or planned.spec.name
    extra = "" if cell.kind == "quality" else f" {cell.kind}"
    return f"{task} @ {name} seed {cell.seed}{extra}"


def _said(result: JobResult) -> str:
    if result.certificate is not None:
        good = result.certificate["passed"] and not result.certificate["failed"]
        return "green" if good else "red"
    statuses = [outcome.status for outcome in result.outcomes]
    others = [status for status in statuses if status != "ok"]
    if not others:
        return "ok"
    return f"ok but {others[0]}" if "ok" in statuses else others[0]
