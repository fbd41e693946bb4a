"""Neural programmer: attention over operations and columns writes a program, step by step.

Neelakantan, Le & Sutskever, 2016, "Neural programmer: inducing latent programs with gradient
descent", https://arxiv.org/abs/1511.04834, section 2. Two slots hold the variant: one attends to
vectors of the operations, the other to the names of the columns, and their weights select; what
they read goes to the history. The paper's selection is a softmax of products (`neural_programmer`).

Deviations: a question has one number at most, so nothing chooses among numbers. Largest and
smallest number are operations; difference, logic and lookup of the paper are not. The question is
read by a GRU. Training minimizes the squared error without a bound, and no noise is added to
gradients. Several heads are averaged. What a selector reads stays soft where its choice is hard.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.call import Attended
from bench.api.config import Choices, Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.output import OutputSizes
from bench.api.registry import Citation, register
from bench.api.slot import Slot
from bench.api.source import Memory, State
from bench.api.trace import Mode, Trace
from tasks.backbones.recurrent_layers import encode
from tasks.backbones.table_operations import OPERATIONS, Executed, execute


@dataclass(frozen=True, kw_only=True)
class NeuralProgrammerConfig(Config):
    """Options of the programmer."""

    width: Annotated[int, IntRange(8, 512, log=True)] = 32
    """Width of words, operations, questions and history."""
    steps: Annotated[int, IntRange(1, 8)] = 2
    """Operations of a program, T."""
    hard: Annotated[bool, Choices((True, False))] = True
    """Whether scoring takes the best operation and the best column of each step, as in the paper;
    training mixes them."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        if min(self.width, self.steps) < 1:
            raise InvalidConfig(
                "neural_programmer: width and steps must be at least 1, "
                f"got {self.width}, {self.steps}."
            )


class Selected(NamedTuple):
    """What one selector says at a step."""

    weights: Float[Tensor, "B S"]
    read: Float[Tensor, "B D"]
    attended: Attended


@register(
    "backbone",
    "neural_programmer",
    config=NeuralProgrammerConfig,
    title="programmer over a table",
    citation=Citation(
        text="Neelakantan et al., 2016",
        url="https://arxiv.org/abs/1511.04834",
        where="section 2",
    ),
)
class NeuralProgrammer(Backbone):
    """a = select(tanh(W [q; h])) among operations and columns; h = tanh(V [read; h]); T steps.

    The first source names the columns, the second is the question; the features of a batch are the
    rows of the table, and the number beside its decoder input is the one in the question. The
    answer is the number of the last step.
    """

    slots = ("cross",)
    sized_by = ("width",)
    reads_frames = True
    gives_numbers = True

    def __init__(self, config: NeuralProgrammerConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.width
        if len(sizes.source_vocabs) != 2 or not sizes.features or sizes.input_frames != 1:
            raise Refused(
                "neural_programmer reads names of columns, a question with a number, and a table, "
                "and this task has none."
            )
        self.steps, self.hard = config.steps, config.hard
        self.words = nn.Embedding(max(sizes.source_vocabs), width, padding_idx=0)
        self.reader = nn.GRU(width, width, batch_first=True)
        # products with them start near zero, so that no operation and no column is chosen yet
        nn.init.normal_(self.words.weight, std=width**-0.5)
        self.operations = nn.Parameter(width**-0.5 * torch.randn(len(OPERATIONS), width))
        # weights may have nothing to learn, and an optimizer needs a gradient; it is never used
        self.unused = nn.Parameter(torch.zeros(()))
        self.ask_operation = nn.Linear(2 * width, width)
        self.ask_column = nn.Linear(2 * width, width)
        place = SlotPlace(
            regime="cross",
            query_width=width,
            source_width=width,
            head="raw",
            # operations are no tokens of a source
            given=parts.capabilities - {"source_tokens"},
        )
        self.of_operations, self.of_columns = parts.attach(place), parts.attach(place)
        read = self.of_operations.output_width + self.of_columns.output_width
        self.history = nn.Linear(read + width, width)
        self.output = parts.output(OutputSizes(sizes.target_vocab, width, 1, width, sizes.unk))

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Read the question, then run the program."""
        assert batch.features is not None, "a table is the features of an example"
        assert batch.frames is not None, "the number of a question is beside its input"
        header, question = batch.sources
        _, last = encode(self.reader, self.words(question.tokens), question.mask)
        asked, table, pivot = last[-1], batch.features, batch.frames[:, 0, 0]
        known = self.operations.expand(len(table), -1, -1)
        memories = (
            self.of_operations.prepare(known),
            self.of_columns.prepare(self.words(header.tokens), header.mask),
        )
        past = torch.zeros_like(asked)
        done = Executed(table.new_zeros(len(table)), table.new_ones(table.shape[:2]))
        paths: list[State | None] = [None, None]
        answers: list[Attended] = []
        for _ in range(self.steps):
            joined = torch.cat((asked, past), -1)
            operation = self._select(0, joined, memories, paths, mode)
            column = self._select(1, joined, memories, paths, mode)
            done = execute(table, pivot, done.rows, operation.weights, column.weights)
            paths = [operation.attended.state, column.attended.state]
            answers += (operation.attended, column.attended)
            past = torch.tanh(self.history(torch.cat((operation.read, column.read, past), -1)))
        states, number = past.unsqueeze(1), done.number.view(-1, 1, 1)
        # every choice has terms that losses read; the column of the last step stands first
        read_of = memories[::-1] * self.steps
        return Trace(states, number, asked.unsqueeze(1), tuple(answers[::-1]), read_of)

    def _select(
        self,
        which: int,
        joined: Float[Tensor, "B D2"],
        memories: tuple[Memory, Memory],
        paths: list[State | None],
        mode: Mode,
    ) -> Selected:
        """Ask one of the two selectors."""
        slot = self.variant_slots()[which]
        layer = self.ask_operation if which == 0 else self.ask_column
        query, memory = torch.tanh(layer(joined)).unsqueeze(1), memories[which]
        path = paths[which]
        state = slot.start(memory, query) if path is None else path
        call = mode.layer(which).call()
        call["want_weights"] = True
        read, attended = slot.attend(query, memory, state, **call)
        if attended.weights is None:
            raise Refused("neural_programmer selects by weights, and the variant gives none.")
        weights = attended.weights.mean(1).squeeze(1)
        if self.hard and not self.training:
            best = weights.argmax(-1, keepdim=True)
            weights = torch.zeros_like(weights).scatter(-1, best, 1.0)
        return Selected(weights, read.squeeze(1), attended)

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """The number of the last step, as it is."""
        return context + 0 * self.unused

    def variant_slots(self) -> tuple[Slot, ...]:
        """The selector of operations, and that of columns."""
        return (self.of_operations, self.of_columns)
