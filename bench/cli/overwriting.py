"""What a command must not write over: the report, the pack or the cells of another run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.api.errors import InvalidConfig
from reports.written_files import holds_a_report
from results.catalog import RunCatalog
from results.looks import Looks
from results.pack import open_run
from results.part import Part


def refuse_occupied(folder: Path, out: Path, command: str = "report") -> None:
    """Refuse a folder that holds something else than an earlier report.

    Raises:
        InvalidConfig: It is another run, or holds other files.
    """
    if not out.is_dir() or out.resolve() == folder.resolve():
        return
    if (out / "ledger").is_dir():
        raise InvalidConfig(
            f"{command}: {out} is another run, with a report of its own; give --out a new folder."
        )
    if any(out.iterdir()) and not holds_a_report(out):
        raise InvalidConfig(
            f"{command}: {out} holds something else than a report; give --out a new or empty "
            "folder."
        )


def refuse_other_pack(
    pack: Path, folder: Path, command: str = "report", tasks: Sequence[str] = ()
) -> None:
    """Refuse a pack of that name which holds what would not be written into it.

    An earlier pack of the same run may be replaced.

    Args:
        pack: What would be written.
        folder: The run, or a pack of it.
        command: For the sentence.
        tasks: Tasks whose cells are written; all without any.

    Raises:
        InvalidConfig: It holds cells of another run, or of other tasks.
    """
    if not pack.is_file() or (pack.resolve() == folder.resolve() and not tasks):
        return
    whole = open_run(folder)
    lost = _cells([pack]) - {*(Part(whole, tasks) if tasks else whole).ledger().newest()}
    if lost:
        which = f"the tasks {', '.join(tasks)} of {folder} do" if tasks else f"{folder} does"
        raise InvalidConfig(
            f"{command}: {pack} holds {len(lost)} cells that {which} not have, and they "
            "would be lost; give --pack another name."
        )


def refuse_other_merge(sources: Sequence[Path], out: Path) -> None:
    """Refuse to merge runs into another one, or runs that one report cannot show.

    Raises:
        InvalidConfig: The folder holds cells of none of them, one of two presets ranks alone,
            scores were looked at by two schedules, or a variant is a change of two bases.
    """
    if (out / "ledger").is_dir() and _cells([out]) - _cells(sources):
        raise InvalidConfig(
            f"report: {out} is another run, and cells of others would join it; --merge needs a "
            "new or empty folder: give another --out."
        )
    catalogs = {source: RunCatalog.of(open_run(source)) for source in sources}
    presets = {held.ranks: held.preset for held in reversed(catalogs.values()) if held.preset}
    if len(presets) == 2:
        raise InvalidConfig(
            f"report: cells of the preset {presets[False]} are too small to be ranked beside those "
            f"of {presets[True]}; report the runs apart."
        )
    refuse_two_schedules({source: held.looks for source, held in catalogs.items()})
    _refuse_other_bases(catalogs)


def refuse_two_schedules(looked: Mapping[Path, Looks | None]) -> None:
    """Refuse to join runs whose scores were looked at otherwise: each look has its price in p.

    Args:
        looked: When the scores of each run were looked at; None where they were not.

    Raises:
        InvalidConfig: Two of them were looked at by other schedules.
    """
    known = {run: looks for run, looks in looked.items() if looks is not None}
    for run, looks in known.items():
        first, usual = next(iter(known.items()))
        if looks != usual:
            raise InvalidConfig(
                f"{first} was looked at from {usual.first} seeds on, the first of them "
                f"{usual.first_seed}, and {run} from {looks.first}, the first of them "
                f"{looks.first_seed}: one p value cannot pay for both; report the runs apart."
            )


def _refuse_other_bases(catalogs: Mapping[Path, RunCatalog]) -> None:
    """Refuse ablations of which a variant is in two tables: a catalog has one base for each.

    Raises:
        InvalidConfig: Two of them have such a variant.
    """
    known: dict[str, tuple[Path, str]] = {}
    for source, catalog in catalogs.items():
        for variant, base in catalog.bases.items():
            first, other = known.setdefault(variant, (source, base))
            if other != base:
                raise InvalidConfig(
                    f"report: {first} holds an ablation of {other} and {source} one of {base}, and "
                    f"the table of {base} would lose the variants that are changes of both, as "
                    f"{variant}; report the runs apart."
                )


def _cells(runs: Sequence[Path]) -> set[str]:
    """Ids of all cells of some runs."""
    return {id_ for run in runs for id_ in open_run(run).ledger().newest()}
