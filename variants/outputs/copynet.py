"""CopyNet: one softmax over the vocabulary and over the positions of the source.

Gu, Lu, Li & Li, 2016, "Incorporating copying mechanism in sequence-to-sequence learning",
https://arxiv.org/abs/1603.06393, section 3.2, equations 4 to 8; the selective read is section 3.3,
equation 9.

Deviations: generate scores are the output layer's logits, which the paper computes from the decoder
state alone; copy scores too use the state that the decoder gives to its output layer. The selective
read is joined to the embedding of the last output word, wherever the decoder reads that; it is zero
for the first word. Under projected heads, the source states are the values of all heads side by
side. A target beyond the vocabulary that the source does not hold is trained as UNK.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.config import Config
from bench.api.output import Output, OutputSizes
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.source import Memory, Tree, leaf
from bench.api.trace import Emit, Trace
from variants.normalizers.masked_softmax import masked_softmax
from variants.outputs.copy_scores import (
    NEVER,
    copy_ids,
    log_matches,
    log_words,
    scatter_rows,
    source_states,
)
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class CopyNetConfig(Config):
    """Options of CopyNet."""

    selective_read: bool = True
    """Whether the decoder reads the states of the positions that the last word was copied from."""


@register(
    "output",
    "copynet",
    config=CopyNetConfig,
    citation=Citation(
        text="Gu et al., 2016",
        url="https://arxiv.org/abs/1603.06393",
        where="section 3.2, equations 4 to 8",
    ),
)
class CopyNetOutput(Output):
    """p(w) = (e^generate(w) + sum of e^copy(j) over source words x_j = w) / Z, in log space.

    copy(j) = tanh(h_j W_c) s_t. Time O(T S D) beside the vocabulary's; with the selective read the
    decoder goes word by word.
    """

    needs = frozenset({"source_tokens", "source_states"})
    gives = frozenset({"reads_source"})
    unsupported = {"two_sources": "copynet copies from one source."}

    def __init__(self, config: CopyNetConfig, sizes: OutputSizes) -> None:
        super().__init__(config, sizes)
        self.to_key = nn.Linear(sizes.source, sizes.states, bias=False)

    @classmethod
    def feed_width(cls, config: CopyNetConfig, source: int) -> int:
        """The selective read is a mean of source states."""
        return source if config.selective_read else 0

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Add the exponentials of all copies of a word to its own, then normalize."""
        known = at_least_single(emit(trace.states, trace.context, trace.embedded))
        known = functional.pad(known, (0, batch.num_extra), value=NEVER)
        copied = log_words(self._copy_scores(trace), copy_ids(batch, "copynet"), known.shape[-1])
        return torch.log_softmax(torch.logaddexp(known, copied), -1)

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T"]:
        """The same for the targets alone: no distribution over the extended vocabulary is made."""
        picked = batch.mask
        scores, ids = self._copy_scores(trace), copy_ids(batch, "copynet")
        copied = log_matches(scores, ids, batch.targets)[picked]
        known = emit(trace.states[picked], trace.context[picked], trace.embedded[picked])
        known = at_least_single(known)
        targets = batch.targets[picked]
        outside = targets >= self.sizes.vocab
        index = torch.where(outside, self.sizes.unk, targets).unsqueeze(-1)
        said = known.gather(-1, index).squeeze(-1)
        said = torch.where(outside & (copied > NEVER), NEVER, said)
        total = torch.logaddexp(known.logsumexp(-1), scores.logsumexp(-1)[picked])
        return scatter_rows(picked, total - torch.logaddexp(said, copied))

    def begin(self, batch: Batch, memories: tuple[Memory | None, ...]) -> Tree:
        """The input of the selective read, the same at every step."""
        states, mask = source_states(memories, self.sizes, "copynet")
        ids = torch.where(mask, copy_ids(batch, "copynet"), -1)
        return {"key": torch.tanh(self.to_key(states)), "states": states, "ids": ids}

    def feed(
        self, states: Float[Tensor, "B 1 D"], words: Int[Tensor, "B 1"], carried: Tree
    ) -> Float[Tensor, "B 1 F"]:
        """Mean over the positions of the word, by the probability of a copy; or zeros."""
        scores = states @ leaf(carried, "key").mT
        held = (leaf(carried, "ids") == words).unsqueeze(1)
        share = masked_softmax(scores.unsqueeze(1), held.unsqueeze(1)).squeeze(1)
        return share @ leaf(carried, "states")

    def _copy_scores(self, trace: Trace) -> Float[Tensor, "B T S"]:
        states, mask = source_states(trace.memories, self.sizes, "copynet")
        scores = at_least_single(trace.states @ torch.tanh(self.to_key(states)).mT)
        return torch.where(mask.unsqueeze(1), scores, NEVER)

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """Position by position; one softmax over words and places."""
        memory = trace.memories[0]
        assert memory is not None, "copynet reads the source"
        assert batch.extended is not None, "copynet copies source words"
        weight = self.to_key.weight
        steps = []
        for t in range(trace.states.shape[1]):
            logits = emit(trace.states[0, t], trace.context[0, t], trace.embedded[0, t])
            found = [torch.exp(x) for x in logits]
            found += [torch.zeros_like(found[0])] * batch.num_extra
            for place, word in enumerate(batch.extended[0].tolist()):
                state = memory.source.value[0, :, place].flatten()
                key = [torch.tanh(line @ state) for line in weight]
                score = sum(
                    (k * s for k, s in zip(key, trace.states[0, t], strict=True)),
                    torch.zeros_like(key[0]),
                )
                found[word] = found[word] + torch.exp(score)
            total = sum(found, torch.zeros_like(found[0]))
            steps.append(torch.stack([p / total for p in found]))
        return torch.stack(steps)


register_recipe(
    "copynet",
    Recipe(axes={"score": "additive", "output": "copynet"}, main="output"),
    module=__name__,
    title="CopyNet",
    citation=Citation(
        text="Gu et al., 2016", url="https://arxiv.org/abs/1603.06393", where="section 3"
    ),
    cost=2.0,
    default_task=DefaultTask(task="oov_copy"),
    deviations=(
        "those of the output `copynet` and of the additive score; the decoder is the backbone's."
    ),
)
