import itertools
from dataclasses import replace

import pytest
import torch

import variants
from bench.api import registry
from bench.api.errors import InvalidConfig, Refused
from bench.api.noise import Noise
from bench.api.resolve import resolve
from bench.api.source import Memory, Source
from variants.normalizers.mocha import MochaConfig
from variants.normalizers.raffel_monotonic import RaffelMonotonicConfig

NOISE = Noise(seed=7)
READS = ("train", "expected", "hard")
WINDOWED = "mocha[score=scaled_dot,chunk=general,window=3,offset=0]"


def doubles(*values):
    return torch.tensor(values, dtype=torch.float64)


def stops_of(*shape, seed=0):
    """Rows of stop probabilities that sum to less than one."""
    rng = torch.Generator().manual_seed(seed)
    drawn = torch.rand(*shape, generator=rng, dtype=torch.float64)
    return drawn / (drawn.sum(-1, keepdim=True) + 0.3)


@pytest.fixture
def spread(component, ask):
    """`spread(selector, stops, energy, allowed)` -> weights, the chunk's energies being given."""

    def make(selector, stops, energy, allowed=None):
        heads, keys = stops.shape[1], stops.shape[3]
        normalizer = component("normalizer", selector, heads=heads)
        normalizer.chunk_energy = lambda call: energy
        blank = torch.zeros(stops.shape[0], heads, keys, 1, dtype=stops.dtype)
        call = ask(blank[:, :, :1], Source(blank, blank))
        return normalizer.spread(stops, allowed, call)

    return make


def by_loops(stops, energy, window, allowed):
    """One row: stop by stop, in exponentials."""
    found = torch.zeros_like(stops)
    for k, mass in enumerate(stops):
        inside = [s for s in range(max(0, k - window + 1), k + 1) if allowed[s]]
        total = sum(energy[s].exp() for s in inside)
        for s in inside:
            found[s] += mass * energy[s].exp() / total
    return found


def test_golden_weights_of_a_window_of_two(spread):
    stops = doubles(0.5, 0.25, 0.125).view(1, 1, 1, 3)
    energy = doubles(1, 2, 4).log().view(1, 1, 1, 3)
    found = spread("mocha[window=2]", stops, energy)[0, 0, 0]
    torch.testing.assert_close(found, doubles(0.583333, 0.208333, 0.083333), rtol=0, atol=1e-6)


@pytest.mark.parametrize("window", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("padded", [False, True])
def test_the_windows_are_those_of_the_formula_by_loops(spread, window, padded):
    stops, energy = stops_of(2, 2, 3, 6), 3 * torch.randn(2, 2, 3, 6, dtype=torch.float64)
    allowed = torch.tensor([[1, 1, 0, 1, 1, 1], [0, 1, 1, 1, 0, 0]]).bool()
    allowed = allowed if padded else torch.ones_like(allowed)
    stops = torch.where(allowed[:, None, None], stops, 0.0)
    mask = allowed[:, None, None] if padded else None
    found = spread(f"mocha[window={window}]", stops, energy, mask)
    for row, head, t in itertools.product(range(2), range(2), range(3)):
        wanted = by_loops(stops[row, head, t], energy[row, head, t], window, allowed[row])
        assert (found[row, head, t] - wanted).abs().max() < 1e-12
    torch.testing.assert_close(found.sum(-1), stops.sum(-1))


def test_a_window_of_one_is_plain_monotonic_attention(spread):
    stops, energy = stops_of(2, 1, 4, 5), torch.randn(2, 1, 4, 5, dtype=torch.float64)
    assert torch.equal(spread("mocha[window=1]", stops, energy), stops)


def test_energies_far_apart_neither_overflow_nor_vanish(spread):
    stops = torch.full((1, 1, 1, 4), 0.25)
    energy = torch.tensor([-900.0, 900.0, -900.0, -900.0]).view(1, 1, 1, 4).requires_grad_()
    found = spread("mocha[window=2]", stops, energy)
    assert found[0, 0, 0].tolist() == pytest.approx([0.25, 0.5, 0.125, 0.125])
    found.square().sum().backward()
    assert energy.grad.isfinite().all()


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("end", ["nothing", "last"])
def test_vectorized_code_equals_the_loops(equals_oracle, read, end):
    selector = WINDOWED.replace("offset=0", f"offset=0,end={end}")
    equals_oracle(selector, read=read, noise=NOISE, queries=6, keys=9)


def test_hard_decoding_reads_a_softmax_of_the_window_before_the_stop(beneath, answer, draw):
    variant = beneath(WINDOWED, widths=(4, 4, 4))
    with torch.no_grad():
        variant.normalizer.offset.fill_(-0.5)
    drawn = draw(queries=9, widths=(4, 4, 4), keys=8, lengths=())
    weights = answer(variant, drawn.query, drawn.source).weights
    plain = beneath("raffel_monotonic[score=scaled_dot,offset=0]", widths=(4, 4, 4))
    with torch.no_grad():
        plain.normalizer.offset.copy_(variant.normalizer.offset)
    stops = answer(plain, drawn.query, drawn.source).weights
    torch.testing.assert_close(weights.sum(-1), stops.sum(-1))
    place, used = stops.argmax(-1), stops.sum(-1) > 0
    assert used.any()
    assert not used.all()
    assert (place[used] > 0).any()
    for row, head, t in used.nonzero().tolist():
        at = int(place[row, head, t])
        read = weights[row, head, t].nonzero().flatten().tolist()
        assert read == list(range(max(0, at - 2), at + 1))


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("end", ["nothing", "last"])
def test_streaming_equals_hard_decoding_with_holes_and_nan_beyond_the_pointer(draw, window, end):
    drawn = draw(rows=6, heads=2, queries=7, keys=9, widths=(4, 4, 4), lengths=())
    lengths = torch.tensor([9, 7, 5, 3, 9, 1])[:, None]
    mask = (torch.arange(9) % 3 != 1) & (torch.arange(9) < lengths)
    selector = f"mocha[window={window},offset=0,end={end}]"
    slot = variants.build(selector, dim=8, heads=2, regime="cross")
    variant = slot.variant.double()
    memory = variant.prepare(Source(drawn.source.key, drawn.source.value, mask))
    state = slot.start(memory, drawn.query[:, 0])
    hard = variant.attend(drawn.query, memory, state, read="hard")
    pointer = torch.zeros(6, 2, dtype=torch.int64)
    for t in range(7):
        asked = drawn.query[:, :, t : t + 1]
        output, after, _ = variant.stream(asked, memory, pointer)
        torch.testing.assert_close(output[:, :, 0], hard.output[:, :, t], rtol=0, atol=1e-12)
        beyond = (torch.arange(9) > after.amax(1)[:, None])[:, None, :, None]
        source = memory.source
        spoiled = variant.prepare(
            Source(
                source.key.masked_fill(beyond, float("nan")),
                source.value.masked_fill(beyond, float("nan")),
                mask,
            )
        )
        assert torch.equal(variant.stream(asked, spoiled, pointer)[0], output)
        pointer = after
    assert (pointer == 9).any()


def test_the_second_score_has_weights_of_its_own_and_prepares_them():
    slot = variants.build("mocha[chunk=additive[width=8]]", dim=8, regime="cross")
    names = dict(slot.variant.named_parameters())
    assert names["normalizer.chunk.key_map"].shape == (1, 8, 8)
    assert names["score.key_map"].shape == (1, 8, 64)
    memory = slot.prepare(torch.randn(2, 5, 8))
    assert isinstance(memory, Memory)
    assert memory.parts["normalizer"]["key"].shape == (2, 1, 5, 8)


def test_the_defaults_of_the_second_score_are_written_out_and_its_revision_counts(monkeypatch):
    spec = resolve("mocha")
    assert "chunk=additive[width=64]" in spec.complete.show()
    assert resolve(spec.canonical).canonical == spec.canonical
    newer = replace(registry.find("score", "general"), revision=3)
    monkeypatch.setitem(registry._ENTRIES["score"], "general", newer)
    assert "general:3" in resolve("mocha[chunk=general]").revision.split()
    assert "general:3" not in resolve("mocha").revision.split()


def test_what_the_second_score_needs_is_asked_for_and_what_it_gives_is_not():
    cross = frozenset({"cross", "padding", "stepwise"})
    reason = resolve("mocha[chunk=scaled_dot]").refusal(cross)
    assert reason == ("scaled_dot needs queries and keys of equal width, which nothing here gives.")
    assert resolve("mocha[chunk=scaled_dot]").refusal(cross | {"equal_width"}) is None
    # an additive chunk takes features, the dot product before it does not
    reason = resolve("mocha[score=scaled_dot,history=tu_coverage]").refusal(cross | {"equal_width"})
    assert reason is not None
    assert "accepts per-key features" in reason


def test_a_chunk_whose_keys_cannot_be_scored_alone_is_refused():
    with pytest.raises(Refused, match="conv_attention does not score one key at a time"):
        variants.build("mocha[chunk=conv_attention]", dim=8, regime="cross")


def test_the_window_has_at_least_one_key_and_the_noise_is_not_negative():
    with pytest.raises(InvalidConfig, match="at least 1 key, got 0"):
        MochaConfig(window=0)
    for config in (MochaConfig, RaffelMonotonicConfig):
        with pytest.raises(InvalidConfig, match="got -1"):
            config(noise=-1.0)
