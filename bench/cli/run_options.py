"""What the command line says."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.api.errors import InvalidConfig
from bench.api.registry import PLAIN
from bench.running.request import Request
from tasks.data.files import data_folder


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Everything the command line says, as typed; what was asked is also kept in spec.json."""

    variants: str = "all"
    tasks: str = ""
    backbone: str = ""
    slot: str = ""
    preset: str = "quick"
    minutes: float = 0.0
    seeds: int = 0
    first_seed: int = 0
    training: str = ""
    baseline: str = PLAIN
    device: str = "cpu"
    dtype: str = "float32"
    impl: str = "auto"
    jobs: int = 0
    plugin: tuple[str, ...] = ()
    quality: bool = True
    speed: bool = True
    verify: bool = True
    cells: tuple[str, ...] = ()
    spec: str = ""
    out: str = ""
    data_dir: str = ""
    retry: tuple[str, ...] = ()
    probes: str = ""
    keep_models: bool = False
    inline: bool = False
    as_json: bool = False

    @property
    def jobs_at_once(self) -> int:
        """Processes at once.

        Raises:
            InvalidConfig: The number asked for is negative.
        """
        if self.jobs < 0:
            raise InvalidConfig(f"jobs must be >= 0, and 0 is one a core; got {self.jobs}.")
        return self.jobs or os.cpu_count() or 1

    @cached_property
    def request(self) -> Request:
        """What the planner reads."""
        return Request(
            variants=self.variants,
            tasks=self.tasks,
            backbone=self.backbone,
            slot=self.slot,
            preset=self.preset,
            minutes=self.minutes,
            seeds=self.seeds,
            first_seed=self.first_seed,
            protocol=self.training,
            baseline=self.baseline,
            device=self.device,
            dtype=self.dtype,
            impl=self.impl,
            jobs=self.jobs_at_once,
            speed=self.speed,
            quality=self.quality,
            plugins=self.plugin,
            data_dir=self.data_dir,
        )

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
