from dataclasses import replace

import pytest
import torch

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source

NEAR = {"rtol": 0, "atol": 1e-10}
ALWAYS, NEVER = 800.0, -800.0
"""Numbers before the sigmoid that make a strength of two, or none at all."""


@pytest.mark.parametrize(
    "options", ["chunk=2", "chunk=3", "chunk=64", "chunk=2,forget=true", "chunk=3,convolution=3"]
)
@pytest.mark.parametrize("heads", [1, 2])
def test_vectorized_code_equals_the_loops(equals_oracle, options, heads):
    equals_oracle(f"path[{options}]", "causal", heads=heads)


def with_inputs(drawn, strength, direction=None, forget=ALWAYS):
    """The source with what the slot would project beside its keys."""
    rows, heads, keys, width = drawn.source.key.shape
    rng = torch.Generator().manual_seed(5)
    if direction is None:
        direction = torch.randn(rows, heads, keys, width, generator=rng, dtype=torch.float64)
    filled = torch.as_tensor(strength, dtype=torch.float64).expand(rows, heads, keys)
    extras = {
        "direction": direction,
        "strength": filled.unsqueeze(-1),
        "forget": torch.full((rows, heads, keys, 1), forget, dtype=torch.float64),
    }
    return Source(drawn.source.key, drawn.source.value, drawn.source.mask, None, extras)


@pytest.fixture
def bare(beneath):
    """`bare(options)` -> the mechanism with biases of zero."""

    def make(options="chunk=4"):
        variant = beneath(f"path[{options}]", regime="causal")
        with torch.no_grad():
            for parameter in variant.parameters():
                parameter.zero_()
        return variant

    return make


def test_without_strength_it_is_attention_without_positions(answer, bare, beneath, draw):
    drawn = draw(2, 2, 9, 9)
    plain = answer(beneath("nope", regime="causal"), drawn.query, drawn.source)
    found = answer(bare(), drawn.query, with_inputs(drawn, NEVER))
    torch.testing.assert_close(found.output, plain.output, **NEAR)
    torch.testing.assert_close(found.weights, plain.weights, **NEAR)


def test_without_strength_gates_make_it_forgetting_attention(answer, bare, beneath, draw):
    drawn = draw(2, 2, 9, 9)
    source = with_inputs(drawn, NEVER, forget=0.3)
    fox = beneath("fox", regime="causal")
    with torch.no_grad():
        fox.positions[0].bias.zero_()
    plain = answer(fox, drawn.query, source)
    found = answer(bare("chunk=4,forget=true"), drawn.query, source)
    torch.testing.assert_close(found.output, plain.output, **NEAR)


def carried(variant, drawn, source):
    """The transformed keys after the last token."""
    rows, heads, _, width = drawn.query.shape
    like = QueryShape(rows, heads, width, torch.float64, torch.device("cpu"))
    start = variant.start(None, like)
    return variant.attend(drawn.query, None, start, new=source).state.carried["key"]


def test_a_strength_of_two_reflects_and_keeps_the_length_of_every_key(bare, draw):
    drawn = draw(2, 2, 9, 9, lengths=())
    key = carried(bare(), drawn, with_inputs(drawn, ALWAYS))
    torch.testing.assert_close(key.norm(dim=-1), drawn.source.key.norm(dim=-1), **NEAR)
    assert (key[:, :, :-1] - drawn.source.key[:, :, :-1]).abs().max() > 0.1


def test_a_strength_of_one_takes_a_direction_out_of_the_keys_before_it(bare, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    strength = torch.full((6,), NEVER, dtype=torch.float64)
    strength[3] = 0
    source = with_inputs(drawn, strength)
    key = carried(bare(), drawn, source)
    unit = torch.nn.functional.normalize(source.extras["direction"][:, :, 3:4], dim=-1)
    before = drawn.source.key[:, :, :3]
    wanted = before - unit * (before * unit).sum(-1, keepdim=True)
    torch.testing.assert_close(key[:, :, :3], wanted, **NEAR)
    torch.testing.assert_close(key[:, :, 3:], drawn.source.key[:, :, 3:], **NEAR)


def test_the_order_of_reflections_is_that_of_tokens(answer, bare, draw):
    """q H_2 H_1 k_0, as in the paper, and not q H_1 H_2 k_0."""
    drawn = draw(1, 2, 3, 3, lengths=())
    source = with_inputs(drawn, ALWAYS)
    unit = torch.nn.functional.normalize(source.extras["direction"], dim=-1)
    house = torch.eye(5, dtype=torch.float64) - 2 * torch.einsum("bhse,bhsf->bhsef", unit, unit)
    key, query = drawn.source.key, drawn.query[:, :, 2]

    def scores(first, second):
        far = torch.einsum("bhe,bhef,bhfg,bhg->bh", query, first, second, key[:, :, 0])
        near = torch.einsum("bhe,bhef,bhf->bh", query, house[:, :, 2], key[:, :, 1])
        own = (query * key[:, :, 2]).sum(-1)
        return torch.stack((far, near, own), -1) / 5**0.5

    found = answer(bare(), drawn.query, source).weights[:, :, 2]
    wanted = scores(house[:, :, 2], house[:, :, 1]).softmax(-1)
    torch.testing.assert_close(found, wanted, **NEAR)
    assert (found - scores(house[:, :, 1], house[:, :, 2]).softmax(-1)).abs().max() > 1e-3


def test_two_reflections_turn_as_rotary_positions_do(answer, bare, beneath, draw):
    """Reflections by turns in the plane of a pair, half an angle apart, turn it by the angle."""
    drawn = draw(1, 1, 8, 8, widths=(2, 2, 3), lengths=())
    angle = torch.tensor([0.0, 0.5], dtype=torch.float64).repeat(4)
    direction = torch.stack((angle.cos(), angle.sin()), -1).view(1, 1, 8, 2)
    variant = bare_of_one_head(beneath)
    source = with_inputs(drawn, ALWAYS, direction)
    found = answer(variant, drawn.query, source).weights[0, 0, 7, 1::2]
    # after every second token the keys at odd places are turned by one more radian
    rope = beneath("rope", heads=1, widths=(2, 2, 3), regime="causal").positions[0]
    keys = drawn.source.key[:, :, 1::2]
    turned = rope.turn(keys, torch.tensor([3, 2, 1, 0]))[0, 0]
    scores = turned @ drawn.query[0, 0, 7] / 2**0.5
    ratio = (found / found[-1]).log()
    torch.testing.assert_close(ratio, scores - scores[-1], **NEAR)


def bare_of_one_head(beneath):
    variant = beneath("path[chunk=4]", heads=1, widths=(2, 2, 3), regime="causal")
    with torch.no_grad():
        variant.bias.zero_()
    return variant


@pytest.mark.parametrize("chunk", [1, 2, 5, 64])
def test_chunks_change_nothing(answer, bare, draw, chunk):
    drawn = draw(2, 2, 13, 13)
    source = with_inputs(drawn, 0.4)
    whole = answer(bare("chunk=13"), drawn.query, source).output
    found = answer(bare(f"chunk={chunk}"), drawn.query, source).output
    torch.testing.assert_close(found, whole, **NEAR)


def with_taps(bare, taps, options="chunk=4,convolution=3"):
    variant = bare(options)
    with torch.no_grad():
        variant.taps.copy_(torch.tensor(taps, dtype=torch.float64)[:, None, None])
    return variant


def test_a_convolution_of_the_own_token_alone_is_none(answer, bare, draw):
    drawn = draw(2, 2, 9, 9)
    source = with_inputs(drawn, 0.4)
    found = answer(with_taps(bare, [0.0, 0.0, 1.0]), drawn.query, source)
    torch.testing.assert_close(found.output, answer(bare(), drawn.query, source).output, **NEAR)


def test_a_convolution_may_put_a_direction_later_or_join_three(answer, bare, draw):
    drawn = draw(2, 2, 9, 9, lengths=())
    source = with_inputs(drawn, 0.4)
    raw = source.extras["direction"]
    earlier = [torch.nn.functional.pad(raw, (0, 0, n, 0))[:, :, :9] for n in (2, 1, 0)]
    for taps in ([0.0, 1.0, 0.0], [0.5, -2.0, 1.0]):
        joined = sum(tap * one for tap, one in zip(taps, earlier, strict=True))
        wanted = answer(bare(), drawn.query, with_inputs(drawn, 0.4, joined))
        found = answer(with_taps(bare, taps), drawn.query, source)
        torch.testing.assert_close(found.output, wanted.output, **NEAR)


def test_options_and_places_without_a_meaning_are_refused():
    with pytest.raises(InvalidConfig, match="chunk must be at least 1"):
        variants.build("path[chunk=0]", dim=8, heads=2, regime="causal")
    with pytest.raises(InvalidConfig, match="convolution must not be negative"):
        variants.build("path[convolution=-1]", dim=8, heads=2, regime="causal")
    with pytest.raises(Refused, match="path has no impl=sdpa"):
        variants.build("path", dim=8, heads=2, regime="causal", impl="sdpa")
    for regime in ("cross", "self", "pool"):
        with pytest.raises(Refused, match="path: its products run"):
            variants.build("path", dim=8, heads=2, regime=regime)


@pytest.mark.parametrize("options", ["chunk=2", "chunk=4,forget=true", "chunk=4,convolution=3"])
@pytest.mark.parametrize("moved", [False, True])
def test_a_token_behind_padding_answers_as_if_there_were_none(beneath, draw, options, moved):
    variant = beneath(f"path[{options}]", regime="causal")
    drawn = draw(1, 2, 5, 5, lengths=[2])
    source = with_inputs(drawn, 0.3, forget=0.5)
    mask = torch.tensor([[True, True, False, False, True]])
    whole = behind(variant, drawn.query, replace(source, mask=mask), [4, 1])
    real = [0, 1, 4]
    extras = {name: one[:, :, real] for name, one in source.extras.items()}
    alone = Source(source.key[:, :, real], source.value[:, :, real], None, None, extras)
    found = behind(variant, drawn.query[:, :, real], alone, [2, 1], place=2 if moved else 4)
    torch.testing.assert_close(whole, found, **NEAR)


def behind(variant, query, source, counts, place=None):
    """The answer to the last of the tokens, which come in several calls."""
    rows, heads, _, width = query.shape
    state = variant.start(None, QueryShape(rows, heads, width, query.dtype, query.device))
    at, found = 0, None
    for count in counts:
        if at and place is not None:
            state = replace(state, offset=place)
        some = slice(at, at + count)
        new = Source(
            source.key[:, :, some],
            source.value[:, :, some],
            None if source.mask is None else source.mask[:, some],
            None,
            {name: one[:, :, some] for name, one in source.extras.items()},
        )
        found = variant.attend(query[:, :, some], None, state, new=new)
        state, at = found.state, at + count
    return found.output
