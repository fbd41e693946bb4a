"""Lexicon interpolation: translations of the attended words are mixed with the model's own.

Arthur, Neubig & Nakamura, 2016, "Incorporating discrete translation lexicons into neural machine
translation", https://arxiv.org/abs/1606.02006, sections 3.1 and 3.2, equation 8.

Deviations: those of `lexicon_bias`. `gate=state` lets the coefficient depend on decoder state and
context; the paper learns one number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.output import Output, OutputSizes, Pair
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.trace import Emit, Trace
from variants.outputs.copy_scores import FLOOR, log_softmax, oracle_vocabulary, scatter_rows
from variants.outputs.lexicon import Lexicon
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class LexiconLinearConfig(Config):
    """Options of the lexicon in a linear mixture."""

    gate: Literal["scalar", "state"] = "scalar"
    """What the coefficient lambda is: one learned number, or read from state and context."""
    start: Annotated[float, FloatRange(0.05, 0.95)] = 0.5
    """Coefficient of the lexicon before training."""
    pairs: Annotated[int, IntRange(100, 100_000, log=True)] = 5000
    """Training pairs that the lexicon is estimated on."""
    rounds: Annotated[int, IntRange(1, 20)] = 5
    """Rounds of expectation maximization."""
    keep: Annotated[int, IntRange(1, 64, log=True)] = 16
    """Translations that a source word keeps."""

    def __post_init__(self) -> None:
        """Check that there is a lexicon and a mixture."""
        if not 0 < self.start < 1 or min(self.pairs, self.rounds, self.keep) < 1:
            raise InvalidConfig(
                "lexicon_linear: start must be in (0, 1), pairs, rounds and keep at least 1, "
                f"got {self.start}, {self.pairs}, {self.rounds}, {self.keep}."
            )


@register(
    "output",
    "lexicon_linear",
    config=LexiconLinearConfig,
    citation=Citation(
        text="Arthur et al., 2016",
        url="https://arxiv.org/abs/1606.02006",
        where="section 3.2, equation 8",
    ),
)
class LexiconLinearOutput(Output):
    """lambda L_F a_t + (1 - lambda) softmax(logits); O(T S K) beside the vocabulary's."""

    # weights that do not sum to one would lose the lexicon's share of probability
    needs = frozenset({"weights", "simplex", "source_states"})

    def __init__(self, config: LexiconLinearConfig, sizes: OutputSizes) -> None:
        super().__init__(config, sizes)
        self.rounds = config.rounds
        self.fit_pairs = config.pairs
        self.lexicon = Lexicon(sizes, config.keep)
        inputs = sizes.states + sizes.context if config.gate == "state" else 0
        self.weight = nn.Parameter(torch.zeros(inputs))
        self.bias = nn.Parameter(torch.tensor(config.start).logit())
        self.starts = {"weight": 0.0, "bias": math.log(config.start / (1 - config.start))}

    def fit(self, pairs: Sequence[Pair]) -> None:
        """Estimate the lexicon."""
        self.lexicon.fit(pairs, self.rounds)

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Zero probability for extra ids."""
        found = self.lexicon(at_least_single(trace.weights), batch.sources[0].tokens)
        known = log_softmax(emit(trace.states, trace.context, trace.embedded))
        gate = self._gate(trace.states, trace.context).unsqueeze(-1)
        mixed = _mix(gate, found, known)
        if not batch.num_extra:
            return mixed
        return functional.pad(mixed, (0, batch.num_extra), value=float("-inf"))

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T"]:
        """The mixture at the scored targets; an extra id is trained as UNK."""
        picked = batch.mask
        targets = torch.where(batch.targets >= self.sizes.vocab, self.sizes.unk, batch.targets)
        weights = at_least_single(trace.weights)
        found = self.lexicon.at(weights, batch.sources[0].tokens, targets)[picked]
        states, context = trace.states[picked], trace.context[picked]
        known = log_softmax(emit(states, context, trace.embedded[picked]))
        known = known.gather(-1, targets[picked].unsqueeze(-1)).squeeze(-1)
        return scatter_rows(picked, -_mix(self._gate(states, context), found, known))

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """Word by word, in probabilities."""
        steps = []
        for t, weights in enumerate(trace.weights[0]):
            read = [*trace.states[0, t], *trace.context[0, t]][: len(self.weight)]
            logit = sum((w * x for w, x in zip(self.weight, read, strict=True)), self.bias)
            gate = 1 / (1 + torch.exp(-logit))
            lexical = self.lexicon.oracle(weights, batch.sources[0].tokens[0])
            logits = emit(trace.states[0, t], trace.context[0, t], trace.embedded[0, t])
            known = oracle_vocabulary(logits, batch.num_extra)
            words = [
                gate * (p if p > FLOOR else 0 * p + FLOOR) + (1 - gate) * own
                for p, own in zip(lexical, known[: len(lexical)], strict=True)
            ]
            steps.append(torch.stack(words + known[len(lexical) :]))
        return torch.stack(steps)

    def _gate(self, states: Tensor, context: Tensor) -> Tensor:
        """Logit of lambda."""
        if not len(self.weight):
            return self.bias.expand(states.shape[:-1])
        return torch.cat((states, context), -1) @ self.weight + self.bias


def _mix(gate: Tensor, found: Tensor, known: Tensor) -> Tensor:
    """Log of the mixture, from the logit of the gate, a probability and a log probability."""
    gate = at_least_single(gate)
    lexical = functional.logsigmoid(gate) + found.clamp_min(FLOOR).log()
    return torch.logaddexp(lexical, functional.logsigmoid(-gate) + known)


register_recipe(
    "lexicon_linear",
    Recipe(axes={"score": "additive", "output": "lexicon_linear"}, main="output"),
    module=__name__,
    title="Lexicon in a linear mixture",
    citation=Citation(
        text="Arthur et al., 2016", url="https://arxiv.org/abs/1606.02006", where="section 3.2"
    ),
    cost=1.3,
    default_task=DefaultTask(task="transduction[rule=dict]"),
    deviations="those of the output `lexicon_linear` and of the additive score.",
    does_not_show=(
        "Arthur et al. report 2.0 to 2.3 BLEU more from English to Japanese, with about 400,000 "
        "sentence pairs, by better translation of rare content words. This task scores strings "
        "longer than those of training up to the first error, so attention to a wrong word "
        "decides, and the lexicon then translates that word with more certainty."
    ),
)
