"""The deep decoder against its equations."""

import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.resolve import resolve
from bench.api.trace import Mode

BACKBONE = "rnn_seq2seq[hidden=16,embedding=8,decoder=gnmt[{}]]"


def weights_of(layer):
    return lambda name: getattr(layer, f"{name}_l0")


@pytest.mark.parametrize(
    ("options", "layers", "residual"),
    [("layers=2", 2, True), ("layers=4", 4, True), ("layers=4,residual=false", 4, False)],
)
def test_it_equals_the_equations(options, layers, residual, built, near, logits, loops):
    backbone, _, batch = built("additive[width=9]", backbone=BACKBONE.format(options), rows=3)
    (encoded,), trace = backbone.encode(batch, Mode()), backbone(batch, Mode())
    decoder, said = backbone.decoder, logits(backbone, trace)
    for row in range(3):
        real = slice(None) if batch.sources[0].mask is None else batch.sources[0].mask[row]
        sources = list(encoded.states[row][real])
        start = torch.tanh(loops.affine(decoder.start, encoded.summary[row]))
        hidden, cell = [start] * layers, [torch.zeros_like(start)] * layers
        for t, word in enumerate(batch.inputs[row]):
            # the lowest layer asks with its state of the step before
            context, share = loops.ask(decoder.slots[0], hidden[0], sources)
            given = backbone.target_embedding.weight[word]
            for layer in range(layers):
                cells = decoder.lowest if layer == 0 else decoder.upper[layer - 1]
                read = given if layer == 0 else torch.cat((given, context))
                hidden[layer], cell[layer] = loops.lstm(
                    weights_of(cells), read, hidden[layer], cell[layer]
                )
                added = residual and layer >= 2
                given = hidden[layer] + given if added else hidden[layer]
            near(trace.states[row, t], given)
            near(trace.context[row, t], context)
            near(trace.weights[row, t, : len(sources)], torch.stack(share))
            near(said[row, t], loops.affine(backbone.project, given))


def test_the_lowest_layer_does_not_read_the_context(built):
    backbone, _, batch = built("additive", backbone=BACKBONE.format("layers=3"))
    decoder = backbone.decoder
    embedded = backbone.target_embedding.embedding_dim
    assert decoder.lowest.weight_ih_l0.shape[1] == embedded
    assert all(layer.weight_ih_l0.shape[1] == 16 + decoder.context_width for layer in decoder.upper)
    assert backbone(batch, Mode()).states.shape[-1] == 16


def test_the_recipe_has_this_decoder_and_one_layer_is_refused(built):
    assert resolve("gnmt").fixes["decoder"].name == "gnmt"
    with pytest.raises(InvalidConfig, match="gnmt: layers must be at least 2, got 1"):
        built("additive", backbone=BACKBONE.format("layers=1"))
