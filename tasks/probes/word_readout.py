"""Word readout: which source words a linear map reads from the state that the encoder ends in.

A network without attention has that state alone to decode from: Cho et al., 2014, "On the
properties of neural machine translation", https://arxiv.org/abs/1409.1259, section 4. What is left
of a word in it is measured by a linear readout, as in Alain & Bengio, 2017,
https://arxiv.org/abs/1610.01644, section 3.

Deviations: the readout is ridge regression on one-hot words in closed form; it is fitted on half of
the examples and scored on the other. Only sentences of the greatest length are read, so that every
place has the same examples.
"""

from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from bench.api.batch import Text
from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.metric import Metric, Scored
from bench.api.noise import DRAWS
from bench.api.probe import Probe, Subject
from bench.api.registry import Citation, register
from bench.api.trace import Mode
from tasks.backbones.rnn_seq2seq import RnnSeq2Seq
from tasks.probes.diagnostic_metric import diagnostic
from tasks.probes.linear_readout import half_of, read_linearly


@register(
    "probe",
    "word_readout",
    citation=Citation(
        text="Alain & Bengio, 2017", url="https://arxiv.org/abs/1610.01644", where="section 3"
    ),
)
class WordReadout(Probe):
    """Share of words that are read right, by how many words of the source come after them."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        diagnostic("read_word_accuracy", "Words read from the last state", "words"),
    )

    def __init__(self, config: NoOptions) -> None:
        super().__init__(config)

    def measure(self, subject: Subject) -> list[Scored]:
        """Fit and score a readout for each place, all of them on the same halves.

        Raises:
            Refused: The network has no encoder with a last state, the source has no words, or there
                are too few sentences.
        """
        backbone = subject.backbone
        if not isinstance(backbone, RnnSeq2Seq) or len(backbone.encoders) > 1:
            raise Refused("the state that ends a source is read where one encoder reads it.")
        if any(batch.sources[0].frames is not None for batch in subject.batches):
            raise Refused("words are read where the source has words, and this source has frames.")
        # without the EOS, which every source ends in
        lengths = [_lengths(batch.sources[0]) - 1 for batch in subject.batches]
        longest = max(int(one.max()) for one in lengths)
        states, words = [], []
        for batch, length in zip(subject.batches, lengths, strict=True):
            mine = length == longest
            if not bool(mine.any()):
                continue
            with torch.no_grad():
                (encoded,) = backbone.encode(batch, Mode(noise=DRAWS, want_weights=False))
            states.append(encoded.summary[mine].double())
            words.append(batch.sources[0].tokens[mine, :longest])
        known, said = torch.cat(states), torch.cat(words)
        fit = half_of(torch.ones(len(known), dtype=torch.int64), subject.seed).to(known.device)
        if min(int(fit.sum()), int((~fit).sum())) < 2:
            raise Refused("there are too few sentences to fit a readout and to score it.")
        found = []
        for after in range(longest):
            at = said[:, longest - 1 - after]
            right = read_linearly(known[fit], at[fit], known[~fit]) == at[~fit]
            value = float(right.double().mean())
            found.append(
                Scored(metric="read_word_accuracy", value=value, axis="distance", x=float(after))
            )
        return found


def _lengths(text: Text) -> Int[Tensor, " B"]:
    """Tokens of each source."""
    if text.mask is None:
        return torch.full((len(text.tokens),), text.tokens.shape[1], device=text.tokens.device)
    return text.mask.sum(1)
