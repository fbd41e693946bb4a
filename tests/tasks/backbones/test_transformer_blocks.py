"""A transformer block with every switch, against its sums written out.

Attention itself is tested elsewhere; here its answer is taken from the slot, and what stands
around it is computed again.
"""

import pytest
import torch
from torch import nn

from bench.api import registry
from bench.api.build import SlotPlace, build_slot
from bench.api.combiner import Combiner, CombinerSizes
from bench.api.errors import Refused
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.slot import Slot
from bench.api.trace import Mode
from tasks.backbones.transformer_blocks import (
    Block,
    BlockConfig,
    LayerPath,
    UnbiasedNorm,
    embedding_table,
)

WIDTH = 6
MODES = (Mode(), Mode())


def slot(regime: str, selector: str = "scaled_dot") -> Slot:
    place = SlotPlace(
        regime=regime,
        query_width=WIDTH,
        source_width=WIDTH,
        head="multi[heads=2]",
        given=frozenset({"padding", "stepwise"}),
    )
    return build_slot(resolve(selector), place)


def one_source() -> Combiner:
    sizes = CombinerSizes(WIDTH, (WIDTH,), residual=True)
    return registry.make("combiner", parse("concat"), sizes, lambda *widths: slot("cross"))


@pytest.fixture
def build(draw):
    def make(*, cross: bool = True, selector: str = "scaled_dot", first: bool = True, **options):
        config = BlockConfig(width=WIDTH, heads=2, **options)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            made = Block(
                config,
                slot("causal", selector),
                one_source() if cross else None,
                first=first,
            )
        made = made.double()
        draw(made, 0)
        return made

    return make


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


def normalized(norm: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """One vector, unit by unit."""
    mean = sum(x) / len(x)
    squares = sum((unit - mean) ** 2 for unit in x)
    if isinstance(norm, UnbiasedNorm):
        spread = (squares / (len(x) - 1)).sqrt() + norm.eps
    else:
        spread = (squares / len(x) + norm.eps).sqrt()
    return torch.stack([(u - mean) / spread for u in x]) * norm.weight + norm.bias


def everywhere(function, x: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.stack([function(word) for word in row]) for row in x])


@pytest.mark.parametrize("norm", ["pre", "post", "off"])
@pytest.mark.parametrize("norm_form", ["biased", "unbiased"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("feed_forward", [0, 2])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_a_block_is_its_sublayers_with_norm_and_residual_where_asked(
    norm, norm_form, residual, feed_forward, activation, build, near
):
    block = build(
        norm=norm,
        norm_form=norm_form,
        residual=residual,
        feed_forward=feed_forward,
        activation=activation,
    )
    x, source = drawn(2, 4, WIDTH), drawn(2, 5, WIDTH)
    (reader,) = block.cross.slots
    memory = reader.prepare(source)
    found, _, _, _ = block(x, None, (memory,), LayerPath(), MODES)

    def around(sublayer, x, function):
        given = everywhere(lambda w: normalized(sublayer.norm, w), x) if norm == "pre" else x
        said = function(given)
        joined = x + said if residual else said
        if norm != "post":
            return joined
        return everywhere(lambda w: normalized(sublayer.norm, w), joined)

    def attend_own(given):
        return block.own.attend(given, None, block.own.start(None, given), own=(given, None, None))[
            0
        ]

    def attend_source(given):
        return reader.attend(given, memory, reader.start(memory, given))[0]

    def feed(given):
        one, two = block.feed[0], block.feed[2]
        hidden = given @ one.weight.T + one.bias
        if activation == "gelu":
            hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
        else:
            hidden = torch.where(hidden > 0, hidden, 0.0)
        return hidden @ two.weight.T + two.bias

    x = around(block.own_around, x, attend_own)
    x = around(block.cross_around[0], x, attend_source)
    if feed_forward:
        x = around(block.around, x, feed)
    near(found, x)


TRANSFORMERS = (
    ("transformer_decoder", "offset", "embedding", "norm"),
    ("transformer_seq2seq", "transduction", "target_embedding", "decoder_norm"),
    ("transformer_seq2seq", "transduction", "source_embeddings.0", "encoder_norms.0"),
)


@pytest.mark.parametrize(("backbone", "task", "_", "last"), TRANSFORMERS)
def test_a_last_norm_stands_behind_a_stack_of_pre_norm_blocks_and_no_other(
    backbone, task, _, last, built, near
):
    for norm in ("pre", "post", "off"):
        name = f"{backbone}[width=16,heads=2,layers=2,norm={norm}]"
        network, _, batch = built("scaled_dot", task=task, backbone=name)
        seen = {}
        norm_module = network.get_submodule(last)
        norm_module.register_forward_hook(lambda m, given, out, s=seen: s.update(x=given[0], y=out))
        stacks = {"norm": "blocks", "decoder_norm": "decoder", "encoder_norms.0": "encoders.0"}
        blocks = network.get_submodule(stacks[last])
        blocks[-1].register_forward_hook(lambda m, given, out, s=seen: s.update(top=out[0]))
        trace = network(batch, Mode())
        assert torch.equal(seen["x"], seen["top"]), "nothing stands between"
        if norm == "pre":
            near(seen["y"], everywhere(lambda w, m=norm_module: normalized(m, w), seen["x"]))
            assert (seen["y"] - seen["x"]).abs().max() > 0.1
        else:
            assert torch.equal(seen["y"], seen["x"])
        if last != "encoder_norms.0":
            assert torch.equal(trace.states, seen["y"]), "it is what the vocabulary is read off"


@pytest.mark.parametrize(("backbone", "task", "table", "_"), TRANSFORMERS)
def test_embeddings_are_multiplied_by_the_root_of_the_width(backbone, task, table, _, built, near):
    name = f"{backbone}[width=16,heads=2,layers=1]"
    network, _, batch = built("scaled_dot", task=task, backbone=name)
    stacks = {"embedding": "blocks", "target_embedding": "decoder"}
    blocks = network.get_submodule(stacks.get(table, "encoders.0"))
    seen = []
    blocks[0].register_forward_pre_hook(lambda m, given: seen.append(given[0]))
    trace = network(batch, Mode())
    tokens = batch.sources[0].tokens if table == "source_embeddings.0" else batch.inputs
    words = 4 * network.get_submodule(table).weight[tokens]
    if table != "source_embeddings.0":
        near(trace.embedded, words)
    near(seen[0], blocks[0].own.variant.embed(words, 0))


def test_multiplied_embeddings_start_at_unit_scale():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        fresh = embedding_table(5000, 16).weight.detach()
    assert float(fresh.std()) * 4 == pytest.approx(1, abs=0.02)


def test_the_annotated_norm_differs_from_the_one_of_torch(near):
    x = drawn(3, WIDTH)
    mine, usual = UnbiasedNorm(WIDTH).double(), nn.LayerNorm(WIDTH, eps=0.0).double()
    near(mine(x), usual(x) * ((WIDTH - 1) / WIDTH) ** 0.5, 1e-5)
    near(mine(x), everywhere(lambda w: normalized(mine, w), x[None])[0])
    same = torch.ones(1, WIDTH, dtype=torch.float64, requires_grad=True)
    mine(same).sum().backward()
    assert same.grad.isfinite().all()


@pytest.mark.parametrize("position", ["sinusoid", "learned[max_length=9]"])
def test_positions_are_added_again_in_front_of_later_blocks(position, build, near):
    options = {"cross": False, "selector": f"scaled_dot[position={position}]"}
    again = build(first=False, positions_each_layer=True, **options)
    never = build(first=False, **options)
    never.load_state_dict(again.state_dict())
    x = drawn(2, 5, WIDTH)
    moved = again.own.variant.embed(x, 0)
    assert (moved - x).abs().max() > 0.1
    near(again(x, None, (), LayerPath(), MODES)[0], never(moved, None, (), LayerPath(), MODES)[0])
    first = build(first=True, positions_each_layer=True, **options)
    first.load_state_dict(again.state_dict())
    assert torch.equal(
        first(x, None, (), LayerPath(), MODES)[0], never(x, None, (), LayerPath(), MODES)[0]
    )


def test_positions_of_later_blocks_go_on_where_decoding_stopped(build, near):
    block = build(
        cross=False,
        selector="scaled_dot[position=sinusoid]",
        first=False,
        positions_each_layer=True,
    )
    x = drawn(2, 6, WIDTH)
    whole, _, _, _ = block(x, None, (), LayerPath(), MODES)
    path, parts = LayerPath(), []
    for piece in x.split([1, 3, 2], 1):
        out, path, _, _ = block(piece, None, (), path, MODES)
        parts.append(out)
    near(torch.cat(parts, 1), whole)


@pytest.mark.parametrize(
    ("backbone", "task", "slot"),
    [
        ("transformer_decoder", "offset", ""),
        ("transformer_seq2seq", "transduction", "self"),
        ("transformer_seq2seq", "transduction", "causal"),
    ],
)
def test_backbones_add_positions_again_only_where_asked(backbone, task, slot, built, logits):
    said = []
    for options in ("", ",positions_each_layer=true", ",layers=1,positions_each_layer=true"):
        network, _, batch = built(
            "sinusoid", task=task, backbone=f"{backbone}[width=16,heads=2{options}]", slot=slot
        )
        said.append(logits(network, network(batch, Mode())))
    assert (said[0] - said[1]).abs().max() > 1e-3
    one, _, batch = built(
        "sinusoid", task=task, backbone=f"{backbone}[width=16,heads=2,layers=1]", slot=slot
    )
    assert torch.equal(logits(one, one(batch, Mode())), said[2])


@pytest.mark.parametrize(("options", "tables"), [("", 1), (",positions_each_layer=true", 3)])
@pytest.mark.parametrize(
    ("backbone", "task", "slot"),
    [
        ("transformer_decoder", "offset", ""),
        ("transformer_seq2seq", "transduction", "self"),
        ("transformer_seq2seq", "transduction", "causal"),
        ("tagger", "distant_pair[farthest=4,length=9,pairs=2,symbols=5]", ""),
    ],
)
def test_every_table_of_learned_positions_is_read(backbone, task, slot, options, tables, built):
    network, _, batch = built(
        "learned", task=task, backbone=f"{backbone}[width=16,heads=2,layers=3{options}]", slot=slot
    )
    trace = network(network.arrange(batch), Mode())
    network.output.nll(trace, network.emit, network.arrange(batch)).sum().backward()
    found = [one for name, one in network.named_parameters() if name.endswith(".table")]
    assert len(found) == tables
    assert all(one.grad is not None and one.grad.any() for one in found)


def test_heads_that_do_not_map_back_are_refused(build):
    with pytest.raises(Refused, match="it must have width 6, not 16"):
        build(cross=False, selector="snail")


def test_convolutions_of_the_feed_forward_sublayer_equal_their_sums_and_may_be_nothing(build, near):
    block = build(cross=False, feed_convolution=3)
    feed, x = block.feed, drawn(2, 5, WIDTH)
    found, _ = feed.step(x, None)

    def canon(layer, states):
        rows = []
        for t in range(states.shape[1]):
            row = states[:, t] + layer.mix.bias
            for back in range(min(3, t + 1)):
                row = row + layer.mix.weight[:, 0, 2 - back] * states[:, t - back]
            rows.append(row)
        return torch.stack(rows, 1)

    hidden = canon(feed.inside, feed.inward(canon(feed.front, x)))
    near(found, feed.outward(nn.functional.gelu(hidden)))
    with torch.no_grad():
        for layer in (feed.front, feed.inside):
            layer.mix.weight.zero_()
            layer.mix.bias.zero_()
    plain = build(cross=False)
    plain.load_state_dict(
        {
            name.replace("inward", "0").replace("outward", "2"): value
            for name, value in block.state_dict().items()
            if ".mix." not in name
        }
    )
    near(block(x, None, (), LayerPath(), MODES)[0], plain(x, None, (), LayerPath(), MODES)[0])
