"""Hard attention, marginalized: the exact likelihood when each word is read from one key.

Wu, Shapiro & Cotterell, 2018, "Hard non-monotonic attention for character-level transduction",
https://arxiv.org/abs/1808.10024; Deng et al., 2018, "Latent alignment and variational attention",
https://arxiv.org/abs/1807.03756.

Deviations: a query without any key reads the zero vector, as it does under soft attention. Only
scored positions are projected to the vocabulary, which changes no value.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.output import Output
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.trace import Emit, Trace
from variants.outputs.copy_scores import NEVER, log_softmax, oracle_vocabulary, scatter_rows
from variants.outputs.latent_alignment import in_chunks, values_as_contexts

CHUNK_LOGITS = 2**22
"""Most logits alive at once: 16 MB in float32."""


@register(
    "output",
    "hard_exact",
    citation=Citation(text="Wu et al., 2018", url="https://arxiv.org/abs/1808.10024"),
)
class HardExactOutput(Output):
    """log sum_s w_ts p(y_t | s): mixes predictions where soft attention mixes values."""

    needs = frozenset({"open_loop", "weights", "simplex"})
    unsupported = {
        "two_sources": "hard_exact sums over the keys of one source, not over pairs of keys."
    }

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """The mixture over all words; zero probability for extra ids."""
        picked = torch.ones_like(trace.states[..., 0], dtype=torch.bool)
        known = torch.cat(list(self._chunks(trace, emit, picked, None)))
        known = known.unflatten(0, picked.shape)
        if not batch.num_extra:
            return known
        return functional.pad(known, (0, batch.num_extra), value=float("-inf"))

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T"]:
        """The mixture at the targets; an extra id is trained as UNK."""
        targets = batch.targets[batch.mask]
        targets = torch.where(targets >= self.sizes.vocab, self.sizes.unk, targets)
        losses = -torch.cat(list(self._chunks(trace, emit, batch.mask, targets)))
        return scatter_rows(batch.mask, losses)

    def _chunks(
        self, trace: Trace, emit: Emit, picked: Tensor, targets: Int[Tensor, " N"] | None
    ) -> Iterator[Tensor]:
        """Mixtures of some picked positions after others; training recomputes all but one chunk."""
        # a zero vector more, which no key gives
        value = functional.pad(values_as_contexts(trace, "hard_exact"), (0, 0, 0, 1))
        log_weights = _log_weights(trace.weights)[picked]
        states, embedded = trace.states[picked], trace.embedded[picked]
        rows = picked.nonzero()[:, 0]
        size = max(1, CHUNK_LOGITS // (value.shape[1] * self.sizes.vocab))

        def mix(chunk: slice) -> Tensor:
            return _mixture(
                emit(states[chunk, None], value[rows[chunk]], embedded[chunk, None]),
                log_weights[chunk],
                None if targets is None else targets[chunk],
            )

        return in_chunks(rows.shape[0], size, mix)

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """Key by key, in probabilities; a query without any key reads the zero vector."""
        memory = trace.memories[0]
        assert memory is not None, "hard_exact reads keys"
        steps = []
        for t in range(trace.states.shape[1]):
            weights, values = trace.weights[0, t], memory.source.value[0, 0]
            if not weights.detach().any():
                weights, values = torch.ones_like(weights[:1]), torch.zeros_like(values[:1])
            found: Tensor | None = None
            for weight, value in zip(weights, values, strict=True):
                logits = emit(trace.states[0, t], value, trace.embedded[0, t])
                part = weight * torch.stack(oracle_vocabulary(logits, batch.num_extra))
                found = part if found is None else found + part
            assert found is not None, "a source has keys"
            steps.append(found)
        return torch.stack(steps)


def _log_weights(weights: Float[Tensor, "B T S"]) -> Float[Tensor, "B T S+1"]:
    """Logarithms; a row of zeros puts all on the zero vector."""
    read = weights > 0
    nothing = torch.where(read.any(-1, keepdim=True), NEVER, 0.0).to(weights.dtype)
    logs = torch.where(read, torch.where(read, weights, 1.0).log(), NEVER)
    return torch.cat((logs, nothing), -1)


def _mixture(
    logits: Float[Tensor, "N S V"],
    log_weights: Float[Tensor, "N S"],
    targets: Int[Tensor, " N"] | None,
) -> Tensor:
    """Log of the mean prediction: of one word a row, or of every word."""
    known = log_softmax(logits)
    if targets is None:
        return torch.logsumexp(known + log_weights.unsqueeze(-1), 1)
    index = targets[:, None, None].expand(-1, known.shape[1], 1)
    return torch.logsumexp(known.gather(-1, index).squeeze(-1) + log_weights, 1)


register_recipe(
    "hard_exact",
    Recipe(axes={"score": "additive", "output": "hard_exact"}, main="output"),
    module=__name__,
    title="Hard attention, marginalized exactly",
    citation=Citation(text="Wu et al., 2018", url="https://arxiv.org/abs/1808.10024"),
    cost=1.6,
    default_task=DefaultTask(task="transduction[rule=copy]"),
    deviations="those of the output `hard_exact` and of the additive score.",
    does_not_show=(
        "Wu et al. report better inflection, transliteration and pronunciation than soft "
        "attention, with an encoder of two layers and states of width 400. Their words are about "
        "as long as those of training. Here strings are longer, and attention by content, hard or "
        "soft, does not find places that it has not seen."
    ),
)
