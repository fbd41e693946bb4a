"""Layers that read a layer below: what they read, what they keep, and where they may stand."""

from dataclasses import replace

import pytest
import torch

from bench.api import kept_bytes, registry
from bench.api.batch import Batch
from bench.api.call import Link
from bench.api.errors import Refused
from bench.api.places import trained_place
from bench.api.resolve import canonical_backbone, resolve
from bench.api.source import State
from bench.api.trace import Mode
from bench.training.refusals import cell_refusal
from bench.training.state_size import state_bytes

WIDTH, HEADS, LAYERS, VOCAB = 16, 2, 4, 9
PLAIN = f"width={WIDTH},heads={HEADS}"
GIVEN = frozenset({"layers_below"})


@pytest.fixture
def stacked(placed):
    """`stacked(variant, layers=.., stack=..)`: a decoder that hands on what its layers read."""

    def make(variant, layers=LAYERS, stack="own", seed=0):
        name = f"transformer_decoder[{PLAIN},layers={layers},stack={stack}]"
        return placed(name, variant, (), VOCAB, capabilities=GIVEN, seed=seed)

    return make


CLA, THREE = "cla[heads=2]", "cla[heads=2,sharing=3]"
RESIDUAL, SHARED = "value_residual[heads=2]", "svformer[heads=2]"


def prompt(rows=3, length=5):
    rng = torch.Generator().manual_seed(3)
    words = torch.randint(4, VOCAB, (rows, length), generator=rng)
    return Batch(sources=(), inputs=words, targets=words, mask=torch.ones_like(words).bool())


def links(network):
    return [block.own.link for block in network.blocks]


@pytest.mark.parametrize(
    ("variant", "layers"),
    [
        (CLA, [None, 0, None, 2, None]),
        (THREE, [None, 0, 0, None, 3]),
        (RESIDUAL, [None, 0, 0, 0, 0]),
        (SHARED, [None, 0, 0, 0, 0]),
        ("mha[heads=2]", [None] * 5),
    ],
)
def test_every_layer_knows_whose_keys_and_values_it_reads(variant, layers, stacked):
    found = links(stacked(variant, layers=5))
    assert [link and link.layer for link in found] == layers


def test_layers_are_counted_among_those_that_hold_the_same(stacked):
    network = stacked(CLA, layers=7, stack="own+linear_attention")
    assert [link and link.layer for link in links(network)] == [None, None, 0, None, None, None, 4]
    other = stacked("mha[heads=2]", layers=5, stack="own+svformer[heads=2]")
    assert links(other) == [None, None, None, Link(1, "values"), None]


def by_hand(network, words, made_in, first_share=None):
    """The states behind the last block, from the equations of the papers.

    Args:
        network: Plain blocks with their norm in front.
        words: What it reads.
        made_in: Layers whose keys, and whose values, each layer reads.
        first_share: Shares of the first layer's values and of the own ones; None reads `made_in`.
    """
    x = network.embedding(words) * network.scale
    later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
    keys, values = {}, {}
    for n, block in enumerate(network.blocks):
        heads, given = block.own.heads, block.own_around.norm(x)

        def split(made):
            return made.unflatten(-1, (HEADS, -1)).transpose(1, 2)

        if hasattr(heads, "to_key"):
            keys[n] = split(heads.to_key(given))
        if hasattr(heads, "to_value"):
            values[n] = split(heads.to_value(given))
        of_keys, of_values = made_in[n]
        value = values[of_values]
        if first_share is not None and n:
            one, two = first_share[n]
            value = one * values[0] + two * values[n]
        energy = split(heads.to_query(given)) @ keys[of_keys].mT / (WIDTH // HEADS) ** 0.5
        weights = energy.masked_fill(later, float("-inf")).softmax(-1)
        x = x + heads.to_output((weights @ value).transpose(1, 2).flatten(2))
        x = x + block.feed(block.around.norm(x))
    return network.norm(x)


@pytest.mark.parametrize(
    ("variant", "made_in"),
    [
        (CLA, [(0, 0), (0, 0), (2, 2), (2, 2)]),
        (THREE, [(0, 0), (0, 0), (0, 0), (3, 3)]),
        (SHARED, [(0, 0), (1, 0), (2, 0), (3, 0)]),
    ],
)
def test_a_stack_of_four_layers_equals_the_equations(variant, made_in, stacked):
    network, batch = stacked(variant), prompt()
    wanted = by_hand(network, batch.inputs, made_in)
    torch.testing.assert_close(network(batch, Mode()).states, wanted)


def test_values_are_joined_by_the_shares_of_each_layer(stacked):
    network, batch = stacked(RESIDUAL), prompt()
    shares = [block.own.heads.shares for block in network.blocks]
    assert shares[0] is None
    assert len({tuple(share.tolist()) for share in shares[1:]}) == 3
    wanted = by_hand(network, batch.inputs, [(n, n) for n in range(LAYERS)], shares)
    torch.testing.assert_close(network(batch, Mode()).states, wanted)


def test_with_the_shares_zero_and_one_it_is_multi_head_attention(stacked):
    plain = stacked("mha[heads=2]")
    for learned in (True, False):
        network = stacked(f"value_residual[heads=2,first=0,own=1,learned={str(learned).lower()}]")
        network.load_state_dict(plain.state_dict(), strict=not learned)
        if learned:
            with torch.no_grad():
                for block in network.blocks[1:]:
                    block.own.heads.shares.copy_(torch.tensor([0.0, 1.0]))
        found, wanted = (one(prompt(), Mode()).states for one in (network, plain))
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_with_the_shares_one_and_zero_it_is_svformer(stacked):
    network = stacked("value_residual[heads=2,first=1,own=0,learned=false]")
    shared = stacked(SHARED)
    state = network.state_dict()
    shared.load_state_dict({name: state[name] for name in shared.state_dict()})
    found, wanted = (one(prompt(), Mode()).states for one in (network, shared))
    torch.testing.assert_close(found, wanted)


def test_a_layer_shared_with_nobody_is_multi_head_attention(stacked):
    plain, alone = stacked("mha[heads=2]"), stacked("cla[heads=2,sharing=1]")
    alone.load_state_dict(plain.state_dict())
    found, wanted = (one(prompt(), Mode()).states for one in (alone, plain))
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


DECODED = [
    (CLA, "own"),
    (THREE, "own"),
    ("cla[heads=2,kv_heads=1]", "own"),
    (RESIDUAL, "own"),
    (SHARED, "own"),
    (CLA, "own+linear_attention"),
    (SHARED, "linear_attention+own"),
    (RESIDUAL, "own+linear_attention"),
    ("mha[heads=2]", "own+cla[heads=2]"),
    ("rope[head=cla[heads=2]]", "own"),
    ("rope[head=svformer[heads=2]]", "own"),
    ("alibi[head=cla[heads=2]]", "own"),
    ("additive[head=cla[heads=2]]", "own"),
    ("sliding_window[window=3,head=cla[heads=2]]", "own"),
    ("sliding_window[window=3,head=svformer[heads=2]]", "own"),
    ("sliding_window[window=3,head=value_residual[heads=2]]", "own"),
    ("streaming[window=3,sinks=1,head=svformer[heads=2]]", "own"),
    ("fox[head=cla[heads=2]]", "own"),
    ("linear_attention[head=svformer[heads=2]]", "own"),
    ("linear_attention[head=value_residual[heads=2]]", "own"),
]


@pytest.mark.parametrize(("variant", "stack"), DECODED)
def test_text_read_step_by_step_equals_text_read_at_once(variant, stack, stacked):
    network, batch = stacked(variant, layers=5, stack=stack), prompt(length=12)
    mode = Mode(want_weights=False)
    wanted = network(batch, mode).states
    for gradients in (False, True):
        with torch.set_grad_enabled(gradients):
            found = read_in_parts(network, batch.inputs, (4, 1, 1, 3, 1, 1, 1), mode)[0]
        torch.testing.assert_close(found, wanted)


def read_in_parts(network, words, parts, mode):
    """States of all words, and the states of all layers after the last one."""
    paths, offset, found = [], 0, []
    for count in parts:
        embedded = network.embedding(words[:, offset : offset + count]) * network.scale
        trace, paths = network.advance(embedded, paths, offset, mode)
        found.append(trace.states)
        offset += count
    return torch.cat(found, 1), [path.own for path in paths]


@pytest.mark.parametrize("variant", [CLA, RESIDUAL, SHARED])
def test_words_said_one_by_one_are_the_likeliest_of_the_whole_text_so_far(variant, stacked):
    network, batch, asked = stacked(variant), prompt(), Mode(want_weights=False)
    said = network.generate(batch, 7, asked)
    for row, words in enumerate(said.tokens):
        text = batch.inputs[row : row + 1]
        for word in words:
            trace = network(replace(prompt(1), inputs=text), asked)
            assert int(network.emit(*trace[:3])[0, -1].argmax()) == word
            text = torch.cat((text, torch.tensor([[word]])), 1)


KEPT = {
    "mha[heads=2]": 4 * 2 * WIDTH,
    CLA: 2 * 2 * WIDTH,
    THREE: 2 * 2 * WIDTH,
    "cla[heads=2,sharing=4]": 2 * WIDTH,
    "cla[heads=2,kv_heads=1]": 2 * 2 * WIDTH // HEADS,
    RESIDUAL: 4 * 2 * WIDTH,
    SHARED: (2 + 3) * WIDTH,
}
"""Numbers a token that four layers keep."""


@pytest.mark.parametrize(("variant", "numbers"), KEPT.items())
def test_what_is_kept_are_the_caches_of_the_layers_that_own_them(variant, numbers, stacked):
    network, batch = stacked(variant), prompt(length=12)
    assert state_bytes(network, batch) == 12 * numbers * 8
    with torch.no_grad():
        _, states = read_in_parts(network, batch.inputs, (5, *[1] * 7), Mode(want_weights=False))
    assert kept_bytes.state_bytes(states) == 3 * 12 * numbers * 8


def test_a_layer_that_reads_another_cache_has_none_and_no_maps_to_keys_and_values(stacked):
    network, batch = stacked(CLA), prompt()
    _, states = read_in_parts(network, batch.inputs, (5,), Mode(want_weights=False))
    assert [state.cache is None for state in states] == [False, True, False, True]
    assert states[1] == State(offset=5, carried=states[1].carried)
    plain = stacked("mha[heads=2]")
    sizes = [sum(p.numel() for p in one.parameters()) for one in (plain, network)]
    assert sizes[0] - sizes[1] == 2 * 2 * WIDTH * WIDTH


def test_nothing_is_handed_on_where_nobody_reads_it(stacked):
    for variant, kept in (("mha[heads=2]", []), (CLA, [0, 2]), (SHARED, [0])):
        trace = stacked(variant)(prompt(), Mode())
        attended = trace.attended[::-1]
        assert [n for n, one in enumerate(attended) if one.memory is not None] == kept


def test_gradients_reach_the_first_layer_through_what_is_handed_on(stacked):
    for variant in (CLA, RESIDUAL, SHARED):
        network = stacked(variant, layers=2)
        with torch.no_grad():
            network.blocks[0].own.heads.to_output.weight.zero_()
        network(prompt(), Mode()).states.square().sum().backward()
        assert network.blocks[0].own.heads.to_value.weight.grad.abs().amax() > 1e-6


def refusal(variant, backbone, task="recall"):
    found = registry.find("task", task).target
    slots = registry.find("backbone", backbone.partition("[")[0]).target.slots
    slot = "causal" if "causal" in slots else slots[0]
    return cell_refusal(resolve(variant), found, canonical_backbone(backbone, {}), slot)


@pytest.mark.parametrize("variant", ["cla", "value_residual", "svformer", "rope[head=cla]"])
def test_it_is_refused_in_one_sentence_where_layers_hand_nothing_on(variant):
    name = "cla" if "cla" in variant else variant
    sentence = f"{name} needs a stack of layers that hand on their keys and values"
    assert refusal(variant, "transformer_decoder[layers=2]") is None
    assert refusal(variant, "transformer_decoder[layers=4,stack=own+mha]") is None
    assert sentence in refusal(variant, "transformer_decoder[layers=1]")
    assert sentence in refusal(variant, "transformer_seq2seq", "transduction")
    for other in ("rnn_seq2seq", "pooling"):
        assert "a stack of causal self-attention" in refusal(variant, other, "transduction")


def test_only_layers_that_hold_the_same_hand_on():
    task = registry.find("task", "recall").target
    for options, given in (("layers=2", True), ("layers=1", False), ("layers=2,stack=own+mha", 0)):
        backbone = canonical_backbone(f"transformer_decoder[{options}]", {})
        assert ("layers_below" in trained_place(task, backbone)) == bool(given)


def test_a_recurrence_has_no_cache_to_share(stacked):
    with pytest.raises(Refused, match="cla reads the cache of another layer, and linear_attention"):
        stacked("linear_attention[head=cla[heads=2]]")
