"""An output that copies or points, as a layer of a user's own decoder."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.batch import Batch, Text
from bench.api.call import Attended
from bench.api.output import Output
from bench.api.source import Memory
from bench.api.trace import Trace


class OutputLayer(nn.Module):
    """Log probabilities of words from decoder states, contexts and attention weights.

    A linear map gives the scores of the vocabulary; the output mixes them with copies. Words of a
    source that the vocabulary lacks have ids from its size on, one for each word of the batch.
    """

    def __init__(self, output: Output) -> None:
        super().__init__()
        sizes = output.sizes
        self.output = output
        self.vocabulary = nn.Linear(sizes.states + sizes.context + sizes.embedded, sizes.vocab)

    def forward(
        self,
        states: Float[Tensor, "B T D"],
        context: Float[Tensor, "B T Dv"],
        embedded: Float[Tensor, "B T De"],
        attended: Attended,
        memory: Memory,
        *,
        extended: Int[Tensor, "B S"],
        num_extra: int = 0,
    ) -> Float[Tensor, "B T VX"]:
        """Log probability of every word of the extended vocabulary.

        Args:
            states: Decoder states.
            context: What the attention returned.
            embedded: Decoder inputs.
            attended: What `attend` returned beside the context.
            memory: What `prepare` returned.
            extended: Source ids, in the extended vocabulary.
            num_extra: How many ids beyond the vocabulary the sources of the batch have.

        Raises:
            Refused: The output needs something that the attention does not give.
        """
        mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
        given = self._batch(extended, memory, mask, num_extra)
        trace = Trace(states, context, embedded, (attended,), (memory,))
        return self.output.log_probs(trace, self._emit, given)

    def nll(
        self,
        states: Float[Tensor, "B T D"],
        context: Float[Tensor, "B T Dv"],
        embedded: Float[Tensor, "B T De"],
        attended: Attended,
        memory: Memory,
        *,
        targets: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        extended: Int[Tensor, "B S"],
        num_extra: int = 0,
    ) -> Float[Tensor, "B T"]:
        """Negative log likelihood of each target (nats), zero where `mask` is False.

        It costs less than gathering from `forward`; see `forward` for the other arguments.
        """
        given = self._batch(extended, memory, mask, num_extra, targets)
        trace = Trace(states, context, embedded, (attended,), (memory,))
        return self.output.nll(trace, self._emit, given)

    @staticmethod
    def _batch(
        extended: Int[Tensor, "B S"],
        memory: Memory,
        mask: Bool[Tensor, "B T"],
        num_extra: int,
        targets: Int[Tensor, "B T"] | None = None,
    ) -> Batch:
        words = torch.zeros_like(mask, dtype=torch.long) if targets is None else targets
        source = (Text(extended, memory.source.mask),)
        return Batch(source, words, words, mask, extended=extended, num_extra=num_extra)

    def _emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(states.shape[:-1], context.shape[:-1], embedded.shape[:-1])
        parts = [part.expand(*shape, -1) for part in (states, context, embedded)]
        return self.vocabulary(torch.cat(parts, -1))
