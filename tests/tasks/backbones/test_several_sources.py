"""The transformer with several sources, against its sublayers written out in loops.

Of the network only parameters, the encoders' states and what leads up to the cross attention are
used: projections, scores, softmax, sums, norms and residual connections are written out again, one
example, one word and one head at a time.
"""

import re
from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.batch import Batch, Text
from bench.api.cell import Cell
from bench.api.errors import InvalidConfig, Refused
from bench.api.places import trained_place
from bench.api.registry import DefaultTask
from bench.api.resolve import canonical_backbone, resolve
from bench.api.selector import parse
from bench.api.trace import Mode
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.running.revisions import revisions
from bench.training.assemble import assemble
from bench.training.quality import train_cell
from bench.training.refusals import cell_refusal
from tasks.translation.two_source import TwoSource

WIDTH, HEADS, VOCAB, EACH = 6, 2, 9, 3
NAME = f"transformer_seq2seq[width={WIDTH},heads={HEADS},layers=2{{}}]"
OURS = ("serial", "parallel", "flat", "hierarchical[width=8]", "hierarchical_heads[heads=3]")
LENGTHS = ((5, 2, 3), (2, 4, 1), (3, 3, 2))


@pytest.fixture
def network(placed):
    """`network(combiner, vocabs, options=.., variant=.., slot=..)`, drawn, in float64."""

    def make(combiner, vocabs=(9, 7), *, options="", variant="scaled_dot", slot="", seed=0):
        name = NAME.format(f",combiner={combiner}{options}")
        return placed(name, variant, vocabs, VOCAB, slot=slot, seed=seed)

    return make


def examples(lengths=LENGTHS[:2]) -> Batch:
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


def watch(backbone, batch):
    """The trace, and what entered and what left the cross attention of each decoder layer."""
    given, left = [], []
    for block in backbone.decoder:

        def kept(x, *rest, original=block.cross.pass_through):
            given.append(x)
            found = original(x, *rest)
            left.append(found[0])
            return found

        block.cross.pass_through = kept
    trace = backbone(batch, Mode())
    for block in backbone.decoder:
        del block.cross.pass_through
    return trace, given, left


def linear(layer, x):
    found = [sum(w * unit for w, unit in zip(row, x, strict=True)) for row in layer.weight]
    found = torch.stack(found)
    return found if layer.bias is None else found + layer.bias


def norm(layer, x):
    mean = sum(x) / len(x)
    spread = (sum((unit - mean) ** 2 for unit in x) / len(x) + layer.eps) ** 0.5
    return torch.stack([(unit - mean) / spread for unit in x]) * layer.weight + layer.bias


def shares(energies):
    exps = [torch.exp(energy) for energy in energies]
    return [one / sum(exps) for one in exps]


def read(slot, query, states):
    """Context and weights of multi-head attention of one word over a list of states."""
    heads = slot.heads
    asked = linear(heads.to_query, query)
    keys = [linear(heads.to_key, state) for state in states]
    values = [linear(heads.to_value, state) for state in states]
    parts, weights = [], []
    for h in range(HEADS):
        own = slice(h * EACH, (h + 1) * EACH)
        energies = [sum(asked[own] * key[own]) / EACH**0.5 for key in keys]
        weights.append(shares(energies))
        parts.append(sum(w * value[own] for w, value in zip(weights[-1], values, strict=True)))
    return linear(heads.to_output, torch.cat(parts)), weights


def contexts(block, query, sources):
    found = [read(slot, query, s) for slot, s in zip(block.cross.slots, sources, strict=True)]
    return [context for context, _ in found], [weights for _, weights in found]


def serial(block, x, sources):
    seen = []
    for around, slot, states in zip(block.cross_around, block.cross.slots, sources, strict=True):
        context, weights = read(slot, norm(around.norm, x), states)
        x = x + context
        seen.append(weights)
    return x, seen


def parallel(block, x, sources):
    read_of, seen = contexts(block, norm(block.cross_around[0].norm, x), sources)
    return x + sum(read_of), seen


def flat(block, x, sources):
    query = norm(block.cross_around[0].norm, x)
    context, weights = read(block.cross.slots[0], query, [s for one in sources for s in one])
    return x + context, [weights]


def hierarchical(block, x, sources):
    query = norm(block.cross_around[0].norm, x)
    read_of, seen = contexts(block, query, sources)
    own = block.cross
    energies = [
        linear(own.v, torch.tanh(linear(own.of_query, query) + linear(of, context)))[0]
        for of, context in zip(own.of_context, read_of, strict=True)
    ]
    values = [linear(value, c) for value, c in zip(own.value, read_of, strict=True)]
    return x + sum(b * v for b, v in zip(shares(energies), values, strict=True)), seen


def hierarchical_heads(block, x, sources):
    query = norm(block.cross_around[0].norm, x)
    read_of, seen = contexts(block, query, sources)
    own, each, parts = block.cross, WIDTH // 3, []
    asked = linear(own.query, query)
    for head in range(3):
        mine = slice(head * each, (head + 1) * each)
        keys = [linear(own.key, context)[mine] for context in read_of]
        among = shares([sum(asked[mine] * key) / each**0.5 for key in keys])
        values = [linear(own.value, context)[mine] for context in read_of]
        parts.append(sum(b * v for b, v in zip(among, values, strict=True)))
    return x + linear(own.join, torch.cat(parts)), seen


ORACLES = dict(zip(OURS, (serial, parallel, flat, hierarchical, hierarchical_heads), strict=True))


@pytest.mark.parametrize("vocabs", [(9,), (9, 7), (9, 7, 8)])
@pytest.mark.parametrize("combiner", OURS)
def test_every_layer_equals_its_equations_written_out(combiner, vocabs, network, near):
    backbone, batch = network(combiner, vocabs), examples(LENGTHS[: len(vocabs)])
    trace, given, left = watch(backbone, batch)
    encoded = [backbone._encode_source(k, batch, Mode())[0] for k in range(len(vocabs))]
    each = 1 if combiner == "flat" else len(vocabs)
    assert len(trace.attended) == len(trace.memories) == 2 * each
    widths = [text.tokens.shape[1] for text in batch.sources]
    for layer, block in enumerate(backbone.decoder):
        for row in range(3):
            sources = [list(states[row][mask[row]]) for states, mask in encoded]
            for t in range(4):
                x, seen = ORACLES[combiner](block, given[layer][row, t], sources)
                near(left[layer][row, t], x)
                # the last layer stands first, its sources in their order
                for k, weights in enumerate(seen):
                    found = trace.attended[(1 - layer) * each + k].weights[row, :, t]
                    count = sum(len(states) for states in sources)
                    real = torch.arange(found.shape[1]) < count  # padding of all is behind them
                    if combiner != "flat":
                        assert found.shape[1] == widths[k]
                        real = batch.sources[k].mask[row]
                    near(found[:, real], torch.stack([torch.stack(head) for head in weights]))
                    assert not found[:, ~real].any(), "padding has weight"
    near(trace.context, left[-1] - given[-1])


@pytest.mark.parametrize("options", [",norm=post", ",norm=off,residual=false", ",dropout=0.1"])
def test_serial_has_a_sublayer_for_each_source_whatever_stands_around_it(options, network, near):
    backbone, batch = network("serial", options=options).eval(), examples()
    _, given, left = watch(backbone, batch)
    memories, _ = backbone.encode(batch, Mode())
    for layer, block in enumerate(backbone.decoder):
        x = given[layer]
        assert len(block.cross_around) == 2
        for around, slot, memory in zip(
            block.cross_around, block.cross.slots, memories[layer], strict=True
        ):
            asked = around.before(x)
            x = around.after(x, slot.attend(asked, memory, slot.start(memory, asked))[0])
        near(left[layer], x)


@pytest.mark.parametrize("combiner", OURS)
def test_no_example_sees_the_padding_of_another(combiner, network, near, alone):
    backbone, batch = network(combiner), examples()
    trace = backbone(batch, Mode())
    for row in range(3):
        kept = batch.mask[row]
        found = backbone(alone(batch, row), Mode())
        near(found.states[0], trace.states[row, kept])


@pytest.mark.parametrize("combiner", OURS)
def test_rows_may_stand_in_another_order(combiner, network, near):
    backbone, batch = network(combiner), examples()
    rows = torch.tensor([2, 0, 1])
    found = backbone(batch.select(rows), Mode()).states
    near(found, backbone(batch, Mode()).states[rows])


@pytest.mark.parametrize("combiner", ["parallel", "flat", "hierarchical_heads[heads=3]"])
def test_sources_may_change_places_with_their_encoders_and_slots(combiner, network, near):
    backbone, batch = network(combiner, (9, 9)), examples()
    expected = backbone(batch, Mode()).states
    # the one slot of `flat` belongs to both
    parts = "source_embeddings|encoders|encoder_norms" + ("|slot_list" * (combiner != "flat"))
    swapped = {
        re.sub(rf"({parts})\.([01])\.", lambda m: f"{m[1]}.{1 - int(m[2])}.", name, count=1): (
            value.clone()
        )
        for name, value in backbone.state_dict().items()
    }
    backbone.load_state_dict(swapped)
    turned = replace(batch, sources=batch.sources[::-1])
    near(backbone(turned, Mode()).states, expected)
    assert (backbone(batch, Mode()).states - expected).abs().max() > 1e-3


@pytest.mark.parametrize("combiner", OURS)
def test_the_second_source_speaks_through_its_slot_alone(combiner, network):
    """Another second source changes what is said; with its slot silent it does not."""
    backbone, batch = network(combiner), examples()
    other = Text(batch.sources[1].tokens.roll(1, 0), batch.sources[1].mask.roll(1, 0))
    changed = replace(batch, sources=(batch.sources[0], other))

    def moved():
        return (backbone(batch, Mode()).states - backbone(changed, Mode()).states).abs().amax(-1)

    assert moved().min() > 1e-4
    if combiner == "flat":
        return  # one slot reads both
    with torch.no_grad():
        for block in backbone.decoder:
            slot = block.cross.slots[1]
            slot.heads.to_value.weight.zero_()
            for layer in (slot.heads.to_value, slot.heads.to_output):
                if layer.bias is not None:
                    layer.bias.zero_()
    assert not moved().any()


@pytest.mark.parametrize("combiner", OURS)
def test_gradients_reach_every_source_and_every_parameter(combiner, network):
    backbone, batch = network(combiner), examples()
    trace = backbone(batch, Mode())
    backbone.output.nll(trace, backbone.emit, batch).sum().backward()
    for name, parameter in backbone.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 1e-9 or "to_key.bias" in name, name


@pytest.mark.parametrize("search", ["greedy", "beam[width=3]"])
@pytest.mark.parametrize("combiner", OURS)
def test_what_is_said_does_not_depend_on_neighbors_in_the_batch(combiner, search, network, alone):
    """A beam repeats rows and reorders them; a memory that stayed behind would be another row's."""
    said = set()
    for seed in range(4):
        backbone = network(combiner, options=f",search={search}", seed=seed)
        with torch.no_grad():
            backbone.project.weight.mul_(4)
        batch = examples()
        found = backbone.generate(batch, 6, Mode())
        for row in range(3):
            assert backbone.generate(alone(batch, row), 6, Mode()).tokens[0] == found.tokens[row]
        said |= set(found.tokens)
    assert len(said) > 4


@pytest.mark.parametrize("combiner", OURS)
def test_steps_equal_all_at_once(combiner, network, near):
    backbone, batch = network(combiner), examples()
    whole = backbone(batch, Mode())
    memories, _ = backbone.encode(backbone.arrange(batch), Mode())
    x, paths = backbone.target_embedding(batch.inputs) * backbone.scale, []
    for t in range(4):
        states, context, _, paths = backbone.advance(x[:, t : t + 1], memories, paths, t, Mode())
        near(states[:, 0], whole.states[:, t])
        near(context[:, 0], whole.context[:, t])


@pytest.mark.parametrize("combiner", OURS)
@pytest.mark.parametrize("slot", ["cross", "causal", "self"])
def test_slots_and_answers_are_counted_by_regime(combiner, slot, network):
    backbone, batch = network(combiner, slot=slot, variant="scaled_dot"), examples()
    expected = {"causal": 2, "self": 4, "cross": 2 if combiner == "flat" else 4}[slot]
    assert len(backbone.variant_slots()) == expected
    trace = backbone(batch, Mode())
    assert len(trace.attended) == expected
    # memories are those of the cross attention, whatever holds the variant
    assert len(trace.memories) == (2 if combiner == "flat" else 4)
    if slot == "self":
        widths = [answer.weights.shape[-1] for answer in trace.attended]
        assert widths == [5, 4, 5, 4]


def test_gold_lines_up_with_the_weights_of_the_first_source(network):
    for combiner in OURS:
        backbone, batch = network(combiner), examples()
        arranged = backbone.arrange(batch)
        assert arranged.gold.shape == backbone(arranged, Mode()).weights.shape
        assert torch.equal(arranged.gold[..., :5], batch.gold)
        assert not arranged.gold[..., 5:].any()
        assert backbone.arrange(arranged) is arranged


@pytest.mark.parametrize("combiner", ["serial", "parallel", "flat"])
def test_one_source_is_ordinary_attention_to_the_last_bit(combiner, network):
    plain, above = network("concat", (9,)), network(combiner, (9,))
    batch = examples(LENGTHS[:1])
    assert list(plain.state_dict()) == list(above.state_dict())
    one, two = plain(batch, Mode()), above(batch, Mode())
    assert torch.equal(one.states, two.states)
    assert torch.equal(one.context, two.context)
    assert torch.equal(one.weights, two.weights)


PLAIN = "transformer_seq2seq[width=16,heads=2,layers=2]"


def cell_of(task: str, variant: str = "scaled_dot") -> Cell:
    protocol = "adam[steps=4,batch=8,evaluate_every=2]"
    request = Request(preset="smoke", backbone=PLAIN, training=protocol)
    return quality_cell(request, resolve(variant), DefaultTask(task=task), 0).cell


def test_the_option_is_not_written_where_it_is_not_set():
    """Ids hash what is written: published cells of one source were made without it."""
    assert "combiner" not in canonical_backbone(PLAIN, {}).show()
    named = canonical_backbone(PLAIN.replace("]", ",combiner=concat]"), {})
    assert named == canonical_backbone(PLAIN, {})
    serial = canonical_backbone(PLAIN.replace("]", ",combiner=serial]"), {})
    assert "combiner=serial" in serial.show()
    assert revisions(resolve("scaled_dot"), "two_source", serial) == "transformer_seq2seq:2"
    asked = resolve("scaled_dot[combiner=serial]")
    assert canonical_backbone(PLAIN, asked.fixes) == serial
    assert cell_refusal(asked, TwoSource, serial, "cross") is None


def test_it_learns_to_the_same_number_as_before_there_were_several_sources():
    """Training losses of 4 steps, taken from the version that could read one source only."""
    cell = cell_of("transduction[evaluate=16]")
    assert cell.id == "7cd302ee21df"
    rows = train_cell(replace(cell, dtype="float64")).rows
    losses = [row.value for row in rows if row.metric == "train_loss_nats"]
    assert losses == pytest.approx([2.5975038023122448, 2.545236630087084], abs=1e-9)


def test_contexts_side_by_side_do_not_fit_a_residual_block():
    with pytest.raises(Refused, match="concat returns contexts of width 32, and a residual block"):
        assemble(cell_of("two_source"), None)
    assemble(cell_of("two_source[read=first]"), None)


def test_heads_that_do_not_map_back_do_not_fit_a_residual_block():
    with pytest.raises(Refused, match="values of width 16, and the heads return 8"):
        assemble(cell_of("transduction", "snail[key=8,value=8]"), None)
    assemble(cell_of("transduction", "snail"), None)


def test_serial_is_refused_beneath_a_recurrent_decoder():
    backbone = canonical_backbone("rnn_seq2seq[combiner=serial]", {})
    reason = cell_refusal(resolve("scaled_dot"), TwoSource, backbone, "cross")
    assert reason == "serial needs residual sublayers around attention, which nothing here gives."
    parallel = canonical_backbone("rnn_seq2seq[combiner=parallel]", {})
    assert cell_refusal(resolve("scaled_dot"), TwoSource, parallel, "cross") is None


def test_recurrent_recipes_stay_refused_with_the_axis_that_is_missing():
    for name in ("multi_source", "multi_source_flat", "multi_source_hierarchical"):
        backbone = canonical_backbone(PLAIN, {})
        reason = cell_refusal(resolve(name), TwoSource, backbone, "cross")
        assert "is decoder=" in reason
        assert reason.endswith("transformer_seq2seq has no such axis.")
    flat = resolve("scaled_dot[combiner=flat]")
    reason = cell_refusal(flat, TwoSource, canonical_backbone(PLAIN, {}), "cross")
    assert reason == "scaled_dot is combiner=flat, and this backbone has combiner=concat."


def test_flat_takes_the_words_of_the_first_source_away():
    backbone = canonical_backbone(PLAIN.replace("]", ",combiner=flat]"), {})
    assert not trained_place(TwoSource, backbone) & {"source_tokens", "source_states"}
    plain = trained_place(TwoSource, canonical_backbone(PLAIN, {}))
    assert "source_states" in plain


def test_heads_of_the_second_attention_divide_the_width(network):
    with pytest.raises(InvalidConfig, match="heads must divide the decoder's width 6, got 4"):
        network("hierarchical_heads[heads=4]")
    with pytest.raises(InvalidConfig, match="heads must be at least 1, got 0"):
        registry.make("combiner", parse("hierarchical_heads[heads=0]"), None, None)


@pytest.mark.parametrize("combiner", ["parallel", "hierarchical_heads[heads=3]"])
def test_a_recurrent_decoder_may_add_or_weigh_contexts_too(combiner, placed, near):
    name = f"rnn_seq2seq[hidden={WIDTH},embedding=4,combiner={combiner}]"
    backbone = placed(name, "additive", (9, 7), VOCAB)
    trace = backbone(examples(), Mode())
    assert trace.context.shape == (3, 4, WIDTH)
    if combiner == "parallel":
        near(trace.context, sum(answer.output[:, 0] for answer in trace.attended))
