"""Outputs and losses that look at weights, inside the real decoder."""

from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.errors import Refused
from bench.api.loss import LossInputs
from bench.api.resolve import resolve
from bench.api.trace import Mode

SMALL = "rnn_seq2seq[hidden=16,embedding=8]"


@pytest.mark.parametrize("decoder", ["luong", "bahdanau"])
def test_pointer_generator_gives_one_distribution_over_the_extended_vocabulary(
    decoder, built, near
):
    backbone, task, batch = built(
        "pointer_generator",
        task="oov_copy[unknown=0.5]",
        backbone=f"rnn_seq2seq[hidden=16,embedding=8,decoder={decoder}]",
    )
    trace = backbone(batch, Mode())
    logs = backbone.output.log_probs(trace, backbone.emit, batch)
    vocab = task.sizes.target_vocab
    assert logs.shape[-1] == vocab + batch.num_extra
    near(logs.exp().sum(-1), torch.ones_like(logs[..., 0]))
    here = torch.zeros(len(logs), vocab + batch.num_extra, dtype=torch.bool)
    here.scatter_(1, batch.extended, True)
    extra = logs.exp()[:, :, vocab:]
    copied = here[:, None, vocab:].expand_as(extra)
    assert (extra[copied] > 1e-6).all(), "unknown words of the source can be said"
    assert (extra[~copied] < 1e-15).all(), "unknown words of other rows cannot"
    nll = backbone.output.nll(trace, backbone.emit, batch)
    near(nll, -logs.gather(-1, batch.targets[..., None]).squeeze(-1))
    assert (batch.targets >= vocab).any()


def test_hard_exact_mixes_the_predictions_of_single_keys(built, near):
    backbone, _, batch = built("hard_exact", backbone=SMALL)
    trace = backbone(batch, Mode())
    logs = backbone.output.log_probs(trace, backbone.emit, batch).double()
    near(logs.exp().sum(-1), torch.ones_like(logs[..., 0]), 1e-6)
    states = trace.memories[0].source.value[:, 0]
    mixed = torch.zeros_like(logs)
    for key in range(states.shape[1]):
        value = states[:, key : key + 1].expand(-1, logs.shape[1], -1)
        said = backbone.emit(trace.states, value, trace.embedded).softmax(-1)
        mixed += trace.weights[:, :, key, None] * said
    near(logs.exp(), mixed, 1e-6)
    soft = backbone.emit(trace.states, trace.context, trace.embedded).softmax(-1)
    assert (soft - mixed).abs().max() > 1e-4, "mixing values would pass too"
    nll = backbone.output.nll(trace, backbone.emit, batch).double()
    expected = -logs.gather(-1, batch.targets[..., None]).squeeze(-1)
    near(nll, torch.where(batch.mask, expected, 0.0), 1e-5)


def test_hard_exact_needs_states_that_ignore_the_context(built):
    with pytest.raises(Refused, match=r"hard_exact needs .*states"):
        built("hard_exact", backbone="rnn_seq2seq[hidden=16,embedding=8,decoder=bahdanau]")


def test_supervised_attention_is_the_cross_entropy_with_the_gold_alignment(built, near):
    backbone, _, batch = built(
        "supervised_attention", task="transduction[rule=fert]", backbone=SMALL
    )
    spec = resolve("supervised_attention")
    loss = registry.make("loss", spec.axes["loss"][0])
    trace = backbone(batch, Mode())
    nll = backbone.output.nll(trace, backbone.emit, batch)
    term, _ = loss(LossInputs(trace, nll, batch, 1.0), loss.init())
    linked = [
        -trace.weights[row, t, batch.gold[row, t].argmax()].log()
        for row in range(len(batch.mask))
        for t in range(batch.mask.shape[1])
        if batch.mask[row, t]
    ]
    near(term, torch.stack(linked).mean())


@pytest.mark.parametrize("decoder", ["luong", "bahdanau[output_layer_state=curr]"])
def test_copynet_reads_the_states_it_copied_from_beside_the_next_word(decoder, built, near):
    backbone, task, batch = built(
        "copynet",
        task="oov_copy[unknown=0.5]",
        backbone=f"rnn_seq2seq[hidden=16,embedding=8,decoder={decoder}]",
    )
    trace = backbone(batch, Mode())
    assert trace.embedded.shape[-1] == 8 + 16
    read = trace.embedded[..., 8:]
    assert not read[:, 0].any(), "nothing is read for the first word"
    states = trace.memories[0].source.value[:, 0]
    said, copies = batch.targets, 0
    for row in range(len(said)):
        for t in range(1, said.shape[1]):
            held = [j for j, x in enumerate(batch.extended[row]) if x == said[row, t - 1]]
            keys = [torch.tanh(backbone.output.to_key.weight @ states[row, j]) for j in held]
            scores = [torch.exp(key @ trace.states[row, t - 1]) for key in keys]
            expected = torch.zeros_like(read[row, t])
            for score, j in zip(scores, held, strict=True):
                expected = expected + score / sum(scores) * states[row, j]
            near(read[row, t], expected)
            copies += bool(held) and int(said[row, t - 1]) >= task.sizes.target_vocab
    assert copies > 3, "unknown words must be read back by their own ids"


@pytest.mark.parametrize("decoder", ["luong", "bahdanau"])
def test_coverage_embeddings_see_the_word_and_what_copynet_reads_beside_it(decoder, built, near):
    backbone, _, batch = built(
        "mi_coverage[output=copynet]",
        task="oov_copy[unknown=0.5]",
        backbone=f"rnn_seq2seq[hidden=16,embedding=8,decoder={decoder}]",
    )
    word_map = backbone.variant_slots()[0].variant.stacked[0].word_map
    assert word_map.shape[1] == 8 + 16
    before = backbone(batch, Mode()).weights
    with torch.no_grad():
        word_map[:, 8:] += 1.0
    after = backbone(batch, Mode()).weights
    near(after[:, 0], before[:, 0])  # nothing is read back for the first word
    assert (after[:, 1:] - before[:, 1:]).abs().max() > 1e-4


def test_copynet_says_again_what_it_is_forced_to_say(built):
    backbone, task, batch = built(
        "copynet", task="oov_copy[unknown=0.8]", backbone=SMALL, rows=8, seed=2
    )
    with torch.no_grad():
        backbone.output.to_key.weight.mul_(8)
        backbone.project.bias.sub_(4)  # copies get most of the mass
    said = backbone.generate(batch, 7, Mode()).tokens
    unknown = [w for row in said for w in row if w >= task.sizes.target_vocab]
    assert len(set(unknown)) > 2
    targets = torch.full((8, 7), 2)
    for row, words in enumerate(said):
        targets[row, : len(words)] = torch.tensor(words)
    seen = torch.where(targets >= task.sizes.target_vocab, 3, targets)
    inputs = torch.cat((torch.ones(8, 1, dtype=torch.int64), seen[:, :-1]), 1)
    fed = replace(batch, inputs=inputs, targets=targets, mask=targets > 0, gold=None)
    again = backbone.output.log_probs(backbone(fed, Mode()), backbone.emit, fed).argmax(-1)
    for row, words in enumerate(said):
        assert again[row, : len(words)].tolist() == list(words)


def test_copynet_cannot_feed_a_transformer_unless_it_reads_nothing_back(built):
    with pytest.raises(Refused, match="copynet feeds the decoder word by word"):
        built("copynet", backbone="transformer_seq2seq[width=16,heads=2,layers=1]")
    built("copynet[selective_read=false]", backbone="transformer_seq2seq[width=16,heads=2]")
