"""Streaming: greedy decoding that reads the source no further than its attention goes.

Raffel et al., 2017, "Online and linear-time attention by enforcing monotonic alignments",
https://arxiv.org/abs/1704.00784, section 2.2 (the hard walk); keys before a stop are read as in
Chiu & Raffel, 2018, https://arxiv.org/abs/1712.05382, section 2.2. The delay of a word is g(t) in
equation 9 of Ma et al., 2019, "STACL", https://arxiv.org/abs/1810.08398.

Deviations: states of the encoder are computed ahead, all at once, which for an online encoder is
the same as reading on; what a walk does not reach changes nothing. Rows are decoded together.
"""

from typing import ClassVar

import torch
from torch import Tensor

from bench.api.backbone import Generated
from bench.api.batch import Batch
from bench.api.call import Read
from bench.api.capabilities import Capability
from bench.api.config import NoOptions
from bench.api.registry import Citation, register
from bench.api.search import Search, StreamingWalk, Walk
from tasks.backbones.searches.found_words import cut_at_eos


@register(
    "search",
    "streaming",
    title="streaming greedy search",
    citation=Citation(
        text="Raffel et al., 2017", url="https://arxiv.org/abs/1704.00784", where="section 2.2"
    ),
)
class StreamingSearch(Search):
    """argmax of every step; each head of each row walks on from the key where it stopped.

    A head scores at most S + T keys for T words, where greedy search scores S T; a window or prefix
    before the stop is read beside that, w T or S T keys of a second score. Rows walk together, so a
    step takes as many rounds as the row that reads most; a row leaves the batch with its EOS, which
    copies the memory of those that stay.
    """

    read: ClassVar[Read | None] = "stream"

    @classmethod
    def wanted(cls, config: NoOptions) -> frozenset[Capability]:
        """A walk over single keys, in a network that knows nothing of what it has not read."""
        return frozenset(
            {"stream", "key_local", "weighted_sum", "online", "source_order", "unread_start"}
        )

    def decode(self, walk: Walk, batch: Batch, max_length: int) -> Generated:
        """Step with the rows that have not ended, and note what each had read before each word.

        A sentence that is cut at `max_length` has no EOS, and no delay of one.
        """
        eos = self.sizes.eos
        tokens = batch.sources[0].tokens
        said = torch.full((len(tokens), max_length), eos, device=tokens.device)
        shares = torch.zeros(said.shape, device=tokens.device)
        word = torch.full((len(tokens), 1), self.sizes.bos, device=tokens.device)
        rows = torch.arange(len(tokens), device=tokens.device)
        for place in range(max_length):
            found = walk.step(word)
            word = found.log_probs.argmax(-1, keepdim=True)
            said[rows, place] = word[:, 0]
            shares[rows, place] = _share(found.trace.read_share).to(shares.dtype)
            walk, going = found.walk, (word[:, 0] != eos).nonzero().squeeze(1)
            if len(going) == 0:
                break
            if len(going) < len(rows):
                assert isinstance(walk, StreamingWalk), "rows leave a walk that streams"
                walk, word, rows = walk.select(going), word[going], rows[going]
        words = cut_at_eos(said, eos)
        read = tuple(
            tuple(row[: len(own) + 1]) for row, own in zip(shares.tolist(), words, strict=True)
        )
        return Generated(words, place + 1, read_shares=read)


def _share(found: Tensor | None) -> Tensor:
    assert found is not None, "a walk knows how far it has read"
    return found.squeeze(1)
