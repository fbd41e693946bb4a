"""Pointer-generator: a gate mixes the vocabulary with copies of the words that are attended to.

See, Liu & Manning, 2017, "Get to the point: summarization with pointer-generator networks",
https://arxiv.org/abs/1704.04368, section 2.2, equations 8 and 9.

Deviations: the mixture is taken in log space, where an absent word is copied with probability 1e-20
instead of 0. A word outside the vocabulary is scored as its copy where the source has it (its
target is then an id beyond the vocabulary) and as a generated UNK only where it has not; UNK itself
is never copied, because sources give their unknown words such ids. Heads are averaged, or the
last ones are picked with `heads`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.config import Config
from bench.api.errors import InvalidConfig, Refused
from bench.api.output import Output, OutputSizes
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.trace import Emit, Trace
from variants.outputs.copy_scores import (
    FLOOR,
    NEVER,
    copy_ids,
    log_softmax,
    oracle_vocabulary,
    scatter_rows,
)


@dataclass(frozen=True, kw_only=True)
class PointerGeneratorConfig(Config):
    """Options of the pointer-generator."""

    force_copy: bool = False
    """Whether words that the source holds are trained as copies alone, as some toolkits do; a word
    is scored by both ways all the same."""
    heads: int = 0
    """Heads whose weights point, counted from the last; 0 takes the mean of all."""

    def __post_init__(self) -> None:
        """Check the number of heads."""
        if self.heads < 0:
            raise InvalidConfig(f"pointer_generator: heads must be at least 0, got {self.heads}.")


@register(
    "output",
    "pointer_generator",
    config=PointerGeneratorConfig,
    citation=Citation(
        text="See et al., 2017",
        url="https://arxiv.org/abs/1704.04368",
        where="section 2.2, equations 8 and 9",
    ),
)
class PointerGeneratorOutput(Output):
    """p_gen P_vocab(w) + (1 - p_gen) sum of the weights of the source words that are w."""

    # weights that sum to more than one would give probabilities above one
    needs = frozenset({"weights", "source_tokens", "simplex"})

    def __init__(self, config: PointerGeneratorConfig, sizes: OutputSizes) -> None:
        super().__init__(config, sizes)
        self.force_copy = config.force_copy
        self.heads = config.heads
        self.gate = nn.Linear(sizes.context + sizes.states + sizes.embedded, 1)

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Scatter the weights to the words they point at, then mix."""
        generate, copy = self._gates(trace.states, trace.context, trace.embedded)
        known = log_softmax(emit(trace.states, trace.context, trace.embedded))
        known = functional.pad(known, (0, batch.num_extra), value=NEVER)
        ids = copy_ids(batch, "pointer_generator").unsqueeze(1).expand(-1, known.shape[1], -1)
        copied = torch.zeros_like(known).scatter_add(2, ids, self._pointed(trace).to(known.dtype))
        return torch.logaddexp(generate + known, copy + copied.clamp_min(FLOOR).log())

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T"]:
        """The same for the targets alone: no distribution over the extended vocabulary is made."""
        picked = batch.mask
        targets = batch.targets[picked]
        parts = (trace.states[picked], trace.context[picked], trace.embedded[picked])
        generate, copy = self._gates(*parts)
        outside = targets >= self.sizes.vocab
        index = torch.where(outside, 0, targets).unsqueeze(-1)
        known = log_softmax(emit(*parts)).gather(-1, index)
        known = torch.where(outside.unsqueeze(-1), NEVER, known)
        same = copy_ids(batch, "pointer_generator").unsqueeze(1) == batch.targets.unsqueeze(-1)
        copied = torch.where(same, self._pointed(trace), 0.0).sum(-1)[picked].unsqueeze(-1)
        if self.force_copy and self.training:
            known = torch.where(same.any(-1)[picked].unsqueeze(-1), NEVER, known)
        copied = copied.to(known.dtype).clamp_min(FLOOR).log()
        losses = -torch.logaddexp(generate + known, copy + copied).squeeze(-1)
        return scatter_rows(picked, losses)

    def _pointed(self, trace: Trace) -> Float[Tensor, "B T S"]:
        """The weights that point."""
        if self.heads == 0:
            return trace.weights
        weights = trace.attended[0].weights
        if weights is None or weights.shape[1] < self.heads:
            found = "no weights" if weights is None else f"{weights.shape[1]} heads"
            raise Refused(f"pointer_generator points with {self.heads} heads, and has {found}.")
        return weights[:, -self.heads :].mean(1)

    def _gates(self, states: Tensor, context: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """Log p_gen and log (1 - p_gen)."""
        logit = self.gate(torch.cat((context, states, embedded), -1))
        return functional.logsigmoid(logit), functional.logsigmoid(-logit)

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """Word by word, in probabilities."""
        steps = []
        for generated, copied in self._oracle_ways(trace, emit, batch):
            steps.append(torch.stack([g + c for g, c in zip(generated, copied, strict=True)]))
        return torch.stack(steps)

    def oracle_nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, " T"]:
        """By both ways; in training with `force_copy` only as a copy where the source has it."""
        found, source = [], copy_ids(batch, "pointer_generator")[0].tolist()
        targets, mask = batch.targets[0].tolist(), batch.mask[0].tolist()
        for t, (generated, copied) in enumerate(self._oracle_ways(trace, emit, batch)):
            word = targets[t]
            forced = self.force_copy and self.training and word in source
            chance = copied[word] if forced else generated[word] + copied[word]
            found.append(-torch.log(chance) if mask[t] else torch.zeros_like(chance))
        return torch.stack(found)

    def _oracle_ways(
        self, trace: Trace, emit: Emit, batch: Batch
    ) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
        """Probability of generating and of copying each word, step by step."""
        weight, bias = self.gate.weight[0], self.gate.bias[0]
        source, heads = copy_ids(batch, "pointer_generator")[0].tolist(), trace.attended[0].weights
        assert heads is not None, "a pointer-generator needs weights"
        pointing = heads[0, -self.heads :] if self.heads else heads[0]
        for t in range(trace.states.shape[1]):
            inputs = [*trace.context[0, t], *trace.states[0, t], *trace.embedded[0, t]]
            logit = sum((w * x for w, x in zip(weight, inputs, strict=True)), bias)
            gate = 1 / (1 + torch.exp(-logit))
            logits = emit(trace.states[0, t], trace.context[0, t], trace.embedded[0, t])
            known = oracle_vocabulary(logits, batch.num_extra)
            copies = [torch.zeros_like(gate)] * len(known)
            for place, word in enumerate(source):
                for weights in pointing:
                    copies[word] = copies[word] + weights[t, place] / len(pointing)
            copied = [c if c > 0 else c + FLOOR for c in copies]
            yield [gate * p for p in known], [(1 - gate) * c for c in copied]


register_recipe(
    "pointer_generator",
    Recipe(axes={"score": "additive", "output": "pointer_generator"}, main="output"),
    module=__name__,
    title="Pointer-generator",
    citation=Citation(
        text="See et al., 2017", url="https://arxiv.org/abs/1704.04368", where="section 2.2"
    ),
    cost=1.1,
    default_task=DefaultTask(task="oov_copy"),
    does_not_show=(
        "See et al. report summaries of news (287,000 articles of CNN and the Daily Mail) with a "
        "ROUGE-1 of 36.4, and of 31.3 without the pointer. Here its mean is higher, but the seeds "
        "do not decide the difference. It is significantly better on `aeslc`, `django` and "
        "`lead_copy` of `families`."
    ),
    deviations=(
        "those of the output `pointer_generator` and of the additive score. The paper's "
        "coverage is a loss of its own."
    ),
)
