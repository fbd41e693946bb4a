"""A run: certificates, then training on all jobs, then timing alone; every result is stored."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TextIO

from bench.api.cell import Cell
from bench.api.impl import impl_of
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import parse, rounded
from bench.api.whole_file import remove_drafts
from bench.conformance import RunsOn
from bench.conformance.place import stands_nowhere
from bench.running.certificate_cache import CertificateCache
from bench.running.code_of_cells import CodeOfCells
from bench.running.devices import device_name
from bench.running.finished import Finished
from bench.running.inline import InlineExecutor
from bench.running.job import Job, Outcome
from bench.running.kept_results import KeptResults
from bench.running.processes import Executor, ProcessExecutor
from bench.running.quality_cells import PlannedCell
from bench.running.read_files import DataFiles
from bench.running.shared_queue import (
    LEAST_TIMEOUT_S,
    SharedQueue,
    longest_silence_s,
    speed_job,
)
from bench.running.tally import Tally
from bench.running.worker import WorkerSettings
from bench.timing.block import group_blocks
from bench.timing.shape import parse_rounds
from bench.timing.workloads import plain_code
from bench.training.analysis import analysis_label, model_path, trained_cell
from bench.training.kept_weights import Origin
from results.certificate import (
    CertificateEntry,
    certificate_entries,
    of_code,
    of_impl,
    refused_code,
    with_checks,
    without_other_code,
)
from results.environment import collect
from results.json_values import Json, as_object
from results.row import Record, Status
from results.store import Store

CERTIFICATES = "certificates.json"


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
    patient: bool = True
    """Whether a training that makes progress may go on beyond its limit."""
    tally: Tally = field(default_factory=Tally)
    executor: Executor | None = None
    """Who does the jobs; by default worker processes, or this one."""

    def __post_init__(self) -> None:
        kind = InlineExecutor if self.inline else ProcessExecutor
        self.executor = self.executor or kind(self.settings)
        facts = collect(self.settings.threads)
        self._machine = facts.machine
        environment = self.store.write_environment(facts)
        self._code = CodeOfCells()
        data = DataFiles(Path(self.settings.data_dir) if self.settings.data_dir else None)
        before = self.store.records()
        self._finished = Finished(before, self._code, data, self.retry, keep_old=self.keep_old)
        self._results = KeptResults(self.store, self._finished, self._code, self.tally, environment)
        self._queue = SharedQueue(self._results, self.executor, self.stream)
        self._certified: set[str] = set()
        """Variants whose certificates are of this code, or gone."""

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
        # nor has what lacks this code; what was proved of its other code stays
        known = {variant: entry for variant, entry in known.items() if not refused_code(entry)}
        names = {variant: names[variant] for variant in known}
        # the suite asks the plain code, and what it says of one code does not replace another's
        code = plain_code(impl_of(impl))
        known = {variant: of_impl(entry, code) for variant, entry in known.items()}
        if on is not None:
            for variant, more in self._certificates(names, impl, on).items():
                known[variant] = with_checks(known[variant], more)
        every: dict[str, CertificateEntry] = {}

        def with_known(before: Json) -> object:
            every.update(certificate_entries(as_object(before)))
            for variant, entry in known.items():
                held = every.get(variant)
                if held is not None:
                    # what was proved of this code on another device stays
                    held = without_other_code(held, self._code.of_certificate(variant))
                every[variant] = entry if held is None else with_checks(held, entry)
            for variant in nowhere:
                every.pop(variant, None)
            return every

        self.store.update_json(CERTIFICATES, with_known)
        self._certified |= known.keys() | nowhere
        return every

    def _todo(self, cells: Sequence[Cell]) -> set[str]:
        """Ids of the cells to run; certificates of other code of their variants go.

        Without verification nothing else would take them away.
        """
        variants = {cell.variant for cell in cells} - self._certified
        self._certified |= variants
        held = as_object(self.store.read_json(CERTIFICATES))
        if not variants.isdisjoint(held):
            self.store.update_json(CERTIFICATES, partial(self._of_this_code, variants))
        return self._results.todo(cells)

    def _of_this_code(self, variants: set[str], before: Json) -> dict[str, CertificateEntry]:
        """All certificates, without what was proved of other code of some variants."""
        every = certificate_entries(as_object(before))
        for variant in variants & every.keys():
            left = without_other_code(every.pop(variant), self._code.of_certificate(variant))
            if left["passed"] or left["skipped"] or left["failed"]:
                every[variant] = left
        return every

    def _certificates(
        self, names: Mapping[str, str], impl: str, on: RunsOn | None
    ) -> dict[str, CertificateEntry]:
        """Certificates of one kind by variant, from the cache or from the jobs that it lacks."""
        cache = CertificateCache(self._code)
        place = "" if on is None else f"{on} {device_name(on.device)}"
        found, jobs = {}, []
        for variant in names:
            stored = cache.read(variant, impl, place)
            if stored is not None:
                found[variant] = of_code(stored, self._code.of_certificate(variant))
                continue
            where = "" if on is None else f" on {on.device} in {on.dtype}"
            jobs.append(
                Job(
                    kind="certificate",
                    label=f"certificate {variant}{where}",
                    variant=variant,
                    impl=impl,
                    seconds=3.0,
                    on=on,
                )
            )
        edited = []
        for job, result in self._queue.run(jobs, self.jobs, exclusive=False):
            assert result.certificate is not None, "what this job is for"
            ours = self._code.of_certificate(job.variant)
            code = self._results.code_of(result, job.variant, ours)
            found[job.variant] = of_code(result.certificate, code)
            if not code:
                edited.append(job.variant)
            elif not (result.died or result.environmental):  # the machine's fault, maybe
                cache.write(job.variant, impl, result.certificate, place)
        for variant in edited:
            self.stream.write(
                f"warning: code was edited after this run had begun, so the certificate of "
                f"{variant} is of other code than the run and is not kept; run again.\n"
            )
        return found

    def wants(self, cell: Cell) -> bool:
        """Whether a cell would be run: it has not finished, is asked again, or is out of date."""
        return self._results.wants(cell)

    def train(
        self,
        planned: Sequence[PlannedCell],
        repeats: Sequence[int] = (),
        end_s: float = math.inf,
    ) -> list[Outcome]:
        """Train cells that have not finished; returns the outcomes of this call.

        Args:
            planned: The cells.
            repeats: The number of each trial; none where they are no trials.
            end_s: When all of them are ended, by `time.monotonic`.
        """
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
                    timeout_s=longest_silence_s(one),
                    patient=self.patient,
                    keep_models=str(self.models) if self.keep_models else "",
                    checkpoint=str(self._checkpoints / f"{one.cell.id}.pt"),
                    machine=self._machine,
                )
            )
        found: list[Outcome] = []
        for job, result in self._queue.run(jobs, self.jobs, exclusive=False, end_s=end_s):
            found += result.outcomes
            model = model_path(self.models, job.cells[0])
            remove_drafts(self.models, model.name)
            if not job.keep_models:
                # weights of an earlier training are not those of the result that is there now
                model.unlink(missing_ok=True)
            # after the result is stored; what was killed or met a full disk goes on next time
            if not result.died and not any(one.environmental for one in result.outcomes):
                self._remove_checkpoint(job.cells[0])
        return found

    def _remove_checkpoint(self, cell: Cell) -> None:
        """Forget a training that has ended, and what killed workers had begun to write of it."""
        name = f"{cell.id}*.pt"  # names of earlier versions had a hash after the id
        remove_drafts(self._checkpoints, name)
        for path in self._checkpoints.glob(name):
            path.unlink(missing_ok=True)

    @property
    def _checkpoints(self) -> Path:
        """Where trainings are kept that have not ended."""
        return self.store.folder / "checkpoints"

    def analyze(self, cells: Sequence[Cell]) -> None:
        """Run probes on trained models; finished cells are not run again."""
        todo = self._todo(cells)
        newest = self.store.ledger().newest()
        jobs = [
            Job(
                kind="analysis",
                label=analysis_label(cell),
                cells=(cell,),
                seconds=5.0,
                timeout_s=10 * LEAST_TIMEOUT_S,
                keep_models=str(self.models),
                origin=self._origin(newest.get(trained_cell(cell).id)),
            )
            for cell in cells
            if cell.id in todo
        ]
        for _ in self._queue.run(jobs, self.jobs, exclusive=False):
            pass

    def _origin(self, trained: Record | None) -> Origin:
        """What made the result of a trained cell; nothing where none holds today."""
        if trained is None or trained.status != "ok" or not self.holds(trained):
            return Origin()
        return Origin(code=trained.code, data=trained.data)

    def holds(self, record: Record) -> bool:
        """Whether a stored result is of the code and the data of today."""
        return not self._finished.outdated(record)

    @property
    def models(self) -> Path:
        """Where trained weights are kept."""
        return self.store.folder / "models"

    def measure(self, planned: Sequence[PlannedCell], end_s: float = math.inf) -> None:
        """Time cells that have not finished, block by block, while no other job runs.

        Each is timed beside the baseline that its protocol names.

        Args:
            planned: The cells.
            end_s: When all of them are ended, by `time.monotonic`.
        """
        cells = [one.cell for one in planned]
        seconds = {one.cell.id: one.seconds for one in planned}
        todo = self._todo(cells)
        jobs = []
        for block in group_blocks(cells):
            wanted = tuple(cell for cell in block if cell.id in todo)
            if wanted:
                baseline = resolve(parse_rounds(block[0].protocol).beside)
                canonical, revisions = baseline.canonical.show(), baseline.attention_revision
                outside = replace(block[0], variant=canonical, revisions=revisions)
                reference = next((c for c in block if c.variant == canonical), outside)
                expected = sum(seconds[cell.id] for cell in wanted)
                least_s = LEAST_TIMEOUT_S if self.patient else 0.0
                jobs.append(speed_job(wanted, reference, expected, least_s))
        for _ in self._queue.run(jobs, 1, exclusive=True, end_s=end_s):
            pass


def _label(planned: PlannedCell) -> str:
    cell = planned.cell
    task = planned.task.text if planned.task else cell.task
    # trials of one variant differ in what was tried, which no name says
    name = planned.shown_variant or rounded(parse(cell.variant)).show()
    if cell.kind == "trial":
        rate = parse(cell.protocol).options.get("lr")
        tried = f" lr={rate:.3g}" if isinstance(rate, float) else ""
        return f"{task} @ {name} seed {cell.seed} trial{tried}"
    extra = "" if cell.kind == "quality" else f" {cell.kind}"
    return f"{task} @ {name} seed {cell.seed}{extra}"
