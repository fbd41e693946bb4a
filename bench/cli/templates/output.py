"""Say in one sentence how words are predicted; here a softmax of sharpened logits.

No paper yet: authors, year, title, URL, section and equation stand here.

Deviations: none.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.batch import Batch
from bench.api.config import Config, FloatRange
from bench.api.errors import InvalidConfig
from bench.api.output import Output, OutputSizes
from bench.api.registry import DefaultTask, register
from bench.api.trace import Emit, Trace
from variants.precision import at_least_single


@dataclass(frozen=True, kw_only=True)
class NewNameConfig(Config):
    """Options."""

    sharpness: Annotated[float, FloatRange(0.25, 8.0, log=True)] = 2.0
    """What logits are multiplied by before the softmax."""

    def __post_init__(self) -> None:
        """Check the sharpness."""
        if self.sharpness <= 0:
            raise InvalidConfig(f"new_name: sharpness must be positive, got {self.sharpness}.")


@register(
    "output",
    "new_name",
    title="The name that tables print",
    config=NewNameConfig,
    default_task=DefaultTask(task="transduction[rule=reverse]"),
)
class NewNameOutput(Output):
    """log softmax(g z) over the vocabulary; a word beyond it is never right."""

    def __init__(self, config: NewNameConfig, sizes: OutputSizes) -> None:
        super().__init__(config, sizes)
        self.sharpness = config.sharpness

    def log_probs(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T VX"]:
        """Log probability of every word, and nothing for words that only the source has."""
        logits = at_least_single(emit(trace.states, trace.context, trace.embedded))
        known = torch.log_softmax(self.sharpness * logits, -1)
        return functional.pad(known, (0, batch.num_extra), value=float("-inf"))

    def nll(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "B T"]:
        """A word that only the source has is trained as the unknown word."""
        unknown = batch.targets >= self.sizes.vocab
        targets = torch.where(unknown, self.sizes.unk, batch.targets)
        chosen = self.log_probs(trace, emit, batch).gather(-1, targets.unsqueeze(-1))
        return torch.where(batch.mask, -chosen.squeeze(-1), 0.0)

    def oracle(self, trace: Trace, emit: Emit, batch: Batch) -> Float[Tensor, "T VX"]:
        """One example, word by word, in probabilities."""
        steps = []
        for step in zip(trace.states[0], trace.context[0], trace.embedded[0], strict=True):
            raised = [torch.exp(self.sharpness * logit) for logit in emit(*step)]
            total = sum(raised, torch.zeros_like(raised[0]))
            words = [p / total for p in raised] + [torch.zeros_like(total)] * batch.num_extra
            steps.append(torch.stack(words))
        return torch.stack(steps)
