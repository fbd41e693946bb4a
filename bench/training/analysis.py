"""Look at a trained model with a probe: what an analysis cell runs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from bench.api import registry
from bench.api.batch import Batch
from bench.api.capabilities import refusal
from bench.api.cell import Cell
from bench.api.command import EXAMPLES
from bench.api.config import Config, build_config, changed_options
from bench.api.errors import DataUnavailable, InvalidConfig, Refused
from bench.api.options import canonical, complete
from bench.api.places import trained_place
from bench.api.probe import PROBES, Subject
from bench.api.selector import Selector, parse, parse_list
from bench.api.task import TASKS, Task
from bench.training.assemble import Assembled, assemble
from bench.training.evaluate import score_rows
from bench.training.kept_weights import Origin, load_weights
from bench.training.precision import computing, place
from results.row import Row


@dataclass(frozen=True, kw_only=True)
class Analysis(Config):
    """Protocol of an analysis cell."""

    probe: Selector
    """The probe, with its options."""
    trained: Selector
    """Training protocol of the model that is analyzed."""
    examples: int = EXAMPLES
    """Number of test examples, in whole batches, the first ones of the test.

    Tests begin with their shortest inputs, so these are the shortest ones: of strings of symbols
    that have 2 to 16 of them, the 256 first ones have 2. Stored results are of these examples, so
    that another choice needs an option of its own."""

    def __post_init__(self) -> None:
        """Check the number."""
        if self.examples < 1:
            raise InvalidConfig(f"analysis: examples must be at least 1, got {self.examples}.")


def analysis_cell(trained: Cell, probe: Selector, examples: int) -> Cell:
    """The cell that analyzes the model of a quality cell."""
    written = canonical("probe", probe)
    asked = Analysis(probe=written, trained=parse(trained.protocol), examples=examples)
    return replace(
        trained,
        kind="analysis",
        protocol=Selector("analysis", changed_options(asked)).show(),
        revisions=_with_probe(trained.revisions, written),
    )


def analysis_revisions(cell: Cell, trained: str) -> str:
    """Revisions of the trained cell and, at the end, of the probe."""
    return _with_probe(trained, _read(cell).probe)


def _with_probe(trained: str, probe: Selector) -> str:
    registered = registry.find(PROBES, probe.name)
    return f"{trained} {registry.show_revisions([(registered.name, registered.revision)])}".strip()


def analysis_cells(
    trained: Iterable[Cell], probes: Iterable[Selector], examples: int = EXAMPLES
) -> list[Cell]:
    """Every probe on every model."""
    chosen = list(probes)
    return [analysis_cell(cell, one, examples) for cell in trained for one in chosen]


def asked_probes(text: str) -> list[Selector]:
    """Read a list of probes; `all` is every registered one.

    Raises:
        UnknownName: Nobody registered one of the names.
        InvalidConfig: `all` has options.
    """
    found: dict[str, Selector] = {}
    for asked in parse_list(text):
        if asked.name == "all" and asked.options:
            raise InvalidConfig(f"all takes no options, got {asked}; name the probe that has them.")
        every = [Selector(name) for name in registry.registrations(PROBES)]
        for selector in every if asked.name == "all" else [asked]:
            written = canonical("probe", selector)
            found.setdefault(written.show(), written)
    return list(found.values())


def trained_cell(cell: Cell) -> Cell:
    """The quality cell whose model an analysis cell reads."""
    asked = _read(cell)
    before, _, last = cell.revisions.rpartition(" ")
    kept = before if last.partition(":")[0] == asked.probe.name else cell.revisions
    return replace(cell, kind="quality", protocol=asked.trained.show(), revisions=kept)


def analysis_label(cell: Cell) -> str:
    """An analysis cell in a line of progress: its probe and its model.

    >>> analysis_label(
    ...     Cell(
    ...         kind="analysis",
    ...         task="sorting[digits=4]",
    ...         backbone="rnn_seq2seq",
    ...         variant="dot[scale=none]",
    ...         slot="cross",
    ...         protocol="analysis[examples=8,probe=blur[width=2],trained=adam[steps=9]]",
    ...     )
    ... )
    'blur on sorting @ dot seed 0'
    """
    probe = _read(cell).probe.name
    return f"{probe} on {parse(cell.task).name} @ {parse(cell.variant).name} seed {cell.seed}"


def _read(cell: Cell) -> Analysis:
    return build_config(Analysis, parse(cell.protocol).options, "analysis")


def analysis_probe(cell: Cell) -> Selector:
    """The probe of an analysis cell, every option written out."""
    return complete(PROBES, _read(cell).probe)


def model_path(models: Path, cell: Cell) -> Path:
    """Where the weights of a quality cell are kept."""
    return models / f"{cell.id}.safetensors"


def analyze_cell(
    cell: Cell, models: Path, origin: Origin, data_dir: Path | None = None
) -> list[Row]:
    """Load the model of the cell and measure it.

    Args:
        cell: Of a probe.
        models: Folder of kept weights.
        origin: What made the result of the trained cell, and must have made its weights.
        data_dir: A data directory, or None for the environment's.

    Raises:
        Refused: The task, the variant or the network cannot be looked at in this way.
        DataUnavailable: The model was not kept, is of other code or other data than the result, or
            its data are not on this machine.
    """
    asked = _read(cell)
    probe = registry.make(PROBES, asked.probe)
    trained = trained_cell(cell)
    target = registry.find(TASKS, parse(cell.task).name).target
    if target.regresses:
        raise Refused(f"probes look at what is said of words, and {cell.task} asks for numbers.")
    given = trained_place(target, parse(cell.backbone))
    reason = refusal([(asked.probe.name, type(probe))], given)
    if reason is not None:
        raise Refused(reason)
    path = model_path(models, trained)
    if not path.is_file():
        raise DataUnavailable(
            f"the weights of this cell are not in {models}; run with --keep-models into another "
            "--out, because finished cells are not trained again."
        )
    devices = [torch.device("cuda")] if cell.device == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(cell.seed)
        built = assemble(trained, data_dir)
    place(built.system, cell)
    load_weights(built.system, path, torch.device(cell.device), origin)
    subject = _subject(built, asked.examples, cell)
    # cuDNN has no gradient of recurrent layers that do not train, and probes ask for one
    with torch.backends.cudnn.flags(enabled=False), computing(cell):
        return score_rows(probe.measure(subject), "test")


def _subject(built: Assembled, examples: int, cell: Cell) -> Subject:
    device = torch.device(cell.device)
    system = built.system
    system.requires_grad_(requires_grad=False)
    backbone = system.there.eval()
    batches = tuple(backbone.arrange(b.to(device)) for b in _first(built.task, examples))
    return Subject(backbone, built.task, batches, cell.seed)


def _first(task: Task, examples: int) -> Iterable[Batch]:
    """Whole test batches from the beginning, where inputs are short, until there are enough."""
    seen = 0
    for batch in task.evaluation("test"):
        yield batch
        seen += len(batch.targets)
        if seen >= examples:
            return
