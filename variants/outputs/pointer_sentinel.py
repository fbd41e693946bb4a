"""Pointer sentinel: one softmax over recent words and a sentinel for the vocabulary.

Merity, Xiong, Bradbury & Socher, 2017, "Pointer sentinel mixture models",
https://arxiv.org/abs/1609.07843, section 2; the loss of the gate is section 2.4.

Deviations: the states are those of any decoder, not of an LSTM, and queries and keys both come from
its last layer. The gate's loss is weighted and is not part of the reported likelihood.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.output import OutputSizes
from bench.api.registry import Citation, DefaultTask, register
from bench.api.source import Tree
from bench.api.trace import Emit, Trace
from variants.outputs.copy_scores import (
    NEVER,
    log_matches,
    log_softmax,
    log_words,
    oracle_vocabulary,
    scatter_rows,
)
from variants.outputs.recent_states import (
    RecallingOutput,
    RecentStates,
    extended,
    known_words,
    recent_states,
)
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class PointerSentinelConfig(Config):
    """Options of the pointer sentinel."""

    window: Annotated[int, IntRange(1, 1000, log=True)] = 100
    """Words that can be pointed at, the last one read included."""
    gate_loss: Annotated[float, FloatRange(0.0, 2.0)] = 1.0
    """Weight of -log(gate + weight on the right words) beside the likelihood."""

    def __post_init__(self) -> None:
        """Check window and weight."""
        if self.window < 1 or self.gate_loss < 0:
            raise InvalidConfig(
                "pointer_sentinel: window must be at least 1 and gate_loss at least 0, "
                f"got {self.window} and {self.gate_loss}."
            )


class Pointed(NamedTuple):
    """Logarithms of the pointer softmax."""

    places: Float[Tensor, "B L N"]
    """Weight of every earlier word; `NEVER` outside the window."""
    gate: Float[Tensor, "B L"]
    """Weight of the sentinel."""


@register(
    "output",
    "pointer_sentinel",
    title="Pointer sentinel",
    config=PointerSentinelConfig,
    citation=Citation(
        text="Merity et al., 2017", url="https://arxiv.org/abs/1609.07843", where="section 2"
    ),
    cost=1.5,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Merity et al. report lower perplexity of texts (Penn Treebank with 0.9 million words, "
        "WikiText-2 with 2 million), most of all for rare words that have stood in the text "
        "before. Every value of this task is a frequent word of a small vocabulary, and attention "
        "alone recalls nearly all of them, so a pointer has nothing to add."
    ),
)
class PointerSentinelOutput(RecallingOutput):
    """p(w) = g p_vocab(w) + sum of a_i over x_i = w, a = softmax([q.h_i; q.s]), g = a_sentinel.

    q = tanh(W h + b); time O(T min(T, window) D).
    """

    starts = {"sentinel": 0.0}

    def __init__(self, config: PointerSentinelConfig, sizes: OutputSizes) -> None:
        super().__init__(config, sizes)
        self.window = config.window
        self.gate_loss = config.gate_loss
        self.query = nn.Linear(sizes.states, sizes.states)
        self.sentinel = nn.Parameter(torch.zeros(sizes.states))

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Zero probability for extra ids."""
        return self._mixed(trace, emit, batch, recent_states(trace, batch, self.sizes))

    def step(
        self, trace: Trace, emit: Emit, batch: Batch, words: Int[Tensor, "B 1"], carried: Tree
    ) -> tuple[Float[Tensor, "B 1 VX"], Tree]:
        """The same for the last of the input words so far."""
        recent, after = extended(trace, known_words(words, self.sizes), carried, self.window)
        return self._mixed(trace, emit, batch, recent), after

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T"]:
        """The mixture at the scored targets; an extra id is trained as UNK."""
        picked = batch.mask
        targets = known_words(batch.targets, self.sizes)
        recent = recent_states(trace, batch, self.sizes)
        pointed = self._point(trace.states, recent)
        copied = log_matches(pointed.places, recent.words, targets)[picked]
        known = emit(trace.states[picked], trace.context[picked], trace.embedded[picked])
        known = log_softmax(known).gather(-1, targets[picked].unsqueeze(-1)).squeeze(-1)
        return scatter_rows(picked, -torch.logaddexp(pointed.gate[picked] + known, copied))

    def own_losses(self, trace: Trace, emit: Emit, batch: Batch) -> dict[str, Float[Tensor, ""]]:
        """The gate's: the sentinel should be sure where no word in the window is right."""
        if self.gate_loss == 0:
            return {}
        recent = recent_states(trace, batch, self.sizes)
        pointed = self._point(trace.states, recent)
        targets = known_words(batch.targets, self.sizes)
        copied = log_matches(pointed.places, recent.words, targets)
        losses = -torch.logaddexp(pointed.gate, copied)[batch.mask]
        return {"gate": self.gate_loss * losses.sum() / batch.mask.sum().clamp(min=1)}

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """Step by step: the sentinel's share of the vocabulary, and the places' of their words."""
        steps = []
        for t in range(trace.states.shape[1]):
            gate, places = self._oracle_pointer(trace, batch, t)
            logits = emit(trace.states[0, t], trace.context[0, t], trace.embedded[0, t])
            words = [gate * p for p in oracle_vocabulary(logits, batch.num_extra)]
            for word, share in places:
                words[word] = words[word] + share
            steps.append(torch.stack(words))
        return torch.stack(steps)

    def _oracle_pointer(
        self, trace: Trace, batch: Batch, t: int
    ) -> tuple[Tensor, list[tuple[int, Tensor]]]:
        """The sentinel's share of the softmax, and each earlier word with its own."""
        query = torch.tanh(self.query.weight @ trace.states[0, t] + self.query.bias)
        seen = range(max(0, t - self.window + 1), t + 1)
        raised = [torch.exp(query @ trace.states[0, i]) for i in seen]
        sentinel = torch.exp(query @ self.sentinel)
        total = sum(raised, sentinel)
        inputs = batch.inputs[0].tolist()
        words = [inputs[i] if inputs[i] < self.sizes.vocab else self.sizes.unk for i in seen]
        return sentinel / total, [(w, r / total) for w, r in zip(words, raised, strict=True)]

    def oracle_own_losses(
        self, trace: Trace, emit: Emit, batch: Batch
    ) -> dict[str, Float[Tensor, ""]]:
        """Sum over scored steps of -log(gate + what points at the right word)."""
        if self.gate_loss == 0:
            return {}
        total = torch.zeros_like(trace.states[0, 0, 0])
        for t, word in enumerate(batch.targets[0].tolist()):
            if not batch.mask[0, t]:
                continue
            right = word if word < self.sizes.vocab else self.sizes.unk
            gate, places = self._oracle_pointer(trace, batch, t)
            total = total - torch.log(sum((p for w, p in places if w == right), gate))
        return {"gate": self.gate_loss * total}

    def _mixed(
        self, trace: Trace, emit: Emit, batch: Batch, recent: RecentStates
    ) -> Float[Tensor, "B L VX"]:
        pointed = self._point(trace.states, recent)
        known = log_softmax(emit(trace.states, trace.context, trace.embedded))
        copied = log_words(pointed.places, recent.words, known.shape[-1])
        mixed = torch.logaddexp(pointed.gate.unsqueeze(-1) + known, copied)
        if not batch.num_extra:
            return mixed
        return functional.pad(mixed, (0, batch.num_extra), value=float("-inf"))

    def _point(self, states: Float[Tensor, "B L D"], recent: RecentStates) -> Pointed:
        query = torch.tanh(self.query(states))
        scores = at_least_single(query @ recent.states.mT)
        allowed = recent.allowed(states.shape[1], 0, self.window - 1)
        scores = torch.where(allowed, scores, NEVER)
        sentinel = at_least_single(query @ self.sentinel)
        logs = log_softmax(torch.cat((scores, sentinel.unsqueeze(-1)), -1))
        return Pointed(torch.where(allowed, logs[..., :-1], NEVER), logs[..., -1])
