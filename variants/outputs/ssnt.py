"""Segment to segment: words are emitted at positions that only move forward, and are marginalized.

Yu, Buys & Blunsom, 2016, "Online segment to segment neural transduction",
https://arxiv.org/abs/1609.08194, section 2; the recursion is section 2.2.

Deviations: whether to emit is read from one hidden layer of tanh units over [h_s; g_t]. What is
emitted comes from the decoder's own output layer with h_s instead of the context, linear under the
decoder `target_only`. `end=last` asks that the last word is emitted at the last source token, as we
understand the paper; `end=sum` does not ask it. Decoding is greedy: it reads on until emitting is
likelier, and then emits the best word; there is no beam over positions. Only scored positions are
projected to the vocabulary. Emission at the last source token may be below one, so probabilities of
all sequences sum to less than one. Tokens that an encoder hides are no positions of the walk.
"""

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig
from bench.api.output import Output, OutputSizes
from bench.api.registry import Citation, DefaultTask, Recipe, register, register_recipe
from bench.api.source import Memory, Tree, leaf
from bench.api.trace import Emit, Trace
from variants.outputs.copy_scores import NEVER, log_softmax, oracle_vocabulary
from variants.outputs.latent_alignment import in_chunks, values_as_contexts
from variants.outputs.segment_walk import Scores, forward_scores, greedy_places
from variants.precision import at_least_single

CHUNK_LOGITS = 2**22
"""Most logits alive at once: 16 MB in float32."""


@dataclass(frozen=True, kw_only=True)
class SsntConfig(Config):
    """Options of segment-to-segment transduction."""

    width: Annotated[int, IntRange(8, 512, log=True)] = 64
    """Hidden units of the layer that decides between reading and emitting."""
    end: Literal["last", "sum"] = "last"
    """Where the last word is emitted: at the last source token, or anywhere."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"ssnt: width must be at least 1, got {self.width}.")


@register(
    "output",
    "ssnt",
    config=SsntConfig,
    citation=Citation(
        text="Yu et al., 2016", url="https://arxiv.org/abs/1609.08194", where="section 2.2"
    ),
)
class SsntOutput(Output):
    """-log of the sum over all z_1 <= ... <= z_T of prod p(z_t | z_{t-1}) p(y_t | z_t).

    p(z_t = s | k) = e_ts prod_{k <= r < s} (1 - e_tr). Exact, in T + S rounds of additions in log
    space; time O(T S (D + V)), and of the T S V logits one chunk is alive at a time.
    """

    sequence_only = True
    needs = frozenset({"open_loop", "source_states"})
    gives = frozenset({"reads_source"})
    unsupported = {
        "two_sources": "ssnt walks along one source.",
        "loss:reinforce": "ssnt marginalizes its positions and has no reward for a word.",
    }

    def __init__(self, config: SsntConfig, sizes: OutputSizes) -> None:
        super().__init__(config, sizes)
        self.ends_last = config.end == "last"
        self.of_source = nn.Linear(sizes.context, config.width)
        self.of_state = nn.Linear(sizes.states, config.width, bias=False)
        self.decide = nn.Linear(config.width, 1)

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, " B"]:
        """Of whole sequences: the forward recursion over words and positions."""
        value, last_place = _walked(trace)
        choice = at_least_single(self._choice(trace.states, value))
        words = self._log_words(trace, value, emit, batch)
        reached = forward_scores(
            functional.logsigmoid(choice), functional.logsigmoid(-choice), words
        )
        lengths = batch.mask.sum(1)
        index = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, value.shape[1])
        last = reached.gather(1, index).squeeze(1)
        if self.ends_last:
            ended = last.gather(1, last_place.unsqueeze(1)).squeeze(1)
        else:
            real = torch.arange(value.shape[1], device=last.device) <= last_place.unsqueeze(1)
            ended = torch.where(real, last, NEVER).logsumexp(1)
        return torch.where(lengths > 0, -ended, 0.0)

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Greedy reading under teacher forcing: words at the positions where decoding would be."""
        value, last = _walked(trace)
        start = leaf(self.begin(batch, trace.memories), "place")
        places = self._places(trace.states, value, start, last)
        index = places.unsqueeze(-1).expand(-1, -1, value.shape[2])
        return self._words_at(value.gather(1, index), trace, emit, batch)

    def begin(self, batch: Batch, memories: tuple[Memory | None, ...]) -> Tree:
        """The position of the last word; the first token before any."""
        rows = batch.sources[0].tokens.shape[0]
        place = torch.zeros(rows, dtype=torch.int64, device=batch.sources[0].tokens.device)
        return {"place": place}

    def step(
        self, trace: Trace, emit: Emit, batch: Batch, words: Int[Tensor, "B 1"], carried: Tree
    ) -> tuple[Float[Tensor, "B 1 VX"], Tree]:
        """Read on from where the last word was emitted, then emit.

        Only the positions that are read are computed: T + S of them for a whole sequence.
        """
        value, last = _walked(trace)
        rows, place = torch.arange(len(words), device=words.device), leaf(carried, "place")
        of_state = self.of_state(trace.states[:, 0])
        while True:
            here = value[rows, place]
            choice = self.decide(torch.tanh(self.of_source(here) + of_state)).squeeze(-1)
            reading = (choice < 0) & (place < last)
            if not bool(reading.any()):
                break
            place = place + reading
        return self._words_at(here.unsqueeze(1), trace, emit, batch), {"place": place}

    def read_share(self, trace: Trace, batch: Batch) -> Float[Tensor, "B T"]:
        """Positions read before each word under teacher forcing and greedy reading."""
        value, last = _walked(trace)
        start = leaf(self.begin(batch, trace.memories), "place")
        places = self._places(trace.states, value, start, last)
        return (places + 1) / _mask(trace).sum(1, keepdim=True).clamp(min=1)

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """Greedy reading: on from the last place until emitting is likelier, or to the end."""
        value = values_as_contexts(trace, "ssnt")[0][_mask(trace)[0]]
        steps, place = [], 0
        for t in range(trace.states.shape[1]):
            while (
                place < len(value) - 1
                and float(self._oracle_emits(trace, value, t, place).detach()) < 0.5
            ):
                place += 1
            logits = emit(trace.states[0, t], value[place], trace.embedded[0, t])
            steps.append(torch.stack(oracle_vocabulary(logits, batch.num_extra)))
        return torch.stack(steps)

    def oracle_nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, ""]:
        """Every way to walk along the source, one after the other."""
        value = values_as_contexts(trace, "ssnt")[0][_mask(trace)[0]]
        steps = [t for t, scored in enumerate(batch.mask[0].tolist()) if scored]
        total = value.new_zeros(())
        for places in combinations_with_replacement(range(len(value)), len(steps)):
            if self.ends_last and places[-1] != len(value) - 1:
                continue
            chance, before = value.new_ones(()), 0
            for t, place in zip(steps, places, strict=True):
                for passed in range(before, place):
                    chance = chance * (1 - self._oracle_emits(trace, value, t, passed))
                logits = emit(trace.states[0, t], value[place], trace.embedded[0, t])
                word = int(batch.targets[0, t])
                word = word if word < self.sizes.vocab else self.sizes.unk
                said = oracle_vocabulary(logits, 0)[word]
                chance = chance * self._oracle_emits(trace, value, t, place) * said
                before = place
            total = total + chance
        return -torch.log(total)

    def _oracle_emits(
        self, trace: Trace, value: Float[Tensor, "S Dv"], t: int, place: int
    ) -> Float[Tensor, ""]:
        """Probability of emitting a word at a place rather than reading on."""
        seen = self.of_source.weight @ value[place] + self.of_source.bias
        hidden = torch.tanh(seen + self.of_state.weight @ trace.states[0, t])
        return 1 / (1 + torch.exp(-(self.decide.weight[0] @ hidden) - self.decide.bias[0]))

    def _places(
        self,
        states: Float[Tensor, "B T D"],
        value: Float[Tensor, "B S Dv"],
        place: Int[Tensor, " B"],
        last: Int[Tensor, " B"],
    ) -> Int[Tensor, "B T"]:
        """Position at which greedy reading emits each word."""
        return greedy_places(self._choice(states, value) >= 0, place, last)

    def _words_at(
        self, read: Float[Tensor, "B T Dv"], trace: Trace, emit: Emit, batch: Batch
    ) -> Float[Tensor, "B T VX"]:
        """Log probability of every word, given the source position that was read."""
        known = log_softmax(emit(trace.states, read, trace.embedded))
        if batch.num_extra:
            known = functional.pad(known, (0, batch.num_extra), value=float("-inf"))
        return known

    def _choice(self, states: Float[Tensor, "B T D"], value: Float[Tensor, "B S Dv"]) -> Scores:
        """Logit of emitting at a position rather than reading on."""
        of_source, of_state = self.of_source(value), self.of_state(states)
        hidden = torch.tanh(of_source.unsqueeze(1) + of_state.unsqueeze(2))
        return self.decide(hidden).squeeze(-1)

    def _log_words(self, trace: Trace, value: Tensor, emit: Emit, batch: Batch) -> Scores:
        """The log of p(y_t | s) at every position; zeros where nothing is scored."""
        picked = batch.mask
        targets = batch.targets[picked]
        targets = torch.where(targets >= self.sizes.vocab, self.sizes.unk, targets)
        states, embedded = trace.states[picked], trace.embedded[picked]
        rows = picked.nonzero()[:, 0]
        places = value.shape[1]

        def words(chunk: slice) -> Tensor:
            logits = emit(states[chunk, None], value[rows[chunk]], embedded[chunk, None])
            logits = at_least_single(logits)
            index = targets[chunk, None, None].expand(-1, places, 1)
            return logits.gather(-1, index).squeeze(-1) - logits.logsumexp(-1)

        size = max(1, CHUNK_LOGITS // (places * self.sizes.vocab))
        found = torch.cat(list(in_chunks(rows.shape[0], size, words)))
        full = torch.zeros((*picked.shape, places), dtype=found.dtype, device=found.device)
        return full.masked_scatter(picked.unsqueeze(-1), found)


def _walked(trace: Trace) -> tuple[Float[Tensor, "B S Dv"], Int[Tensor, " B"]]:
    """What each position of the walk reads, and the last position of each row.

    Tokens that are hidden between others, as by a rationale, move behind all that are not. A source
    without any token is read as a zero vector, as it is under soft attention.
    """
    value, mask = values_as_contexts(trace, "ssnt"), _mask(trace)
    order = mask.int().argsort(dim=1, descending=True, stable=True)
    value = torch.where(mask.unsqueeze(-1), value, 0.0)
    return value.take_along_dim(order.unsqueeze(-1), 1), _last_place(mask)


def _mask(trace: Trace) -> Bool[Tensor, "B S"]:
    memory = trace.memories[0]
    assert memory is not None, "ssnt reads the source"
    return memory.source.key_mask()


def _last_place(mask: Bool[Tensor, "B S"]) -> Int[Tensor, " B"]:
    """Position of the last real token, where all real tokens stand in front."""
    return (mask.sum(1) - 1).clamp(min=0)


register_recipe(
    "ssnt",
    Recipe(axes={"output": "ssnt"}, main="output", fixes={"decoder": "target_only"}),
    module=__name__,
    title="Segment-to-segment transduction",
    citation=Citation(
        text="Yu et al., 2016", url="https://arxiv.org/abs/1609.08194", where="section 2"
    ),
    cost=1.7,
    default_task=DefaultTask(task="transduction[rule=copy]"),
    deviations=(
        "those of the output `ssnt` and of the decoder `target_only`; a score is named but "
        "never computed."
    ),
)
