"""What a state of each encoder can know, found by perturbing one token after the other."""

import pytest
import torch

from bench.api import registry
from bench.api.errors import BenchError, InvalidConfig
from bench.api.selector import parse

WIDTH, HIDDEN, LENGTH = 6, 8, 11


@pytest.fixture
def build(draw):
    """`build(selector)` -> the encoder in float64, every parameter drawn."""

    def make(selector: str):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            made = registry.make("encoder", parse(selector), WIDTH, HIDDEN).double()
        draw(made, 0)
        return made

    return make


def sentence(rows: int = 1, length: int = LENGTH, seed: int = 0) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(rows, length, WIDTH, generator=rng, dtype=torch.float64)


def reach(encoder) -> torch.Tensor:
    """Whether state s moves when token j does, S x S."""
    x = sentence()
    before = encoder(x, None).states[0]
    found = []
    for token in range(LENGTH):
        changed = x.clone()
        changed[0, token] += 1
        found.append((encoder(changed, None).states[0] - before).abs().amax(-1) > 0)
    return torch.stack(found, 1)


def distance() -> torch.Tensor:
    place = torch.arange(LENGTH)
    return place[None] - place[:, None]


ALIKE = (
    "birnn",
    "birnn[cell=lstm]",
    "birnn[summary=mean]",
    "uni_rnn",
    "uni_rnn[cell=lstm,layers=3]",
    "uni_rnn[summary=mean]",
    "embed",
    "embed[positions=learned]",
    "cnn",
    "cnn[kernel=1]",
    "transformer",
)


@pytest.mark.parametrize("selector", ALIKE)
@pytest.mark.parametrize("length", [1, 2, 7])
def test_there_is_one_state_a_token_of_the_width_that_is_announced(selector, length, build):
    encoder = build(selector)
    found = encoder(sentence(2, length), torch.ones(2, length, dtype=torch.bool))
    assert found.states.shape == (2, length, encoder.output_width)
    assert found.summary.shape == (2, encoder.summary_width)
    assert found.mask is not None
    assert found.mask.shape == (2, length)
    assert encoder.stride == 1


@pytest.mark.parametrize("selector", [*ALIKE, "feed_forward", "feed_forward[layers=2]"])
def test_an_encoder_is_online_where_no_state_knows_a_later_token(selector, build):
    gives = registry.find("encoder", parse(selector).name).target.gives
    knows_later = bool(reach(build(selector)).triu(1).any())
    if selector != "cnn[kernel=1]":  # the others of its kind see neighbors
        assert ("online" in gives) == (not knows_later)


@pytest.mark.parametrize(("layers", "kernel"), [(1, 3), (2, 3), (1, 5), (3, 1), (2, 5)])
@pytest.mark.parametrize("unit", ["glu", "tanh"])
def test_a_convolutional_state_sees_its_receptive_field_and_nothing_else(
    layers, kernel, unit, build
):
    encoder = build(f"cnn[layers={layers},kernel={kernel},unit={unit}]")
    half = layers * (kernel - 1) // 2
    assert torch.equal(reach(encoder), distance().abs() <= half)


def test_a_forward_state_sees_itself_and_the_past():
    for selector in ("uni_rnn", "uni_rnn[cell=lstm]", "uni_rnn[layers=2]"):
        encoder = registry.make("encoder", parse(selector), WIDTH, HIDDEN).double()
        assert torch.equal(reach(encoder), distance() <= 0)


def test_an_embedded_state_sees_itself(build):
    for selector in ("embed", "embed[positions=sinusoid]"):
        assert torch.equal(reach(build(selector)), distance() == 0)


@pytest.mark.parametrize("selector", ["birnn", "birnn[cell=lstm]", "transformer", "pyramid"])
def test_a_bidirectional_state_sees_everything(selector, build):
    assert reach(build(selector)).all()


@pytest.mark.parametrize("selector", ["embed", "transformer[positions=off]"])
def test_without_positions_permuting_words_permutes_states(selector, build, near):
    encoder, x = build(selector), sentence(2)
    order = torch.randperm(LENGTH, generator=torch.Generator().manual_seed(3))
    near(encoder(x[:, order], None).states, encoder(x, None).states[:, order])
    near(encoder(x[:, order], None).summary, encoder(x, None).summary)


@pytest.mark.parametrize(
    "selector", ["embed[positions=sinusoid]", "embed[positions=learned]", "transformer", "cnn"]
)
def test_positions_tell_equal_words_apart(selector, build):
    x = sentence()[:, :1].expand(-1, LENGTH, -1).contiguous()
    states = build(selector)(x, None).states[0]
    middle = states[3:-3]
    assert (middle[1:] - middle[:-1]).abs().amax(-1).min() > 1e-3


def test_a_convolution_equals_its_sums_written_out(build, near):
    encoder = build("cnn[layers=2,kernel=3,positions=off]")
    x = sentence()
    states = [encoder.enter.weight @ word + encoder.enter.bias for word in x[0]]
    for layer in encoder.layers:
        made = []
        for place in range(LENGTH):
            total = layer.bias.clone()
            for tap in range(3):
                if 0 <= place + tap - 1 < LENGTH:
                    total = total + layer.weight[:, :, tap] @ states[place + tap - 1]
            value, gate = total[:HIDDEN], total[HIDDEN:]
            made.append(states[place] + value / (1 + torch.exp(-gate)))
        states = made
    near(encoder(x, None).states[0], torch.stack(states))
    near(encoder(x, None).summary[0], sum(states) / LENGTH)


def test_garbage_in_padded_places_never_reaches_real_ones(build, near):
    mask = torch.arange(LENGTH) < torch.tensor([LENGTH, 7, 1])[:, None]
    for selector in (*ALIKE, "pyramid"):
        encoder, x = build(selector), sentence(3)
        clean = encoder(torch.where(mask[..., None], x, 0.0), mask)
        dirty = encoder(torch.where(mask[..., None], x, 1e3), mask)
        real = clean.mask
        near(dirty.states[real], clean.states[real])
        near(dirty.summary, clean.summary)


LENGTHS = (LENGTH, 4, 1)


def padded() -> tuple[torch.Tensor, torch.Tensor]:
    """Three rows whose padding holds garbage."""
    mask = torch.arange(LENGTH) < torch.tensor(LENGTHS)[:, None]
    return torch.where(mask[..., None], sentence(3), 1e2), mask


@pytest.mark.parametrize("options", ["", "cell=lstm", "layers=2"])
def test_the_summary_of_a_forward_encoder_is_its_last_real_state(options, build, near):
    encoder, (x, mask) = build(f"uni_rnn[{options}]"), padded()
    summary = encoder(x, mask).summary
    for row, length in enumerate(LENGTHS):
        one = encoder(x[row : row + 1, :length], None)
        near(summary[row], one.states[0, length - 1])
        near(one.summary[0], one.states[0, length - 1])
        for place in range(length - 1):
            assert (summary[row] - one.states[0, place]).abs().max() > 1e-3


@pytest.mark.parametrize("options", ["", "cell=lstm"])
def test_the_summary_of_a_bidirectional_encoder_joins_both_ends(options, build, near):
    encoder, (x, mask) = build(f"birnn[{options}]"), padded()
    half, summary = HIDDEN // 2, encoder(x, mask).summary
    assert encoder.backward == range(half, HIDDEN)
    for row, length in enumerate(LENGTHS):
        one = encoder(x[row : row + 1, :length], None)
        ends = torch.cat((one.states[0, length - 1, :half], one.states[0, 0, half:]))
        near(summary[row], ends)
        near(one.summary[0], ends)
        if length > 1:
            assert (ends - one.states[0, 0]).abs().max() > 1e-3
            assert (ends - one.states[0, length - 1]).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["birnn", "birnn[cell=lstm]", "uni_rnn", "uni_rnn[layers=2]"])
def test_a_mean_summary_averages_the_real_states(name, build, near):
    options = name.partition("[")[2].rstrip("]")
    asked = f"{name.partition('[')[0]}[{','.join(filter(None, (options, 'summary=mean')))}]"
    encoder, last, (x, mask) = build(asked), build(name), padded()
    found = encoder(x, mask)
    assert encoder.backward == range(0), "a mean is no last state"
    near(found.states[mask], last(x, mask).states[mask])
    for row, length in enumerate(LENGTHS):
        one = last(x[row : row + 1, :length], None).states[0]
        near(found.summary[row], sum(one) / length)
        near(encoder(x[row : row + 1, :length], None).summary[0], sum(one) / length)


@pytest.mark.parametrize(
    ("selector", "complaint"),
    [
        ("cnn[kernel=4]", "positive odd number, got 3, 4"),
        ("cnn[layers=0]", "at least 1"),
        ("pyramid[layers=0]", "without any it is birnn"),
        ("uni_rnn[layers=0]", "at least 1, got 0"),
        ("transformer[heads=3]", "heads must divide 8, got 3"),
        ("birnn[cell=rnn]", "cell"),
        ("uni_rnn[summary=first]", "summary"),
        ("cnn[positions=sideways]", "positions"),
    ],
)
def test_impossible_options_are_refused(selector, complaint):
    with pytest.raises(BenchError, match=complaint):
        registry.make("encoder", parse(selector), WIDTH, HIDDEN)


def test_an_odd_width_cannot_be_split_into_two_directions():
    for name in ("birnn", "pyramid"):
        with pytest.raises(InvalidConfig, match="hidden must be even, got 7"):
            registry.make("encoder", parse(name), WIDTH, 7)
