"""An answer: what a model said to a batch, and what of it a reader of the report is shown."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from bench.api.batch import Batch


@dataclass(frozen=True)
class Answer:
    """What a model said to one batch."""

    batch: Batch
    predicted: Int[Tensor, "B T"] | None = None
    """Best token at every target under teacher forcing."""
    nll: Float[Tensor, "B T"] | None = None
    """Negative log likelihood of the targets (nats), zero where not scored; None where the output
    has no factor per token."""
    generated: tuple[tuple[int, ...], ...] | None = None
    """Decoded output without EOS, where the task decodes."""
    weights: Float[Tensor, "B T S"] | None = None
    """Attention under teacher forcing, averaged over heads."""
    read_shares: tuple[tuple[float, ...], ...] | None = None
    """Share of the source read before each word of a row, EOS included: of the greedy output where
    the task decodes, else of the target. None where attention does not say how far it has read."""
    selected: Float[Tensor, "B S"] | None = None
    """One at tokens of the first source that the encoder selected, where it selects."""
    values: Float[Tensor, "B T K"] | None = None
    """Predicted numbers, where the task regresses."""

    def words(self) -> list[list[int]]:
        """What was said of every row: under teacher forcing where scored, or else greedily."""
        if self.predicted is None:
            return [list(row) for row in self.generated or ()]
        pairs = zip(self.predicted, self.batch.mask, strict=True)
        return [row[kept].tolist() for row, kept in pairs]


class Picture(NamedTuple):
    """What weights can be laid over."""

    gray: list[list[float]]
    """Brightness from 0 to 1, row by row."""
    grid: tuple[int, int]
    """Rows and columns of places that the weights belong to, row by row."""


class Sample(NamedTuple):
    """One example for a reader of the report."""

    source: str
    reference: str
    output: str
