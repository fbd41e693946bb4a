"""The catalog of a run folder: what a report must know about names, written beside the rows."""

import os
import shlex
import sys
from typing import Any

from bench.api.resolve import resolve
from bench.cli.run_options import RunOptions
from bench.running.catalog import catalog_of, merge_catalogs, metric_facts
from bench.running.presets import find_preset
from results.store import Store
from tasks.data.files import DATA_VARIABLE


def write_catalog(
    options: RunOptions,
    store: Store,
    names: dict[str, str],
    tasks: dict[str, str],
    extra: dict[str, Any],
) -> None:
    """Write what a report must know of names, beside what earlier runs wrote."""
    found = catalog_of(
        names,
        tasks,
        baseline=resolve(options.baseline).canonical.show(),
        command=command_line(),
        preset=options.preset,
        ranks=find_preset(options.preset).ranks,
        plugins=options.plugin,
        **_places(options),
    )
    for variant, change in extra.get("ablation", {}).items():
        if variant in found["variants"]:
            found["variants"][variant]["ablation"] = change
    found.update({key: value for key, value in extra.items() if key != "ablation"})
    store.write_json("catalog.json", merge_catalogs(store.read_json("catalog.json"), found))


def add_to_catalog(options: RunOptions, store: Store) -> None:
    """Add a command that ran probes on the models of a finished run."""
    added = {"metrics": metric_facts([]), "commands": [command_line()], **_places(options)}
    catalog = store.read_json("catalog.json") or {}
    store.write_json("catalog.json", merge_catalogs(catalog, added))


def _places(options: RunOptions) -> dict[str, str]:
    """Who named the data directory: the command line, or the environment."""
    set_before = not options.data_dir and os.environ.get(DATA_VARIABLE, "")
    return {"data_dir": options.data_dir, "data_variable": DATA_VARIABLE if set_before else ""}


def command_line() -> str:
    """The command as typed, for reports and for resuming."""
    return "python -m bench " + shlex.join(sys.argv[1:])
