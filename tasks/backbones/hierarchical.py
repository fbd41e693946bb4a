"""Documents in two levels: words are pooled to sentences, and sentences to the document.

Yang et al., 2016, "Hierarchical attention networks for document classification",
https://aclanthology.org/N16-1174, section 2.

Deviations: embeddings of 32 and GRUs of 32 in each direction by default, not 200 and 50; the query
of each level is learned, so that any score can be used, and the paper's `context_vector` does not
read it.
"""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.backbone import Backbone, BackboneParts
from bench.api.batch import Batch
from bench.api.build import SlotPlace
from bench.api.call import Attended
from bench.api.capabilities import Capability
from bench.api.config import Config, IntRange
from bench.api.encoder import Encoder
from bench.api.errors import Refused
from bench.api.noise import Noise
from bench.api.output import OutputSizes
from bench.api.registry import Citation, register
from bench.api.selector import Selector
from bench.api.slot import Slot
from bench.api.source import Memory
from bench.api.trace import Mode, Trace
from tasks.backbones.every_word import encoder_of_every_word
from tasks.backbones.sentences import Sentences, split_sentences

OTHER_DRAWS = 0x5E47E4CE
"""Mixed into the seed of the sentence level, whose draws must not be those of the words."""


@dataclass(frozen=True, kw_only=True)
class HierarchicalBackboneConfig(Config):
    """Options of the two-level classifier."""

    embedding: Annotated[int, IntRange(8, 512, log=True)] = 32
    """Width of word embeddings."""
    hidden: Annotated[int, IntRange(16, 512, log=True)] = 64
    """Width of encoder states on both levels, both directions together."""
    encoder: Selector = Selector("birnn")
    """How states are made on both levels, one for each word and for each sentence."""


class Level(nn.Module):
    """An encoder and a slot that pools its states by a learned query."""

    def __init__(self, encoder: Encoder, slot: Slot) -> None:
        super().__init__()
        width = encoder.output_width
        self.encoder = encoder
        self.slot = slot
        self.query = nn.Parameter(torch.randn(width) * width**-0.5)

    def forward(
        self, x: Float[Tensor, "R S De"], mask: Tensor | None, tokens: Tensor | None, mode: Mode
    ) -> tuple[Float[Tensor, "R 1 Dv"], Attended, Memory]:
        """Encode, and pool by one query."""
        encoded = self.encoder(x, mask)
        memory = self.slot.prepare(encoded.states, encoded.mask, tokens)
        query = self.query.expand(x.shape[0], 1, -1)
        state = self.slot.start(memory, query)
        pooled, attended = self.slot.attend(query, memory, state, **mode.call())
        return pooled, attended, memory


@register(
    "backbone",
    "hierarchical",
    config=HierarchicalBackboneConfig,
    title="words pooled to sentences, sentences to a document",
    citation=Citation(
        text="Yang et al., 2016", url="https://aclanthology.org/N16-1174", where="section 2"
    ),
)
class Hierarchical(Backbone):
    """Two levels of pooling; sentences are the segments of the one source.

    The slot `pool` is both levels, `word` and `sentence` are one of them; the other one then holds
    plain attention. Weights are importances of tokens, the product of both levels' weights.
    """

    slots = ("pool", "word", "sentence")
    sized_by = ("hidden", "embedding")
    regimes = MappingProxyType({"word": "pool", "sentence": "pool"})
    gives_numbers = True

    def __init__(self, config: HierarchicalBackboneConfig, parts: BackboneParts) -> None:
        super().__init__(config, parts)
        sizes, width = parts.sizes, config.hidden
        self.held = ("word", "sentence") if parts.slot in ("", "pool") else (parts.slot,)
        self.embedding = nn.Embedding(sizes.source_vocabs[0], config.embedding, padding_idx=0)

        def level(
            name: str, input_width: int, capabilities: frozenset[Capability], vocab: int
        ) -> Level:
            encoder = encoder_of_every_word("hierarchical", config.encoder, input_width, width)
            place = SlotPlace(
                regime="pool",
                query_width=encoder.output_width,
                source_width=encoder.output_width,
                head="raw",
                source_vocab=vocab,
                given=capabilities,
            )
            attach = parts.attach if name in self.held else parts.attach_default
            return Level(encoder, attach(place))

        self.words = level("word", config.embedding, parts.capabilities, sizes.source_vocabs[0])
        # a sentence is no token
        capabilities = parts.capabilities - {"source_tokens"}
        self.sentences = level("sentence", self.words.slot.output_width, capabilities, 0)
        pooled, asked = self.sentences.slot.output_width, len(self.sentences.query)
        self.project = nn.Linear(pooled, sizes.target_vocab)
        self.output = parts.output(OutputSizes(sizes.target_vocab, asked, pooled, asked, sizes.unk))

    def forward(self, batch: Batch, mode: Mode) -> Trace:
        """Pool every sentence, then the document."""
        if batch.targets.shape[1] != 1:
            raise Refused("hierarchical gives one answer per document; this task has several.")
        if mode.edit is not None:
            raise Refused("hierarchical reads sentences, so weights of tokens cannot be edited.")
        folded = split_sentences(batch.sources[0])
        rows, count, _ = folded.tokens.shape
        ids = None if batch.extended is None else folded.fold(batch.extended).flatten(0, 1)
        embedded = self.embedding(folded.tokens).flatten(0, 1)
        vectors, within, _ = self.words(
            embedded, folded.mask.flatten(0, 1), ids, self._mode("word", mode)
        )
        context, among, memory = self.sentences(
            vectors.unflatten(0, (rows, count)).squeeze(2),
            folded.mask.any(-1),
            None,
            self._mode("sentence", mode),
        )
        query = self.sentences.query.expand(rows, 1, -1)
        return Trace(query, context, query, (self._joined(folded, within, among),), (memory,))

    def emit(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Classify the document's vector."""
        return self.project(context)

    def variant_slots(self) -> tuple[Slot, ...]:
        """The slots of the levels that hold the variant."""
        levels = {"word": self.words, "sentence": self.sentences}
        return tuple(levels[name].slot for name in self.held)

    def _mode(self, level: str, mode: Mode) -> Mode:
        """The variant's own mode on its levels, a plain one elsewhere."""
        if level not in self.held:
            return Mode(want_weights=mode.want_weights)
        if level == "word" or mode.noise is None:
            return mode
        return replace(mode, noise=Noise(mode.noise.seed ^ OTHER_DRAWS))

    @staticmethod
    def _joined(folded: Sentences, within: Attended, among: Attended) -> Attended:
        """Both levels as one attention over tokens."""
        real = folded.mask.any(-1)
        terms = dict(among.terms)
        for name, found in within.terms.items():
            total = torch.where(real, found.view(real.shape), 0.0).sum(1, keepdim=True)
            terms[name] = terms[name] + total if name in terms else total
        weights = None
        if within.weights is not None and among.weights is not None:
            words = within.weights.mean(1).view(folded.mask.shape)
            importance = folded.unfold(words * among.weights.mean(1).transpose(1, 2))
            weights = importance[:, None, None]
        return Attended(among.output, weights, among.state, terms)
