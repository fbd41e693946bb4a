"""Training that was killed goes on where it was: what it needs for that, in one file.

Data are not stored. They are drawn again from the seed, and the batches that were seen are passed
over.
"""

import pickle
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.api.batch import Batch
from bench.api.metric import Scored
from bench.api.plain_text import message_of
from bench.api.whole_file import written_whole
from bench.training.evaluate import Evaluated
from bench.training.training import Training
from results.row import Row

EVERY_S = 60.0
"""Least wall time between two writings of a file (s). Shorter trainings write none."""
DAMAGED = (OSError, EOFError, RuntimeError, ValueError, KeyError, TypeError, pickle.PickleError)
"""What reading a file raises that is not whole."""
UNWRITTEN = (OSError, RuntimeError)
"""What writing a file raises; torch raises the second one of a full disk."""


class OtherData(Exception):
    """The data have changed since a training began."""


@dataclass
class Checkpoint:
    """The file of one unfinished training."""

    path: Path
    every_s: float = EVERY_S
    facts: Callable[[], Mapping[str, object]] = dict
    """Tells what made the training up to now, for whoever may go on from the file."""
    _last: float = field(default_factory=time.monotonic)
    _targets: Tensor | None = None
    _warned: bool = False

    def save(self, run: Training, rows: Sequence[Row], batch: Batch) -> None:
        """Write down where a training is, if it was not done a moment ago.

        Where it cannot be written, training goes on, and the last file that could stays.

        Args:
            run: Between two updates.
            rows: What it has measured up to now.
            batch: The last one it has seen.
        """
        if time.monotonic() - self._last < self.every_s:
            return
        measured = [asdict(row) for row in rows]
        facts = dict(self.facts())
        kept = {**_progress(run), "rows": measured, "targets": batch.targets, "facts": facts}
        try:
            with written_whole(self.path, durable=False) as draft:
                torch.save(kept, draft)
        except UNWRITTEN as error:
            self._warn(error)
        self._last = time.monotonic()

    def _warn(self, error: Exception) -> None:
        """Say once why nothing was written; it may be so at every validation."""
        if not self._warned:
            warnings.warn(
                f"this training is not kept in {self.path} ({message_of(error)}); it goes on, but "
                "one that is killed now loses what it has done since the last file.",
                RuntimeWarning,
                stacklevel=3,
            )
        self._warned = True

    def stored_facts(self) -> Mapping[str, Any] | None:
        """What was told when the file was written; None where there is none, or none that is whole.

        A file of an earlier version tells nothing.
        """
        try:
            # mapped, so that the weights are not read for it
            kept = torch.load(self.path, map_location="cpu", weights_only=True, mmap=True)
            return dict(kept.get("facts", {}))
        except DAMAGED:
            return None

    def load(self, run: Training) -> list[Row] | None:
        """Bring a fresh training to where the file says; returns the rows that were measured.

        A file that is not there, or not whole, changes nothing.
        """
        try:
            kept = torch.load(self.path, map_location=_device(run), weights_only=True)
            rows = [Row(**row) for row in kept.pop("rows")]
            best = _best(kept.pop("best"))
            self._targets = kept.pop("targets")
            kept.pop("facts")
        except DAMAGED:
            return None
        run.system.load_state_dict(kept.pop("system"))
        run.optimizer.load_state_dict(kept.pop("optimizer"))
        random, cuda = kept.pop("random")
        torch.set_rng_state(random.cpu())
        if cuda is not None:
            torch.cuda.set_rng_state(cuda.cpu())
        for name, value in best.items():
            setattr(run.patience, name, value)
        for name, value in kept.items():
            setattr(run, name, value)
        return rows

    def compare(self, batch: Batch) -> None:
        """Hold the last batch that was passed over against the one of the file.

        Raises:
            OtherData: It is another one. The file is removed.
        """
        if self._targets is None or not torch.equal(batch.targets, self._targets):
            self.remove()
            raise OtherData

    def remove(self) -> None:
        """Forget a training that has ended."""
        self.path.unlink(missing_ok=True)


PLAIN = ("carry", "step", "seconds", "tokens", "losses", "step_seconds", "curve", "looked")
"""Fields of a training that are numbers, or tensors by name."""


def _progress(run: Training) -> dict[str, Any]:
    patience = run.patience
    validated = patience.validated
    best = {
        "waited": patience.waited,
        "halved": patience.halved,
        "step": patience.step,
        "value": patience.value,
        "weights": patience.weights,
        "validated": validated and asdict(replace(validated, answers=())),
    }
    on_cuda = _device(run).type == "cuda"
    cuda = torch.cuda.get_rng_state() if on_cuda else None
    return {
        **{name: getattr(run, name) for name in PLAIN},
        "system": run.system.state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "random": (torch.get_rng_state(), cuda),
        "best": best,
    }


def _best(stored: Mapping[str, Any]) -> dict[str, Any]:
    validated = stored["validated"]
    if validated is None:
        return dict(stored)
    scores = tuple(Scored(**one) for one in validated["scores"])
    return {**stored, "validated": Evaluated(**{**validated, "scores": scores})}


def _device(run: Training) -> torch.device:
    return next(run.system.parameters()).device
