"""How far a model reads before it answers, measured where attention decides it."""

from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.backbone import Generated
from bench.api.metric import AVERAGE_LAGGING, AVERAGE_PROPORTION, SELECTIONS
from bench.api.noise import DRAWS
from bench.api.selector import parse
from bench.api.trace import Mode
from bench.running.catalog import known_metrics
from bench.training.assemble import assemble
from bench.training.evaluate import _heard, evaluate
from bench.training.quality import train_cell

NAMES = {AVERAGE_LAGGING.name, AVERAGE_PROPORTION.name}
STREAMING = ("raffel_monotonic", "mocha", "milk", "mma", "mma_h")


def network(smoke, variant, **place):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return assemble(smoke(variant, **place), None)


@pytest.mark.parametrize("variant", STREAMING)
def test_variants_that_stream_have_rows_of_their_delay(variant, smoke):
    rows = train_cell(smoke(variant)).rows
    found = {
        row.metric: row.value
        for row in rows
        if row.split == "test" and not (row.axis or row.baseline)
    }
    assert set(found) >= NAMES
    assert 0 < found["average_proportion"] <= 1
    assert found["average_lagging"] > 0


@pytest.mark.parametrize("variant", ["additive", "hard_reinforce", "none_state"])
def test_variants_that_read_everything_have_none(variant, smoke):
    assert not NAMES & {row.metric for row in train_cell(smoke(variant)).rows}


def test_the_catalog_knows_their_units():
    known = known_metrics([])
    assert known["average_lagging"].unit == "source tokens"
    assert {known[name].better for name in NAMES} == {"lower"}


def test_the_delay_is_that_of_the_slowest_head_in_the_slowest_layer(smoke):
    built = network(smoke, "mma", backbone="transformer_seq2seq[width=16,heads=2,layers=2]")
    batch = next(built.task.training(5, torch.Generator().manual_seed(0)))
    trace = built.system.there.eval()(batch, Mode())
    assert len(trace.attended) == 2
    assert trace.read_share is not None
    length = batch.sources[0].mask.sum(1)
    slowest = None
    for attended in trace.attended:
        reach = (attended.weights > 0) * torch.arange(1, attended.weights.shape[3] + 1)
        reach = reach.amax((1, 3)) / length[:, None]
        slowest = reach if slowest is None else torch.maximum(slowest, reach)
    torch.testing.assert_close(trace.read_share, slowest)


@pytest.mark.parametrize("backbone", ["", "transformer_seq2seq[width=16,heads=2,layers=2]"])
def test_the_delay_of_a_decoding_task_is_that_of_what_was_said(backbone, smoke, monkeypatch):
    built = network(smoke, "raffel_monotonic", **({"backbone": backbone} if backbone else {}))
    task, there = built.task, built.system.there.eval()
    task.decodes = True
    batch = replace(task.evaluation("validation")[0])
    monkeypatch.setattr(type(task), "evaluation", lambda self, split: [batch])
    with torch.no_grad():
        said = there.generate(batch, task.sizes.max_length, Mode(noise=DRAWS)).tokens
        (answer,) = evaluate(task, there, "validation", torch.device("cpu"), lambda: 0.0).answers
    assert answer.generated == said
    assert answer.read_shares is not None
    cut = task.sizes.max_length
    assert [len(row) for row in answer.read_shares] == [min(len(words) + 1, cut) for words in said]
    # word by word through the decoder, one sentence alone
    for row in (0, 1):
        forced = replace(
            batch,
            inputs=torch.tensor([[1, *said[row]]]),
            targets=torch.tensor([[*said[row], 2]]),
            mask=torch.ones(1, len(said[row]) + 1, dtype=torch.bool),
            sources=tuple(
                type(text)(text.tokens[row : row + 1], text.mask[row : row + 1])
                for text in batch.sources
            ),
            extended=batch.extended[row : row + 1],
            gold=None,
        )
        with torch.no_grad():
            wanted = there(forced, Mode()).read_share[0]
        assert answer.read_shares[row] == pytest.approx(wanted.tolist()[:cut])


def test_a_search_that_streams_tells_its_delays_itself(smoke, monkeypatch):
    """They are those that the weights of greedy search give, when they are asked again."""
    small = "rnn_seq2seq[hidden=16,embedding=8,encoder=uni_rnn,summaries=none,search=streaming]"
    built = network(smoke, "mocha", backbone=small)
    task, there = built.task, built.system.there
    task.decodes = True
    there.project.bias.data[task.sizes.eos] += 1

    def answers():
        return evaluate(task, there, "validation", torch.device("cpu"), lambda: 0.0).answers

    with monkeypatch.context() as patch:
        patch.delattr("bench.training.evaluate._read_for")
        streamed = answers()
    there.search = registry.make("search", parse("greedy"), task.sizes)
    for one, other in zip(streamed, answers(), strict=True):
        assert one.generated == other.generated
        for shares, wanted in zip(one.read_shares, other.read_shares, strict=True):
            assert shares == pytest.approx(wanted)


def test_a_sentence_that_was_cut_has_not_said_its_end(smoke):
    """So it has no delay of one, and no symbol more than were decoded counts for its speed."""
    built = network(smoke, "raffel_monotonic")
    task, there = built.task, built.system.there
    task.decodes = True
    there.project.bias.data[task.sizes.eos] -= 1e6
    found = evaluate(task, there, "validation", torch.device("cpu"), lambda: 0.0)
    rows = [row for answer in found.answers for row in answer.generated]
    delays = [row for answer in found.answers for row in answer.read_shares]
    cut = task.sizes.max_length
    assert {len(row) for row in rows} == {len(row) for row in delays} == {cut}
    assert found.decoded_tokens == cut * len(rows)


def test_a_rationale_has_rows_of_its_selection_and_other_encoders_have_none(smoke):
    protocol = "adam[steps=4,batch=8,evaluate_every=4]"
    selecting, plain = (
        {row.metric for row in train_cell(smoke(name, task="after_marker", protocol=protocol)).rows}
        for name in ("rationale", "scaled_dot")
    )
    names = {metric.name for metric in SELECTIONS}
    assert names <= selecting
    assert not names & plain


def test_a_decoder_hears_the_words_that_it_read_and_not_those_put_in_their_place(smoke):
    task = network(smoke, "additive").task
    batch, sizes = task.evaluation("validation")[0], task.sizes
    generated = Generated(((7, 5), (4,)), heard=((sizes.unk, 5), (4,)))
    told = _heard(batch, generated, sizes)
    assert told.inputs.tolist() == [[sizes.bos, sizes.unk, 5], [sizes.bos, 4, sizes.eos]]
    assert told.targets.tolist() == [[7, 5, sizes.eos], [4, sizes.eos, 0]]
    assert told.mask.tolist() == [[True] * 3, [True, True, False]]
    plain = _heard(batch, replace(generated, heard=None), sizes)
    assert plain.inputs.tolist() == [[sizes.bos, 7, 5], [sizes.bos, 4, sizes.eos]]


def test_no_more_is_read_than_there_is_where_an_encoder_hides_tokens(smoke):
    backbone = "rnn_seq2seq[hidden=16,embedding=8,encoder=rationale]"
    built = network(smoke, "raffel_monotonic[loss=rationale]", backbone=backbone)
    batch = next(built.task.training(5, torch.Generator().manual_seed(0)))
    with torch.no_grad():
        trace = built.system.there.eval()(batch, Mode())
    real = trace.memories[0].source.key_mask()
    assert (real.sum(1) < batch.sources[0].mask.sum(1)).any()
    assert (trace.read_share <= 1).all()
