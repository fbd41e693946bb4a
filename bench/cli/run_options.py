"""What the command line says: what to run, and where and how."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.running.request import Request
from tasks.data.files import data_folder


@dataclass(frozen=True, kw_only=True)
class RunOptions(Request):
    """A request and where and how it is done, as typed; what was asked is kept in spec.json."""

    verify: bool = True
    """Whether to certify the variants first."""
    cells: tuple[str, ...] = ()
    """Labels of cells to run in the place of a plan."""
    spec: str = ""
    """File that says what to run."""
    trust: bool = False
    """Whether to load what the spec names without asking."""
    out: str = ""
    """Run folder; empty for one named after the preset."""
    retry: tuple[str, ...] = ()
    """Statuses whose cells are run again."""
    keep_old: bool = False
    """Whether results of other code or data stay, marked and not ranked."""
    probes: str = ""
    """Probes for every trained model, separated by commas, or `all`."""
    fail_on: tuple[str, ...] = ("red", "failed")
    """What ends the command with exit code 1."""
    keep_models: bool = False
    inline: bool = False
    """Whether to work in this process."""
    as_json: bool = False

    @property
    def folder(self) -> Path:
        """Where results go."""
        return Path(self.out or f"runs/{self.preset}")

    @cached_property
    def data_directory(self) -> Path | None:
        """The folder of `--data-dir`; None where it was not given.

        Raises:
            DataUnavailable: It is no folder.
        """
        return data_folder(Path(self.data_dir)) if self.data_dir else None
