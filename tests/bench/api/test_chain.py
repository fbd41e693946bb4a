"""The chain: fused code equals plain code, caches equal squares, and streams walk."""

import pytest
import torch

import variants
from bench.api.build import build_variant
from bench.api.call import Call, Dims, QueryShape
from bench.api.errors import Refused
from bench.api.resolve import resolve
from bench.api.source import Memory, Source, leaf
from bench.api.stream import stream_hard, take_keys

ROWS, HEADS, WIDTH = 3, 4, 8
GIVEN = frozenset({"padding", "stepwise", "equal_width", "equal_heads", "weights"})


def build(selector, regime="cross", impl="auto", kv_heads=HEADS):
    torch.manual_seed(0)
    dims = Dims(HEADS, kv_heads, WIDTH, WIDTH, WIDTH, HEADS * WIDTH, regime)
    return build_variant(resolve(selector), dims, impl=impl, given=GIVEN).double()


def draw(queries, keys, *, lengths=None, kv_heads=HEADS, seed=1):
    generator = torch.Generator().manual_seed(seed)
    shape = (ROWS, kv_heads, keys, WIDTH)
    mask = None
    if lengths is not None:
        mask = torch.arange(keys) < torch.tensor(lengths)[:, None]
    query = torch.randn(ROWS, HEADS, queries, WIDTH, generator=generator, dtype=torch.float64)
    key = torch.randn(shape, generator=generator, dtype=torch.float64)
    value = torch.randn(shape, generator=generator, dtype=torch.float64)
    return query, Source(key=key, value=value, mask=mask)


def start(variant, memory=None):
    like = QueryShape(ROWS, HEADS, WIDTH, torch.float64, torch.device("cpu"))
    return variant.start(memory, like)


def cross(variant, query, source, **options):
    memory = variant.prepare(source)
    return variant.attend(query, memory, start(variant, memory), **options)


def causal(variant, query, source, split=None, **options):
    """All at once, or in two calls whose second finds keys in the cache."""
    state, outputs, at = start(variant), [], 0
    for size in split or (query.shape[2],):
        part = slice(at, at + size)
        new = Source(
            key=source.key[:, :, part],
            value=source.value[:, :, part],
            mask=None if source.mask is None else source.mask[:, part],
        )
        answer = variant.attend(query[:, :, part], None, state, new=new, **options)
        state, at = answer.state, at + size
        outputs.append(answer.output)
    return torch.cat(outputs, 2)


def equal(left, right):
    torch.testing.assert_close(left, right, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("lengths", [None, (7, 4, 1), (7, 0, 3)])
@pytest.mark.parametrize("score", ["scaled_dot", "dot", "general"])
def test_fused_cross_attention_equals_plain(score, lengths):
    query, source = draw(5, 7, lengths=lengths)
    plain = cross(build(score, impl="eager"), query, source)
    fused = cross(build(score, impl="sdpa"), query, source, want_weights=False)
    assert fused.weights is None
    assert plain.weights is not None
    real = torch.ones(ROWS, dtype=torch.bool) if lengths is None else torch.tensor(lengths) > 0
    equal(fused.output[real], plain.output[real])
    assert torch.isfinite(fused.output).all()
    assert not fused.output[~real].any(), "a row without a key reads nothing"


@pytest.mark.parametrize("lengths", [None, (6, 4, 1)])
@pytest.mark.parametrize("split", [None, (1, 5), (4, 2), (1,) * 6])
def test_fused_causal_attention_equals_plain_with_and_without_a_cache(lengths, split):
    query, source = draw(6, 6, lengths=lengths)
    plain = causal(build("scaled_dot", "causal", "eager"), query, source)
    fused = causal(build("scaled_dot", "causal", "sdpa"), query, source, split, want_weights=False)
    equal(fused, plain)


def test_fewer_queries_than_keys_are_aligned_with_the_last_keys():
    query, source = draw(6, 6)
    fused = build("scaled_dot", "causal", "sdpa")
    whole = causal(fused, query, source, want_weights=False)
    changed = Source(key=source.key.clone(), value=source.value.clone())
    changed.key[:, :, 5:], changed.value[:, :, 5:] = 9.0, 9.0
    moved = causal(fused, query, changed, (3, 3), want_weights=False)
    equal(moved[:, :, :5], whole[:, :, :5])
    assert not torch.allclose(moved[:, :, 5], whole[:, :, 5])


def test_fused_attention_with_an_energy_of_positions_and_grouped_heads():
    query, source = draw(5, 5, lengths=(5, 3, 2), kv_heads=2)
    bare = causal(build("scaled_dot", "causal", "eager", kv_heads=2), query, source)
    selector = "scaled_dot[position=alibi]"
    plain = causal(build(selector, "causal", "eager", kv_heads=2), query, source)
    fused = causal(build(selector, "causal", "sdpa", kv_heads=2), query, source, want_weights=False)
    equal(fused, plain)
    assert not torch.allclose(plain, bare)


def test_auto_gives_the_same_numbers_whether_weights_are_wanted_or_not():
    query, source = draw(5, 7, lengths=(7, 4, 1))
    variant = build("scaled_dot")
    wanted = cross(variant, query, source)
    unwanted = cross(variant, query, source, want_weights=False)
    equal(wanted.output, unwanted.output)
    equal(wanted.weights.sum(-1), torch.ones(ROWS, HEADS, 5, dtype=torch.float64))


def test_explicit_fused_code_refuses_to_return_weights():
    query, source = draw(2, 3)
    with pytest.raises(Refused, match="impl=sdpa cannot return weights"):
        cross(build("scaled_dot", impl="sdpa"), query, source)


@pytest.mark.parametrize(
    "selector",
    ["tu_coverage", "additive", "hard_reinforce", "luong_local_p", "conv_attention"],
)
def test_explicit_fused_code_is_refused_where_single_weights_are_looked_at(selector):
    with pytest.raises(Refused, match="impl=sdpa needs"):
        build_variant(
            resolve(selector),
            Dims(HEADS, HEADS, WIDTH, WIDTH, WIDTH, HEADS * WIDTH, "cross", 11),
            impl="sdpa",
            given=GIVEN | {"source_tokens", "loss:reinforce", "open_loop"},
        )
    with pytest.raises(Refused, match="impl=sdpa needs"):
        build("shaw_rpr", "causal", "sdpa")


@pytest.mark.parametrize("name", ["additive", "deltanet"])
def test_parts_are_never_built_as_compiled_code(name):
    with pytest.raises(Refused, match="build with impl='eager'"):
        variants.build(name, dim=8, heads=2, regime="causal", impl="compiled")


def test_history_makes_the_chain_step_and_steps_equal_the_whole():
    query, source = draw(5, 7, lengths=(7, 4, 2))
    variant = build("tu_coverage")
    whole = cross(variant, query, source)
    memory = variant.prepare(source)
    state, outputs = start(variant, memory), []
    for at in range(5):
        answer = variant.attend(query[:, :, at : at + 1], memory, state)
        state = answer.state
        outputs.append(answer.output)
    equal(torch.cat(outputs, 2), whole.output)
    assert state.offset == whole.state.offset == 5


def test_no_verb_leaves_state_on_the_module():
    query, source = draw(4, 6, lengths=(6, 4, 2))
    variant = build("tu_coverage")
    first = cross(variant, query, source).output
    cross(variant, query.flip(2), source)
    equal(cross(variant, query, source).output, first)


def test_taking_keys_picks_them_for_every_head():
    query, source = draw(1, 6, kv_heads=2)
    memory = Memory(source, {"score": {"key": source.key * 3}})
    index = torch.randint(0, 6, (ROWS, HEADS, 2), generator=torch.Generator().manual_seed(0))
    taken = take_keys(memory, index)
    for row in range(ROWS):
        for head in range(HEADS):
            wanted = source.key[row, head // 2, index[row, head]]
            equal(taken.source.key[row, head], wanted)
            equal(leaf(taken.parts, "score", "key")[row, head], wanted * 3)
    assert query.shape[2] == 1


class Planned:
    """Stands for a chain whose stop probabilities are written into the keys."""

    lookback = 0
    stays_at_end = False

    def __init__(self):
        self.normalizer = self.score = self
        self.touched = 0

    def energy(self, call: Call, features):
        self.touched += call.memory.num_keys
        return call.memory.source.key[..., 0].unsqueeze(2)

    def stop_probability(self, energy):
        return energy


@pytest.mark.parametrize(
    ("stops", "length", "pointer", "at", "touched"),
    [
        ([0.1, 0.9, 0.2, 0.9], 4, 0, 1, 2),
        ([0.1, 0.9, 0.2, 0.9], 4, 1, 1, 1),
        ([0.1, 0.9, 0.2, 0.9], 4, 2, 3, 2),
        ([0.1, 0.1, 0.1, 0.1], 4, 0, 4, 4),
        ([0.1, 0.1, 0.9, 0.9], 2, 0, 4, 2),
        ([0.9, 0.9, 0.9, 0.9], 4, 4, 4, 0),
        ([0.5, 0.5, 0.5, 0.51], 4, 0, 3, 4),
    ],
)
def test_a_stream_stops_at_the_first_key_above_one_half(stops, length, pointer, at, touched):
    key = torch.tensor(stops).view(1, 1, 4, 1)
    value = torch.arange(1.0, 5.0).view(1, 1, 4, 1)
    source = Source(key=key, value=value, mask=(torch.arange(4) < length)[None])
    chain = Planned()
    output, after, read = stream_hard(
        chain, torch.zeros(1, 1, 1, 1), Memory(source), torch.tensor([[pointer]])
    )
    assert after.tolist() == [[at]]
    assert read.tolist() == [[touched]]
    assert chain.touched == touched
    assert output.item() == (at + 1 if at < 4 else 0)


def test_streaming_in_steps_equals_reading_hard():
    query, source = draw(6, 7, lengths=(7, 5, 1))
    variant = build("raffel_monotonic")
    memory = variant.prepare(source)
    hard = variant.attend(query, memory, start(variant, memory), read="hard").output
    pointer = torch.zeros(ROWS, HEADS, dtype=torch.int64)
    for at in range(6):
        output, pointer, _ = variant.stream(query[:, :, at : at + 1], memory, pointer)
        equal(output, hard[:, :, at : at + 1])


@pytest.mark.parametrize("selector", ["scaled_dot", "tu_coverage"])
def test_a_chain_that_does_not_stop_has_no_stream(selector):
    query, source = draw(1, 3)
    variant = build(selector)
    with pytest.raises(Refused, match="no streaming form"):
        variant.stream(query, variant.prepare(source), torch.zeros(ROWS, HEADS, dtype=torch.int64))


@pytest.mark.parametrize("more", ["position=cohn_position", "history=tu_coverage"])
def test_positions_and_histories_inside_attention_have_no_stream(more):
    query, source = draw(1, 3)
    variant = build(f"raffel_monotonic[{more}]")
    with pytest.raises(Refused, match="streaming needs"):
        variant.stream(query, variant.prepare(source), torch.zeros(ROWS, HEADS, dtype=torch.int64))


@pytest.mark.parametrize("bias", ["none", "shaw_rpr[use=keys]"])
def test_fused_code_divides_by_the_temperature_too(bias):
    query, source = draw(6, 6, lengths=(6, 4, 1))
    selector = f"scaled_dot[position={bias},normalizer=softmax[temperature=0.3]]"
    plain = causal(build(selector, "causal", "eager"), query, source)
    fused = causal(build(selector, "causal", "sdpa"), query, source, want_weights=False)
    equal(fused, plain)
    assert not torch.allclose(plain, causal(build("scaled_dot", "causal"), query, source))


@pytest.mark.parametrize(
    "part",
    [
        "normalizer=softmax[mask_mode=neg_1e6_fill]",
        "normalizer=sparsemax",
        "normalizer=hardmax",
        "normalizer=none",
        "readout=max",
        "readout=unnormalized_sum",
        "readout=concat_topk",
        "readout=gated_sum",
    ],
)
def test_fused_code_is_refused_and_never_taken_where_it_would_compute_something_else(part):
    with pytest.raises(Refused, match="impl=sdpa needs"):
        build(f"scaled_dot[{part}]", impl="sdpa")
    query, source = draw(5, 7, lengths=(7, 0, 3))
    variant = build(f"scaled_dot[{part}]")
    wanted = cross(variant, query, source).output
    assert torch.equal(cross(variant, query, source, want_weights=False).output, wanted)
