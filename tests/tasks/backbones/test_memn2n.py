"""The memory network against the published equations in loops, and what they imply."""

import doctest

import pytest
import torch

from bench.api.batch import Batch, Text
from bench.api.errors import InvalidConfig, Refused
from bench.api.trace import Mode
from tasks.backbones import memn2n
from tasks.backbones.memn2n import position_encoding

VOCAB = 11
STORIES = (([5, 6, 7], [8, 9], [10, 4, 5, 6]), ([4, 5], [6, 10]), ([7, 7, 8],))
QUESTIONS = ([5, 9], [4], [8, 7, 6])
KINDS = [
    f"tying={tying},encoding={encoding},temporal={temporal}"
    for tying in ("adjacent", "layer_wise")
    for encoding in ("position", "bag")
    for temporal in ("true", "false")
]


def examples(stories=STORIES, questions=QUESTIONS, pad: int = 1) -> Batch:
    def text(rows):
        flat = [[w for sentence in row for w in sentence] for row in rows]
        length = max(map(len, flat)) + pad
        tokens = torch.full((len(rows), length), 3)
        segments, mask = torch.zeros_like(tokens), torch.zeros_like(tokens, dtype=torch.bool)
        for index, (row, words) in enumerate(zip(rows, flat, strict=True)):
            tokens[index, : len(words)] = torch.tensor(words)
            numbers = [n for n, sentence in enumerate(row) for _ in sentence]
            segments[index, : len(words)] = torch.tensor(numbers)
            mask[index, : len(words)] = True
        return Text(tokens, mask, segments)

    told = torch.arange(4, 4 + len(stories))[:, None]
    both = (text(stories), text([[q] for q in questions]))
    return Batch(both, told, told, torch.ones_like(told).bool())


def said(network, batch) -> torch.Tensor:
    trace = network(batch, Mode())
    return network.emit(trace.states, trace.context, trace.embedded)[:, 0]


def sentence(table, words, encoding):
    """Sum of embeddings; word j of J and unit k of d weigh (1 - j/J) - (k/d)(1 - 2j/J)."""
    total, width = torch.zeros(table.shape[1], dtype=torch.float64), table.shape[1]
    for j, word in enumerate(words, 1):
        for k in range(1, width + 1):
            share = j / len(words)
            weight = (1 - share) - k / width * (1 - 2 * share) if encoding == "position" else 1
            total[k - 1] = total[k - 1] + weight * table[word, k - 1]
    return total


def oracle(network, story, question):
    """Logits and the weights of every hop."""
    config = network.config
    adjacent = config.tying == "adjacent"
    tables = [table.weight for table in network.tables]
    ages = [table.weight for table in network.ages]
    first = tables[0] if adjacent else network.question.weight
    u = sentence(first, question, config.encoding)
    seen = []
    for hop in range(config.hops):
        at = hop if adjacent else 0
        keys, values = [], []
        for index, words in enumerate(story):
            age = len(story) - 1 - index
            for found, offset in ((keys, 0), (values, 1)):
                vector = sentence(tables[at + offset], words, config.encoding)
                found.append(vector + ages[at + offset][age] if config.temporal else vector)
        energies = [u @ key for key in keys]
        exps = [torch.exp(e - max(energies)) for e in energies]
        weights = [e / sum(exps) for e in exps]
        o = sum(w * v for w, v in zip(weights, values, strict=True))
        u = (u if adjacent else network.carry.weight @ u) + o
        seen.append(weights)
    answer = tables[-1] if adjacent else network.answer.weight
    return torch.stack([row @ u for row in answer]), seen


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_equals_the_equations(kind, placed, near):
    network = placed(f"memn2n[width=6,{kind}]", "dot", (VOCAB, VOCAB), VOCAB)
    batch = examples()
    trace, logits = network(batch, Mode()), said(network, batch)
    assert len(trace.attended) == 3
    for row, (story, question) in enumerate(zip(STORIES, QUESTIONS, strict=True)):
        expected, seen = oracle(network, story, question)
        near(logits[row], expected)
        for attended, weights in zip(trace.attended, seen[::-1], strict=True):
            tokens = [
                w / len(words) for w, words in zip(weights, story, strict=True) for _ in words
            ]
            near(attended.weights[row, 0, 0, : len(tokens)], torch.stack(tokens))
            assert not attended.weights[row, 0, 0, len(tokens) :].any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_story_in_a_batch_is_the_story_alone(kind, placed, near):
    network = placed(f"memn2n[width=6,{kind}]", "additive", (VOCAB, VOCAB), VOCAB)
    together = said(network, examples(pad=4))
    for row in range(3):
        single = examples(STORIES[row : row + 1], QUESTIONS[row : row + 1], pad=0)
        near(together[row], said(network, single)[0])


def test_golden_position_encoding():
    expected = [
        [0.583333, 0.5, 0.416667, 0.333333],
        [0.416667, 0.5, 0.583333, 0.666667],
        [0.25, 0.5, 0.75, 1.0],
    ]
    found = position_encoding(torch.tensor([3, 2]), 3, 4)
    torch.testing.assert_close(found[0], torch.tensor(expected).double(), rtol=0, atol=5e-7)
    torch.testing.assert_close(found[1, :2], position_encoding(torch.tensor(2), 2, 4))
    assert doctest.testmod(memn2n).attempted > doctest.testmod(memn2n).failed == 0


@pytest.mark.parametrize("temporal", ["true", "false"])
def test_without_ages_the_order_of_sentences_does_not_matter(temporal, placed):
    network = placed(f"memn2n[width=6,temporal={temporal}]", "dot", (VOCAB, VOCAB), VOCAB)
    turned = examples(tuple(story[::-1] for story in STORIES))
    gap = (said(network, examples()) - said(network, turned)).detach().abs().amax(1)
    assert (gap[:2] < 1e-12).all() == (temporal == "false")
    assert gap[2] == 0, "a story of one sentence has one order"


@pytest.mark.parametrize("encoding", ["position", "bag"])
def test_a_bag_does_not_see_the_order_of_words_and_places_do(encoding, placed):
    network = placed(f"memn2n[width=6,encoding={encoding}]", "dot", (VOCAB, VOCAB), VOCAB)
    turned = examples(tuple(tuple(s[::-1] for s in story) for story in STORIES))
    gap = (said(network, examples()) - said(network, turned)).detach().abs().amax(1)
    assert (gap[:2] < 1e-12).all() == (encoding == "bag")


def test_only_the_most_recent_sentences_are_kept(placed, near):
    network = placed("memn2n[width=6,memories=2]", "dot", (VOCAB, VOCAB), VOCAB)
    recent = examples(tuple(story[-2:] for story in STORIES))
    near(said(network, examples()), said(network, recent))
    trace = network(examples(), Mode())
    assert not trace.attended[0].weights[0, 0, 0, :3].any()


def test_hops_of_the_variant_and_hops_of_the_network_are_the_same_hops(placed, near):
    """Layer-wise hops with H the identity in both: one read of three, or three of one."""
    networks = []
    for hops, variant in ((3, "dot"), (1, "memn2n[hops=3,tying=layer_wise]")):
        name = f"memn2n[width=6,hops={hops},tying=layer_wise]"
        network = placed(name, variant, (VOCAB, VOCAB), VOCAB, seed=5)
        with torch.no_grad():
            for parameter in network.slot_list.parameters():
                parameter.copy_(torch.eye(6))
            network.carry.weight.copy_(torch.eye(6))
        networks.append(network)
    own = {n: p for n, p in networks[0].named_parameters() if "slot" not in n}
    with torch.no_grad():
        for name, parameter in networks[1].named_parameters():
            if name in own:
                parameter.copy_(own[name])
    near(*(said(network, examples()) for network in networks))


def test_tying_shares_what_the_paper_shares(placed):
    adjacent = placed("memn2n[width=6]", "additive", (VOCAB, VOCAB), VOCAB)
    assert len(adjacent.tables) == len(adjacent.ages) == 4
    assert len(adjacent.variant_slots()) == 3
    shared = placed("memn2n[width=6,tying=layer_wise]", "additive", (VOCAB, 7), 5)
    assert len(shared.tables) == len(shared.ages) == 2
    assert len(shared.variant_slots()) == 1
    assert shared.carry.weight.shape == (6, 6)


@pytest.mark.parametrize("tying", ["adjacent", "layer_wise"])
def test_gradients_reach_every_parameter(tying, placed):
    network = placed(f"memn2n[width=6,tying={tying}]", "additive", (VOCAB, VOCAB), VOCAB)
    batch = examples()
    trace = network(batch, Mode())
    network.output.nll(trace, network.emit, batch).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_padding_starts_as_nothing_and_an_empty_story_leaves_the_question(placed, near):
    network = placed("memn2n[width=6]", "dot", (VOCAB, VOCAB), VOCAB)
    batch = examples(((), STORIES[1]), QUESTIONS[:2])
    trace = network(batch, Mode())
    assert not trace.context[0].any()
    near(trace.states[0], trace.embedded[0])
    trace.context.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())


def accuracy(network) -> float:
    """After some training: the room of a thing whose box is told, and the room of the box."""
    rng = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)

    def batch(rows: int) -> Batch:
        # things 4-7 are in boxes 8-11, boxes in rooms 12-15; two things and two boxes a story
        things, boxes, rooms = (
            torch.rand(rows, 4, generator=rng).argsort(1)[:, :2] + first for first in (4, 8, 12)
        )
        facts = torch.stack((things, boxes, boxes, rooms), -1).view(rows, 8)
        numbers = (torch.arange(8) // 2).expand(rows, -1)
        texts = (Text(facts, None, numbers), Text(things[:, :1], None))
        told = rooms[:, :1]
        return Batch(texts, told, told, torch.ones_like(told).bool())

    for _ in range(150):
        drawn = batch(64)
        trace = network(drawn, Mode())
        optimizer.zero_grad()
        network.output.nll(trace, network.emit, drawn).mean().backward()
        optimizer.step()
    test = batch(400)
    with torch.no_grad():
        return float((said(network, test).argmax(-1) == test.targets[:, 0]).double().mean())


def test_two_facts_need_two_hops(placed):
    found = {}
    for hops in (1, 2):
        network = placed(f"memn2n[hops={hops},temporal=false]", "dot", (16, 16), 16).float()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.normal_(0, 0.5, generator=torch.Generator().manual_seed(len(parameter)))
        found[hops] = accuracy(network)
    assert found[1] < 0.65, "one hop can tell which rooms there are, not which one it is"
    assert found[2] > 0.95


def test_impossible_networks_are_refused(placed):
    with pytest.raises(Refused, match="story and a question"):
        placed("memn2n", "dot", (VOCAB,), VOCAB)
    with pytest.raises(Refused, match="use tying=layer_wise"):
        placed("memn2n", "dot", (VOCAB, VOCAB), VOCAB + 1)
    with pytest.raises(Refused, match="must have the width"):
        placed("memn2n[width=16]", "scaled_dot[head=snail[value=4]]", (VOCAB, VOCAB), VOCAB)
    with pytest.raises(InvalidConfig, match="at least 1"):
        placed("memn2n[hops=0]", "dot", (VOCAB, VOCAB), VOCAB)
    network = placed("memn2n", "dot", (VOCAB, VOCAB), VOCAB)
    batch = examples()
    several = Batch(batch.sources, batch.inputs, batch.targets.expand(-1, 2), batch.mask)
    with pytest.raises(Refused, match="one answer per question"):
        network(several, Mode())


def test_weights_of_tokens_that_were_made_from_sentences_cannot_be_edited(placed):
    edited = Mode(edit=lambda weights, call: weights)
    with pytest.raises(Refused, match="reads sentences"):
        placed("memn2n", "dot", (VOCAB, VOCAB), VOCAB)(examples(), edited)
