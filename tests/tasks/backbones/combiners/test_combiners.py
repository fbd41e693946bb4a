"""Decoders with several sources: competing positions, competing contexts, gated summaries.

The equations are written out in loops; of the network only parameters, encoders and the decoder's
own step are used.
"""

from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.backbone import BackboneParts
from bench.api.batch import Batch, Sizes, Text
from bench.api.build import build_slot
from bench.api.combiner import States
from bench.api.decoder import Decoder
from bench.api.errors import InvalidConfig, Refused
from bench.api.resolve import canonical_backbone, resolve
from bench.api.selector import parse
from bench.api.trace import Mode
from bench.training.refusals import cell_refusal
from tasks.copying.oov_copy import OovCopy

HIDDEN, EMBEDDING, VOCAB = 6, 4, 9
CAPABILITIES = frozenset({"padding", "stepwise", "source_tokens"})
COMBINERS = ("concat", "flat", "hierarchical[width=8]")


@pytest.fixture
def network(draw):
    """`network(combiner, vocabs, decoder=.., options=..)`, drawn, in float64."""

    def make(combiner: str, vocabs=(9, 7), decoder: str = "luong", options: str = ""):
        spec = resolve("additive[width=5]")
        selector = canonical_backbone(
            f"rnn_seq2seq[hidden={HIDDEN},embedding={EMBEDDING},decoder={decoder},"
            f"combiner={combiner}{options}]",
            {},
        )
        parts = BackboneParts(
            sizes=Sizes(vocabs, VOCAB, 12),
            attach=lambda place: build_slot(spec, place),
            attach_default=lambda place: build_slot(spec, place),
            output=lambda sizes: registry.make("output", spec.axes["output"][0], sizes),
            capabilities=CAPABILITIES,
        )
        made = registry.make("backbone", selector, parts).double()
        draw(made, 1)
        return made

    return make


def examples(lengths=((5, 2, 3), (2, 4, 1))) -> Batch:
    """Rows of mixed lengths in every source, padded on the right."""
    rng = torch.Generator().manual_seed(2)
    texts = []
    for rows in lengths:
        mask = torch.arange(max(rows)) < torch.tensor(rows)[:, None]
        tokens = torch.randint(4, 7, (3, max(rows)), generator=rng)
        texts.append(Text(torch.where(mask, tokens, 0), mask))
    inputs = torch.randint(4, VOCAB, (3, 4), generator=rng)
    scored = torch.arange(4) < torch.tensor([4, 2, 3])[:, None]
    gold = torch.zeros(3, 4, texts[0].tokens.shape[1])
    gold[..., 0] = 1.0
    return Batch(tuple(texts), inputs, inputs.roll(-1, 1), scored, gold=gold)


def score(slot, query, state):
    """v . tanh(W q + U h + b) of one position."""
    own = slot.variant.score
    w, u, b, v = own.query_map[0], own.key_map[0], own.bias[0, 0], own.v[0, :, 0]
    return v @ torch.tanh(query @ w + state @ u + b)


def shares(energies):
    exps = [torch.exp(energy) for energy in energies]
    return [one / sum(exps) for one in exps]


def states_of(backbone, batch, row):
    """States of every source of one example, each without padding."""
    found = []
    for encoder, table, text in zip(
        backbone.encoders, backbone.source_embeddings, batch.sources, strict=True
    ):
        words = table.weight[text.tokens[row][text.mask[row]]]
        found.append(list(encoder(words[None], None).states[0]))
    return found


@pytest.mark.parametrize("vocabs", [(9,), (9, 7), (9, 7, 8)])
def test_flat_weights_equal_one_softmax_over_all_projected_states(vocabs, network, near):
    backbone = network("flat", vocabs)
    batch = examples(((5, 2, 3), (2, 4, 1), (3, 3, 2))[: len(vocabs)])
    trace, (slot,) = backbone(batch, Mode()), backbone.variant_slots()
    for row in range(3):
        sources = states_of(backbone, batch, row)
        keys = [
            project.weight @ state
            for project, states in zip(backbone.decoder.combiner.project, sources, strict=True)
            for state in states
        ]
        for t in range(4):
            weights = shares([score(slot, trace.states[row, t], key) for key in keys])
            near(trace.context[row, t], sum(w * k for w, k in zip(weights, keys, strict=True)))
            near(trace.weights[row, t, : len(keys)], torch.stack(weights))
            assert not trace.weights[row, t, len(keys) :].any(), "padding has weight"
    near(trace.weights.sum(-1), torch.ones(3, 4, dtype=torch.float64))


def test_flat_with_a_source_twice_halves_every_weight_and_keeps_the_context(network, near):
    once, twice = network("flat", (9,)), network("flat", (9, 9))
    batch = examples(((5, 2, 3),))
    double = replace(batch, sources=batch.sources * 2)
    state = once.state_dict()
    tied = {}
    for name, value in twice.state_dict().items():
        source = name.replace("encoders.1", "encoders.0").replace("project.1", "project.0")
        source = source.replace("source_embeddings.1", "source_embeddings.0")
        tied[name] = state.get(source, value)
    # the summary of the copy must not count twice
    start = state["decoder.start.weight"]
    tied["decoder.start.weight"] = torch.cat((start, torch.zeros_like(start)), 1)
    twice.load_state_dict(tied)
    one, two = once(batch, Mode()), twice(double, Mode())
    near(two.states, one.states)
    near(two.context, one.context)
    for row, length in enumerate((5, 2, 3)):  # padding of both is behind the second
        half = one.weights[row, :, :length] / 2
        near(two.weights[row, :, : 2 * length], torch.cat((half, half), -1))


def test_gold_of_the_first_source_is_aligned_with_nothing_in_the_others(network):
    backbone, batch = network("flat"), examples()
    arranged = backbone.arrange(batch)
    assert arranged.gold.shape == backbone(batch, Mode()).weights.shape
    assert torch.equal(arranged.gold[..., :5], batch.gold)
    assert not arranged.gold[..., 5:].any()
    assert backbone.arrange(arranged) is arranged


@pytest.mark.parametrize("vocabs", [(9,), (9, 7), (9, 7, 8)])
def test_hierarchical_equals_its_two_softmaxes_written_out(vocabs, network, near):
    backbone = network("hierarchical[width=8]", vocabs)
    batch = examples(((5, 2, 3), (2, 4, 1), (3, 3, 2))[: len(vocabs)])
    trace, combiner = backbone(batch, Mode()), backbone.decoder.combiner
    assert len(trace.attended) == len(vocabs)
    for row in range(3):
        sources = states_of(backbone, batch, row)
        for t in range(4):
            query, contexts, energies = trace.states[row, t], [], []
            for index, (slot, states) in enumerate(
                zip(backbone.variant_slots(), sources, strict=True)
            ):
                weights = shares([score(slot, query, state) for state in states])
                near(trace.attended[index].weights[row, 0, t, : len(states)], torch.stack(weights))
                context = sum(w * s for w, s in zip(weights, states, strict=True))
                contexts.append(combiner.value[index].weight @ context)
                hidden = combiner.of_query.weight @ query + combiner.of_query.bias
                hidden = torch.tanh(hidden + combiner.of_context[index].weight @ context)
                energies.append(combiner.v.weight[0] @ hidden)
            among = shares(energies)
            near(trace.context[row, t], sum(b * c for b, c in zip(among, contexts, strict=True)))


def test_hierarchical_over_one_source_is_that_source(network, near):
    plain, above = network("concat", (9,)), network("hierarchical", (9,))
    batch = examples(((5, 2, 3),))
    same = {name: plain.state_dict().get(name, v) for name, v in above.state_dict().items()}
    same["decoder.combiner.value.0.weight"] = torch.eye(HIDDEN, dtype=torch.float64)
    above.load_state_dict(same)
    one, two = plain(batch, Mode()), above(batch, Mode())
    near(two.context, one.context)
    near(two.weights, one.weights)


def test_hierarchical_follows_the_score_among_sources(network, near):
    """Blind to contexts it takes their mean; pushed far enough it takes one of them alone."""
    backbone, batch = network("hierarchical[width=8]"), examples()
    combiner = backbone.decoder.combiner
    with torch.no_grad():
        for layer in combiner.of_context:
            layer.weight.zero_()
    trace = backbone(batch, Mode())
    both = [
        answer.output[:, 0] @ combiner.value[k].weight.T for k, answer in enumerate(trace.attended)
    ]
    near(trace.context, (both[0] + both[1]) / 2)
    query = trace.states
    share = combiner.shares(query, [answer.output[:, 0] for answer in trace.attended])
    near(share, torch.full_like(share, 0.5))


@pytest.mark.parametrize("decoder", ["luong", "luong[input_feeding=true]", "bahdanau"])
@pytest.mark.parametrize("combiner", COMBINERS)
def test_steps_equal_all_at_once_and_gradients_reach_every_source(combiner, decoder, network, near):
    backbone, batch = network(combiner, decoder=decoder), examples()
    _, memories, path = backbone._begin(backbone.arrange(batch), Mode())
    x = backbone.target_embedding(batch.inputs)
    whole = backbone.decoder.run(x, memories, path, Mode())
    steps = Decoder.run(backbone.decoder, x, memories, path, Mode())
    near(whole.context, steps.context)
    near(whole.states, steps.states)
    trace = backbone(batch, Mode())
    backbone.output.nll(trace, backbone.emit, batch).sum().backward()
    for table in backbone.source_embeddings:
        assert table.weight.grad.abs().sum() > 0
    for parameter in backbone.decoder.combiner.parameters():
        assert parameter.grad is not None


@pytest.mark.parametrize(
    "variant", ["additive[width=5]", "location", "luong_local_p", "location_aware"]
)
@pytest.mark.parametrize(
    "backbone",
    [
        *(f"rnn_seq2seq[hidden={HIDDEN},embedding={EMBEDDING},combiner={c}]" for c in COMBINERS),
        "transformer_seq2seq[width=6,heads=2,layers=2,combiner=flat]",
        "transformer_seq2seq[width=6,heads=2,layers=2,combiner=serial]",
    ],
)
def test_no_example_sees_the_padding_of_another(backbone, variant, placed, near, alone):
    given = CAPABILITIES if backbone.startswith("rnn") else frozenset({"padding", "stepwise"})
    made, batch = placed(backbone, variant, (9, 7), VOCAB, capabilities=given), examples()
    trace = made(batch, Mode())
    for row in range(3):
        near(made(alone(batch, row), Mode()).context[0], trace.context[row, batch.mask[row]])


def test_flat_leaves_a_row_without_padding_as_it_was_to_the_bit(network):
    backbone, batch = network("flat"), examples(((5, 2, 3), (4, 1, 2)))
    combiner = backbone.decoder.combiner
    states = [States(source.states, source.mask) for source in backbone.encode(batch, Mode())]
    (memory,) = combiner.prepare(tuple(states), None)
    joined = [p(one.found) for p, one in zip(combiner.project, states, strict=True)]
    plain = combiner.slots[0].prepare(torch.cat(joined, 1)).source
    assert torch.equal(memory.source.key[0], plain.key[0])
    assert torch.equal(memory.source.value[0], plain.value[0])
    assert memory.source.mask.tolist()[1] == [True] * 3 + [False] * 6


def test_flat_keeps_what_is_hidden_within_a_source_in_its_place(network):
    combiner = network("flat").decoder.combiner
    rng = torch.Generator().manual_seed(0)
    one, two = (torch.randn(1, n, HIDDEN, generator=rng, dtype=torch.float64) for n in (4, 2))
    mask = torch.tensor([[False, True, False, False]])
    (memory,) = combiner.prepare((States(one, mask), States(two, None)), None)
    assert memory.source.mask.tolist() == [[False, True, True, True, False, False]]
    first, second = (p(x) for p, x in zip(combiner.project, (one, two), strict=True))
    wanted = torch.cat((first[:, :2], second, first[:, 2:]), 1)
    assert torch.equal(
        memory.source.value[:, 0], combiner.slots[0].prepare(wanted).source.value[:, 0]
    )


def test_child_sum_is_the_node_of_a_tree_written_out(network, near):
    backbone = network("concat", options=",summaries=child_sum")
    batch = examples()
    encoded = backbone.encode(batch, Mode())
    *_, path = backbone._begin(batch, Mode())
    join = backbone.child_sum
    for row in range(3):
        children = [source.summary[row] for source in encoded]
        gates = join.shared.weight @ torch.cat(children) + join.shared.bias
        entering, leaving = (torch.sigmoid(g) for g in (gates[:HIDDEN], gates[HIDDEN : 2 * HIDDEN]))
        cell = entering * torch.tanh(gates[2 * HIDDEN :])
        for index, child in enumerate(children):
            forget = torch.sigmoid(join.forget[index].weight @ child + join.forget[index].bias)
            cell = cell + forget * (join.cell[index].weight @ child)
        joined = leaving * torch.tanh(cell)
        start = backbone.decoder.start
        near(path.hidden[row], torch.tanh(start.weight @ joined + start.bias))


def test_basic_starts_from_the_summaries_side_by_side(network, near):
    backbone, batch = network("concat"), examples()
    joined = torch.cat([source.summary for source in backbone.encode(batch, Mode())], -1)
    *_, path = backbone._begin(batch, Mode())
    start = backbone.decoder.start
    near(path.hidden, torch.tanh(joined @ start.weight.T + start.bias))


def test_copying_out_of_joined_sources_is_refused():
    backbone = canonical_backbone("rnn_seq2seq[combiner=flat]", {})
    reason = cell_refusal(resolve("pointer_generator"), OovCopy, backbone, "cross")
    assert reason == ("pointer_generator needs the token ids of the source, which flat removes.")


def test_combiners_are_certified_by_name_and_wrong_options_refused(network):
    for name in ("multi_source", "multi_source_flat", "multi_source_hierarchical"):
        spec = resolve(name)
        assert spec.fixes["combiner"].name in ("concat", "flat", "hierarchical")
        assert spec.registered.default_task.task == "two_source"
    with pytest.raises(InvalidConfig, match="width must be at least 1, got 0"):
        registry.make("combiner", parse("hierarchical[width=0]"), None, None)
    with pytest.raises(Refused, match="no such axis"):
        canonical_backbone("transformer_seq2seq", resolve("multi_source_flat").fixes)
