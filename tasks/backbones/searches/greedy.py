"""Greedy search: the likeliest word, one after the other.

Replacing unknown words: Luong, Pham & Manning, 2015, "Effective approaches to attention-based
neural machine translation", https://arxiv.org/abs/1508.04025, section 4.

Deviations: an unknown word is replaced by the source word itself, without a dictionary, and never
by EOS.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bench.api.backbone import Generated
from bench.api.batch import Batch, Sizes
from bench.api.capabilities import NOTHING, Capability
from bench.api.config import Config
from bench.api.registry import Citation, register
from bench.api.search import Search, Walk
from tasks.backbones.searches.found_words import cut_at_eos, looked_at, source_words


@dataclass(frozen=True, kw_only=True)
class GreedyConfig(Config):
    """Options of greedy search."""

    replace_unk: bool = False
    """Whether an output UNK becomes the source word that got most attention."""


@register(
    "search",
    "greedy",
    config=GreedyConfig,
    title="greedy search",
    citation=Citation(
        text="Luong et al., 2015", url="https://arxiv.org/abs/1508.04025", where="section 4"
    ),
)
class GreedySearch(Search):
    """argmax of every step, until every row has reached EOS."""

    def __init__(self, config: GreedyConfig, sizes: Sizes) -> None:
        super().__init__(config, sizes)
        self.replace_unk = config.replace_unk

    @classmethod
    def wanted(cls, config: GreedyConfig) -> frozenset[Capability]:
        """Copying needs weights and the source."""
        return frozenset({"weights", "source_tokens"}) if config.replace_unk else NOTHING

    def decode(self, walk: Walk, batch: Batch, max_length: int) -> Generated:
        """Step with all rows at once; a row that has ended repeats EOS."""
        eos, unk = self.sizes.eos, self.sizes.unk
        tokens = batch.sources[0].tokens
        word = torch.full((len(tokens), 1), self.sizes.bos, device=tokens.device)
        done = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
        said: list[Tensor] = []
        heard: list[Tensor] = []
        for _ in range(max_length):
            found = walk.step(word)
            walk, word = found.walk, found.log_probs.argmax(-1, keepdim=True)
            shown = word
            if self.replace_unk:
                copied = looked_at(found.weights, source_words(batch), unk)
                shown = torch.where(word == unk, copied[:, None], word)
            said.append(torch.where(done[:, None], eos, shown))
            heard.append(torch.where(done[:, None], eos, word))
            done = done | (word[:, 0] == eos)
            if bool(done.all()):
                break
        tokens_heard = cut_at_eos(torch.cat(heard, 1), eos) if self.replace_unk else None
        return Generated(cut_at_eos(torch.cat(said, 1), eos), len(said), heard=tokens_heard)
