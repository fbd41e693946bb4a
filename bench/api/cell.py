"""A cell: one thing that was asked, named by the hash of its question."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Literal, get_args

from bench.api.errors import InvalidSelector

SCHEMA = 1
"""Raised by hand when the meaning of a field changes; part of every id."""

Kind = Literal["quality", "speed", "trial", "analysis"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Task @ backbone @ variant with every setting written out.

    All selectors are canonical text with defaults filled in, so changing a default changes the id.
    """

    kind: Kind
    """`quality` trains and scores, `speed` times a shape, `trial` belongs to a study, `analysis`
    looks at the model of a quality cell."""
    task: str
    """Task selector; for speed cells the shape, `attend[batch=4,...]`."""
    backbone: str
    """Backbone selector; `none` in speed cells."""
    variant: str
    """Variant selector."""
    slot: str
    """The place of the backbone that holds the variant: `cross`, `causal`, `self` or `pool`."""
    protocol: str
    """Training or timing settings as a selector, `adam[...]` or `rounds[...]`."""
    impl: str = "auto"
    """Which code computes the same mathematics."""
    dtype: str = "float32"
    """Parameter and activation type."""
    device: str = "cpu"
    """Device kind: `cpu` or `cuda`."""
    seed: int = 0
    """Draws initialization, data order, dropout and generated data."""
    revisions: str = ""
    """`name:number` of the task, backbone and variant code, joined by spaces."""

    @cached_property
    def id(self) -> str:
        """Twelve hex digits of the SHA-256 of the canonical JSON of every field."""
        canonical = json.dumps(
            {"schema": SCHEMA, **asdict(self)},
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
        )
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """One line for people that `parse_label` reads back."""
        return " / ".join(
            (
                f"{self.kind} {self.task} @ {self.backbone} @ {self.variant}",
                self.slot,
                self.protocol,
                f"{self.impl} {self.dtype} {self.device}",
                f"seed {self.seed}",
                self.revisions,
            )
        )


def parse_label(label: str) -> Cell:
    """Rebuild the cell that printed this label; ids agree."""
    try:
        what, slot, protocol, how, seed, revisions = label.split(" / ")
        kind, _, place = what.partition(" ")
        task, backbone, variant = place.split(" @ ")
        impl, dtype, device = how.split(" ")
        number = int(seed.removeprefix("seed "))
    except ValueError as error:
        raise InvalidSelector(
            f"cannot read the cell label {label!r}; copy a whole label as `bench plan` prints it."
        ) from error
    for known in KINDS:
        if kind == known:
            return Cell(
                kind=known,
                task=task,
                backbone=backbone,
                variant=variant,
                slot=slot,
                protocol=protocol,
                impl=impl,
                dtype=dtype,
                device=device,
                seed=number,
                revisions=revisions,
            )
    raise InvalidSelector(f"no cell kind {kind!r} in {label!r}; known: {', '.join(KINDS)}.")


def cell_from_dict(data: dict[str, object]) -> Cell:
    """Rebuild a stored cell; unknown fields of a newer schema are an error, not a guess."""
    known = {entry.name for entry in fields(Cell)}
    extra = set(data) - known
    if extra:
        raise InvalidSelector(f"stored cell has unknown fields {sorted(extra)}; update the bench.")
    return Cell(**data)  # type: ignore[arg-type]  # values were written by asdict(Cell)
