"""The kernel against the recurrence that it stands for, one step after the other."""

import pytest
import torch

from variants.mechanisms.chunked_state import Steps, run
from variants.mechanisms.decayed_products import BLOCK

DECAYS = ("none", "scalar", "vector")
LENGTHS = (1, 2, BLOCK, BLOCK + 1, 63, 64, 65, 150)


def drawn(length, decay, erases, seed=0, rows=2, heads=3, width=5, wide=7):
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    shape = rows, heads, length
    key = torch.nn.functional.normalize(normal(*shape, width), dim=-1)
    units = {"none": 0, "scalar": 1, "vector": width}[decay]
    log_decay = -normal(*shape, units).exp() if units else None
    erase = None
    if erases:
        kept = 1.0 if log_decay is None else log_decay.exp()
        erase = normal(*shape, 1).sigmoid() * key * kept
    steps = Steps(normal(*shape, width), key, normal(*shape, wide), log_decay, erase)
    return steps, normal(rows, heads, width, wide)


def one_by_one(steps, state):
    found = []
    for t in range(steps.query.shape[2]):
        q, k, v, g, a = (None if x is None else x[:, :, t] for x in steps)
        old = 0.0 if a is None else torch.einsum("bhe,bhev->bhv", a, state)
        kept = state if g is None else g.exp()[..., None] * state
        state = kept + k[..., None] * (v - old)[..., None, :]
        found.append(torch.einsum("bhe,bhev->bhv", q, state))
    return torch.stack(found, 2), state


@pytest.mark.parametrize("erases", [False, True])
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("length", LENGTHS)
def test_chunks_equal_the_recurrence(length, decay, erases):
    steps, state = drawn(length, decay, erases)
    expected = one_by_one(steps, state)
    for chunk in (1, 3, 16, 64, 200):
        found = run(steps, state, chunk)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("erases", [False, True])
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("length", [2, 15, 47, 150])
def test_many_chunks_at_once_equal_the_recurrence(length, decay, erases):
    steps, state = drawn(length, decay, erases)
    expected = one_by_one(steps, state)
    for chunk in (1, 3, 8, 10):
        for at_once in (2, 3, 7, 1000):
            found = run(steps, state, chunk, at_once)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("erases", [False, True])
@pytest.mark.parametrize("decay", DECAYS)
def test_many_chunks_at_once_have_the_gradients_of_the_recurrence(decay, erases):
    found = []
    for together in (True, False):
        steps, state = drawn(30, decay, erases)
        leaves = [x.requires_grad_() for x in (*steps, state) if x is not None]
        output, after = run(steps, state, 4, 5) if together else one_by_one(steps, state)
        (output.sin().sum() + after.cos().sum()).backward()
        found.append([leaf.grad for leaf in leaves])
    torch.testing.assert_close(*found, rtol=0, atol=1e-9)


@pytest.mark.parametrize("erases", [False, True])
@pytest.mark.parametrize("decay", DECAYS)
def test_every_split_of_random_lengths_gives_the_same(decay, erases):
    rng = torch.Generator().manual_seed(5)
    for seed in range(5):
        length = int(torch.randint(2, 120, (), generator=rng))
        cut = int(torch.randint(1, length, (), generator=rng))
        chunk = int(torch.randint(1, 80, (), generator=rng))
        steps, state = drawn(length, decay, erases, seed)
        whole = run(steps, state, chunk)
        first, middle = run(steps.cut(slice(0, cut)), state, chunk)
        second, after = run(steps.cut(slice(cut, length)), middle, chunk)
        torch.testing.assert_close(torch.cat((first, second), 2), whole[0], rtol=0, atol=1e-10)
        torch.testing.assert_close(after, whole[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize("decay", ["scalar", "vector"])
def test_decays_that_leave_nothing_neither_overflow_nor_spoil_gradients(decay, at_once):
    steps, state = drawn(100, decay, True)
    strong = (400 * steps.log_decay).float().requires_grad_()
    parts = [x.float() for x in (steps.query, steps.key, steps.value)]
    changed = Steps(*parts, strong, steps.erase.float())
    output, after = run(changed, state.float(), 10, at_once)
    (output.sum() + after.sum()).backward()
    assert output.isfinite().all()
    assert after.isfinite().all()
    assert strong.grad.isfinite().all()


def test_a_decay_of_one_is_no_decay():
    steps, state = drawn(90, "none", True)
    expected = run(steps, state)
    for units in (1, 5):
        zero = torch.zeros(2, 3, 90, units, dtype=torch.float64)
        found = run(steps._replace(log_decay=zero), state)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_equal_decays_of_all_units_are_one_decay():
    steps, state = drawn(90, "scalar", True)
    found = run(steps._replace(log_decay=steps.log_decay.expand(-1, -1, -1, 5)), state)
    torch.testing.assert_close(found, run(steps, state), rtol=0, atol=1e-11)


def test_what_is_written_under_a_unit_key_is_read_back_exactly():
    steps, state = drawn(70, "none", False)
    steps = steps._replace(query=steps.key, erase=steps.key)
    output, _ = run(steps, state)
    torch.testing.assert_close(output, steps.value, rtol=0, atol=1e-11)


@pytest.mark.parametrize("at_once", [1, 4])
def test_sums_are_exact_where_networks_are_trained_in_half_precision(at_once):
    """Autocast takes products of float32 in bfloat16, in which no triangular system is solved."""
    rng = torch.Generator().manual_seed(0)
    query, key, value, erase = (torch.randn(1, 2, 16, 4, generator=rng) / 4 for _ in range(4))
    steps = Steps(query, key, value, None, erase)
    state = torch.zeros(1, 2, 4, 4)
    wanted = run(steps, state, 4, at_once)
    with torch.autocast("cpu", torch.bfloat16):
        found = run(steps, state, 4, at_once)
        half = run(Steps(query.bfloat16(), key, value, None, erase), state, 4, at_once)
    torch.testing.assert_close(found, wanted)
    assert half[0].dtype == torch.float32


def test_shapes_alone_can_be_asked_for():
    query = torch.zeros(1, 2, 16, 4, device="meta")
    output, _ = run(Steps(query, query, query), torch.zeros(1, 2, 4, 4, device="meta"), 4)
    assert output.shape == (1, 2, 16, 4)


def test_the_matrix_in_the_end_holds_no_memory_of_the_chunks_before():
    query = torch.randn(1, 2, 64, 4, generator=torch.Generator().manual_seed(0))
    _, state = run(Steps(query, query, query), torch.zeros(1, 2, 4, 4), 4, 16)
    assert state.untyped_storage().nbytes() == state.nbytes
