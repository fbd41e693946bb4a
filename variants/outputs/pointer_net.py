"""Pointer network: the output distribution is the attention itself.

Vinyals, Fortunato & Jaitly, 2015, "Pointer networks", https://arxiv.org/abs/1506.03134, section
2.3, equation 3.

Deviations: the output is the word at a position, so positions of the same word add up; the paper
outputs the position itself. A word that the source does not hold has probability 1e-20 instead of
0, in log space. Heads are averaged.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.batch import Batch
from bench.api.output import Output
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.trace import Emit, Trace
from variants.outputs.copy_scores import FLOOR, copy_ids
from variants.precision import at_least_single


@register(
    "output",
    "pointer_net",
    citation=Citation(
        text="Vinyals et al., 2015",
        url="https://arxiv.org/abs/1506.03134",
        where="section 2.3, equation 3",
    ),
)
class PointerNetOutput(Output):
    """p(w) = sum of the weights of the source words that are w; no vocabulary, O(T S)."""

    # weights that do not sum to one are no distribution
    needs = frozenset({"weights", "source_tokens", "simplex"})
    gives = frozenset({"reads_source"})

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Scatter the weights to the words they point at."""
        weights = at_least_single(trace.weights)
        ids = copy_ids(batch, "pointer_net").unsqueeze(1).expand_as(weights)
        shape = (*weights.shape[:2], self.sizes.vocab + batch.num_extra)
        zeros = torch.zeros(shape, dtype=weights.dtype, device=weights.device)
        return zeros.scatter_add(2, ids, weights).clamp_min(FLOOR).log()

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T"]:
        """Minus the log of the weight on the positions that hold the target."""
        ids = copy_ids(batch, "pointer_net")
        same = ids.unsqueeze(1) == batch.targets.unsqueeze(-1)
        pointed = torch.where(same, at_least_single(trace.weights), 0.0).sum(-1)
        return torch.where(batch.mask, -pointed.clamp_min(FLOOR).log(), 0.0)

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """Position by position."""
        assert batch.extended is not None, "a pointer needs words to point at"
        words = self.sizes.vocab + batch.num_extra
        steps = []
        for weights in trace.weights[0]:
            found = [torch.zeros_like(weights[0])] * words
            for word, weight in zip(batch.extended[0].tolist(), weights, strict=True):
                found[word] = found[word] + weight
            steps.append(torch.stack([p if p > 0 else p + FLOOR for p in found]))
        return torch.stack(steps)


register_recipe(
    "pointer_net",
    Recipe(axes={"score": "additive", "output": "pointer_net"}, main="output"),
    module=__name__,
    title="Pointer network",
    citation=Citation(
        text="Vinyals et al., 2015", url="https://arxiv.org/abs/1506.03134", where="section 2.3"
    ),
    cost=1.1,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
    does_not_show=(
        "Vinyals et al. report convex hulls and tours of points with an LSTM of 512 units, where "
        "an answer is a position and the number of positions changes. Here an answer is a word of "
        "a fixed vocabulary, which an ordinary output can say as well."
    ),
    deviations="those of the output `pointer_net` and of the additive score.",
)
