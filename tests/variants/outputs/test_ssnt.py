import itertools
import math
from dataclasses import replace

import pytest
import torch

from bench.api.errors import InvalidConfig, Refused
from variants.normalizers.expected_alignment import expected_alignment
from variants.outputs import ssnt
from variants.outputs.segment_walk import forward_scores, greedy_places

EMIT = torch.tensor([[0.5, 0.5, 0.5], [0.2, 0.5, 1.0]], dtype=torch.float64)
WORDS = torch.tensor([[0.9, 0.1, 0.1], [0.1, 0.2, 0.8]], dtype=torch.float64)


def logs(emit, words):
    """Arguments of the recursion; a choice of one never reads on."""
    read = torch.where(emit < 1, (1 - emit).clamp_min(1e-300).log(), -1e30)
    return emit.clamp_min(1e-300).log(), read, words.log()


def enumerated(emit, words):
    """Chance of ending at each place, over all paths z_1 <= ... <= z_T."""
    length, places = emit.shape
    found = [0.0] * places
    for path in itertools.product(range(places), repeat=length):
        chance, before = 1.0, 0
        for t, place in enumerate(path):
            if place < before:
                chance = 0.0
                break
            for r in range(before, place):
                chance *= 1 - emit[t, r].item()
            chance *= emit[t, place].item() * words[t, place].item()
            before = place
        found[path[-1]] += chance
    return torch.tensor(found, dtype=torch.float64)


def drawn(rows, length, places, seed=0):
    rng = torch.Generator().manual_seed(seed)
    shape = (rows, length, places)
    return [torch.rand(shape, generator=rng, dtype=torch.float64) for _ in range(2)]


def test_golden_recursion():
    found = forward_scores(*(x[None] for x in logs(EMIT, WORDS)))[0].exp()
    first = torch.tensor([0.45, 0.025, 0.0125], dtype=torch.float64)
    second = torch.tensor([0.009, 0.0385, 0.164], dtype=torch.float64)
    assert (found[0] - first).abs().max() < 1e-12
    assert (found[1] - second).abs().max() < 1e-12
    assert abs(found[1].sum().item() - 0.2115) < 1e-12


@pytest.mark.parametrize(("length", "places"), [(1, 1), (1, 4), (4, 1), (3, 4), (5, 3)])
def test_the_recursion_equals_the_sum_over_all_paths(length, places):
    emit, words = drawn(2, length, places)
    found = forward_scores(*logs(emit, words))[:, -1].exp()
    for row in range(2):
        assert (found[row] - enumerated(emit[row], words[row])).abs().max() < 1e-12


def test_words_that_are_certain_leave_the_expected_monotonic_normalizer():
    emit, words = drawn(2, 5, 6)
    found = forward_scores(*logs(emit, torch.ones_like(words))).exp()
    start = torch.zeros(2, 1, 6, dtype=torch.float64)
    start[..., 0] = 1
    expected = expected_alignment(emit[:, None], start, "recursive")[:, 0]
    assert (found - expected).abs().max() < 1e-12


def test_always_emitting_never_leaves_the_first_place():
    emit, words = drawn(2, 4, 5)
    found = forward_scores(*logs(torch.ones_like(emit), words)).exp()
    assert (found[:, -1, 0] - words[:, :, 0].prod(1)).abs().max() < 1e-12
    assert not found[:, :, 1:].any()


def test_saturated_choices_lose_no_precision():
    """Quotients of products fail here: half the choices are certain to 600 decimals."""
    rng = torch.Generator().manual_seed(1)
    choice = 700 * torch.randn(1, 6, 9, generator=rng)
    words = torch.rand(1, 6, 9, generator=rng).log()
    logs_of = torch.nn.functional.logsigmoid
    single = forward_scores(logs_of(choice), logs_of(-choice), words)
    choice, words = choice.double(), words.double()
    expected = forward_scores(logs_of(choice), logs_of(-choice), words)
    near = expected > -1e5
    assert near.sum() > 20
    assert ((single - expected) / expected.abs().clamp_min(1))[near].abs().max() < 1e-6


def test_gradients_are_right_and_finite_where_choices_saturate():
    emit, words = drawn(2, 3, 4)
    inputs = [x.detach().requires_grad_() for x in logs(emit, words)]
    assert torch.autograd.gradcheck(lambda *x: forward_scores(*x)[:, -1], inputs)
    choice = torch.full((1, 3, 4), 1e4).requires_grad_()
    found = forward_scores(
        torch.nn.functional.logsigmoid(choice),
        torch.nn.functional.logsigmoid(-choice),
        torch.zeros(1, 3, 4),
    )
    found[0, -1, -1].backward()
    assert choice.grad.isfinite().all()
    assert choice.grad.abs().sum() > 0


def by_hand(output, scene, trace, batch, row):
    """-log of the enumerated sum, from the parameters, place by place."""
    memory = trace.memories[0].source
    value = memory.value[row, 0][memory.key_mask()[row]]
    length = int(batch.mask[row].sum())
    emit, words = [], []
    for t in range(length):
        target = int(batch.targets[row, t])
        target = scene.unk if target >= scene.vocab else target
        chances, said = [], []
        for h in value:
            hidden = output.of_source.weight @ h + output.of_source.bias
            hidden = hidden + output.of_state.weight @ trace.states[row, t]
            logit = output.decide.weight[0] @ torch.tanh(hidden) + output.decide.bias[0]
            chances.append(1 / (1 + torch.exp(-logit)))
            logits = torch.exp(scene.emit(trace.states[row, t], h, trace.embedded[row, t]))
            said.append(logits[target] / logits.sum())
        emit.append(torch.stack(chances))
        words.append(torch.stack(said))
    found = enumerated(torch.stack(emit).detach(), torch.stack(words).detach())
    return -math.log(found[-1] if output.ends_last else found.sum())


@pytest.mark.parametrize("end", ["last", "sum"])
def test_the_loss_equals_the_enumeration_of_padded_rows(scene, end):
    output, trace, batch = scene.output(f"ssnt[width=8,end={end}]"), scene.trace(), scene.batch()
    found = output.nll(trace, scene.emit, batch)
    assert found.shape == (scene.rows,)
    for row in range(scene.rows):
        expected = by_hand(output, scene, trace, batch, row)
        assert found[row].item() == pytest.approx(expected, rel=1e-10)


def test_a_row_that_is_not_scored_costs_nothing(scene):
    batch = scene.batch()
    mask = batch.mask.clone()
    mask[1] = False
    output = scene.output("ssnt[width=8]")
    found = output.nll(scene.trace(), scene.emit, scene.batch(mask=mask))
    whole = output.nll(scene.trace(), scene.emit, batch)
    assert found[1] == 0
    assert torch.equal(found[[0, 2]], whole[[0, 2]])


def test_chunks_change_neither_values_nor_gradients(scene, monkeypatch):
    found = []
    for limit in (2**22, 2 * scene.keys * scene.vocab, 1):
        monkeypatch.setattr(ssnt, "CHUNK_LOGITS", limit)
        output, trace = scene.output("ssnt[width=8]"), scene.trace()
        states = trace.states.clone().requires_grad_()
        losses = output.nll(trace._replace(states=states), scene.emit, scene.batch())
        losses.sum().backward()
        found.append((losses.detach(), states.grad, output.of_source.weight.grad))
    for other in found[1:]:
        for one, two in zip(other, found[0], strict=True):
            assert (one - two).abs().max() < 1e-12


def test_padded_source_tokens_change_nothing(scene):
    output, trace, batch = scene.output("ssnt[width=8]"), scene.trace(), scene.batch()
    memory = trace.memories[0].source
    value = memory.value.clone()
    value[2, :, 2:] = 50.0
    other = trace._replace(
        memories=(type(trace.memories[0])(type(memory)(value, value, memory.mask)),)
    )
    assert torch.equal(output.nll(trace, scene.emit, batch), output.nll(other, scene.emit, batch))
    one, two = (output.log_probs(t, scene.emit, batch) for t in (trace, other))
    assert torch.equal(one, two)


def test_greedy_places_never_go_back_and_stop_at_the_last_token():
    rng = torch.Generator().manual_seed(0)
    emits = torch.rand(40, 6, 5, generator=rng) < 0.3
    last = torch.randint(0, 5, (40,), generator=rng)
    found = greedy_places(emits, torch.zeros(40, dtype=torch.int64), last)
    assert (found.diff(dim=1) >= 0).all()
    assert (found <= last[:, None]).all()
    moved, forced = 0, 0
    for row in range(40):
        place = 0
        for t in range(6):
            while not emits[row, t, place] and place < last[row]:
                place += 1
            assert found[row, t] == place
            moved += place > 0
            forced += not emits[row, t, place]
    assert moved > 20
    assert forced > 20


def test_decoding_word_by_word_is_teacher_forced_reading(scene):
    output, trace, batch = scene.output("ssnt[width=8]", seed=3), scene.trace(), scene.batch()
    whole = output.log_probs(trace, scene.emit, batch)
    carried, places = output.begin(batch, trace.memories), []
    for t in range(scene.steps):
        cut = slice(t, t + 1)
        one = trace._replace(
            states=trace.states[:, cut],
            context=trace.context[:, cut],
            embedded=trace.embedded[:, cut],
        )
        found, carried = output.step(one, scene.emit, batch, batch.inputs[:, cut], carried)
        torch.testing.assert_close(found[:, 0], whole[:, t], rtol=0, atol=1e-12)
        places.append(carried["place"])
    assert torch.stack(places).max() > 0
    assert (whole[..., scene.vocab :] == -torch.inf).all()


def test_decoding_looks_at_no_key_beyond_the_place_it_has_reached(scene):
    output, trace, batch = scene.output("ssnt[width=8]", seed=3), scene.trace(), scene.batch()
    carried, poisoned = output.begin(batch, trace.memories), 0
    for t in range(scene.steps):
        cut = slice(t, t + 1)
        one = trace._replace(
            states=trace.states[:, cut],
            context=trace.context[:, cut],
            embedded=trace.embedded[:, cut],
        )
        words = batch.inputs[:, cut]
        found, after = output.step(one, scene.emit, batch, words, carried)
        (memory,) = one.memories
        value = memory.source.value
        beyond = torch.arange(scene.keys) > after["place"][:, None]
        value = torch.where(beyond[:, None, :, None], torch.nan, value)
        poisoned += int(beyond.sum())
        hidden = replace(memory, source=replace(memory.source, value=value))
        again, place = output.step(
            one._replace(memories=(hidden,)), scene.emit, batch, words, carried
        )
        assert torch.equal(again, found)
        assert torch.equal(place["place"], after["place"])
        carried = after
    assert poisoned > 0


def test_the_share_that_was_read_is_the_place_over_the_length(scene):
    output, trace, batch = scene.output("ssnt[width=8]", seed=3), scene.trace(), scene.batch()
    (memory,) = trace.memories
    share, carried = output.read_share(trace, batch), output.begin(batch, trace.memories)
    for t in range(scene.steps):
        cut = slice(t, t + 1)
        one = trace._replace(
            states=trace.states[:, cut],
            context=trace.context[:, cut],
            embedded=trace.embedded[:, cut],
        )
        _, carried = output.step(one, scene.emit, batch, batch.inputs[:, cut], carried)
        wanted = (carried["place"] + 1) / memory.source.length
        assert share[:, t].tolist() == pytest.approx(wanted.tolist())
    assert (share.diff(dim=1) >= 0).all()


def test_it_is_refused_with_many_heads_and_an_empty_layer(scene):
    with pytest.raises(Refused, match="ssnt needs one raw head"):
        scene.output("ssnt").nll(scene.trace(heads=2), scene.emit, scene.batch())
    with pytest.raises(InvalidConfig, match="ssnt: width must be at least 1, got 0"):
        scene.output("ssnt[width=0]")


HIDDEN = torch.tensor([[1, 0, 1, 0, 1], [0, 0, 1, 1, 0], [0, 1, 0, 0, 0]], dtype=torch.bool)
"""Keys that an encoder leaves of the three sources, others hidden between them."""


def with_keys(trace, value, mask=None):
    (memory,) = trace.memories
    source = replace(memory.source, key=value, value=value, mask=mask)
    return trace._replace(memories=(replace(memory, source=source),))


@pytest.mark.parametrize("end", ["last", "sum"])
def test_tokens_that_are_hidden_are_no_positions_of_the_walk(scene, example, end):
    output, trace, batch = (
        scene.output(f"ssnt[width=8,end={end}]", seed=3),
        scene.trace(),
        scene.batch(),
    )
    value = trace.memories[0].source.value.clone().requires_grad_()
    holed = with_keys(trace, value, HIDDEN)
    loss, said = output.nll(holed, scene.emit, batch), output.log_probs(holed, scene.emit, batch)
    read = output.read_share(holed, batch)
    for row in range(scene.rows):
        alone, one = example(holed, batch, row)
        left = HIDDEN[row].sum()
        assert alone.memories[0].source.value.shape[2] == left
        torch.testing.assert_close(output.nll(alone, scene.emit, one)[0], loss[row])
        torch.testing.assert_close(output.log_probs(alone, scene.emit, one)[0], said[row])
        torch.testing.assert_close(output.read_share(alone, one)[0], read[row])
        row_of = slice(row, row + 1)
        here = trace._replace(states=trace.states[row_of], embedded=trace.embedded[row_of])
        here = with_keys(here, value[row_of], HIDDEN[row_of])
        torch.testing.assert_close(output.oracle_nll(here, scene.emit, one), loss[row])
        torch.testing.assert_close(output.oracle(here, scene.emit, one).log(), said[row])
    (loss.sum() + said[said > -torch.inf].sum()).backward()
    touched = value.grad[:, 0].abs().sum(-1) > 0
    assert not touched[~HIDDEN].any()
    assert touched.sum() > 4


def test_decoding_goes_from_one_token_that_is_left_to_the_next(scene):
    output, batch = scene.output("ssnt[width=8]", seed=3), scene.batch()
    trace = scene.trace()
    holed = with_keys(trace, trace.memories[0].source.value, HIDDEN)
    whole, carried = output.log_probs(holed, scene.emit, batch), output.begin(batch, holed.memories)
    for t in range(scene.steps):
        cut = slice(t, t + 1)
        one = holed._replace(
            states=holed.states[:, cut],
            context=holed.context[:, cut],
            embedded=holed.embedded[:, cut],
        )
        found, carried = output.step(one, scene.emit, batch, batch.inputs[:, cut], carried)
        torch.testing.assert_close(found[:, 0], whole[:, t])
        assert (carried["place"] < HIDDEN.sum(1)).all()


def test_a_source_of_which_no_token_is_left_reads_zeros(scene):
    output, trace, batch = scene.output("ssnt[width=8]"), scene.trace(), scene.batch()
    value = trace.memories[0].source.value.clone().requires_grad_()
    nothing = with_keys(trace, value, torch.zeros_like(HIDDEN))
    output.nll(nothing, scene.emit, batch).sum().backward()
    assert not value.grad.any()
    said = output.log_probs(nothing, scene.emit, batch)[..., : scene.vocab]
    zeros = torch.zeros_like(trace.context)
    wanted = torch.log_softmax(scene.emit(trace.states, zeros, trace.embedded), -1)
    torch.testing.assert_close(said, wanted)
