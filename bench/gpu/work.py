"""The pieces of a kit: certificates, ceilings, speed, lengths that fit, a few training cells."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

import torch

from bench.api.resolve import VariantSpec
from bench.conformance import compared_on
from bench.gpu.isolated import isolated
from bench.gpu.kit import Kit
from bench.gpu.pieces import Found, Piece
from bench.running.code_of_cells import CodeOfCells
from bench.running.machine_lock import MachineBusy, machine_lock
from bench.running.plan import plan
from bench.running.quality_cells import PlannedCell
from bench.running.request import AskedVariant, Request
from bench.running.session import Session
from bench.running.shared_queue import SLACK
from bench.running.speed_cells import COMPILED_S, speed_cells, speed_regimes
from bench.timing.asked_shapes import asked_shapes
from bench.timing.block import measure_block
from bench.timing.ceilings import measure_ceilings
from bench.timing.compiled import time_codes
from bench.timing.largest import Pass, largest_length
from bench.timing.reason import Reason
from bench.timing.shape import AttendShape, parse_rounds, parse_shape
from bench.timing.slot_block import measure_slots
from reports.catalog import red_reasons
from results.row import Status

LARGEST_S = 20.0
"""For one search for the longest sequence (s)."""
SHAPE_S = 3.0
"""Expected time of comparing a variant with float64 at a shape (s)."""
CODE_ROUNDS = "rounds[count=10,least=3,workloads=forward+forward_backward]"
"""How compiled code is timed beside the others."""
MEASURES = (measure_ceilings, time_codes, largest_length, measure_block, measure_slots)
"""What measures the variants of a piece."""
PASSES: tuple[Pass, ...] = ("forward", "forward_backward")


@dataclass(frozen=True)
class Workshop:
    """What every piece needs."""

    kit: Kit
    request: Request
    """Variants and baseline, on the device and in the format of the kit."""
    session: Session

    @property
    def variants(self) -> list[AskedVariant]:
        """The baseline, then what was asked for."""
        base = self.request.asked_baseline
        rest = [one for one in self.request.specs if one.spec.canonical != base.spec.canonical]
        return [base, *rest]

    def pieces(self) -> list[Piece]:
        """Every piece, in the order of its worth."""
        return [
            *self._certificates(self.kit.dtype, self.request.impl),
            self._ceilings(),
            *self._slots(self.kit.slot_codes[:1]),
            *self._speed("A/A control", self._model_cells(), self.variants[:1]),
            *self._speed("speed", self._model_cells(), self.variants),
            *self._slots(self.kit.slot_codes[1:]),
            *self._compiled(),
            *self._speed("prefill and decode", self._long_cells(), self.variants),
            *self._largest(),
            *self._training(),
        ]

    def planned(self) -> list[PlannedCell]:
        """Every cell of every piece, for the catalog and the plan of the run folder."""
        return [*self._speed_cells, *self._trained()]

    @cached_property
    def _speed_cells(self) -> list[PlannedCell]:
        """Everything that is timed as a cell."""
        slots = [
            one for dtype, impl in self.kit.slot_codes for one in self._slot_cells(dtype, impl)
        ]
        return [*self._model_cells(), *self._long_cells(), *slots]

    def _model_cells(self) -> list[PlannedCell]:
        return self._timed(self.kit.shape, self.kit.rounds)

    def _long_cells(self) -> list[PlannedCell]:
        found = self._timed(self.kit.prefill_shape, self.kit.prefill_rounds)
        return [one for one in found if one.cell.slot == "causal"]

    def _slot_cells(self, dtype: str, impl: str) -> list[PlannedCell]:
        """Every variant with its heads, in a format and with a code."""
        return [
            replace(one, cell=replace(one.cell, dtype=dtype, impl=impl))
            for shape in self.kit.slot_shapes
            for one in self._timed(shape, self.kit.prefill_rounds)
            if one.cell.slot == "causal"
        ]

    def _slots(self, codes: Sequence[tuple[str, str]]) -> Iterator[Piece]:
        """Reading a prompt and decoding with a layer and its heads, each code once it is certified.

        That of the kit is certified before anything is timed.
        """
        for dtype, impl in codes:
            if (dtype, impl) != (self.kit.dtype, self.request.impl):
                yield from self._certificates(dtype, impl)
            cells = self._slot_cells(dtype, impl)
            yield from self._speed(f"layer, {impl} in {dtype}", cells, self.variants)

    @cached_property
    def _code(self) -> CodeOfCells:
        """Taken once, so that what is imported meanwhile changes the name of no piece."""
        return CodeOfCells()

    def _piece(
        self,
        kind: str,
        what: str,
        seconds: float,
        work: Callable[[float], Found],
        *key: object,
        variants: Iterable[VariantSpec] = (),
    ) -> Piece:
        """A piece whose name says all that it depends on, the code of its variants among it."""
        kit = self.kit
        names = [one.canonical.show() for one in variants]
        digests = [self._code.source.digest(MEASURES), *map(self._code.of_certificate, names)]
        code = sha256(" ".join(digests).encode()).hexdigest()[:12]
        name = " / ".join(map(str, (kind, what, kit.device, kit.dtype, *key, f"code {code}")))
        title = f"{kind}: {what}" if what else kind
        return Piece(name=name, title=title, seconds=kit.pace * seconds, work=work)

    def _chunks(self, variants: Sequence[AskedVariant], size: int) -> Iterator[list[AskedVariant]]:
        for at in range(0, len(variants), size):
            yield [*variants[at : at + size]]

    def _certificates(self, dtype: str, impl: str) -> Iterator[Piece]:
        """The suite on the processor, then the same code where it is timed, at all its shapes."""
        kit, code = self.kit, (dtype, impl)
        cells = [one.cell for one in self._speed_cells if (one.cell.dtype, one.cell.impl) == code]
        shapes = dict.fromkeys(parse_shape(cell.task) for cell in cells)
        on = compared_on(kit.device, dtype, shapes, impl)
        each = 12.0 + len(shapes) * (COMPILED_S if impl == "compiled" else SHAPE_S)
        for chunk in self._chunks(self.variants, 2 * kit.jobs):

            def certify(left: float, chunk: list[AskedVariant] = chunk) -> Found:
                every = self.session.certify([one.spec for one in chunk], impl, on)
                names = {one.text: one.spec.canonical.show() for one in chunk}
                return {"red": [text for text, name in names.items() if red_reasons(every, name)]}

            what = f"{_names(chunk)}, {impl} in {dtype}"
            seconds = 10.0 + each * len(chunk) / kit.jobs
            specs = [one.spec for one in chunk]
            yield self._piece("certificates", what, seconds, certify, on, variants=specs)

    def _ceilings(self) -> Piece:
        kit = self.kit

        def measure(left: float) -> Found:
            device = torch.device(kit.device)
            found = self._isolated(
                measure_ceilings, device, kit.ceilings, backend=kit.backend, left=left
            )
            if isinstance(found, Reason):
                return found
            return {
                name: value.detail if isinstance(value, Reason) else value
                for name, value in found.items()
            }

        return self._piece("ceilings", "", 60.0, measure, kit.ceilings)

    def _timed(self, shape: str, rounds: str) -> list[PlannedCell]:
        """Every variant at each shape, where it is timed, under another timing protocol."""
        # no plan: the time of pieces is what is left of the loan, not the budget of a preset
        found = speed_cells(replace(self.request, shape=(shape,), quality=False, speed=True), ())
        baseline = self.request.asked_baseline.spec.canonical
        protocol = replace(parse_rounds(rounds), beside=baseline).show()
        return [replace(one, cell=replace(one.cell, protocol=protocol)) for one in found]

    def _speed(
        self, kind: str, cells: Sequence[PlannedCell], variants: Sequence[AskedVariant]
    ) -> Iterator[Piece]:
        """Blocks of a few variants beside the baseline, each shape and regime by itself."""
        for task in dict.fromkeys(one.cell.task for one in cells):
            here = [one for one in cells if one.cell.task == task]
            for chunk in self._chunks(variants, self.kit.chunk):
                names = {one.spec.canonical.show() for one in chunk}
                mine = [one for one in here if one.cell.variant in names]
                if not mine:
                    continue

                def measure(left: float, mine: list[PlannedCell] = mine) -> Found:
                    end_s = time.monotonic() + left
                    # a block may take all of it, whatever was expected
                    share = left / SLACK / len(mine)
                    expected = [replace(one, seconds=share) for one in mine]
                    self.session.measure(expected, end_s)
                    return self._came_to(mine, end_s)

                what = f"{_names(chunk)} at {task}"
                more = 0.0 if mine[0].cell.impl != "compiled" else COMPILED_S * len(mine)
                seconds = 15.0 + 5.0 * len(mine) + more
                yield self._piece(
                    kind,
                    what,
                    seconds,
                    measure,
                    mine[0].cell.protocol,
                    variants=[o.spec for o in mine],
                )

    def _compiled(self) -> Iterator[Piece]:
        """PyTorch's fused attention, plain operations and `torch.compile` in the same rounds."""
        kit = self.kit
        (asked,) = asked_shapes([kit.compiled_shape])
        shape = replace(asked, regime="cross")
        for one in self.variants:

            def measure(left: float, one: AskedVariant = one) -> Found:
                found = self._isolated(
                    time_codes,
                    [one.spec.canonical.show()],
                    shape,
                    getattr(torch, kit.dtype),
                    torch.device(kit.device),
                    CODE_ROUNDS,
                    backend=kit.backend,
                    left=left,
                )
                return found if isinstance(found, Reason) else [asdict(time) for time in found]

            what = f"{one.text} at {shape.show()}"
            yield self._piece(
                "compiled", what, 60.0, measure, f"rounds={CODE_ROUNDS}", variants=[one.spec]
            )

    def _largest(self) -> Iterator[Piece]:
        """The longest sequence that fits, forward and with gradients."""
        kit = self.kit
        (asked,) = asked_shapes([kit.largest_shape])
        for one in self.variants:
            regimes = speed_regimes(one.spec, asked.place)
            if not regimes:
                continue
            shape = replace(asked, regime="causal" if "causal" in regimes else regimes[0])
            for workload in PASSES:

                def measure(
                    left: float,
                    one: AskedVariant = one,
                    workload: Pass = workload,
                    shape: AttendShape = shape,
                ) -> Found:
                    found = self._isolated(
                        largest_length,
                        one.spec.canonical.show(),
                        workload,
                        shape,
                        torch.device(kit.device),
                        getattr(torch, kit.dtype),
                        limit=kit.largest_limit,
                        seconds=LARGEST_S,
                        left=left,
                    )
                    return found if isinstance(found, Reason) else asdict(found)

                what = f"{one.text}, {workload.replace('_', ' and ')}"
                limits = f"limit={kit.largest_limit},seconds={LARGEST_S:g}"
                yield self._piece(
                    "longest sequence",
                    what,
                    30.0,
                    measure,
                    shape.show(),
                    limits,
                    variants=[one.spec],
                )

    def _trained(self) -> list[PlannedCell]:
        kit = self.kit
        asked = replace(
            self.request,
            training=kit.training,
            dtype="float32",
            speed=False,
            quality=True,
            seeds=1,
        )
        return plan(asked).quality[: kit.training_cells]

    def _training(self) -> Iterator[Piece]:
        for one in self._trained():

            def train(left: float, one: PlannedCell = one) -> Found:
                end_s = time.monotonic() + left
                # a training may take all of it, whatever was expected
                self.session.train([replace(one, seconds=left / SLACK)], end_s=end_s)
                return self._came_to([one], end_s)

            code = self._code.digest(one.cell)
            yield self._piece("training", one.cell.label, 60.0, train, code, variants=[one.spec])

    def _came_to(self, planned: Sequence[PlannedCell], end_s: float) -> Found:
        """Nothing more, or why cells were not finished; what they refuse is a result."""
        newest = self.session.store.ledger().newest()
        for one in planned:
            record = newest.get(one.cell.id)
            # one of other code counts as none
            if record is None or self.session.wants(one.cell):
                # because of another run on this machine, or of its own
                status: Status = "timeout" if time.monotonic() >= end_s else "failed"
                return Reason(status, f"{one.cell.label}: it was not finished")
            if record.environmental or record.status in ("timeout", "failed"):
                return Reason(record.status, f"{one.cell.label}: {record.detail}")
        return None

    def _isolated(
        self, function: Callable[..., Any], *arguments: object, left: float, **named: object
    ) -> Any:
        settings, stream = self.session.settings, self.session.stream
        end = time.monotonic() + left
        try:
            with machine_lock(exclusive=True, say=partial(print, file=stream), end_s=end):
                left = end - time.monotonic()  # whoever held the lock may have taken most of it
                if left <= 0:
                    return Reason("timeout", "the machine was busy until the time was over.")
                return isolated(function, *arguments, settings=settings, timeout_s=left, **named)
        except MachineBusy as error:
            return Reason("timeout", str(error))


def _names(variants: Sequence[AskedVariant]) -> str:
    return ", ".join(one.text for one in variants)
