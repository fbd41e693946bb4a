import copy
import itertools

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.noise import Noise
from bench.api.source import Source
from variants.normalizers.expected_alignment import expected_alignment, hard_walk
from variants.normalizers.raffel_monotonic import RaffelMonotonicConfig

NOISE = Noise(seed=7)
READS = ("train", "expected", "hard")
EXACT = ("auto", "wavefront", "doubling", "pairwise", "recursive")


def on_first(rows, heads, keys, dtype=torch.float64):
    previous = torch.zeros(rows, heads, keys, dtype=dtype)
    previous[..., 0] = 1
    return previous


def probabilities(*shape, seed=0, dtype=torch.float64):
    rng = torch.Generator().manual_seed(seed)
    return torch.sigmoid(torch.randn(*shape, generator=rng, dtype=torch.float64)).to(dtype)


def enumerate_walks(stop):
    """Expected normalizer of one example by listing every monotonic sequence of stops."""
    length, keys = stop.shape
    found = torch.zeros(length, keys, dtype=stop.dtype)
    for t in range(length):
        for stops in itertools.combinations_with_replacement(range(keys), t + 1):
            chance, at = 1.0, 0
            for row, place in enumerate(stops):
                for passed in range(at, place):
                    chance *= 1 - stop[row, passed].item()
                chance *= stop[row, place].item()
                at = place
            found[t, at] += chance
    return found


@pytest.fixture
def normalize(component, ask):
    """`normalize(energy, mask, selector, ...)` -> `Normalized`; r is zero, p = sigmoid(energy)."""

    def make(energy, mask=None, selector="raffel_monotonic[offset=0]", state=None, **options):
        rows, heads, length, keys = energy.shape
        normalizer = component("normalizer", selector, heads=heads, seed=None)
        blank = torch.zeros(rows, heads, keys, 1, dtype=energy.dtype)
        call = ask(blank.new_zeros(rows, heads, length, 1), Source(blank, blank, mask), **options)
        state = state or {"alpha": on_first(rows, heads, keys)}
        return normalizer.normalize(energy, call.allowed, state, call)

    return make


def energies(*shape, seed=0, grad=False):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64).requires_grad_(grad)


@pytest.mark.parametrize("computation", [*EXACT, "parallel"])
def test_golden_rows_of_the_expected_alignment(computation):
    stop = torch.tensor([[0.5, 0.5, 0.5], [0.2, 0.5, 1.0]], dtype=torch.float64)[None, None]
    found = expected_alignment(stop, on_first(1, 1, 3), computation)[0, 0]
    expected = torch.tensor([[0.5, 0.25, 0.125], [0.1, 0.325, 0.45]], dtype=torch.float64)
    assert (found - expected).abs().max() < 1e-12
    assert found.sum(-1).tolist() == pytest.approx([0.875, 0.875])


@pytest.mark.parametrize("computation", EXACT)
def test_the_expected_alignment_is_the_sum_over_all_monotonic_walks(computation):
    stop = probabilities(2, 2, 4, 4)
    found = expected_alignment(stop, on_first(2, 2, 4), computation)
    for row, head in itertools.product(range(2), range(2)):
        gap = found[row, head] - enumerate_walks(stop[row, head])
        assert gap.abs().max() < 1e-12


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (7, 4), (3, 9)])
def test_every_exact_computation_gives_the_same_weights_and_gradients(shape):
    results = []
    for computation in EXACT:
        stop = probabilities(2, 3, *shape).requires_grad_()
        previous = probabilities(2, 3, shape[1], seed=1).div(shape[1]).requires_grad_()
        found = expected_alignment(stop, previous, computation)
        (found * energies(2, 3, *shape, seed=2)).sum().backward()
        results.append((found.detach(), stop.grad, previous.grad))
    for other in results[:-1]:
        for one, two in zip(other, results[-1], strict=True):
            assert (one - two).abs().max() < 1e-12


@pytest.mark.parametrize("computation", EXACT)
def test_gradients_are_right_where_a_stop_is_certain(computation):
    stop = probabilities(1, 1, 3, 4)
    stop[..., 1] = 1.0
    stop[..., 2] = 0.0
    previous = on_first(1, 1, 4)

    def weights(given):
        return expected_alignment(given, previous, computation)

    assert torch.autograd.gradcheck(weights, stop.requires_grad_())


def test_the_closed_form_loses_weight_in_float32_and_the_exact_forms_do_not():
    stop = probabilities(8, 1, 20, 100, dtype=torch.float32)
    truth = expected_alignment(stop.double(), on_first(8, 1, 100), "recursive")
    previous = on_first(8, 1, 100, torch.float32)
    gaps = {
        name: (expected_alignment(stop, previous, name) - truth).abs().max().item()
        for name in ("wavefront", "doubling", "pairwise", "recursive", "parallel")
    }
    assert gaps["parallel"] > 1e-2
    assert max(gap for name, gap in gaps.items() if name != "parallel") < 2e-6


@pytest.mark.parametrize("computation", EXACT[1:])
def test_every_computation_equals_the_loops_with_noise(equals_oracle, computation):
    selector = f"raffel_monotonic[score=scaled_dot,computation={computation}]"
    equals_oracle(selector, read="train", noise=NOISE)


def test_a_query_never_has_more_mass_than_the_one_before(normalize):
    for read in READS:
        weights = normalize(energies(3, 2, 8, 5), read=read, noise=NOISE).weights
        mass = weights.sum(-1)
        assert (mass[:, :, 0] <= 1 + 1e-12).all()
        assert (mass[:, :, 1:] <= mass[:, :, :-1] + 1e-12).all()
        assert (weights >= 0).all()


def test_certain_stops_make_the_expected_alignment_the_hard_walk(normalize):
    energy = torch.where(energies(4, 2, 6, 7) > 0.8, 800.0, -800.0).double()
    expected = normalize(energy, read="expected").weights
    hard = normalize(energy, read="hard").weights
    assert torch.equal(expected, hard)
    found = hard.sum(-1)
    assert found.any()
    assert not found.all()


def test_hard_places_never_decrease_and_a_lost_walk_stays_lost(normalize):
    weights = normalize(energies(6, 2, 8, 9) - 1, read="hard").weights
    place = torch.where(weights.any(-1), weights.argmax(-1), 9)
    assert (place[:, :, 1:] >= place[:, :, :-1]).all()
    lost = place == 9
    assert lost.any()
    assert not lost.all()
    assert weights[lost].abs().sum() == 0


def test_the_hard_walk_starts_again_where_it_stopped():
    stop = torch.tensor([[0.1, 0.9, 0.9], [0.9, 0.9, 0.1], [0.9, 0.1, 0.6], [0.9, 0.9, 0.2]])
    walked = hard_walk(stop[None, None], on_first(1, 1, 3, torch.float32))
    assert walked[0, 0].tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_noise_is_added_in_training_only(normalize):
    energy = energies(2, 1, 4, 5)
    quiet = normalize(energy, read="expected").weights
    assert (normalize(energy, read="train", noise=NOISE).weights - quiet).abs().max() > 1e-3
    silent = normalize(energy, selector="raffel_monotonic[offset=0,noise=0]", read="train").weights
    assert torch.equal(silent, quiet)


def test_a_lower_offset_reads_further(normalize):
    delays = [
        normalize(energies(3, 2, 4, 12), selector=f"raffel_monotonic[offset={r}]", read="expected")
        .terms["expected_delay"]
        .mean()
        .item()
        for r in (0, -2, -4)
    ]
    assert delays == sorted(delays)
    assert delays[0] < delays[-1]


@pytest.mark.parametrize("read", READS)
def test_a_source_without_keys_gives_zeros_and_finite_gradients(normalize, read):
    energy = energies(2, 2, 6, 4, grad=True)
    mask = torch.tensor([[True] * 3 + [False], [False] * 4])
    aligned = normalize(energy, mask, read=read, noise=NOISE)
    assert not aligned.weights[1].any()
    assert not aligned.weights[..., 3].any()
    assert aligned.terms["expected_delay"][1].tolist() == [0.0] * 6
    if aligned.weights.requires_grad:
        (aligned.weights.sum() + aligned.terms["expected_delay"].sum()).backward()
        assert torch.isfinite(energy.grad).all()
        assert not energy.grad[1].any()
        assert energy.grad[0].any()


def test_the_delay_counts_the_keys_read_and_all_of_them_when_lost(normalize):
    energy = torch.tensor([[-1.0, 1.0, -1.0, 5.0], [-1.0, -1.0, 1.0, 5.0], [-1.0] * 3 + [5.0]])
    mask = torch.tensor([[True, True, True, False]])
    aligned = normalize(energy[None, None].double(), mask, read="hard")
    assert aligned.terms["expected_delay"][0].tolist() == [2.0, 3.0, 3.0]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("masked", [False, True])
def test_a_walk_that_runs_off_the_end_may_read_the_last_real_key(normalize, read, masked):
    energy = energies(3, 2, 5, 6) - 1
    mask = torch.arange(6) < torch.tensor([6, 4, 0])[:, None] if masked else None
    last = [5, 3, None] if masked else [5, 5, 5]
    options = {"read": read, "noise": NOISE}
    plain = normalize(energy, mask, **options)
    kept = normalize(energy, mask, selector="raffel_monotonic[offset=0,end=last]", **options)
    lost = 1 - plain.weights.sum(-1)
    assert lost.max() > 0.5
    for row, place in enumerate(last):
        if place is None:
            assert not kept.weights[row].any()
            continue
        wanted = plain.weights[row].clone()
        wanted[..., place] += lost[row]
        torch.testing.assert_close(kept.weights[row], wanted)
    # what is carried is the walk itself, so that keeping the mass does not start it again
    assert torch.equal(kept.state["alpha"], plain.state["alpha"])
    for name, term in plain.terms.items():
        assert torch.equal(kept.terms[name], term)


@pytest.mark.parametrize("read", READS)
def test_the_walk_that_stays_at_the_end_equals_the_loops(equals_oracle, read):
    selector = "raffel_monotonic[score=scaled_dot,end=last]"
    equals_oracle(selector, read=read, noise=NOISE, queries=6, keys=9)


@pytest.mark.parametrize(
    "selector",
    [
        "raffel_monotonic[score=scaled_dot,warm_up=0.3]",
        "mocha[score=scaled_dot,warm_up=0.3]",
        "milk[score=scaled_dot,warm_up=0.3]",
        "stable_emit[score=scaled_dot,walk=raffel_monotonic[warm_up=0.3]]",
    ],
)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("progress", [0.2, 0.3])
def test_a_warm_up_equals_the_loops(equals_oracle, selector, read, progress):
    equals_oracle(selector, read=read, noise=NOISE, progress=progress)


@pytest.mark.parametrize("read", ["train", "expected"])
def test_a_warm_up_reads_by_the_softmax_and_does_not_walk(normalize, read):
    energy = energies(3, 2, 5, 6)
    mask = torch.arange(6) < torch.tensor([6, 4, 1])[:, None]
    selector = "raffel_monotonic[offset=0,warm_up=0.3]"
    asked = {"read": read, "noise": NOISE, "selector": selector}
    warm = normalize(energy, mask, progress=0.29, **asked)
    hidden = ~mask[:, None, None, :]
    wanted = torch.softmax(energy.masked_fill(hidden, float("-inf")), -1)
    torch.testing.assert_close(warm.weights, wanted)
    assert torch.equal(warm.state["alpha"], on_first(3, 2, 6))
    read_to = (wanted * torch.arange(1.0, 7.0)).sum(-1).mean(1)
    torch.testing.assert_close(warm.terms["expected_delay"], read_to)
    plain = normalize(energy, mask, read=read, noise=NOISE)
    for later in (0.3, 1.0):
        after = normalize(energy, mask, progress=later, **asked)
        assert torch.equal(after.weights, plain.weights)


def test_a_warm_up_changes_no_hard_decoding(normalize):
    energy = energies(3, 2, 5, 6)
    selector = "raffel_monotonic[offset=0,warm_up=0.3]"
    warm = normalize(energy, selector=selector, read="hard", progress=0.1)
    assert torch.equal(warm.weights, normalize(energy, read="hard").weights)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_warm_up_ends_before_training_does(share):
    with pytest.raises(InvalidConfig, match=r"warm_up must be in \[0, 1\), got"):
        RaffelMonotonicConfig(warm_up=share)


def stream_all(variant, query, memory):
    """Stream every query; memory beyond each new pointer is poisoned in a second, equal run."""
    pointer = torch.zeros(query.shape[:2], dtype=torch.int64)
    outputs, touched = [], 0
    for t in range(query.shape[2]):
        asked = query[:, :, t : t + 1]
        output, after, read = variant.stream(asked, memory, pointer)
        beyond = torch.arange(memory.num_keys) > after.amax(1)[:, None]
        poisoned = variant.prepare(poison(memory.source, beyond))
        again = variant.stream(asked, poisoned, pointer)
        assert torch.equal(output, again[0])
        assert torch.equal(after, again[1])
        outputs.append(output)
        touched, pointer = touched + read, after
    return torch.cat(outputs, 2), touched


def poison(source, beyond):
    where = beyond[:, None, :, None]
    nan = float("nan")
    return Source(
        source.key.masked_fill(where, nan), source.value.masked_fill(where, nan), source.mask
    )


@pytest.mark.parametrize("score", ["additive[width=4]", "scaled_dot"])
@pytest.mark.parametrize("masked", ["nothing", "padding", "holes"])
def test_streaming_equals_hard_decoding_and_never_looks_beyond_the_pointer(draw, score, masked):
    drawn = draw(rows=6, heads=2, queries=7, keys=9, widths=(4, 4, 4), lengths=())
    lengths = torch.tensor([9, 7, 5, 3, 9, 1])
    mask = {
        "nothing": None,
        "padding": torch.arange(9) < lengths[:, None],
        "holes": (torch.arange(9) % 3 != 1) & (torch.arange(9) < lengths[:, None]),
    }[masked]
    slot = variants.build(
        f"raffel_monotonic[score={score},offset=0]", dim=8, heads=2, regime="cross"
    )
    variant = slot.variant.double()
    memory = variant.prepare(Source(drawn.source.key, drawn.source.value, mask))
    state = slot.start(memory, drawn.query[:, 0])
    hard = variant.attend(drawn.query, memory, state, read="hard")
    streamed, touched = stream_all(variant, drawn.query, memory)
    assert torch.equal(streamed, hard.output)
    stopped = hard.weights.any(-1)
    assert stopped.any()
    assert not stopped.all()
    assert (touched <= 9 + 7).all()
    before = (
        (hard.weights.flip(-1).cumsum(-1).flip(-1) > 0) & memory.source.key_mask()[:, None, None]
    ).sum(-1)
    counts = torch.where(stopped, before, memory.source.length[:, None, None]).amax(1)
    again = variant.attend(drawn.query, memory, state, read="stream")
    for one in (hard, again):
        assert torch.equal(one.terms["touched"].long(), counts)


def test_streaming_through_shared_key_heads_reads_the_right_head():
    slot = variants.build("raffel_monotonic[offset=0]", dim=8, heads=4, regime="cross")
    rng = torch.Generator().manual_seed(0)
    shared = torch.randn(2, 2, 5, 2, generator=rng)
    memory = slot.variant.prepare(Source(shared, shared))
    query = torch.randn(2, 4, 3, 2, generator=rng)
    state = slot.start(memory, query[:, 0])
    hard = slot.variant.attend(query, memory, state, read="hard")
    streamed, _ = stream_all(slot.variant, query, memory)
    assert torch.equal(streamed, hard.output)


def test_streaming_is_refused_where_a_key_cannot_be_scored_alone():
    slot = variants.build("raffel_monotonic[score=conv_attention]", dim=8, regime="cross")
    with pytest.raises(Refused, match="one key at a time"):
        slot.variant.stream(torch.zeros(1, 1, 1, 8), None, torch.zeros(1, 1))


@pytest.mark.parametrize("regime", ["causal", "self", "pool"])
def test_monotonic_attention_refuses_what_is_not_cross_attention(regime):
    with pytest.raises(Refused, match="raffel_monotonic: a"):
        variants.build("raffel_monotonic", dim=8, heads=2, regime=regime)


def test_noise_must_not_be_negative():
    with pytest.raises(InvalidConfig, match="got -1"):
        RaffelMonotonicConfig(noise=-1.0)


@pytest.mark.parametrize(
    "selector",
    [
        "raffel_monotonic[noise=0]",
        "raffel_monotonic[noise=0,computation=doubling]",
        "raffel_monotonic[noise=0,end=last]",
        "mocha[noise=0,window=4]",
        "milk[noise=0]",
        "additive[normalizer=stable_emit[walk=raffel_monotonic[noise=0],discount=0.2]]",
    ],
)
@pytest.mark.parametrize("read", ["train", "expected"])
def test_half_precision_loses_only_what_its_energies_lost(beneath, draw, answer, selector, read):
    low = beneath(selector)
    for name, parameter in low.named_parameters():
        if name.endswith("offset"):
            # 1 - p is 1 in bfloat16, and yet most of a walk is over within these keys
            torch.nn.init.constant_(parameter, -6.5)
    low = low.bfloat16()
    drawn = draw(rows=2, queries=6, keys=900, lengths=())
    found = asked_in(torch.bfloat16, low, drawn, answer, read)
    wanted = asked_in(torch.float64, copy.deepcopy(low).double(), drawn, answer, read)
    assert found.weights.dtype == torch.bfloat16
    # the weight of all keys, and where they stand on average
    for times in (torch.ones(900), torch.arange(900.0)):
        seen, right = (one.weights.double() @ times.double() for one in (found, wanted))
        torch.testing.assert_close(seen, right, rtol=0.02, atol=0)
    for name in ("expected_delay", "touched"):
        delay, right = found.terms[name].double(), wanted.terms[name]
        torch.testing.assert_close(delay, right, rtol=0.02, atol=0)


def asked_in(dtype, variant, drawn, answer, read):
    """The answer to numbers that bfloat16 holds, in a format."""
    query, key, value = (
        x.bfloat16().to(dtype) for x in (drawn.query, drawn.source.key, drawn.source.value)
    )
    source = Source(key, value, tokens=drawn.source.tokens)
    return answer(variant, query, source, read=read, noise=NOISE)


@pytest.mark.parametrize("read", ["expected", "hard", "stream"])
def test_keys_that_were_read_are_counted_exactly_in_half_precision(beneath, draw, answer, read):
    lost = beneath("raffel_monotonic")
    torch.nn.init.constant_(lost.normalizer.offset, -100)
    drawn = draw(rows=1, queries=2, keys=601, lengths=())
    found = asked_in(torch.bfloat16, lost.bfloat16(), drawn, answer, read)
    assert found.terms["touched"].tolist() == [[601, 601]]
