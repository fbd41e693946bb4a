"""End-to-end memory network: a question reads the sentences of a story several times.

Sukhbaatar et al., 2015, "End-to-end memory networks", https://arxiv.org/abs/1503.08895, sections 2
and 4.1. The slot is one hop, so that any variant can read; the paper's is `dot`; the variant
`memn2n`, which has its own hops, can be used too.

Deviations: no empty memories are mixed in during training; a story keeps the most recent `memories`
sentences; linear start is an option of the variant `memn2n`, not of the network.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch, Sizes
from bench.api.build import SlotPlace
from bench.api.call import Attended
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.output import OutputSizes
from bench.api.registry import Citation, register
from bench.api.slot import Slot
from bench.api.source import Memory
from bench.api.trace import Mode, Trace
from tasks.backbones.sentences import Sentences, split_sentences


@dataclass(frozen=True, kw_only=True)
class MemN2NNetworkConfig(Config):
    """Options of the memory network."""

    width: Annotated[int, IntRange(8, 512, log=True)] = 20
    """Width of embeddings, of the question and of memories."""
    hops: Annotated[int, IntRange(1, 8)] = 3
    """Times the memory is read, K."""
    tying: Annotated[Literal["adjacent", "layer_wise"], Choices(("adjacent", "layer_wise"))] = (
        "adjacent"
    )
    """Whether a hop's key table is the last hop's value table, or all hops share both, the slot
    and a linear map H of the question."""
    encoding: Annotated[Literal["position", "bag"], Choices(("position", "bag"))] = "position"
    """Whether words of a sentence are weighed by position before they are summed."""
    temporal: bool = True
    """Whether memories get a vector of their age, the most recent first."""
    memories: Annotated[int, IntRange(8, 512, log=True)] = 50
    """Most recent sentences that are kept."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if min(self.width, self.hops, self.memories) < 1:
            raise InvalidConfig(
                "memn2n: width, hops and memories must be at least 1, "
                f"got {self.width}, {self.hops}, {self.memories}."
            )


@register(
    "backbone",
    "memn2n",
    config=MemN2NNetworkConfig,
    title="memory network over sentences",
    citation=Citation(
        text="Sukhbaatar et al., 2015",
        url="https://arxiv.org/abs/1503.08895",
        where="sections 2 and 4.1",
    ),
)
class MemN2NNetwork(Backbone):
    """u = B q; K hops of u = u + o or H u + o; answers W u.

    The first source is the story, cut into sentences by its segments, the second the question.
    Weights of a sentence are shared among its tokens.
    """

    slots = ("cross",)
    sized_by = ("width",)

    def __init__(self, config: MemN2NNetworkConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.width
        _check_vocabularies(sizes, config.tying)
        self.config = config
        adjacent = config.tying == "adjacent"
        # adjacent: B = A1, A2 = C1, ..., W = CK; layer-wise: A, C and, of its own, B
        story, asked = sizes.source_vocabs
        tables = config.hops + 1 if adjacent else 2
        self.tables = nn.ModuleList(
            nn.Embedding(story, width, padding_idx=0) for _ in range(tables)
        )
        self.ages = nn.ModuleList(nn.Embedding(config.memories, width) for _ in range(tables))
        self.question = None if adjacent else nn.Embedding(asked, width, padding_idx=0)
        self.carry = None if adjacent else nn.Linear(width, width, bias=False)
        self.answer = None if adjacent else nn.Linear(width, sizes.target_vocab, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Embedding | nn.Linear):
                nn.init.normal_(module.weight, std=0.1)
        for table in (*self.tables, self.question):
            if isinstance(table, nn.Embedding):
                nn.init.zeros_(table.weight[0])
        place = SlotPlace(
            regime="cross",
            query_width=width,
            source_width=width,
            head="raw",
            # a memory is a sentence and no token
            given=parts.capabilities - {"source_tokens"},
        )
        slots = [parts.attach(place) for _ in range(config.hops if adjacent else 1)]
        if slots[0].output_width != width:
            raise Refused(
                "memn2n adds what was read to the question, so the slot's output must have the "
                f"width {width}, not {slots[0].output_width}."
            )
        self.slot_list = nn.ModuleList(slots)
        self.output = parts.output(OutputSizes(sizes.target_vocab, width, width, width, sizes.unk))

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Encode story and question, then hop."""
        if batch.targets.shape[1] != 1:
            raise Refused("memn2n gives one answer per question, and this task has several.")
        if mode.edit is not None:
            raise Refused("memn2n reads sentences, so weights of tokens cannot be edited.")
        story, question = (split_sentences(text) for text in batch.sources)
        asked = self._first_table(question.tokens)
        state = self._sentences(asked, question).sum(1, keepdim=True)
        embedded, carried, context = state, state, state
        answers: list[Attended] = []
        memories: list[Memory] = []
        for hop in range(self.config.hops):
            slot = self.variant_slots()[hop % len(self.slot_list)]
            memory = self._memory(slot, story, hop)
            start = slot.start(memory, state)
            context, attended = slot.attend(state, memory, start, **mode.layer(hop).call())
            carried = state if self.carry is None else self.carry(state)
            state = carried + context
            answers.append(_by_token(attended, story))
            memories.append(memory)
        # the hop that answers stands first, as the last layer of a stack does
        return Trace(carried, context, embedded, tuple(answers[::-1]), tuple(memories[::-1]))

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """W (u + o)."""
        weight = self.tables[-1].weight if self.answer is None else self.answer.weight
        assert isinstance(weight, Tensor), "tables and layers have weights"
        return nn.functional.linear(states + context, weight)

    def variant_slots(self) -> tuple[Slot, ...]:
        """A slot a hop, or one for all."""
        return tuple(slot for slot in self.slot_list if isinstance(slot, Slot))

    def _first_table(self, tokens: Int[Tensor, "B N J"]) -> Float[Tensor, "B N J D"]:
        return self.tables[0](tokens) if self.question is None else self.question(tokens)

    def _memory(self, slot: Slot, story: Sentences, hop: int) -> Memory:
        """Keys and values of a hop, old sentences hidden."""
        first = hop if self.answer is None else 0
        real = story.mask.any(-1)
        age = real.flip(1).long().cumsum(1).flip(1) - 1
        found = []
        for table, ages in zip(
            self.tables[first : first + 2], self.ages[first : first + 2], strict=True
        ):
            states = self._sentences(table(story.tokens), story)
            if self.config.temporal:
                states = states + ages(age.clamp(0, self.config.memories - 1))
            found.append(states)
        return slot.prepare(found[0], real & (age < self.config.memories), None, found[1])

    def _sentences(
        self, words: Float[Tensor, "B N J D"], folded: Sentences
    ) -> Float[Tensor, "B N D"]:
        """Sum the words of each sentence, weighed by position or evenly."""
        words = torch.where(folded.mask.unsqueeze(-1), words, 0.0)
        if self.config.encoding == "position":
            length = folded.mask.sum(-1)
            places = position_encoding(length, folded.mask.shape[2], words.shape[-1])
            words = words * places.to(words.dtype)
        return words.sum(2)


def position_encoding(
    length: Int[Tensor, "*n"], longest: int, width: int
) -> Float[Tensor, "*n {longest} {width}"]:
    """(1 - j/J) - (k/d) (1 - 2j/J) of word j of J and unit k of d, both from one.

    >>> position_encoding(torch.tensor(2), 2, 2).tolist()
    [[0.5, 0.5], [0.5, 1.0]]
    """
    j = torch.arange(1, longest + 1, device=length.device, dtype=torch.float64)
    share = j / length.clamp(min=1).unsqueeze(-1)
    k = torch.arange(1, width + 1, device=length.device, dtype=torch.float64) / width
    return (1 - share).unsqueeze(-1) - k * (1 - 2 * share).unsqueeze(-1)


def _check_vocabularies(sizes: Sizes, tying: str) -> None:
    if len(sizes.source_vocabs) != 2:
        raise Refused(
            "memn2n reads a story and a question, and this task has "
            f"{len(sizes.source_vocabs)} sources."
        )
    vocabs = {*sizes.source_vocabs, sizes.target_vocab}
    if tying == "adjacent" and len(vocabs) > 1:
        raise Refused(
            "memn2n: tying=adjacent has one vocabulary for story, question and answer, "
            f"got {sorted(vocabs)}; use tying=layer_wise."
        )


def _by_token(attended: Attended, story: Sentences) -> Attended:
    """Weights of sentences as weights of their tokens."""
    if attended.weights is None:
        return attended
    spread = story.spread(attended.weights.squeeze(2))
    return attended._replace(weights=spread.unsqueeze(2))
