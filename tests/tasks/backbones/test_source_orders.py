"""Reading backwards: words turn round, EOS and padding stay, gold goes with the words."""

from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.batch import Batch, Text
from bench.api.errors import Refused
from bench.api.loss import LossInputs
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.trace import Mode
from bench.training.evaluate import evaluate
from bench.training.system import System

BACKWARDS = "rnn_seq2seq[hidden=16,embedding=8,encoder=uni_rnn,source_order=reversed]"
FORWARDS = "rnn_seq2seq[hidden=16,embedding=8,encoder=uni_rnn]"
EOS = 2


@pytest.fixture
def backwards():
    return registry.make("source_order", parse("reversed"), EOS)


def batch_of(*rows: list[int], masked: bool = True) -> Batch:
    width = max(len(row) for row in rows)
    tokens = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    mask = torch.arange(width) < torch.tensor([len(row) for row in rows])[:, None]
    targets = torch.full((len(rows), 2), 5)
    return Batch((Text(tokens, mask if masked else None),), targets, targets, targets > 0)


def test_words_turn_round_in_front_of_eos_and_padding(backwards):
    batch = batch_of([4, 5, 6, 7, EOS], [8, 9, EOS], [4, EOS], [EOS])
    found = backwards.arrange(batch).sources[0]
    assert found.tokens.tolist() == [
        [7, 6, 5, 4, EOS],
        [9, 8, EOS, 0, 0],
        [4, EOS, 0, 0, 0],
        [EOS, 0, 0, 0, 0],
    ]
    assert found.mask is batch.sources[0].mask


def test_a_source_without_eos_turns_round_whole(backwards):
    assert backwards.arrange(batch_of([4, 5, 6], [7, 8])).sources[0].tokens.tolist() == [
        [6, 5, 4],
        [8, 7, 0],
    ]
    unmasked = backwards.arrange(batch_of([4, 5, 6], [7, 8, EOS], masked=False))
    assert unmasked.sources[0].tokens.tolist() == [[6, 5, 4], [8, 7, EOS]]


def test_every_source_turns_round_and_ids_go_with_the_first(backwards):
    first, second = batch_of([4, 5, EOS], [6, EOS]), batch_of([7, 8, 9, EOS], [4, 5, EOS])
    both = replace(
        first,
        sources=(*first.sources, *second.sources),
        extended=torch.tensor([[14, 15, EOS], [16, EOS, 0]]),
    )
    found = backwards.arrange(both)
    assert found.sources[0].tokens.tolist() == [[5, 4, EOS], [6, EOS, 0]]
    assert found.sources[1].tokens.tolist() == [[9, 8, 7, EOS], [5, 4, EOS, 0]]
    assert found.extended.tolist() == [[15, 14, EOS], [16, EOS, 0]]


@pytest.mark.parametrize("task", ["transduction[rule=fert]", "oov_copy", "transduction[rule=svo]"])
def test_twice_is_nothing_at_all(task, built, backwards):
    _, _, batch = built("additive", task=task, backbone=FORWARDS, rows=9)
    once = backwards.arrange(batch)
    again = backwards.arrange(once)
    assert not torch.equal(once.sources[0].tokens, batch.sources[0].tokens)
    assert torch.equal(again.sources[0].tokens, batch.sources[0].tokens)
    for name in ("gold", "extended"):
        before, after = getattr(batch, name), getattr(again, name)
        assert (before is None) == (after is None)
        assert before is None or torch.equal(before, after)


def test_gold_still_points_at_the_same_words(built, backwards):
    _, _, batch = built("additive", task="transduction[rule=svo]", backbone=FORWARDS, rows=9)
    turned = backwards.arrange(batch)
    for found in (batch, turned):
        words = found.sources[0].tokens.gather(1, found.gold.argmax(-1))
        assert torch.equal(
            words[found.mask],
            batch.sources[0].tokens.gather(1, batch.gold.argmax(-1))[found.mask],
        )
    assert not torch.equal(turned.gold, batch.gold)


def test_the_network_reads_the_turned_source_and_nothing_else_changes(built, logits, near):
    reading, _, batch = built("additive", backbone=BACKWARDS, rows=6)
    plain, _, _ = built("additive", backbone=FORWARDS, rows=6)
    plain.load_state_dict(reading.state_dict())
    turned = reading.arrange(batch)
    near(logits(reading, reading(batch, Mode())), logits(plain, plain(turned, Mode())))
    assert torch.equal(reading(batch, Mode()).states, reading(turned, Mode()).states)
    assert (reading(batch, Mode()).states - plain(batch, Mode()).states).abs().max() > 1e-3
    said = [
        network.generate(given, 7, Mode()).tokens
        for network, given in ((reading, batch), (plain, turned))
    ]
    assert said[0] == said[1]


def test_content_based_attention_over_bare_embeddings_does_not_care(built, logits, near):
    plain = "rnn_seq2seq[hidden=16,embedding=8,encoder=embed]"
    turned = plain.replace("encoder=embed", "encoder=embed,source_order=reversed")
    one, _, batch = built("additive", backbone=plain, rows=6)
    two, _, _ = built("additive", backbone=turned, rows=6)
    two.load_state_dict(one.state_dict())
    near(logits(one, one(batch, Mode())), logits(two, two(batch, Mode())))


def test_supervision_and_scores_compare_weights_with_turned_gold(built, near):
    backbone, task, batch = built("supervised_attention", backbone=BACKWARDS, rows=6)
    loss = registry.make("loss", resolve("supervised_attention").axes["loss"][0])
    system = System(backbone, {"supervised": loss})
    terms, _ = system.losses(batch, Mode(), system.init_carry())
    turned = backbone.arrange(batch)
    weights = backbone(batch, Mode()).weights
    expected = -(weights * turned.gold).sum(-1).log()[batch.mask]
    near(terms["supervised"], expected.mean())
    found = evaluate(task, backbone, "validation", torch.device("cpu"), lambda: 0.0)
    answer = found.answers[0]
    best = answer.weights.argmax(-1, keepdim=True)
    hits = answer.batch.gold.gather(-1, best).squeeze(-1)[answer.batch.mask]
    assert found.value("alignment_match") == pytest.approx(hits.mean().item())
    given = LossInputs(backbone(turned, Mode()), terms["nll"], turned, 1.0)
    near(loss(given, {})[0], terms["supervised"])


def test_copies_point_at_the_words_that_were_read(built, near):
    backbone, _, batch = built("pointer_generator", task="oov_copy", backbone=BACKWARDS, rows=6)
    turned = backbone.arrange(batch)
    trace = backbone(turned, Mode())
    with torch.no_grad():
        backbone.output.gate.weight.zero_()
        backbone.output.gate.bias.fill_(-60.0)  # copies alone
    said = backbone.output.log_probs(trace, backbone.emit, turned).exp()
    for row in range(6):
        words = turned.extended[row]
        for word in set(words[words > 0].tolist()):
            mass = trace.weights[row][:, words == word].sum(-1)
            near(said[row, :, word], mass, 1e-6)


def test_two_directions_are_refused_because_only_one_of_them_would_turn(built):
    with pytest.raises(Refused, match="a source that is read as it stands, which reversed removes"):
        built("agreement_trace", backbone=BACKWARDS)


def test_the_recipe_is_the_fixed_vector_reading_backwards(built):
    spec = resolve("source_reversal")
    assert spec.fixes["decoder"].name == "none_state"
    assert spec.fixes["source_order"].name == "reversed"
    backbone, _, _ = built("source_reversal", backbone=FORWARDS)
    assert backbone.variant_slots() == ()
    # a decoder with attention reads backwards just as well
    attending, _, _ = built("additive[source_order=reversed]", backbone=FORWARDS)
    assert len(attending.variant_slots()) == 1
