"""Neural cache: words that followed similar states are likely to follow again; nothing is trained.

Grave, Joulin & Usunier, 2017, "Improving neural language models with a continuous cache",
https://arxiv.org/abs/1612.04426, section 3, equations 2 and 3.

Deviations: the states are those of any decoder. The cache starts empty with every sequence, where
the paper's runs on through a text; while it is empty only the vocabulary's distribution counts.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.config import Config, FloatRange, IntRange, Legal
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
class NeuralCacheConfig(Config):
    """Options of the neural cache."""

    theta: Annotated[float, FloatRange(0.01, 2.0, log=True), Legal(0)] = 0.3
    """Factor of the dot products between states; small values flatten the cache."""
    weight: Annotated[float, FloatRange(0.01, 0.9), Legal(0)] = 0.1
    """lambda, share of the cache in the mixture."""
    window: Annotated[int, IntRange(10, 10_000, log=True)] = 2000
    """States that are kept."""
    in_training: bool = False
    """Whether the likelihood that is trained has the cache in it, unlike the paper's."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.theta < 0 or not 0 <= self.weight < 1 or self.window < 1:
            raise InvalidConfig(
                "neural_cache: theta must be at least 0, weight in [0, 1) and window at least 1, "
                f"got {self.theta}, {self.weight}, {self.window}."
            )


@register(
    "output",
    "neural_cache",
    title="Neural cache",
    config=NeuralCacheConfig,
    citation=Citation(
        text="Grave et al., 2017",
        url="https://arxiv.org/abs/1612.04426",
        where="section 3, equations 2 and 3",
    ),
    cost=1.1,
    default_task=DefaultTask(task="recall"),
    does_not_show=(
        "Grave et al. report lower perplexity of texts (82.3 to 72.1 on Penn Treebank, 99.3 to "
        "68.9 on WikiText-2), in which rare words come back. Here the baseline recalls nearly "
        "every pair, which leaves no room above it. It is significantly better on `wikitext2_mini` "
        "of `families`."
    ),
)
class NeuralCacheOutput(RecallingOutput):
    """(1 - lambda) p_vocab(w) + lambda p_cache(w), p_cache ~ sum of e^(theta h_t h_i), x_i+1 = w.

    No parameters; time O(T min(T, window) D).
    """

    def __init__(self, config: NeuralCacheConfig, sizes: OutputSizes) -> None:
        super().__init__(config, sizes)
        self.config = config

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Zero probability for extra ids."""
        return self._mixed(trace, emit, batch, recent_states(trace, batch, self.sizes))

    def step(
        self, trace: Trace, emit: Emit, batch: Batch, words: Int[Tensor, "B 1"], carried: Tree
    ) -> tuple[Float[Tensor, "B 1 VX"], Tree]:
        """The same for the last of the input words so far."""
        # the oldest state in the window needs the word after it, hence none more than the window
        heard = known_words(words, self.sizes)
        recent, after = extended(trace, heard, carried, self.config.window)
        return self._mixed(trace, emit, batch, recent), after

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T"]:
        """The mixture at the scored targets; an extra id counts as UNK."""
        picked = batch.mask
        targets = known_words(batch.targets, self.sizes)
        known = emit(trace.states[picked], trace.context[picked], trace.embedded[picked])
        known = log_softmax(known).gather(-1, targets[picked].unsqueeze(-1)).squeeze(-1)
        if not self.training or self.config.in_training:
            recent = recent_states(trace, batch, self.sizes)
            scores = self._scores(trace.states, recent)
            cached = log_matches(scores, _following(recent), targets)
            known = self._mix(known, cached[picked], _filled(scores)[picked])
        return scatter_rows(picked, -known)

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """Step by step, each over the steps before it."""
        return torch.stack(
            [self._oracle_step(trace, emit, batch, t) for t in range(trace.states.shape[1])]
        )

    def _oracle_step(
        self, trace: Trace, emit: Emit, batch: Batch, t: int, *, cached: bool = True
    ) -> Float[Tensor, " VX"]:
        logits = emit(trace.states[0, t], trace.context[0, t], trace.embedded[0, t])
        words = oracle_vocabulary(logits, batch.num_extra)
        earlier = range(max(0, t - self.config.window), t)
        if not cached or not earlier:
            return torch.stack(words)
        alike = {i: trace.states[0, t] @ trace.states[0, i] for i in earlier}
        raised = {i: torch.exp(self.config.theta * x) for i, x in alike.items()}
        total, share = sum(raised.values(), torch.zeros_like(logits[0])), self.config.weight
        words = [(1 - share) * p for p in words]
        for i in earlier:
            word = int(batch.inputs[0, i + 1])
            word = word if word < self.sizes.vocab else self.sizes.unk
            words[word] = words[word] + share * raised[i] / total
        return torch.stack(words)

    def oracle_nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, " T"]:
        """Of the mixture, or of the vocabulary alone where training leaves the cache out."""
        cached = self.config.in_training or not self.training
        found = []
        for t, word in enumerate(batch.targets[0].tolist()):
            said = self._oracle_step(trace, emit, batch, t, cached=cached)
            chance = said[word if word < self.sizes.vocab else self.sizes.unk]
            found.append(-torch.log(chance) if batch.mask[0, t] else torch.zeros_like(chance))
        return torch.stack(found)

    def _mixed(
        self, trace: Trace, emit: Emit, batch: Batch, recent: RecentStates
    ) -> Float[Tensor, "B L VX"]:
        scores = self._scores(trace.states, recent)
        known = log_softmax(emit(trace.states, trace.context, trace.embedded))
        cached = log_words(scores, _following(recent), known.shape[-1])
        mixed = self._mix(known, cached, _filled(scores).unsqueeze(-1))
        if not batch.num_extra:
            return mixed
        return functional.pad(mixed, (0, batch.num_extra), value=float("-inf"))

    def _scores(
        self, states: Float[Tensor, "B L D"], recent: RecentStates
    ) -> Float[Tensor, "B L N"]:
        """Log of what each earlier state gives to the word after it, normalized."""
        scores = at_least_single(states @ recent.states.mT) * self.config.theta
        allowed = recent.allowed(states.shape[1], 1, self.config.window)
        scores = torch.where(allowed, scores, NEVER)
        return torch.where(allowed, scores.log_softmax(-1), NEVER)

    def _mix(self, known: Tensor, cached: Tensor, filled: Tensor) -> Tensor:
        share = self.config.weight
        if share == 0:
            return known
        mixed = torch.logaddexp(math.log1p(-share) + known, math.log(share) + cached)
        return torch.where(filled, mixed, known)


def _filled(scores: Float[Tensor, "B L N"]) -> Tensor:
    """Whether there is anything in the cache."""
    return (scores > NEVER).any(-1)


def _following(recent: RecentStates) -> Int[Tensor, "B N"]:
    """The word after each state; the last has none and is in no cache."""
    return recent.words.roll(-1, 1)
