"""Convolutional copy attention: a second convolutional head points, and a gate decides to copy.

Allamanis, Peng & Sutton, 2016, "A convolutional attention network for extreme summarization of
source code", https://arxiv.org/abs/1602.03001, section 2.2; constants of the loss are those of the
authors' code.

Deviations: the head has its own layers, where the paper's shares the first two with attention;
generated words come from the decoder's output layer. Where it is scored, a word has the probability
of the mixture, without the constants of the published loss; one that the source does not hold is
copied with probability 1e-20. Layers and padding are those of the score `conv_attention`.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.output import Output, OutputSizes
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.trace import Emit, Trace
from variants.normalizers.masked_softmax import masked_softmax
from variants.outputs.copy_scores import (
    FLOOR,
    NEVER,
    copy_ids,
    log_softmax,
    oracle_vocabulary,
    scatter_rows,
    source_states,
)
from variants.precision import at_least_single
from variants.scores.gated_convolution import (
    EPS,
    GATE_SLOPE,
    SOURCE_SLOPE,
    last_by_channel,
    loop_convolve,
    source_map,
    unit_gate,
)

ADDED = 1e-7
"""Added to the probability of a copy in training."""
NOTHING = -1000.0
"""Log probability of copying in training where there is nothing to copy."""
UNKNOWN = -10.0
"""Added to the log probability of generating UNK in training."""


@dataclass(frozen=True, kw_only=True)
class ConvCopyConfig(Config):
    """Options of convolutional copying."""

    filters1: Annotated[int, IntRange(4, 64, log=True)] = 32
    """Channels of the first layer, k1."""
    filters2: Annotated[int, IntRange(4, 64, log=True)] = 16
    """Channels of the second layer and of the gate, k2."""
    width1: Annotated[int, IntRange(1, 32, log=True)] = 18
    """Width of the first layer, w1 (keys)."""
    width2: Annotated[int, IntRange(1, 32, log=True)] = 19
    """Width of the second layer, w2 (keys)."""
    width3: Annotated[int, IntRange(1, 32, log=True)] = 2
    """Width of the last layer, w3 (keys)."""

    def __post_init__(self) -> None:
        """Check that all sizes are positive."""
        for name, size in vars(self).items():
            if size < 1:
                raise InvalidConfig(f"conv_copy: {name} must be at least 1, got {size}.")


@register(
    "output",
    "conv_copy",
    config=ConvCopyConfig,
    citation=Citation(
        text="Allamanis et al., 2016", url="https://arxiv.org/abs/1602.03001", where="section 2.2"
    ),
)
class ConvCopyOutput(Output):
    """p(w) = lambda sum of kappa_s over x_s = w + (1 - lambda) p_vocab(w).

    kappa = softmax(conv(F_t)), lambda = sigmoid(max_s conv'(F_t)), F_t the gated map of unit norm.
    Time O(S (w1 D k1 + w2 k1 k2)) per source and O(T S k2).
    """

    needs = frozenset({"source_tokens", "source_states"})
    gives = frozenset({"reads_source"})
    unsupported = {"two_sources": "conv_copy copies from one source."}

    def __init__(self, config: ConvCopyConfig, sizes: OutputSizes) -> None:
        super().__init__(config, sizes)
        self.conv1 = nn.Conv1d(sizes.source, config.filters1, config.width1)
        self.conv2 = nn.Conv1d(config.filters1, config.filters2, config.width2)
        self.point = nn.Conv1d(config.filters2, 1, config.width3)
        self.choose = nn.Conv1d(config.filters2, 1, config.width3)
        self.gate_map: nn.Linear | None = None
        if sizes.states != config.filters2:
            self.gate_map = nn.Linear(sizes.states, config.filters2, bias=False)

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Scatter the second head's weights to the words they point at, then mix."""
        kappa, choice = self._point(trace)
        known = log_softmax(emit(trace.states, trace.context, trace.embedded))
        known = functional.pad(known, (0, batch.num_extra), value=NEVER)
        ids = copy_ids(batch, "conv_copy").unsqueeze(1).expand_as(kappa)
        copied = torch.zeros_like(known).scatter_add(2, ids, kappa).clamp_min(FLOOR).log()
        choice = choice.unsqueeze(-1)
        return torch.logaddexp(
            functional.logsigmoid(choice) + copied, functional.logsigmoid(-choice) + known
        )

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T"]:
        """Of the mixture; in training with the published constants."""
        picked = batch.mask
        kappa, choice = self._point(trace)
        same = copy_ids(batch, "conv_copy").unsqueeze(1) == batch.targets.unsqueeze(-1)
        same = same & source_states(trace.memories, self.sizes, "conv_copy")[1].unsqueeze(1)
        copied = torch.where(same, kappa, 0.0).sum(-1)[picked]
        targets = batch.targets[picked]
        outside = targets >= self.sizes.vocab
        index = torch.where(outside, self.sizes.unk, targets).unsqueeze(-1)
        known = emit(trace.states[picked], trace.context[picked], trace.embedded[picked])
        known = log_softmax(known).gather(-1, index).squeeze(-1)
        if self.training:
            held = same.any(-1)[picked]
            log_copy = torch.where(held, (copied + ADDED).log(), NOTHING)
            known = known + UNKNOWN * (index.squeeze(-1) == self.sizes.unk)
        else:
            log_copy = copied.clamp_min(FLOOR).log()
            known = torch.where(outside, NEVER, known)
        choice = choice[picked]
        losses = -torch.logaddexp(
            functional.logsigmoid(choice) + log_copy, functional.logsigmoid(-choice) + known
        )
        return scatter_rows(picked, losses)

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """Word by word, in probabilities."""
        assert batch.extended is not None, "conv_copy copies source words"
        steps = []
        for t in range(trace.states.shape[1]):
            kappa, share = self._oracle_point(trace, t)
            logits = emit(trace.states[0, t], trace.context[0, t], trace.embedded[0, t])
            known = oracle_vocabulary(logits, batch.num_extra)
            copied = [torch.zeros_like(share)] * len(known)
            for weight, word in zip(kappa, batch.extended[0].tolist(), strict=True):
                copied[word] = copied[word] + weight
            steps.append(
                torch.stack(
                    [
                        share * (c if c > 0 else c + FLOOR) + (1 - share) * p
                        for c, p in zip(copied, known, strict=True)
                    ]
                )
            )
        return torch.stack(steps)

    def oracle_nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, " T"]:
        """Of the mixture; in training with the published constants."""
        assert batch.extended is not None, "conv_copy copies source words"
        found, said = [], self.oracle(trace, emit, batch)
        source = batch.extended[0].tolist()
        for t, word in enumerate(batch.targets[0].tolist()):
            chance = said[t, word]
            if self.training:
                kappa, share = self._oracle_point(trace, t)
                logits = emit(trace.states[0, t], trace.context[0, t], trace.embedded[0, t])
                spoken = word if word < self.sizes.vocab else self.sizes.unk
                generated = oracle_vocabulary(logits, 0)[spoken]
                if spoken == self.sizes.unk:
                    generated = generated * math.exp(UNKNOWN)
                copied = [k for k, held in zip(kappa, source, strict=True) if held == word]
                more = share * (sum(copied, ADDED + 0 * share)) if copied else 0.0
                chance = more + (1 - share) * generated
            found.append(-torch.log(chance) if batch.mask[0, t] else torch.zeros_like(chance))
        return torch.stack(found)

    def _oracle_point(self, trace: Trace, t: int) -> tuple[Float[Tensor, " S"], Float[Tensor, ""]]:
        """The three layers one after the other: weights of the places, and the share of copies."""
        memory = trace.memories[0]
        assert memory is not None, "conv_copy reads the source"
        states = memory.source.value[0].transpose(0, 1).flatten(1)
        layer1 = functional.leaky_relu(loop_convolve(self.conv1, states, 0), SOURCE_SLOPE)
        gate = trace.states[0, t]
        gate = gate if self.gate_map is None else self.gate_map.weight @ gate
        gated = loop_convolve(self.conv2, layer1, 0) * functional.leaky_relu(gate, GATE_SLOPE)
        gated = gated / (sum((x * x for x in gated.flatten()), gated.new_zeros(())) + EPS) ** 0.5
        raised = [torch.exp(x) for x in loop_convolve(self.point, gated, 0)[:, 0]]
        shares = [1 / (1 + torch.exp(-x)) for x in loop_convolve(self.choose, gated, 0)[:, 0]]
        best = max(range(len(shares)), key=lambda place: float(shares[place].detach()))
        return torch.stack(raised) / sum(raised, torch.zeros_like(raised[0])), shares[best]

    def _point(self, trace: Trace) -> tuple[Float[Tensor, "B T S"], Float[Tensor, "B T"]]:
        """Weights of the second head, and the logit of copying."""
        states, mask = source_states(trace.memories, self.sizes, "conv_copy")
        layer2 = source_map(self.conv1, self.conv2, states.mT, ~mask.unsqueeze(1))
        gate = trace.states if self.gate_map is None else self.gate_map(trace.states)
        energies = self._read(self.point, layer2, gate)
        kappa = masked_softmax(energies.unsqueeze(1), mask[:, None, None]).squeeze(1)
        choices = at_least_single(self._read(self.choose, layer2, gate))
        return at_least_single(kappa), _largest(choices, mask)

    @staticmethod
    def _read(
        last: nn.Conv1d, layer2: Float[Tensor, "B C S"], gate: Float[Tensor, "B T C"]
    ) -> Float[Tensor, "B T S"]:
        """A last convolution over the gated map of unit norm."""
        mapped = last_by_channel(layer2, last.weight, 1)
        assert last.bias is not None, "the last convolution has a bias"
        unit = unit_gate(gate.unsqueeze(1), mapped.squares)
        return (unit @ mapped.channel.mT).squeeze(1) + last.bias


def _largest(choices: Float[Tensor, "B T S"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B T"]:
    """The surest position; a source without any token has nothing to copy."""
    return torch.where(mask.unsqueeze(1), choices, NEVER).amax(-1)


register_recipe(
    "conv_copy",
    Recipe(
        axes={
            "score": "conv_attention[filters1=32,filters2=16,width1=18,width2=19,width3=2]",
            "output": "conv_copy",
        },
        main="output",
    ),
    module=__name__,
    title="Convolutional attention that copies",
    citation=Citation(
        text="Allamanis et al., 2016", url="https://arxiv.org/abs/1602.03001", where="section 2.2"
    ),
    cost=2.6,
    default_task=DefaultTask(task="oov_copy"),
    deviations=(
        "those of the score `conv_attention`, here with the sizes of the paper's copying "
        "model, and of the output `conv_copy`."
    ),
)
