"""Regression by attention: training inputs are keys and training outputs are values.

Nadaraya, 1964, "On estimating regression", https://doi.org/10.1137/1109020; as attention in Zhang
et al., 2023, "Dive into deep learning", https://d2l.ai, section 11.2, and Murphy, 2022,
"Probabilistic machine learning: an introduction", https://probml.github.io/pml-book/book1.html,
section 15.4.2.

Deviations: none while `features=0`; with features, distances and products are those of a learned
space.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.config import Config, IntRange
from bench.api.errors import InvalidConfig, Refused
from bench.api.output import OutputSizes
from bench.api.registry import Citation, register
from bench.api.slot import Slot
from bench.api.trace import Mode, Trace


@dataclass(frozen=True, kw_only=True)
class KernelRegressionConfig(Config):
    """Options of regression by attention."""

    features: Annotated[int, IntRange(0, 256)] = 0
    """Width of a perceptron that queries and keys go through first; 0 for inputs as they are."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.features < 0:
            raise InvalidConfig(
                f"kernel_regression: features must be at least 0, got {self.features}."
            )


@register(
    "backbone",
    "kernel_regression",
    config=KernelRegressionConfig,
    title="training points as keys and values",
    citation=Citation(text="Nadaraya, 1964; Watson, 1964", url="https://doi.org/10.1137/1109020"),
)
class KernelRegression(Backbone):
    """f(x) = sum_i a(x, x_i) y_i: what attention reads is the answer, without an output layer.

    Frames of the source are training points, inputs and then outputs; frames beside the decoder
    inputs are the query points. Outputs are the first units of values as wide as keys, followed by
    zeros.
    """

    slots = ("cross",)
    gives = frozenset({"source_states"})
    reads_frames = True
    gives_numbers = True

    def __init__(self, config: KernelRegressionConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes = parts.sizes
        self.inputs, self.outputs = sizes.input_frames, sizes.target_vocab
        if not self.inputs or sizes.frames_of(0) != self.inputs + self.outputs:
            raise Refused(
                "kernel_regression reads points with inputs and outputs, and this task has a "
                f"source of {sizes.frames_of(0)} numbers and queries of {self.inputs}."
            )
        self.width = max(config.features or self.inputs, self.outputs)
        self.map: nn.Module = nn.Identity()
        if config.features:
            self.map = nn.Sequential(
                nn.Linear(self.inputs, self.width), nn.Tanh(), nn.Linear(self.width, self.width)
            )
        # a kernel may have nothing to learn, and an optimizer needs a parameter; it is never used
        self.unused = nn.Parameter(torch.zeros(()))
        self.slot = parts.attach(
            SlotPlace(
                regime="cross",
                query_width=self.width,
                source_width=self.width,
                head="raw",
                given=parts.capabilities - {"source_tokens"},
            )
        )
        self.output = parts.output(
            OutputSizes(
                vocab=sizes.target_vocab,
                states=self.width,
                context=self.slot.output_width,
                embedded=self.width,
                unk=sizes.unk,
                source=self.width,
                bos=sizes.bos,
                eos=sizes.eos,
            )
        )

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Query all points at once."""
        text = batch.sources[0]
        assert text.frames is not None, "training points are frames"
        assert batch.frames is not None, "so are the query points"
        x, y = text.frames.split((self.inputs, self.outputs), -1)
        query = self._mapped(batch.frames)
        values = functional.pad(y, (0, self.width - self.outputs))
        memory = self.slot.prepare(self._mapped(x), text.mask, None, values)
        state = self.slot.start(memory, query)
        context, attended = self.slot.attend(query, memory, state, **mode.call())
        return Trace(query, context, query, (attended,), (memory,))

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """What was read, as it is."""
        return context[..., : self.outputs] + 0 * self.unused

    def variant_slots(self) -> tuple[Slot, ...]:
        """The one slot."""
        return (self.slot,)

    def _mapped(self, x: Tensor) -> Tensor:
        """Inputs, or their features; zeros behind inputs that are fewer than outputs."""
        mapped: Tensor = self.map(x)
        return functional.pad(mapped, (0, self.width - mapped.shape[-1]))
