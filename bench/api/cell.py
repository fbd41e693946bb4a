"""A cell: one thing that was asked, named by the hash of its question."""

import hashlib
import json
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import Literal, get_args

from bench.api.errors import InvalidConfig, InvalidSelector
from bench.api.identity import first_text

SCHEMA = 2
"""Raised by hand when the meaning of a field changes; part of every id."""

Kind = Literal["quality", "speed", "trial", "analysis", "exact"]
KINDS: tuple[Kind, ...] = get_args(Kind)
RUN_KINDS = frozenset[Kind]({"quality", "speed", "analysis"})
"""Kinds of cells that `bench run --cell` makes; studies, calibration and claims make others."""
LARGEST_SEED = 2**32 - 1
"""Generators take 32 bits of a seed."""
SELECTORS = ("task", "backbone", "variant")
"""Fields that name registered things."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Task @ backbone @ variant with every setting that is not the default (ADR 10).

    All selectors are canonical text: what has its default is left out, so a new option or a new
    axis changes no id. Where a default has changed since it was added, the text says the value,
    and the id leaves out the one that was the default first.
    """

    kind: Kind
    """`quality` trains and scores, `speed` times a shape, `trial` belongs to a study, `analysis`
    looks at the model of a quality cell, `exact` computes a claim."""
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
    """`name:number` of all code of the task, backbone and variant that is no longer in its first
    revision, joined by spaces."""

    def __post_init__(self) -> None:
        """Check the seed: a larger one would draw what a smaller one draws."""
        if not 0 <= self.seed <= LARGEST_SEED:
            raise InvalidConfig(f"a seed is from 0 to {LARGEST_SEED}, got {self.seed}.")

    @cached_property
    def id(self) -> str:
        """Twelve hex digits of the SHA-256 of the canonical JSON of what is not the default."""
        asked = {
            field.name: first_text(field.name, str(value)) if field.name in SELECTORS else value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }
        canonical = json.dumps(
            {"schema": SCHEMA, **asked}, sort_keys=True, separators=(",", ":"), allow_nan=False
        )
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """One line for people that `parse_label` reads back: what is not the default.

        >>> Cell(kind="quality", task="recall[pairs=8]", backbone="rnn_seq2seq", variant="dot",
        ...      slot="cross", protocol="adam[steps=9]", seed=3, revisions="dot:2").label
        'quality recall[pairs=8] @ rnn_seq2seq @ dot / cross / adam[steps=9] / seed=3 / \
revisions=dot:2'
        """
        further = (
            f"{field.name}={value}"
            for field in fields(self)
            if field.default is not MISSING
            and (value := getattr(self, field.name)) != field.default
        )
        what = f"{self.kind} {self.task} @ {self.backbone} @ {self.variant}"
        return " / ".join((what, self.slot, self.protocol, *further))


def parse_label(label: str) -> Cell:
    """Rebuild the cell that printed this label; ids agree.

    Raises:
        InvalidSelector: The text is no label of a cell.
    """
    try:
        what, slot, protocol, *further = label.split(" / ")
        kind, _, place = what.partition(" ")
        task, backbone, variant = place.split(" @ ")
        given = dict(one.split("=", 1) for one in further)
        number = int(given.pop("seed", "0"))
    except ValueError as error:
        raise _unreadable(label) from error
    optional = {field.name for field in fields(Cell) if field.default is not MISSING}
    if not set(given) <= optional:
        raise _unreadable(label)
    if kind not in KINDS:
        raise InvalidSelector(f"no cell kind {kind!r} in {label!r}; known: {', '.join(KINDS)}.")
    asked = {"task": task, "backbone": backbone, "variant": variant, "slot": slot}
    return cell_from_dict({"kind": kind, **asked, "protocol": protocol, "seed": number, **given})


def _unreadable(label: str) -> InvalidSelector:
    return InvalidSelector(
        f"cannot read the cell label {label!r}; copy a whole label from `bench plan --json` "
        "or from details.md of a run."
    )


def cell_from_dict(data: dict[str, object]) -> Cell:
    """Rebuild a stored cell.

    Raises:
        InvalidSelector: It has fields that only a newer version knows.
    """
    known = {entry.name for entry in fields(Cell)}
    extra = set(data) - known
    if extra:
        raise InvalidSelector(f"stored cell has unknown fields {sorted(extra)}; update the bench.")
    return Cell(**data)  # type: ignore[arg-type]  # values were written by asdict(Cell)
