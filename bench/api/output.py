"""The output: from the states and contexts of a decoder to words."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bench.api.axes import Axis
from bench.api.batch import Batch
from bench.api.config import Config
from bench.api.has_capabilities import HasCapabilities
from bench.api.source import Memory, Tree
from bench.api.trace import Emit, Trace


class OutputSizes(NamedTuple):
    """What an output must know to make its parameters."""

    vocab: int
    states: int
    context: int
    embedded: int
    unk: int
    source: int = 0
    """Width of the states of the first source; 0 where there is none."""
    source_vocab: int = 0
    bos: int = 1
    eos: int = 2


Pair = tuple[Sequence[int], Sequence[int]]
"""Source and target ids of one training example, without padding."""


class Output(HasCapabilities):
    """What the weights do to the output distribution."""

    sequence_only: ClassVar[bool] = False
    """No factor per token, hence no token accuracy (segment-to-segment models)."""
    fit_pairs: int = 0
    """Training pairs that `fit` asks for."""

    def __init__(self, config: Config, sizes: OutputSizes) -> None:
        super().__init__()
        self.sizes = sizes

    @classmethod
    def feed_width(cls, config: Any, source: int) -> int:
        """Width of what `feed` adds to each decoder input, for source states of a width.

        An output that feeds the decoder closes the open loop: its words go through one by one.
        """
        return 0

    def fit(self, pairs: Sequence[Pair]) -> None:
        """Estimate what is counted rather than trained, before the first update."""

    @abstractmethod
    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Log probability of every word of the extended vocabulary."""
        raise NotImplementedError

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B ..."]:
        """Negative log likelihood of each target (nats), zero where the batch does not score.

        Of each whole sequence where the output is `sequence_only`.
        """
        chosen = self.log_probs(trace, emit, batch).gather(-1, batch.targets.unsqueeze(-1))
        return torch.where(batch.mask, -chosen.squeeze(-1), 0.0)

    def own_losses(self, trace: Trace, emit: Emit, batch: Batch) -> dict[str, Float[Tensor, ""]]:
        """Terms that the output adds to its likelihood in training (nats per target token)."""
        return {}

    def read_share(self, trace: Trace, batch: Batch) -> Float[Tensor, "B T"] | None:
        """Share of the source that was read before each word; None where nothing says."""
        return trace.read_share

    def begin(self, batch: Batch, memories: tuple[Memory | None, ...]) -> Tree:
        """What decoding carries from word to word; every leaf has the batch first."""
        return {}

    def feed(
        self, states: Float[Tensor, "B 1 D"], words: Int[Tensor, "B 1"], carried: Tree
    ) -> Float[Tensor, "B 1 F"]:
        """What joins the embedding of `words` (extended ids), which `states` have predicted.

        Nothing (zeros) joins the first word, which nobody has predicted.
        """
        raise NotImplementedError

    def step(
        self,
        trace: Trace,
        emit: Emit,
        batch: Batch,
        words: Int[Tensor, "B 1"],
        carried: Tree,
    ) -> tuple[Float[Tensor, "B 1 VX"], Tree]:
        """`log_probs` of the one decoder step in the trace, whose input was `words` (extended ids).

        An output that looks back at earlier steps overrides this and carries what it needs.
        """
        return self.log_probs(trace, emit, batch), carried

    @abstractmethod
    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """`log_probs` of one example without padding, by plain loops, as probabilities.

        Args:
            trace: A run of one row.
            emit: The decoder's output layer.
            batch: One row; its extra ids are those of the batch that it was taken from.
        """
        raise NotImplementedError

    def oracle_nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "..."]:
        """`nll` of one example without padding, word by word, or of the whole sequence.

        By default that of `oracle`, where a word that nobody can say is trained as UNK.
        """
        found = []
        said = self.oracle(trace, emit, batch)
        for probabilities, word, scored in zip(
            said, batch.targets[0].tolist(), batch.mask[0].tolist(), strict=True
        ):
            unknown = word >= self.sizes.vocab and float(probabilities[word].detach()) == 0
            chosen = probabilities[self.sizes.unk if unknown else word]
            found.append(-torch.log(chosen) if scored else torch.zeros_like(chosen))
        return torch.stack(found)

    def oracle_own_losses(
        self, trace: Trace, emit: Emit, batch: Batch
    ) -> dict[str, Float[Tensor, ""]]:
        """`own_losses` of one example without padding, in nats: not divided by its targets."""
        return {}


OUTPUTS = Axis[type[Output]]("output")
