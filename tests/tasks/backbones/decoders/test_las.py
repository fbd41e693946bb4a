"""The speller against its equations, and inputs drawn from its own predictions."""

from dataclasses import replace

import pytest
import torch

from bench.api.errors import InvalidConfig, Refused
from bench.api.noise import Noise
from bench.api.resolve import resolve
from bench.api.trace import Mode

BACKBONE = "rnn_seq2seq[hidden=16,embedding=8,decoder=las[{}]]"


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_it_equals_the_equations(layers, built, near, logits, loops):
    backbone, _, batch = built(
        "additive[width=9]", backbone=BACKBONE.format(f"layers={layers}"), rows=3
    )
    (encoded,), trace = backbone.encode(batch, Mode()), backbone(batch, Mode())
    decoder, said = backbone.decoder, logits(backbone, trace)
    for row in range(3):
        real = slice(None) if batch.sources[0].mask is None else batch.sources[0].mask[row]
        states = list(encoded.states[row][real])
        start = torch.tanh(loops.affine(decoder.start, encoded.summary[row]))
        hidden, cell = [start] * layers, [torch.zeros_like(start)] * layers
        heard = torch.zeros(decoder.context_width, dtype=torch.float64)
        for t, word in enumerate(batch.inputs[row]):
            given = torch.cat((backbone.target_embedding.weight[word], heard))
            for layer in range(layers):

                def weights(name, layer=layer):
                    return getattr(decoder.rnn, f"{name}_l{layer}")

                hidden[layer], cell[layer] = loops.lstm(weights, given, hidden[layer], cell[layer])
                given = hidden[layer]
            heard, share = loops.ask(decoder.slots[0], given, states)
            near(trace.states[row, t], given)
            near(trace.context[row, t], heard)
            near(trace.weights[row, t, : len(states)], torch.stack(share))
            read = loops.affine(decoder.of_state, given) + loops.affine(decoder.of_context, heard)
            near(said[row, t], loops.affine(backbone.project, torch.tanh(read)))


def training(seed: int = 0) -> Mode:
    return Mode(read="train", noise=Noise(seed))


def test_without_sampling_training_reads_the_targets(built, near):
    backbone, _, batch = built("additive", backbone=BACKBONE.format("sampling=0.0"))
    near(backbone(batch, training()).states, backbone(batch, Mode()).states)


def test_evaluation_never_samples(built):
    backbone, _, batch = built("additive", backbone=BACKBONE.format("sampling=1.0"))
    plain, _, _ = built("additive", backbone=BACKBONE.format("sampling=0.0"))
    for mode in (Mode(), Mode(read="hard"), Mode(read="expected")):
        assert torch.equal(backbone(batch, mode).states, plain(batch, mode).states)


def test_a_network_that_is_sure_hears_its_own_last_word(built, near):
    """With all inputs sampled and large logits, training follows the network's greedy output."""
    backbone, _, batch = built("additive", backbone=BACKBONE.format("sampling=1.0"), rows=8)
    with torch.no_grad():
        backbone.project.weight.mul_(500)
        backbone.project.bias[:3] -= 1e5
    length = batch.inputs.shape[1]
    said = backbone.generate(batch, length, Mode()).tokens
    assert len({word for row in said for word in row}) > 1
    inputs = torch.tensor([[1, *row[: length - 1]] for row in said])
    again = backbone(replace(batch, inputs=inputs), Mode())
    trace = backbone(batch, training())
    near(trace.states, again.states)
    near(trace.embedded, backbone.target_embedding(inputs))
    assert (trace.states - backbone(batch, Mode()).states).abs().max() > 1e-3


def test_the_share_of_sampled_inputs_is_the_one_asked_for_and_the_first_is_never(built):
    backbone, _, batch = built("additive", backbone=BACKBONE.format("sampling=0.3"), rows=200)
    with torch.no_grad():
        backbone.project.bias[3] += 1e4  # it always says UNK, which no target is
    embedded = backbone(batch, training()).embedded
    unknown = (embedded == backbone.target_embedding.weight[3]).all(-1)
    assert not unknown[:, 0].any()
    assert unknown[:, 1:].double().mean().item() == pytest.approx(0.3, abs=0.05)


def test_words_are_drawn_in_proportion_to_what_the_network_says(built):
    backbone, _, batch = built("additive", backbone=BACKBONE.format("sampling=1.0"), rows=400)
    with torch.no_grad():
        backbone.project.weight.zero_()
        backbone.project.bias.fill_(-1e4)
        backbone.project.bias[4], backbone.project.bias[5] = 0.0, torch.tensor(3.0).log()
    embedded = backbone(batch, training()).embedded[:, 1:]
    fours, fives = (
        (embedded == backbone.target_embedding.weight[word]).all(-1).double().mean().item()
        for word in (4, 5)
    )
    assert fours == pytest.approx(0.25, abs=0.04)
    assert fours + fives == 1


def test_equal_seeds_sample_alike_and_others_do_not(built):
    backbone, _, batch = built("additive", backbone=BACKBONE.format("sampling=0.5"), rows=20)
    before = torch.get_rng_state()
    one, two, other = (backbone(batch, training(seed)).embedded for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    "variant",
    [
        "copynet",
        "pointer_net",
        "pointer_generator",
        "lexicon_bias",
        "additive[output=pointer_sentinel]",
        "additive[output=neural_cache]",
    ],
)
def test_words_are_not_drawn_from_the_logits_of_an_output_that_is_no_softmax(variant, built):
    with pytest.raises(Refused, match=r"gives words other .*use decoder=las\[sampling=0\.0\]"):
        built(variant, task="oov_copy", backbone=BACKBONE.format("sampling=0.5"))
    backbone, _, batch = built(variant, task="oov_copy", backbone=BACKBONE.format("sampling=0.0"))
    trace = backbone(batch, training())
    plain = backbone.target_embedding(batch.inputs)
    assert torch.equal(trace.embedded[..., : plain.shape[2]], plain)


def test_gradients_pass_words_that_were_sampled(built):
    backbone, _, batch = built("additive", backbone=BACKBONE.format("sampling=0.5"))
    trace = backbone(batch, training())
    backbone.output.nll(trace, backbone.emit, batch).sum().backward()
    for parameter in backbone.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()


def test_the_recipe_listens_with_a_pyramid_and_shares_beyond_one_are_refused(built):
    fixes = resolve("las").fixes
    assert fixes["encoder"].name == "pyramid"
    assert fixes["decoder"].options["sampling"] == 0.1
    assert fixes["decoder"].options["layers"] == 2
    with pytest.raises(InvalidConfig, match=r"between 0 and 1, got 1\.5"):
        built("additive", backbone=BACKBONE.format("sampling=1.5"))
    with pytest.raises(InvalidConfig, match="layers must be at least 1, got 0"):
        built("additive", backbone=BACKBONE.format("layers=0"))
