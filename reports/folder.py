"""A run folder as a report reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bench.api.axes import PLAIN
from bench.api.cell import RUN_KINDS, Cell, cell_from_dict, parse_label
from bench.api.command import USUAL_PRESET, run_command
from bench.api.errors import DataDamaged, InvalidSelector
from reports.catalog import Catalog, Certificates
from reports.numbers import counted
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.costs import Costs, costs_at_one_length
from reports.ranked_table.grouping import comparisons
from reports.ranked_table.headline import headline_of
from reports.ranked_table.rows import ranked_lines
from reports.speed_rows import line_of, speed_table
from results.catalog import CATALOG
from results.certificate import certificate_entries, with_sentences
from results.frame import rows_of, speed_summary
from results.json_values import JsonObject, as_list, as_object, as_text
from results.pack import Pack, open_run
from results.part import Part
from results.published_commands import as_published, without_folders
from results.row import Record, Unmeasured
from results.run_path import SUFFIX
from results.store import Store
from results.stored_plan import PLAN, StoredPlan, stored_plan


@dataclass(frozen=True)
class StoredOutcome:
    """A finished cell and its record."""

    cell: Cell
    record: Record

    @property
    def anchor(self) -> str:
        """Place of this cell in the page."""
        return f"cell-{self.record.id}"

    @property
    def lost(self) -> list[Unmeasured]:
        """Metrics that the cell should have and has not; refused ones have no meaning for it.

        Of other code none counts, and so none is missed.
        """
        known = self.record.unmeasured if self.record.status == "ok" else ()
        return [one for one in known if one.status != "refused"]


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """Everything that a report needs, read once."""

    path: Path
    outcomes: tuple[StoredOutcome, ...]
    """Newest record of each cell, sorted by label."""
    catalog: Catalog
    plan: StoredPlan
    certificates: Certificates
    environments: Mapping[str, JsonObject]
    torn: str
    """A sentence about lines that killed writers left unfinished, which is no damage."""
    damage: str
    """A sentence about lines of the ledger that cannot be read; empty where there are none."""
    store: Store | Pack | Part
    published: bool = False
    """Whether what is read here leaves this machine, so that none of its places is named."""
    tasks: tuple[str, ...] = ()
    """Names of the tasks that are reported alone; none for the whole run."""

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.path.resolve().name.removesuffix(SUFFIX)

    def as_published(self) -> "RunFolder":
        """The same for readers elsewhere: no folder of this machine is named, in no reason."""
        said = [
            replace(
                one,
                record=replace(
                    one.record,
                    detail=without_folders(one.record.detail),
                    unmeasured=tuple(
                        replace(lost, detail=without_folders(lost.detail))
                        for lost in one.record.unmeasured
                    ),
                ),
            )
            for one in self.outcomes
        ]
        certificates = {
            variant: with_sentences(entry, without_folders)
            for variant, entry in self.certificates.items()
        }
        return replace(self, published=True, outcomes=tuple(said), certificates=certificates)

    def command(self, label: str) -> str:
        """The command that runs one cell of this run again; empty where only the whole run can."""
        cell = _cell_of(label)
        if cell is not None and cell.kind not in RUN_KINDS:
            return ""
        reads = cell is None or (
            cell.kind != "speed" and self.catalog.task(cell.task).needs_download
        )
        data_dir = self.catalog.data_dir if reads else ""
        words = ["--cell", label]
        if self.catalog.preset not in ("", USUAL_PRESET):
            words += ["--preset", self.catalog.preset]
        return self.shown(run_command(*words, plugins=self.catalog.plugins, data_dir=data_dir))

    @property
    def commands(self) -> tuple[str, ...]:
        """What ran into this folder, in order."""
        return tuple(map(self.shown, self.catalog.commands))

    def shown(self, command: str) -> str:
        """A command as a reader of this report may see it."""
        return as_published(command) if self.published else command

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Every row of the run, as `results.frame.rows_of` gives it, with texts as objects."""
        source = self.store
        whole = source.frame if isinstance(source, Pack) else rows_of([source])
        # a report takes small parts of it thousands of times, which Arrow's strings make slow
        texts: list[str] = [*whole.select_dtypes("str").columns]
        return whole.astype(dict.fromkeys(texts, object))

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The comparisons that this run allows, without the former winners of a study."""
        former = former_finals(self.catalog.study)
        frame = self.frame[~self.frame["cell"].isin(former)] if former else self.frame
        return comparisons(frame, self.catalog, self.certificates)

    @cached_property
    def headlines(self) -> dict[str, Comparison]:
        """What the ranked table of each comparison shows, by the key of the comparison."""
        return {comparison.key: headline_of(comparison) for comparison in self.comparisons}

    @cached_property
    def speed(self) -> pd.DataFrame:
        """Summary of every timing, as `results.frame.speed_summary` gives it."""
        return speed_summary(self.frame, self.catalog.baseline or PLAIN)

    @cached_property
    def costs(self) -> Costs:
        """The timings that are shown with the scores."""
        return costs_at_one_length(self.speed, self.catalog.baseline)

    @cached_property
    def speed_lines(self) -> pd.DataFrame:
        """Growth and verdicts, as `reports.speed_rows.speed_table` gives them."""
        return speed_table(self.frame, self.catalog, self.certificates, speed=self.speed)

    @cached_property
    def ranked_lines(self) -> pd.DataFrame:
        """Scores and costs, as `reports.ranked_table.rows.ranked_lines` gives them."""
        return ranked_lines(self.headlines.values(), self.costs, self.certificates)

    @cached_property
    def by_id(self) -> dict[str, StoredOutcome]:
        """Outcomes by the id of their cell."""
        return {outcome.record.id: outcome for outcome in self.outcomes}

    @cached_property
    def speed_cells(self) -> dict[tuple[str, ...], list[StoredOutcome]]:
        """Speed cells of every length with values, by the settings of `ONE_LINE`."""
        found: dict[tuple[str, ...], list[StoredOutcome]] = {}
        for outcome in self.of_kind("speed"):
            found.setdefault(line_of(outcome.cell), []).append(outcome)
        return found

    @cached_property
    def unfinished(self) -> tuple[str, ...]:
        """Labels that were planned and have no record yet."""
        planned = self.plan["cells"].items()
        return tuple(label for id_, label in planned if id_ not in self.by_id)

    def of_kind(self, kind: str, status: str = "ok") -> list[StoredOutcome]:
        """Outcomes of one kind of cell."""
        return [
            outcome
            for outcome in self.outcomes
            if outcome.cell.kind == kind and outcome.record.status == status
        ]

    def artifact(self, outcome: StoredOutcome) -> Mapping[str, Any]:
        """Attention maps and samples of a cell, read once; empty if there are none to read."""
        id_ = outcome.record.id
        if id_ not in self._artifacts:
            try:
                self._artifacts[id_] = self.store.read_artifact(id_) or {}
            except DataDamaged as error:
                self._artifacts[id_] = {}
                self._unreadable[id_] = str(error)
        return self._artifacts[id_]

    @cached_property
    def damages(self) -> tuple[str, ...]:
        """What of this run cannot be read, a sentence each."""
        for outcome in self.of_kind("quality"):
            self.artifact(outcome)
        lost = ""
        if self._unreadable:
            cells = counted(len(self._unreadable), "cell")
            first = next(iter(self._unreadable.values())).removesuffix("; delete it and run again.")
            lost = (
                f"Attention maps, samples and notes of {cells} cannot be read and are missing "
                f"below: {first}. Scores are stored elsewhere and are whole."
            )
        return tuple(filter(None, (self.damage, lost)))

    @cached_property
    def notes(self) -> Mapping[str, Mapping[str, Mapping[str, list[StoredOutcome]]]]:
        """What cells noted beside their rows: by task, subject and text, with their cells."""
        found: dict[str, dict[str, dict[str, list[StoredOutcome]]]] = {}
        for outcome in self.of_kind("quality"):
            told = self.artifact(outcome).get("notes")
            for about, value in sorted(told.items()) if isinstance(told, Mapping) else ():
                values = found.setdefault(outcome.cell.task, {}).setdefault(str(about), {})
                values.setdefault(str(value), []).append(outcome)
        return dict(sorted(found.items()))

    @cached_property
    def _artifacts(self) -> dict[str, JsonObject]:
        return {}

    @cached_property
    def _unreadable(self) -> dict[str, str]:
        return {}


def former_finals(studies: Mapping[str, JsonObject]) -> set[str]:
    """Ids of cells that were the winners of a study until it had more trials, and are none now."""
    found = {
        key: {as_text(id_) for facts in studies.values() for id_ in as_list(facts.get(key))}
        for key in ("former", "finals")
    }
    return found["former"] - found["finals"]


def _cell_of(label: str) -> Cell | None:
    """The cell of a label; None where a later version wrote it."""
    try:
        return parse_label(label)
    except InvalidSelector:
        return None


def torn_lines(count: int) -> str:
    """A sentence about lines that killed writers left unfinished; empty without any.

    Args:
        count: How many there are.
    """
    if not count:
        return ""
    return (
        f"{counted(count, 'unfinished last line')} of killed writers "
        f"{'was' if count == 1 else 'were'} left out; their cells run again."
    )


def damaged_lines(places: Sequence[str]) -> str:
    """A sentence about lines of a ledger that cannot be read; empty without any.

    Args:
        places: `file:line: reason` of each.
    """
    if not places:
        return ""
    return (
        f"{counted(len(places), 'line')} of the ledger cannot be read, the first "
        f"is {places[0]}; cells that are missing for it run again with the "
        "same command."
    )


def read_folder(path: Path, tasks: Sequence[str] = ()) -> RunFolder:
    """Read a run folder.

    Args:
        path: The folder.
        tasks: Names of the tasks whose cells are read, without timings; none for all.

    Raises:
        NotARunFolder: The folder has no ledger.
        UnknownName: No cell of the run is of such a task.
    """
    whole = open_run(path)
    store = Part(whole, tasks) if tasks else whole
    ledger = store.ledger()
    outcomes = [StoredOutcome(cell_from_dict(dict(r.cell)), r) for r in ledger.newest().values()]
    return RunFolder(
        path=Path(path),
        outcomes=tuple(sorted(outcomes, key=lambda outcome: outcome.cell.label)),
        catalog=Catalog(as_object(store.read_json(CATALOG))),
        plan=stored_plan(as_object(store.read_json(PLAN))),
        certificates=certificate_entries(as_object(store.read_json("certificates.json"))),
        environments=store.environments(),
        torn=torn_lines(ledger.torn_tails),
        damage=damaged_lines(ledger.corrupt_lines),
        store=store,
        tasks=tuple(tasks),
    )
