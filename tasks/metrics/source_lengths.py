"""Lengths of sources, by which scores are grouped."""

from bench.api.answer import Answer


def source_lengths(answer: Answer) -> list[int]:
    """Source symbols without EOS; target length where there is no source."""
    batch = answer.batch
    if not batch.sources:
        return [batch.inputs.shape[1]] * batch.inputs.shape[0]
    text = batch.sources[0]
    if text.mask is None:
        return [text.tokens.shape[1] - 1] * text.tokens.shape[0]
    lengths: list[int] = (text.mask.sum(1) - 1).tolist()
    return lengths
