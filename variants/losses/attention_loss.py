"""A loss on attention as a callable of a user's own training loop."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.batch import Batch, Text
from bench.api.call import Attended
from bench.api.loss import Loss, LossInputs, LossSizes
from bench.api.source import Memory, Source
from bench.api.trace import Trace
from variants.losses.handed_over import Given, refuse_building, refuse_call


class AttentionLoss(nn.Module):
    """A term (nats per target token) from what `Attention.attend` returned.

    What it carries from step to step, such as the running mean of a reward, is kept in `carry`;
    save it with a checkpoint where training must go on exactly.

    Raises:
        Refused: The loss has no meaning outside of a backbone, or needs a width that is missing.
    """

    def __init__(self, loss: Loss, sizes: LossSizes) -> None:
        super().__init__()
        refuse_building(loss, sizes)
        self.loss = loss
        self.sizes = sizes
        self.loss.attach(sizes)
        self.carry: dict[str, Tensor] = loss.init()

    def forward(
        self,
        attended: Attended | Sequence[Attended],
        memory: Memory | None,
        *,
        mask: Bool[Tensor, "B T"],
        nll: Float[Tensor, "B T"] | None = None,
        targets: Int[Tensor, "B T"] | None = None,
        gold: Float[Tensor, "B T S"] | None = None,
        states: Float[Tensor, "B T D"] | None = None,
        embedded: Float[Tensor, "B T De"] | None = None,
        progress: float = 1.0,
    ) -> Float[Tensor, ""]:
        """Compute the term of one batch.

        Args:
            attended: What `attend` returned for the targets of the batch; a list for several
                layers.
            memory: What `prepare` returned.
            mask: True where a target is scored.
            nll: Negative log likelihood of each target, for losses that reward it.
            targets: Ids of the targets, with 2 for the end, for losses that leave it out.
            gold: Gold alignment, for losses that need one; rows sum to one or to zero.
            states: Decoder states, for losses that predict from them.
            embedded: Decoder inputs, for losses that predict from them.
            progress: Share of training done, for losses that start late.

        Raises:
            Refused: The loss needs something that the attention does not give, or that was not
                handed over in the widths that it was built with.
        """
        layers = (attended,) if isinstance(attended, Attended) else tuple(attended)
        handed = Given(layers[0], memory, nll, targets, gold, states, embedded)
        refuse_call(self.loss, self.sizes, handed)
        rows, steps = mask.shape
        like = layers[0].output
        blank = like.new_zeros(rows, steps, 0)
        trace = Trace(
            blank if states is None else states,
            blank,
            blank if embedded is None else embedded,
            layers,
            (memory,) * len(layers),
        )
        words = torch.zeros_like(mask, dtype=torch.long) if targets is None else targets
        sources = () if memory is None else (_text(memory.source),)
        batch = Batch(sources, words, words, mask, gold=gold)
        likelihood = like.new_zeros(rows, steps) if nll is None else nll
        given = LossInputs(trace, likelihood, batch, progress)
        term, carry = self.loss(given, self.carry)
        if self.training:
            self.carry = {name: value.detach() for name, value in carry.items()}
        return term


def _text(source: Source) -> Text:
    """The words of a source, as a batch has them."""
    # ids that no loss takes for a special word, where the source has none
    ids = torch.full_like(source.key_mask(), 2**31, dtype=torch.long)
    return Text(ids if source.tokens is None else source.tokens, source.mask)
