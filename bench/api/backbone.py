"""The network around attention: encoder, wiring, readout, output and losses."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.call import Attended, Edit, Read
from bench.api.component import NOTHING
from bench.api.config import Config
from bench.api.errors import Refused
from bench.api.facts import Fact, check_facts
from bench.api.noise import Noise
from bench.api.registry import make
from bench.api.selector import Selector
from bench.api.source import Memory, State, Tree, tree_map
from bench.api.task import Batch, Sizes
from bench.api.variant import Slot

Terms = Mapping[str, Float[Tensor, "B S"]]
"""Facts per source token, by name; like those of attention they are never losses."""

Emit = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(states, context, embedded) -> logits over the vocabulary; broadcasts over extra dimensions, so
that p(y | s) is `emit(states[:, :, None], value[:, None], embedded[:, :, None])`."""


class Claiming(nn.Module):
    """A module that says what it needs, gives and cannot meet, as data on its class."""

    needs: ClassVar[frozenset[Fact]] = NOTHING
    gives: ClassVar[frozenset[Fact]] = NOTHING
    takes: ClassVar[frozenset[Fact]] = NOTHING
    cannot: ClassVar[Mapping[Fact, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_facts(cls.__name__, cls.needs, cls.gives, cls.cannot)


LAYER_STRIDE = 2**40
"""Between the noise of two layers; further than the seeds of a training run reach."""


@dataclass(frozen=True)
class Mode:
    """How a forward pass reads; the same for every slot of a network."""

    read: Read | None = None
    """None lets each mechanism read as it is scored."""
    noise: Noise | None = None
    progress: float = 1.0
    want_weights: bool = True
    edit: Edit | None = None

    def layer(self, index: int) -> "Mode":
        """The same for one layer of a stack; layers draw independently of each other."""
        if self.noise is None or index == 0:
            return self
        return replace(self, noise=Noise(self.noise.seed + index * LAYER_STRIDE))

    def call(self) -> dict[str, Any]:
        """Keywords for `Slot.attend`."""
        return {
            "read": self.read,
            "noise": self.noise,
            "progress": self.progress,
            "want_weights": self.want_weights,
            "edit": self.edit,
        }


class Trace(NamedTuple):
    """All that outputs and losses may see of a decoder's run."""

    states: Float[Tensor, "B T D"]
    context: Float[Tensor, "B T Dv"]
    embedded: Float[Tensor, "B T De"]
    attended: tuple[Attended, ...]
    """One a slot that holds the variant, the last layer of a stack first; empty without one."""
    memories: tuple[Memory | None, ...]
    source_terms: tuple[Terms, ...] = ()
    """What the encoder of each source says of its tokens, where it has something to say."""

    @property
    def weights(self) -> Float[Tensor, "B T S"]:
        """Weights of the first slot, averaged over heads."""
        found = self.attended[0].weights
        if found is None:
            raise Refused("this output or loss needs weights, and the variant has none.")
        return found[:, 0] if found.shape[1] == 1 else found.mean(1)

    @property
    def read_share(self) -> Float[Tensor, "B T"] | None:
        """Share of the source that was read before each answer, in the slot that read most.

        None where no slot says how far it has read, as under soft attention.
        """
        # an output may have a memory where nothing attends
        asked = zip(self.attended, self.memories, strict=False)
        shares = [
            attended.terms["touched"] / memory.source.length.clamp(min=1).unsqueeze(1)
            for attended, memory in asked
            if memory is not None and "touched" in attended.terms
        ]
        return torch.stack(shares).amax(0) if shares else None


class OutputSizes(NamedTuple):
    """What an output must know to make its parameters."""

    vocab: int
    states: int
    context: int
    embedded: int
    unk: int
    source: int = 0
    """Width of the states of the first source; 0 where there is none."""
    source_vocab: int = 0
    bos: int = 1
    eos: int = 2


Pair = tuple[Sequence[int], Sequence[int]]
"""Source and target ids of one training example, without padding."""


class Output(Claiming):
    """What the weights do to the output distribution."""

    sequence_only: ClassVar[bool] = False
    """No factor per token, hence no token accuracy (segment-to-segment models)."""
    fit_pairs: int = 0
    """Training pairs that `fit` asks for."""

    def __init__(self, config: Config, sizes: OutputSizes) -> None:
        super().__init__()
        self.sizes = sizes

    @classmethod
    def feed_width(cls, config: Any, source: int) -> int:
        """Width of what `feed` adds to each decoder input, for source states of a width.

        An output that feeds the decoder closes the open loop: its words go through one by one.
        """
        return 0

    def fit(self, pairs: Sequence[Pair]) -> None:
        """Estimate what is counted rather than trained, before the first update."""

    @abstractmethod
    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Log probability of every word of the extended vocabulary."""

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B ..."]:
        """Negative log likelihood of each target (nats), zero where the batch does not score.

        Of each whole sequence where the output is `sequence_only`.
        """
        chosen = self.log_probs(trace, emit, batch).gather(-1, batch.targets.unsqueeze(-1))
        return torch.where(batch.mask, -chosen.squeeze(-1), 0.0)

    def own_losses(self, trace: Trace, emit: Emit, batch: Batch) -> dict[str, Float[Tensor, ""]]:
        """Terms that the output adds to its likelihood in training (nats per target token)."""
        return {}

    def read_share(self, trace: Trace, batch: Batch) -> Float[Tensor, "B T"] | None:
        """Share of the source that was read before each word; None where nothing says."""
        return trace.read_share

    def begin(self, batch: Batch, memories: tuple[Memory | None, ...]) -> Tree:
        """What decoding carries from word to word; every leaf has the batch first."""
        return {}

    def feed(
        self, states: Float[Tensor, "B 1 D"], words: Int[Tensor, "B 1"], carried: Tree
    ) -> Float[Tensor, "B 1 F"]:
        """What joins the embedding of `words` (extended ids), which `states` have predicted.

        Nothing (zeros) joins the first word, which nobody has predicted.
        """
        raise NotImplementedError

    def step(
        self,
        trace: Trace,
        emit: Emit,
        batch: Batch,
        words: Int[Tensor, "B 1"],
        carried: Tree,
    ) -> tuple[Float[Tensor, "B 1 VX"], Tree]:
        """`log_probs` of the one decoder step in the trace, whose input was `words` (extended ids).

        An output that looks back at earlier steps overrides this and carries what it needs.
        """
        return self.log_probs(trace, emit, batch), carried


@dataclass(frozen=True)
class LossInputs:
    """What a loss may see."""

    trace: Trace
    nll: Float[Tensor, "B ..."]
    """One number a row where the output is `sequence_only`."""
    batch: Batch
    progress: float
    copies: int = 1
    """Rows that follow each other and are one example, drawn anew."""


class LossSizes(NamedTuple):
    """What a loss with parameters of its own must know of the network."""

    source: int
    """Width of the values of a key, all heads together; 0 without attention."""
    states: int = 0
    """Width of decoder states."""
    embedded: int = 0
    """Width of decoder inputs."""


class Loss(Claiming):
    """A term added to the negative log likelihood; a baseline is carried, never kept on `self`."""

    copies: int = 1
    """How often each example must stand in a training batch, for losses that compare draws."""

    def __init__(self, config: Config) -> None:
        super().__init__()

    def attach(self, sizes: LossSizes) -> None:
        """Make the parameters, where there are any; called once, before training."""

    def init(self) -> dict[str, Tensor]:
        """What to carry from step to step, part of a checkpoint."""
        return {}

    @abstractmethod
    def forward(
        self, inputs: LossInputs, carry: dict[str, Tensor]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """The term (nats per target token), and the next carry."""


class JointLoss(Claiming):
    """A term that couples the two directions of a jointly trained pair."""

    def __init__(self, config: Config) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, there: LossInputs, back: LossInputs) -> Float[Tensor, ""]:
        """The term (nats per sentence, averaged over the batch)."""


class Encoded(NamedTuple):
    """A source after its encoder."""

    states: Float[Tensor, "B S De"]
    mask: Bool[Tensor, "B S"] | None
    summary: Float[Tensor, "B Ds"]
    """What initializes a decoder: last states, or their mean."""
    terms: Terms = MappingProxyType({})
    """Facts per token: `log_prob` of a draw, `selected`."""


class Encoder(Claiming):
    """Turns embedded tokens into the states that are attended to."""

    output_width: int
    summary_width: int
    stride: int = 1
    """Tokens per state; an encoder with more takes the facts `source_tokens`, `source_states`."""
    backward: range = range(0)
    """Units of the summary that came from reading the source backwards."""

    def __init__(self, config: Config, embedding_width: int, hidden: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Encode; padded positions never change real ones."""

    def read(
        self,
        x: Float[Tensor, "B S De"],
        mask: Bool[Tensor, "B S"] | None,
        batch: Batch,
        mode: Mode,
    ) -> Encoded:
        """Encode the words of a batch; an encoder may take more than words from it, or draw."""
        found: Encoded = self(x, mask)
        return found

    def arrange(self, batch: Batch) -> Batch:
        """Gold and extended ids of a batch as they line up with the states."""
        return batch if self.stride == 1 else batch.folded(self.stride)


class Path(NamedTuple):
    """A decoder's position on its way: hidden state, slot states, and what a wiring adds."""

    hidden: Float[Tensor, "B D"]
    slots: tuple[State, ...]
    extra: Tree

    def select(self, rows: Int[Tensor, " N"]) -> "Path":
        """Pick batch rows, for beams."""
        slots = tuple(state.select(rows) for state in self.slots)
        extra = tree_map(lambda leaf: leaf.index_select(0, rows), self.extra)
        return Path(self.hidden.index_select(0, rows), slots, extra)


class Steps(NamedTuple):
    """Some decoder steps."""

    states: Float[Tensor, "B T D"]
    context: Float[Tensor, "B T Dv"]
    attended: tuple[Attended, ...]
    path: Path


class SourceOrder(Claiming):
    """The order in which a backbone reads its sources."""

    def __init__(self, config: Config, eos: int) -> None:
        super().__init__()

    @abstractmethod
    def arrange(self, batch: Batch) -> Batch:
        """Sources, gold and extended ids in this order."""


class WiringSizes(NamedTuple):
    """Widths a wiring must know."""

    embedding: int
    hidden: int
    summary: int
    sources: tuple[int, ...]
    """State width of each encoder."""
    combiner: Selector = Selector("concat")
    """How several sources are read."""
    backward: tuple[int, ...] = ()
    """Units of the summary that came from reading backwards."""


AttachSlot = Callable[[int, int], Slot]
"""(query width, source width) -> slot; what is called for each source that is attended to."""

Answers = tuple[Float[Tensor, "B L Dv"], tuple[Attended, ...]]
"""One context, and what was attended to in each source."""


class Combiner(Claiming):
    """How a decoder reads its sources: one slot a source, contexts side by side.

    A subclass may join sources before they are read, or their contexts after; memories, states and
    answers stay one a source.
    """

    slots: tuple[Slot, ...]
    context_width: int

    def __init__(self, config: Config, sizes: WiringSizes, attach: AttachSlot) -> None:
        super().__init__()
        self.slots = self.make_slots(sizes, attach)
        # a module list registers the parameters; the tuple above keeps the types
        self.slot_list = nn.ModuleList(self.slots)
        self.context_width = sum(slot.output_width for slot in self.slots)

    def make_slots(self, sizes: WiringSizes, attach: AttachSlot) -> tuple[Slot, ...]:
        """One for each source."""
        return tuple(attach(sizes.hidden, width) for width in sizes.sources)

    def prepare(
        self, sources: tuple[Encoded, ...], tokens: Int[Tensor, "B S"] | None
    ) -> tuple[Memory, ...]:
        """Let every slot prepare its source; ids belong to the first one."""
        ids = (tokens, *[None] * (len(sources) - 1))
        return tuple(
            slot.prepare(source.states, source.mask, own)
            for slot, source, own in zip(self.slots, sources, ids, strict=True)
        )

    def start(
        self, hidden: Float[Tensor, "B D"], memories: tuple[Memory, ...]
    ) -> tuple[State, ...]:
        """Start every slot."""
        like = hidden.unsqueeze(1)
        return tuple(
            slot.start(memory, like) for slot, memory in zip(self.slots, memories, strict=True)
        )

    def arrange(self, batch: Batch) -> Batch:
        """Gold and extended ids of a batch as they line up with the weights."""
        return batch

    def attend(
        self,
        query: Float[Tensor, "B L D"],
        memories: tuple[Memory, ...],
        states: tuple[State, ...],
        call: dict[str, Any],
    ) -> Answers:
        """Ask every slot and concatenate the contexts; `call` are keywords of `Slot.attend`."""
        contexts, attended = self.ask(query, memories, states, call)
        return contexts[0] if len(contexts) == 1 else torch.cat(contexts, -1), attended

    def ask(
        self,
        query: Float[Tensor, "B L D"],
        memories: tuple[Memory, ...],
        states: tuple[State, ...],
        call: dict[str, Any],
    ) -> tuple[list[Tensor], tuple[Attended, ...]]:
        """The context of every source by itself."""
        answers = [
            slot.attend(query, memory, state, **call)
            for slot, memory, state in zip(self.slots, memories, states, strict=True)
        ]
        return [context for context, _ in answers], tuple(attended for _, attended in answers)


class Wiring(Claiming):
    """Where attention stands in a recurrent decoder; a combiner holds its slots."""

    attends: ClassVar[bool] = True
    context_width: int
    readout_width: int
    sampling: float = 0.0
    """Share of training inputs that the backbone draws from its own last prediction."""

    def __init__(self, config: Config, sizes: WiringSizes, attach: AttachSlot) -> None:
        super().__init__()
        self.combiner: Combiner | None = None
        self.context_width = 0
        if self.attends:
            self.combiner = make("combiner", sizes.combiner, sizes, attach)
            self.context_width = self.combiner.context_width

    @classmethod
    def given(cls, config: Any) -> frozenset[Fact]:
        """Facts that this wiring gives under these options: `open_loop` or nothing."""
        return cls.gives

    def prepare(self, sources: tuple[Encoded, ...], batch: Batch) -> tuple[Memory, ...]:
        """Let every slot prepare its source."""
        return () if self.combiner is None else self.combiner.prepare(sources, batch.extended)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What holds the variant; nothing without attention."""
        return () if self.combiner is None else self.combiner.slots

    @abstractmethod
    def begin(self, summary: Float[Tensor, "B Ds"], memories: tuple[Memory, ...]) -> Path:
        """The state before the first word."""

    @abstractmethod
    def step(
        self, x: Float[Tensor, "B 1 De"], memories: tuple[Memory, ...], path: Path, mode: Mode
    ) -> Steps:
        """One step: its state, its context, the weights, and the next path."""

    def run(
        self, x: Float[Tensor, "B T De"], memories: tuple[Memory, ...], path: Path, mode: Mode
    ) -> Steps:
        """All steps under teacher forcing; a loop unless a subclass can do better."""
        found: list[Steps] = []
        # one split has one backward; a slice a step would write the whole gradient T times
        for word in x.split(1, 1):
            found.append(self.step(word, memories, path, mode))
            path = found[-1].path
        return join_steps(found)

    def attend(
        self,
        query: Float[Tensor, "B L D"],
        memories: tuple[Memory, ...],
        states: tuple[State, ...],
        mode: Mode,
        word: Float[Tensor, "B L De"] | None = None,
    ) -> tuple[Float[Tensor, "B L Dv"], tuple[Attended, ...]]:
        """Read every source into one context.

        `word` is what the decoder reads at these steps; a wiring that hands it on gives the fact
        `token_extras`.
        """
        assert self.combiner is not None, "a wiring that asks has slots"
        call = mode.call()
        if word is not None:
            call["extras"] = {"word": word}
        return self.combiner.attend(query, memories, states, call)

    def start_slots(
        self, hidden: Float[Tensor, "B D"], memories: tuple[Memory, ...]
    ) -> tuple[State, ...]:
        """Start every slot."""
        assert self.combiner is not None, "a wiring that asks has slots"
        return self.combiner.start(hidden, memories)

    @abstractmethod
    def readout(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """What the vocabulary projection reads; broadcasts over extra dimensions."""


def join_steps(found: list[Steps]) -> Steps:
    """Concatenate steps along the target."""
    joined = []
    for slot in range(len(found[0].attended)):
        parts = [steps.attended[slot] for steps in found]
        weights = None
        if parts[0].weights is not None:
            weights = torch.cat([part.weights for part in parts if part.weights is not None], 2)
        terms = {name: torch.cat([p.terms[name] for p in parts], 1) for name in parts[0].terms}
        output = torch.cat([part.output for part in parts], 2)
        joined.append(Attended(output, weights, parts[-1].state, terms))
    states = torch.cat([steps.states for steps in found], 1)
    context = torch.cat([steps.context for steps in found], 1)
    return Steps(states, context, tuple(joined), found[-1].path)


@dataclass(frozen=True)
class Generated:
    """What was said to a batch."""

    tokens: tuple[tuple[int, ...], ...]
    """Without BOS and EOS; ids of the extended vocabulary."""
    steps: int = 0
    """Decoder steps taken."""
    scores: tuple[float, ...] = ()
    """What the search maximized, where it compares sentences."""


@dataclass(frozen=True, kw_only=True)
class BackboneParts:
    """What a backbone is built around: the task's sizes and the variant's makers."""

    sizes: Sizes
    attach: Callable[..., Slot]
    """`attach(place: SlotPlace) -> Slot` for the slot that holds the variant."""
    attach_default: Callable[..., Slot]
    """The same for slots that hold ordinary multi-head attention."""
    output: Callable[[OutputSizes], Output]
    feed_width: Callable[[int], int] = lambda source: 0
    """`Output.feed_width` of the output, before it can be made."""
    slot: str = ""
    """Which slot holds the variant; empty for the backbone's main one."""
    facts: frozenset[Fact] = field(default_factory=frozenset)


class Backbone(Claiming):
    """A whole network; `forward` runs it under teacher forcing, `generate` decodes."""

    slots: ClassVar[tuple[str, ...]]
    """Names of the slots that can hold the variant, the main one first."""
    reads_frames: ClassVar[bool] = False
    """Whether sources, or decoder inputs, may be frames instead of words."""
    gives_numbers: ClassVar[bool] = False
    """Whether its readout may be read as numbers, because nothing that it says is fed back."""
    output: Output

    def __init__(self, config: Config, parts: BackboneParts) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Run under teacher forcing."""

    @abstractmethod
    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Logits over the vocabulary; broadcasts over extra dimensions."""

    def arrange(self, batch: Batch) -> Batch:
        """The batch as outputs and losses must see it: in the order and number of source states.

        Networks that read the source token by token change nothing; doing it twice is doing it
        once, because such a batch is marked as `arranged`.
        """
        return batch

    def generate(self, batch: Batch, max_length: int, mode: Mode) -> Generated:
        """Decode all rows at once, by the search that the backbone was built with."""
        raise Refused(f"{type(self).__name__} does not decode.")

    def variant_slots(self) -> tuple[Slot, ...]:
        """The slots that hold the variant, for parameter counts."""
        return ()

    def aligns(self, batch: Batch) -> bool:
        """Whether weights say where a target looks: over the source, or over itself if it is alone.

        A self-attention slot beside a source has weights over its own sequence, no alignment.
        """
        regimes = {slot.heads.dims.regime for slot in self.variant_slots()}
        return not batch.sources or not regimes & {"causal", "self"}
