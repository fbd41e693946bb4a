"""Beam search: several partial sentences at once, with length and coverage in the score.

Sutskever et al., 2014, "Sequence to sequence learning with neural networks",
https://arxiv.org/abs/1409.3215, section 3.2; the score is that of Wu et al., 2016, "Google's neural
machine translation system", https://arxiv.org/abs/1609.08144, section 7, equation 14. Replacing
unknown words: Luong et al., 2015, https://arxiv.org/abs/1508.04025, section 4.

Deviations: the beam does not shrink when a sentence ends; a row ends with as many sentences as its
beam is wide, or when no partial sentence can still become better than the best. Length counts EOS.
An unknown word is replaced by the source word itself, without a dictionary, and never by EOS.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bench.api.backbone import Generated
from bench.api.batch import Batch, Sizes
from bench.api.capabilities import Capability
from bench.api.config import Config, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.registry import Citation, register
from bench.api.search import Said, Search, Walk
from tasks.backbones.searches.found_words import cut_at_eos, looked_at, source_words

NEVER = float("-inf")


@dataclass(frozen=True, kw_only=True)
class BeamConfig(Config):
    """Options of beam search."""

    width: Annotated[int, IntRange(1, 32, log=True)] = 4
    """Sentences that are followed at once, W."""
    length_penalty: Annotated[float, FloatRange(0.0, 1.5)] = 0.6
    """alpha: log likelihoods are divided by ((5 + length) / 6)^alpha; 0 prefers short sentences."""
    coverage_penalty: Annotated[float, FloatRange(0.0, 1.0)] = 0.0
    """beta, weight of the log of each key's total attention, where that is below one (nats)."""
    replace_unk: bool = False
    """Whether an output UNK becomes the source word that got most attention."""

    def __post_init__(self) -> None:
        """Check width and penalties."""
        if self.width < 1 or min(self.length_penalty, self.coverage_penalty) < 0:
            raise InvalidConfig(
                "beam: width must be at least 1 and penalties at least 0, "
                f"got {self.width}, {self.length_penalty} and {self.coverage_penalty}."
            )


class Beam(NamedTuple):
    """Sentences of every row, with what their scores are made of."""

    likelihood: Float[Tensor, "B W"]
    """Log likelihood so far; minus infinity where there is no sentence."""
    words: Int[Tensor, "B W T"]
    """As they are shown: unknown words replaced, EOS behind the end."""
    heard: Int[Tensor, "B W T"]
    """As the decoder reads them: unknown words stay."""
    coverage: Float[Tensor, "B W S"] | None = None
    """Attention so far, where it counts."""


class Ended(NamedTuple):
    """Sentences that have ended, best first."""

    scores: Float[Tensor, "B W"]
    words: Int[Tensor, "B W T"]
    heard: Int[Tensor, "B W T"]

    def keep(self, scores: Float[Tensor, "B W"], beam: Beam) -> "Ended":
        """The best of these and those."""
        best, place = torch.cat((self.scores, scores), 1).topk(scores.shape[1], 1)
        return Ended(
            best,
            pick(torch.cat((self.words, beam.words), 1), place),
            pick(torch.cat((self.heard, beam.heard), 1), place),
        )


@register(
    "search",
    "beam",
    config=BeamConfig,
    title="beam search",
    citation=Citation(
        text="Wu et al., 2016", url="https://arxiv.org/abs/1609.08144", where="section 7"
    ),
)
class BeamSearch(Search):
    """log p / lp + beta sum_s log min(sum_t w_ts, 1); time W that of greedy search."""

    def __init__(self, config: BeamConfig, sizes: Sizes) -> None:
        super().__init__(config, sizes)
        self.config = config

    @classmethod
    def wanted(cls, config: BeamConfig) -> frozenset[Capability]:
        """Penalty and copying need weights, copying also the source."""
        wanted: set[Capability] = {"weights"} if config.coverage_penalty else set()
        return frozenset(wanted | {"weights", "source_tokens"} if config.replace_unk else wanted)

    def decode(self, walk: Walk, batch: Batch, max_length: int) -> Generated:
        """Step with all sentences of all rows at once."""
        width, tokens = self.config.width, batch.sources[0].tokens
        rows = len(tokens)
        beam = self._begin(rows, max_length, tokens.device)
        ended = Ended(torch.full_like(beam.likelihood, NEVER), beam.words, beam.heard)
        word = torch.full((rows * width, 1), self.sizes.bos, device=tokens.device)
        walk = walk.repeat(width)
        first = width * torch.arange(rows, device=tokens.device)[:, None]
        done = torch.zeros(rows, dtype=torch.bool, device=tokens.device)
        for place in range(max_length):
            found = walk.step(word)
            beam, parent, said = self._extend(beam, found, batch, place)
            score = self._score(beam, found, place + 1)
            ends = (said == self.sizes.eos) & ~done[:, None]
            ended = ended.keep(torch.where(ends, score, NEVER), beam)
            beam = beam._replace(likelihood=beam.likelihood.masked_fill(ends, NEVER))
            done = done | self._nothing_better(beam, ended, max_length)
            if bool(done.all()) or place + 1 == max_length:
                break
            walk = found.walk.reorder((first + parent).flatten())
            word = said.view(-1, 1)
        # a row in which nothing has ended returns its best partial sentence
        cut = torch.where(ended.scores[:, :1] == NEVER, score, NEVER)
        ended = ended.keep(cut, beam)
        best, heard = (
            cut_at_eos(found[:, 0], self.sizes.eos) for found in (ended.words, ended.heard)
        )
        return Generated(
            best,
            place + 1,
            scores=tuple(ended.scores[:, 0].tolist()),
            heard=heard if self.config.replace_unk else None,
        )

    def _begin(self, rows: int, max_length: int, device: torch.device) -> Beam:
        """One empty sentence per row; the first words make the others."""
        width = self.config.width
        likelihood = torch.full((rows, width), NEVER, device=device)
        likelihood[:, 0] = 0
        words = torch.full((rows, width, max_length), self.sizes.eos, device=device)
        return Beam(likelihood, words, words)

    def _extend(
        self, beam: Beam, found: Said, batch: Batch, place: int
    ) -> tuple[Beam, Int[Tensor, "B W"], Int[Tensor, "B W"]]:
        """The W best ways to go on: the beam after them, whom each continues, with which word."""
        rows, width = beam.likelihood.shape
        log_probs = found.log_probs.view(rows, width, -1)
        vocab = log_probs.shape[2]
        total = beam.likelihood.to(log_probs.dtype)[:, :, None] + log_probs
        likelihood, index = total.flatten(1).topk(width, 1)
        parent, said = index // vocab, index % vocab
        words, heard = pick(beam.words, parent), pick(beam.heard, parent)
        shown, coverage = said, None
        if self.config.replace_unk:
            source = source_words(batch).repeat_interleave(width, 0)
            copied = looked_at(found.weights, source, self.sizes.unk).view(rows, width)
            shown = torch.where(said == self.sizes.unk, copied.gather(1, parent), said)
        words[:, :, place], heard[:, :, place] = shown, said
        if self.config.coverage_penalty:
            coverage = found.weights.view(rows, width, -1)
            coverage = coverage if beam.coverage is None else beam.coverage + coverage
            coverage = pick(coverage, parent)
        return Beam(likelihood, words, heard, coverage), parent, said

    def _score(self, beam: Beam, found: Said, length: int) -> Float[Tensor, "B W"]:
        """Score of a sentence that ends here."""
        score = beam.likelihood / length_penalty(length, self.config.length_penalty)
        if beam.coverage is None:
            return score
        memory = found.trace.memories[0]
        assert memory is not None, "cross attention has a memory"
        real = memory.source.key_mask().view(*beam.coverage.shape)
        return score + self.config.coverage_penalty * coverage_penalty(beam.coverage, real)

    def _nothing_better(self, beam: Beam, ended: Ended, max_length: int) -> Bool[Tensor, " B"]:
        """Rows with a full list of ends, or whose beginnings cannot beat the best end any more.

        Likelihood only falls, the longest sentence is divided by most, and coverage never adds.
        """
        hope = beam.likelihood.amax(1) / length_penalty(max_length, self.config.length_penalty)
        best, worst = ended.scores[:, 0], ended.scores[:, -1]
        return (worst > NEVER) | ((best > NEVER) & (best >= hope))


def pick(x: Tensor, place: Int[Tensor, "B W"]) -> Tensor:
    """x[b, position[b, w]] for every b and w."""
    return x.gather(1, place[:, :, None].expand(-1, -1, x.shape[2]))


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha."""
    return float(((5 + length) / 6) ** alpha)


def coverage_penalty(
    coverage: Float[Tensor, "B W S"], real: Bool[Tensor, "B W S"]
) -> Float[Tensor, "B W"]:
    """sum_s log min(coverage_s, 1) over real keys (nats)."""
    # the smallest normal number keeps the logarithm of a key without any weight finite
    paid = coverage.clamp(torch.finfo(coverage.dtype).tiny, 1).log()
    return torch.where(real, paid, 0.0).sum(2)
