"""Softmax output: the softmax of the output layer's logits.

Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, appendix A.2.2.

Deviations: none. Only scored positions are projected to the vocabulary, which changes no value.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.output import Output
from bench.api.registry import Citation, register
from bench.api.trace import Emit, Trace
from variants.outputs.copy_scores import oracle_vocabulary
from variants.outputs.cross_entropy import cross_entropy
from variants.precision import at_least_single

SLICE = 512
"""Tokens projected to the vocabulary at once: the logits stay in cache, which measured faster."""


@register(
    "output",
    "softmax",
    citation=Citation(
        text="Bahdanau et al., 2015",
        url="https://arxiv.org/abs/1409.0473",
        where="appendix A.2.2",
    ),
)
class SoftmaxOutput(Output):
    """log softmax of the logits; words beyond the vocabulary count as UNK and are never right."""

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Zero probability for extra ids."""
        logits = at_least_single(emit(trace.states, trace.context, trace.embedded))
        known = torch.log_softmax(logits, -1)
        if not batch.num_extra:
            return known
        return functional.pad(known, (0, batch.num_extra), value=float("-inf"))

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T"]:
        """Cross entropy of the scored positions only; an extra id is trained as UNK."""
        # rows picked by number: their gradient is an index_add, much cheaper than a boolean mask's
        chosen = batch.mask.flatten().nonzero().squeeze(1)
        targets = batch.targets.flatten()[chosen]
        targets = torch.where(targets >= self.sizes.vocab, self.sizes.unk, targets)
        read = [
            x.flatten(0, 1).index_select(0, chosen)
            for x in (trace.states, trace.context, trace.embedded)
        ]
        parts = zip(*(x.split(SLICE) for x in read), targets.split(SLICE), strict=True)
        losses = torch.cat([cross_entropy(emit(*part), wanted) for *part, wanted in parts])
        full = losses.new_zeros(batch.mask.numel())
        return full.index_copy(0, chosen, losses).view_as(batch.mask)

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """Word by word."""
        steps = zip(trace.states[0], trace.context[0], trace.embedded[0], strict=True)
        found = [oracle_vocabulary(emit(*step), batch.num_extra) for step in steps]
        return torch.stack([torch.stack(words) for words in found])
