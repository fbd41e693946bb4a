"""Features as further tokens, before or after the words of the sentence.

Huang, Liu, Shiang, Oh & Dyer, 2016, "Attention-based multimodal neural machine translation",
https://aclanthology.org/W16-2360: a vector of the whole image and vectors of its regions are
projected to the width of words, and attention covers both alike.

Deviations: all features share one projection. The paper's variant with one recurrent network per
region is not implemented.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from bench.api import registry
from bench.api.batch import Batch, Sizes
from bench.api.config import Choices, Config, IntRange
from bench.api.encoder import ENCODERS, Encoded, Encoder
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import Citation, register
from bench.api.selector import Selector
from bench.api.trace import Mode

PAPER_WIDTH = 4096
"""Units of the layer of VGG-19 that the paper takes its vectors from."""


@dataclass(frozen=True, kw_only=True)
class MultimodalConfig(Config):
    """Options of features as tokens."""

    encoder: Selector = Selector("birnn")
    """What encodes features and words together."""
    place: Annotated[Literal["front", "behind"], Choices(("front", "behind"))] = "front"
    """Features before or after the words."""
    width: Annotated[int, IntRange(1, 8192, log=True)] = PAPER_WIDTH
    """Units of a feature vector; where a task gives its own (`Sizes.features`), that replaces the
    default."""

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise InvalidConfig(f"multimodal: width must be at least 1, got {self.width}.")
        if self.encoder.name == "multimodal":
            raise InvalidConfig(
                "multimodal: features cannot be put in twice; name another encoder."
            )


@register(
    "encoder",
    "multimodal",
    config=MultimodalConfig,
    title="features as further tokens",
    citation=Citation(text="Huang et al., 2016", url="https://aclanthology.org/W16-2360"),
)
class MultimodalEncoder(Encoder):
    """Another encoder over [P f1 ... P fR; words] or [words; P f1 ... P fR]; P has no bias."""

    needs = frozenset({"features"})
    removes = frozenset({"source_tokens", "source_states"})

    def __init__(self, config: MultimodalConfig, embedding_width: int, hidden: int) -> None:
        super().__init__(config, embedding_width, hidden)
        self.in_front = config.place == "front"
        self.inner = registry.make(ENCODERS, config.encoder, embedding_width, hidden)
        self.project = nn.Linear(config.width, embedding_width, bias=False)
        self.output_width = self.inner.output_width
        self.summary_width = self.inner.summary_width
        self.backward = self.inner.backward
        self.stride = self.inner.stride

    def adapt(self, sizes: Sizes) -> None:
        """Project vectors of the task's own width, unless the options give another one."""
        width = self.project.in_features
        if sizes.features in (0, width):
            return
        if width != PAPER_WIDTH:
            raise Refused(_mismatch(sizes.features, width))
        self.project = nn.Linear(sizes.features, self.project.out_features, bias=False)

    def forward(self, x: Float[Tensor, "B S De"], mask: Bool[Tensor, "B S"] | None) -> Encoded:
        """Encode tokens that have been put together."""
        found: Encoded = self.inner(x, mask)
        return found

    def read(
        self,
        x: Float[Tensor, "B S De"],
        mask: Bool[Tensor, "B S"] | None,
        batch: Batch,
        mode: Mode,
    ) -> Encoded:
        """Join the features of the batch to its words, then encode both."""
        pictured = self.project(_features(batch, self.project.in_features))
        count = pictured.shape[1]
        if mask is not None:
            mask = torch.cat((mask.new_ones(len(mask), count), mask), 1)
        if self.in_front or mask is None:
            parts = (pictured, x) if self.in_front else (x, pictured)
            return self(torch.cat(parts, 1), mask)
        both = torch.cat((x, pictured), 1)
        order = _behind(mask.sum(1, keepdim=True) - count, x.shape[1], count)
        return self(both.gather(1, order.unsqueeze(-1).expand_as(both)), mask)

    def arrange(self, batch: Batch) -> Batch:
        """Columns for the features, with their gold where there is some; then as the inner does."""
        count = _features(batch, self.project.in_features).shape[1]
        beside = batch.with_beside(count, 0) if self.in_front else batch.with_beside(0, count)
        if batch.gold is not None and batch.features_gold is not None:
            gold = self._with_features(batch.gold, batch.features_gold, batch.sources[0].mask)
            beside = replace(beside, gold=gold)
        return self.inner.arrange(beside)

    def _with_features(
        self,
        gold: Float[Tensor, "B T S"],
        pictured: Float[Tensor, "B T R"],
        mask: Bool[Tensor, "B S"] | None,
    ) -> Float[Tensor, "B T S+R"]:
        """Columns of words and features in the order of the states."""
        if self.in_front or mask is None:
            return torch.cat((pictured, gold) if self.in_front else (gold, pictured), 2)
        order = _behind(mask.sum(1, keepdim=True), gold.shape[2], pictured.shape[2])
        both = torch.cat((gold, pictured), 2)
        return both.gather(2, order[:, None].expand_as(both))


def _features(batch: Batch, width: int) -> Float[Tensor, "B R F"]:
    if batch.features is None:
        raise Refused("multimodal needs features, and this batch has none.")
    if batch.features.shape[2] != width:
        raise Refused(_mismatch(batch.features.shape[2], width))
    return batch.features


def _mismatch(given: int, width: int) -> str:
    return f"multimodal: features have {given} units, and width is {width}; make them equal."


def _behind(words: Tensor, length: int, count: int) -> Tensor:
    """Which of [words, padding, features] comes to each position: features follow the last word."""
    place = torch.arange(length + count, device=words.device).expand(len(words), -1)
    feature = length + place - words
    return torch.where(
        place < words, place, torch.where(place < words + count, feature, place - count)
    )
