"""An output that copies or points, as a layer of a user's own decoder."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.batch import Batch, Text
from bench.api.call import Attended
from bench.api.errors import InvalidConfig, Refused
from bench.api.output import Output, Pair
from bench.api.source import Memory
from bench.api.trace import Trace
from variants.outputs.recent_states import RecallingOutput

NO_WORD = -1
"""Id where there is no word, which is none of any vocabulary."""


class OutputLayer(nn.Module):
    """Log probabilities of words from decoder states, contexts and attention weights.

    A linear map gives the scores of the vocabulary; the output mixes them with copies. Words of a
    source that the vocabulary lacks have ids from its size on, one for each word of the batch.
    An output that counts training pairs, such as a lexicon, gets them by `fit`. One that says words
    of earlier steps again, such as `pointer_sentinel`, gets all steps in every call, and `words`.
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
                the vocabulary on are unknown words. The beginning (id 1), the end (id 2) and the
                unknown word may stand in both, and are not counted.
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
        words: Int[Tensor, "B T"] | None = None,
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
            words: Ids of the decoder inputs, those that each state has read last, not those that it
                says. Outputs need them that say words of earlier steps again.

        Raises:
            Refused: The output needs something that the attention does not give, pairs that `fit`
                has not got, or `words`.
            InvalidConfig: There is another number of `words` than of states.
        """
        self._refuse_uncounted()
        mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
        given = self._batch(extended, memory, mask, num_extra, words)
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
        words: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B ..."]:
        """Negative log likelihood of each target (nats), zero where `mask` is False.

        That of each whole sequence where an output has no factor for each word, as `ssnt`. It costs
        less than gathering from `forward`; see `forward` for the other arguments. Under `train()`
        it is what the output trains: `neural_cache` leaves its cache out. Nothing of `own_losses`
        is in it.
        """
        self._refuse_uncounted()
        given = self._batch(extended, memory, mask, num_extra, words, targets)
        trace = Trace(states, context, embedded, (attended,), (memory,))
        return self.output.nll(trace, self._emit, given)

    def own_losses(
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
        words: Int[Tensor, "B T"] | None = None,
    ) -> dict[str, Float[Tensor, ""]]:
        """Terms that the output adds to its likelihood in training (nats per scored target).

        By name, with their weights: the gate of `pointer_sentinel`; most outputs add none. They are
        trained beside the mean of `nll`, which has the same arguments.
        """
        self._refuse_uncounted()
        given = self._batch(extended, memory, mask, num_extra, words, targets)
        trace = Trace(states, context, embedded, (attended,), (memory,))
        return self.output.own_losses(trace, self._emit, given)

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
        words: Int[Tensor, "B T"] | None,
        targets: Int[Tensor, "B T"] | None = None,
    ) -> Batch:
        self._check_words(words, mask)
        none = torch.full_like(mask, NO_WORD, dtype=torch.long)
        heard, said = (none if given is None else given for given in (words, targets))
        sizes = self.output.sizes
        known = torch.where(extended < sizes.vocab, extended, sizes.unk)
        source = (Text(known, memory.source.mask),)
        return Batch(source, heard, said, mask, extended=extended, num_extra=num_extra)

    def _check_words(self, words: Int[Tensor, "B T"] | None, mask: Bool[Tensor, "B T"]) -> None:
        """Refuse to guess what was said before, or to know it of another number of steps.

        Raises:
            Refused: The output reads it, and nobody has said it.
            InvalidConfig: It is that of other states.
        """
        if words is None and isinstance(self.output, RecallingOutput):
            raise Refused(
                f"{type(self.output).__name__} says words of earlier steps again; pass words=, the "
                "ids of the decoder inputs, one for each state."
            )
        if words is not None and words.shape != mask.shape:
            raise InvalidConfig(
                f"words must have one id for each state, shape {tuple(mask.shape)}, got "
                f"{tuple(words.shape)}."
            )

    def _emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(states.shape[:-1], context.shape[:-1], embedded.shape[:-1])
        parts = [part.expand(*shape, -1) for part in (states, context, embedded)]
        return self.vocabulary(torch.cat(parts, -1))
