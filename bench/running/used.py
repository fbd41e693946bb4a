"""What a job has used up to now: the parts that it built, their code, and the data that it read."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.api import registry
from bench.api.loading import loaded_plugins
from bench.running.code_of_cells import CodeOfCells
from bench.running.job import Job
from bench.running.read_files import DataFiles
from bench.training.kept_weights import Origin


@dataclass(frozen=True)
class Used:
    """What is heard of a job while it runs; both sets grow (ADR 17)."""

    job: Job
    parts: set[tuple[str, str]]
    """Axis and name of everything that was built."""
    opened: set[str]
    """Every file that was opened for reading."""
    data_dir: Path | None = None

    @property
    def made(self) -> tuple[str, ...]:
        """`axis:name` of every registered part that was built."""
        return tuple(sorted(f"{axis}:{name}" for axis, name in self.parts))

    def data(self) -> dict[str, str]:
        """Hashes of the data files that were read, those of the plug-ins that were built too."""
        # no data of the cell, though the run folder may lie beside a plug-in, where files are data
        own = os.path.abspath(self.job.checkpoint)  # noqa: PTH100  as files that are opened are named
        opened = self.opened - {own}
        modules = {registry.find(axis, name).module for axis, name in self.parts}
        for name, plugin in loaded_plugins().items():
            opened |= plugin.opened if name in modules else frozenset()
        return DataFiles(self.data_dir).hashes(opened)

    def origin(self) -> Origin:
        """What has made the network of the cell, with the parts that were built by name."""
        (cell,) = self.job.cells
        return Origin(code=CodeOfCells().digest(cell, self.made), data=self.data())

    def facts(self) -> dict[str, object]:
        """What a training must share with another one that goes on from where it was."""
        return {"made": [*self.made], "machine": self.job.machine, **asdict(self.origin())}

    def agrees(self, facts: Mapping[str, Any]) -> bool:
        """Whether a training that left these facts is this one: its code, data and machine."""
        (cell,) = self.job.cells
        return (
            facts.get("machine") == self.job.machine
            and facts["code"] == CodeOfCells().digest(cell, facts["made"]) != ""
            and not DataFiles(self.data_dir).changed(facts["data"])
        )
