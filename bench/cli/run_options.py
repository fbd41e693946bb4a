"""What the command line says: what to run, and where and how."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.api.cell import LARGEST_SEED
from bench.api.data_folder import data_folder
from bench.api.errors import InvalidConfig, UnknownName
from bench.running.quality_cells import fewest_seeds
from bench.running.request import MOST_SEEDS, OF_TRAINING, Request
from results.looks import Looks
from results.row import STATUSES

DECIDED = "decided"
"""What `--until` may say."""


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
    reuse: str = ""
    """Run folder or pack whose finished cells are taken."""
    retry: tuple[str, ...] = ()
    """Statuses whose cells are run again."""
    keep_old: bool = False
    """Whether results of other code or data stay, marked and not ranked."""
    until: str = ""
    """`decided` adds seeds where something is undecided; empty for the same seeds everywhere."""
    most_seeds: int = 21
    """Seeds of a variant, at most, where they are added."""
    probes: str = ""
    """Probes for every trained model, separated by commas, or `all`."""
    fail_on: tuple[str, ...] = ("red", "failed")
    """What ends the command with exit code 1."""
    keep_models: bool = False
    inline: bool = False
    """Whether to work in this process."""
    as_json: bool = False

    def __post_init__(self) -> None:
        """Check the closed choices, before any folder is opened."""
        super().__post_init__()
        if not (self.quality or self.speed or self.cells):
            raise InvalidConfig(
                "--no-quality and --no-speed leave nothing to do; leave out one of them."
            )
        if self.shape and not self.speed:
            raise InvalidConfig("--shape says what is timed; leave out --shape, or --no-speed.")
        if self.seeds and not self.quality and not self.until:
            raise InvalidConfig(
                "--seeds says how often variants are trained; leave out --seeds, or --no-quality."
            )
        if not (self.quality or self.cells):
            self._refuse_what_trains()
        for status in self.retry:
            if status not in STATUSES:
                raise UnknownName.among("status", status, STATUSES)

    def _refuse_what_trains(self) -> None:
        for name in (*OF_TRAINING, "probes", "keep_models"):
            if getattr(self, name):
                typed = f"--{name.replace('_', '-')}"
                raise InvalidConfig(
                    f"{typed} is about training; leave out {typed}, or --no-quality."
                )

    @property
    def plugin_paths(self) -> tuple[str, ...]:
        """Plug-in files by whole paths, under which another folder finds them, too."""
        return tuple(str(Path(one).absolute()) for one in self.plugin)

    @property
    def folder(self) -> Path:
        """Where results go."""
        return Path(self.out or f"runs/{self.preset}")

    @property
    def paired_seeds(self) -> range:
        """Seeds of quality cells; with `--until` those of the first look.

        A look counts for a comparison only if all of its variants have its seeds.
        """
        if not self.until or self.seeds or self.tasks:
            return super().paired_seeds
        return range(self.first_seed, self.first_seed + fewest_seeds(self.preset))

    @cached_property
    def looks(self) -> Looks | None:
        """When scores are looked at to add seeds; None where all seeds are planned at once.

        Raises:
            UnknownName: `--until` says something else.
            InvalidConfig: It asks for what cannot be decided.
        """
        if self.until not in ("", DECIDED):
            raise UnknownName.among("ending of --until", self.until, [DECIDED])
        if not self.until:
            if self.most_seeds != RunOptions.most_seeds:
                raise InvalidConfig("--most-seeds is for --until decided; give both, or --seeds.")
            return None
        self._refuse_what_decides_nothing()
        return Looks(first=len(self.paired_seeds), first_seed=self.first_seed)

    def _refuse_what_decides_nothing(self) -> None:
        first = len(self.paired_seeds)
        if not self.size.ranks:
            raise InvalidConfig(
                f"preset {self.preset} ranks nothing, so nothing can be decided; give another "
                "--preset."
            )
        if self.cells or not self.quality:
            what = "--cell" if self.cells else "--no-quality"
            raise InvalidConfig(f"--until decided trains a whole plan; leave out {what}.")
        if first < 2:
            raise InvalidConfig(
                "one seed decides nothing; give --seeds 2 or more for a first look."
            )
        if not first <= self.most_seeds <= MOST_SEEDS:
            raise InvalidConfig(
                f"--most-seeds must be from {first}, the seeds of the first look, to {MOST_SEEDS}; "
                f"it is {self.most_seeds}. Give --most-seeds, or fewer --seeds."
            )
        if self.first_seed + self.most_seeds - 1 > LARGEST_SEED:
            raise InvalidConfig(
                f"a seed is at most {LARGEST_SEED}; the first of up to {self.most_seeds} is "
                f"{self.first_seed}."
            )

    @cached_property
    def data_directory(self) -> Path | None:
        """The folder of `--data-dir`; None where it was not given.

        Raises:
            DataUnavailable: It is no folder.
        """
        return data_folder(Path(self.data_dir)) if self.data_dir else None
