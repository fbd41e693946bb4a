"""The catalog of a run folder: what a report must know about names, written beside the rows."""

import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypedDict

from bench.api.data_folder import DATA_VARIABLE, data_folder
from bench.cli.run_options import RunOptions
from bench.running.catalog import catalog_of, known_metrics
from bench.running.request import AskedTask, AskedVariant
from results.catalog import CATALOG, ChangedAxis, RunCatalog
from results.json_values import Json, JsonObject, as_object
from results.store import Store


def write_catalog(
    options: RunOptions,
    store: Store,
    variants: Iterable[AskedVariant],
    tasks: Iterable[AskedTask],
    *,
    changed: Mapping[str, ChangedAxis] = MappingProxyType({}),
    study: Mapping[str, JsonObject] = MappingProxyType({}),
    trials: Mapping[str, str] = MappingProxyType({}),
    has_baseline: bool = True,
) -> None:
    """Write what a report must know of names, beside what earlier runs wrote.

    Args:
        options: Of the command.
        store: Whose folder.
        variants: Every variant that has a name.
        tasks: Every task that is trained.
        changed: The axis that each variant of an ablation changes.
        study: What is said of each study, by the variant that it tuned.
        trials: Ids of the cells of trials, by study and number.
        has_baseline: Whether the command runs the baseline, which a study does not.
    """
    found = catalog_of(
        variants,
        tasks,
        baseline=options.asked_baseline.spec if has_baseline else None,
        command=command_line(),
        preset=options.preset,
        ranks=options.size.ranks,
        plugins=options.plugin_paths,
        devices=_devices(store) | {options.device},
        **_places(options),
    )
    ablated = {
        variant: replace(found.variants[variant], ablation=change)
        for variant, change in changed.items()
        if variant in found.variants
    }
    found = replace(
        found,
        variants={**found.variants, **ablated},
        study=dict(study),
        trials=dict(trials),
        looks=options.looks,
    )
    store.update_json(
        CATALOG, lambda held: RunCatalog.from_json(as_object(held)).merged(found).to_json()
    )


def add_to_catalog(options: RunOptions, store: Store) -> None:
    """Add a command that ran probes on the models of a finished run."""

    def with_command(held: Json) -> object:
        catalog = RunCatalog.from_json(as_object(held))
        added = replace(
            catalog,
            metrics=known_metrics([], _devices(store)),
            commands=(command_line(),),
            **_places(options),
        )
        return catalog.merged(added).to_json()

    store.update_json(CATALOG, with_command)


def _devices(store: Store) -> set[str]:
    """Kinds of devices that finished cells of a folder ran on."""
    return {str(record.cell.get("device", "cpu")) for record in store.records()}


class _Places(TypedDict):
    data_dir: str
    data_variable: str


def _places(options: RunOptions) -> _Places:
    """Who named the data directory: the command line, or the environment."""
    by_variable = not options.data_dir and data_folder() is not None
    return {"data_dir": options.data_dir, "data_variable": DATA_VARIABLE if by_variable else ""}


def command_line() -> str:
    """The command as typed, for reports and for resuming."""
    return "python -m bench " + shlex.join(sys.argv[1:])
