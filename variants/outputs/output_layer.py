"""An output that copies or points, as a layer of a user's own decoder."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.batch import Batch, Text
from bench.api.call import Attended
from bench.api.errors import Refused
from bench.api.output import Output, Pair
from bench.api.source import Memory
from bench.api.trace import Trace


class OutputLayer(nn.Module):
    """Log probabilities of words from decoder states, contexts and attention weights.

    A linear map gives the scores of the vocabulary; the output mixes them with copies. Words of a
    source that the vocabulary lacks have ids from its size on, one for each word of the batch.
    An output that counts training pairs, such as a lexicon, gets them by `fit`.
    """

    def __init__(self, output: Output) -> None:
        super().__init__()
        sizes = output.sizes
        self.output = output
        self.vocabulary = nn.Linear(sizes.states + sizes.context + sizes.embedded, sizes.vocab)
        # what an output counts is in its buffers, whether `fit` or a loaded state wrote it
        counts = output.buffers() if output.fit_pairs else ()
        self._uncounted = tuple(buffer.clone() for buffer in counts)

    def fit(self, pairs: Sequence[Pair]) -> None:
        """Let the output count training pairs, once and before training; most outputs count none.

        What is counted is part of the state of this layer, so that loading the state is enough.

        Args:
            pairs: Source ids and target ids of each pair, without padding; ids from the size of
                the vocabulary on are unknown words.
        """
        sizes = self.output.sizes
        known = [
            ([word if word < sizes.vocab else sizes.unk for word in source], target)
            for source, target in pairs
        ]
        self.output.fit(known)

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
            Refused: The output needs something that the attention does not give, or pairs that
                `fit` has not got.
        """
        self._refuse_uncounted()
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
    ) -> Float[Tensor, "B ..."]:
        """Negative log likelihood of each target (nats), zero where `mask` is False.

        That of each whole sequence where an output has no factor for each word, as `ssnt`. It costs
        less than gathering from `forward`; see `forward` for the other arguments.
        """
        self._refuse_uncounted()
        given = self._batch(extended, memory, mask, num_extra, targets)
        trace = Trace(states, context, embedded, (attended,), (memory,))
        return self.output.nll(trace, self._emit, given)

    def _refuse_uncounted(self) -> None:
        """Refuse to answer from tables that know nothing yet.

        Raises:
            Refused: They are as they were built.
        """
        if not self._uncounted:
            return
        now = zip(self.output.buffers(), self._uncounted, strict=True)
        if all(torch.equal(buffer.to(first), first) for buffer, first in now):
            raise Refused(
                f"{type(self.output).__name__} estimates its table from training pairs and has got "
                "none; call fit(pairs) on this layer first, with the source ids and the target ids "
                "of each pair."
            )
        self._uncounted = ()

    def _batch(
        self,
        extended: Int[Tensor, "B S"],
        memory: Memory,
        mask: Bool[Tensor, "B T"],
        num_extra: int,
        targets: Int[Tensor, "B T"] | None = None,
    ) -> Batch:
        words = torch.zeros_like(mask, dtype=torch.long) if targets is None else targets
        sizes = self.output.sizes
        known = torch.where(extended < sizes.vocab, extended, sizes.unk)
        source = (Text(known, memory.source.mask),)
        return Batch(source, words, words, mask, extended=extended, num_extra=num_extra)

    def _emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(states.shape[:-1], context.shape[:-1], embedded.shape[:-1])
        parts = [part.expand(*shape, -1) for part in (states, context, embedded)]
        return self.vocabulary(torch.cat(parts, -1))
