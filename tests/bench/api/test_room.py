"""Caches that are written in place: nothing is copied, and nothing that was given changes."""

import pytest
import torch

import variants
from bench.api.kept_bytes import state_bytes
from bench.api.normalizer import NORMALIZERS
from bench.api.position import POSITIONS
from bench.api.registry import registrations
from bench.api.room import LEAST, SHARE, Rooms, capacity_for
from bench.timing.memory import TensorBytes
from tests.bench.api.test_source import memory, pieces, same

variants.load_all()
DIM = 16


def built(selector, heads=None):
    torch.manual_seed(0)
    made = variants.build(selector, dim=DIM, heads=heads, regime="causal", attention_only=True)
    return made.double().eval()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def walk(attention, x, parts):
    state, found = attention.start(None, x), []
    for one in x.split(parts, 1):
        output, answer = attention.attend(one, None, state, own=(one, None, None))
        state = answer.state
        found.append(output)
    return torch.cat(found, 1), state


@pytest.mark.parametrize("mask", [True, False])
def test_keys_that_are_written_in_place_are_those_that_a_copy_joins(mask):
    whole = memory(mask=mask, keys=7)
    first, rest = pieces(whole, 3)
    with torch.no_grad():
        for one in range(4):
            first = first.extend(pieces(rest, one + 1)[0] if not one else cut(rest, one))
        same(first, whole)
    assert first.room is not None


def cut(whole, at):
    """One key of a memory."""
    return pieces(pieces(whole, at)[1], 1)[0]


def test_two_paths_from_one_state_do_not_write_into_each_other():
    whole, other = memory(keys=6), memory(keys=6, seed=5)
    with torch.no_grad():
        begun = pieces(whole, 3)[0].extend(cut(whole, 3))
        one, two = begun.extend(cut(whole, 4)), begun.extend(cut(other, 4))
        assert one.room is begun.room is not two.room
        same(one.extend(cut(whole, 5)), whole)
        same(pieces(two, 4)[0], pieces(whole, 4)[0])
        same(cut(two, 4), cut(other, 4))


def test_nothing_is_written_in_place_where_gradients_are_wanted():
    whole = memory(keys=4)
    with torch.no_grad():
        begun = pieces(whole, 2)[0].extend(cut(whole, 2))
    grown = begun.extend(cut(whole, 3))
    assert begun.room is not None
    assert grown.room is None
    same(grown, whole)


def test_code_that_is_compiled_writes_in_place(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    whole = memory(keys=4)
    with torch.no_grad():
        begun = pieces(whole, 2)[0].extend(cut(whole, 2))
        grown = begun.extend(cut(whole, 3))
    assert grown.room is begun.room is not None
    same(grown, whole)


def test_room_grows_by_a_share_of_what_there_is():
    assert capacity_for(1, None) == 1 + LEAST
    assert capacity_for(1000, None) == 1000 + 1000 // SHARE
    assert capacity_for(10, 12) == 12
    assert capacity_for(20, 12) == 20


@pytest.mark.parametrize(
    "selector", ["mha", "gqa", "mqa", "mla", "nsa", "fox", "tpa", "moba", "gaussian_kernel"]
)
def test_a_decode_step_does_not_copy_the_cache(selector):
    attention, new = built(selector), drawn(1, 1, DIM, seed=2)
    x = drawn(1, 1024, DIM)
    with torch.no_grad():
        _, state = walk(attention, x, 1023)  # the second call makes room
        with TensorBytes() as seen:
            _, answer = attention.attend(
                new, None, state, own=(new, None, None), want_weights=False
            )
    assert answer.state.cache.room is state.cache.room
    assert answer.state.cache.source.num_keys == 1025
    # what is held besides is a few numbers a key: places, energies, and which keys are seen;
    # tpa writes its factors out
    assert seen.peak < {"tpa": 2}.get(selector, 0.5) * state_bytes([state])


CARRIED = ("lstmn[width=16]", "csa", "hca", "nsa", "moba")
"""What keeps something of each key, or of each block of keys, beside the cache or in its place."""


@pytest.mark.parametrize("selector", CARRIED)
def test_a_decode_step_does_not_copy_what_is_carried(selector):
    attention, x = built(selector), drawn(1, 1024 + 64, DIM)
    peaks = []
    with torch.no_grad():
        _, state = walk(attention, x[:, :1024], 1024)
        for new in x[:, 1024:].split(1, 1):
            kept = state_bytes([state])
            with TensorBytes() as seen:
                _, answer = attention.attend(
                    new, None, state, own=(new, None, None), want_weights=False
                )
            state = answer.state
            peaks.append(seen.peak / kept)
    # room is made once for many blocks; a step holds energies, and `lstmn` a hidden layer of keys
    assert sorted(peaks)[-3] < 0.75


@pytest.mark.parametrize("selector", CARRIED)
def test_two_paths_from_one_state_carry_their_own(selector):
    attention, x, other = built(selector), drawn(2, 40, DIM), drawn(2, 40, DIM, seed=3)
    with torch.no_grad():
        wanted = [attention(torch.cat((x[:, :21], rest[:, 21:]), 1)) for rest in (x, other)]
        _, state = walk(attention, x[:, :21], 1)
        paths = [state, state]
        for at in range(21, 40):
            for index, rest in enumerate((x, other)):
                new = rest[:, at : at + 1]
                found, answer = attention.attend(new, None, paths[index], own=(new, None, None))
                paths[index] = answer.state
                torch.testing.assert_close(found, wanted[index][:, at : at + 1])


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("selector", CARRIED)
def test_nothing_that_autograd_keeps_is_written_over(selector, goes_on):
    """`goes_on`: what comes later continues behind the queries with a gradient, or beside them."""
    attention, x = built(selector), drawn(1, 60, DIM)
    with torch.no_grad():
        _, state = walk(attention, x[:, :25], 16)  # room is made
    new = x[:, 25:27].clone().requires_grad_()  # no block closes
    found, answer = attention.attend(new, None, state, own=(new, None, None))
    with torch.no_grad():
        path = answer.state if goes_on else state
        for rest in x[:, 27:].split(17, 1):
            _, after = attention.attend(rest, None, path, own=(rest, None, None))
            path = after.state
    (gradient,) = torch.autograd.grad(found.square().sum(), new)
    whole = x[:, :27].clone().requires_grad_()
    wanted = attention(whole)[:, 25:].square().sum()
    torch.testing.assert_close(gradient, torch.autograd.grad(wanted, whole)[0][:, 25:])


@pytest.mark.parametrize("selector", ["mha", "mla", "sliding_window", "deltanet", *CARRIED])
def test_a_prompt_that_was_read_in_inference_mode_can_be_continued_without(selector):
    attention, x = built(selector), drawn(1, 40, DIM)
    with torch.inference_mode():
        first, state = walk(attention, x[:, :20], 19)
    found = [first]
    for new in x[:, 20:].split(1, 1):
        with torch.no_grad():
            output, answer = attention.attend(new, None, state, own=(new, None, None))
        state = answer.state
        found.append(output)
    torch.testing.assert_close(torch.cat(found, 1), attention(x))


@pytest.mark.parametrize("selector", CARRIED)
def test_rows_that_are_picked_carry_their_own(selector):
    attention, x = built(selector), drawn(3, 40, DIM)
    rows = torch.tensor([2, 0])
    with torch.no_grad():
        _, state = walk(attention, x[:, :21], 1)
        picked, rest = state.select(rows), []
        for whole, one in ((False, x[rows, 21:]), (True, x[:, 21:])):
            path = state if whole else picked
            found = []
            for new in one.split(1, 1):
                output, answer = attention.attend(new, None, path, own=(new, None, None))
                path = answer.state
                found.append(output)
            rest.append(torch.cat(found, 1))
        torch.testing.assert_close(rest[0], rest[1][rows])


def test_rooms_are_those_of_the_tensors_that_are_given():
    rooms, first = Rooms(), {"real": torch.ones(2, 3), "key": torch.rand(2, 4, 3, 5)}
    more = {"real": torch.zeros(2, 1), "key": torch.rand(2, 4, 1, 5)}
    with torch.no_grad():
        one = rooms.join(first, more)
        two = rooms.join(one, more)
        assert two["key"].data_ptr() == one["key"].data_ptr()
        # as many numbers elsewhere are another path
        elsewhere = {name: torch.rand_like(x) for name, x in two.items()}
        other = rooms.join(elsewhere, more)
        assert other["key"].data_ptr() != two["key"].data_ptr()
        for name, dim in (("real", 1), ("key", 2)):
            assert torch.equal(two[name], torch.cat((first[name], more[name], more[name]), dim))
            assert torch.equal(other[name], torch.cat((elsewhere[name], more[name]), dim))
    joined = rooms.join(other, more)
    assert joined["key"].data_ptr() != other["key"].data_ptr()


def test_a_room_that_is_rewound_is_written_over():
    rooms, before = Rooms(), {"key": torch.rand(1, 1, 3, 2)}
    with torch.no_grad():
        kept = rooms.join(before, {"key": torch.rand(1, 1, 1, 2)})
        taken = rooms.taken()
        places = set()
        for _ in range(3):
            rooms.rewind(taken)
            new = torch.rand(1, 1, 1, 2)
            found = rooms.join(kept, {"key": new})["key"]
            assert torch.equal(found[:, :, -1:], new)
            places.add(found.data_ptr())
    assert places == {kept["key"].data_ptr()}


KEPT = {"mha": 2 * DIM, "gqa": 2 * DIM // 2, "mqa": 2 * DIM // 4, "mla": 16 + 8}
KEPT |= {f"tpa[rank={rank}]": 2 * rank * (4 + DIM // 4) for rank in (1, 2)}
"""Numbers a token that each must keep."""


@pytest.mark.parametrize("selector", KEPT)
def test_what_is_kept_are_the_numbers_of_the_paper(selector):
    attention, x = built(selector), drawn(3, 40, DIM)
    with torch.no_grad():
        for parts in (40, 1):
            output, state = walk(attention, x, parts)
            assert state_bytes([state]) == 3 * 40 * KEPT[selector] * 8
            torch.testing.assert_close(output, attention(x))


HIDDEN = 16
MORE_THAN_NEEDED = {
    f"{name}[width={HIDDEN}]": 2 * 4 + HIDDEN
    for name in ("additive", "concat", "deep_mlp", "lstmn")
}
"""Numbers a token and head that these keep at a width of 4, where keys and values would be 8.

Scores by a hidden layer keep raw keys beside those that they have prepared, which are as wide as
the layer. `lstmn` keeps states, cells and prepared states.
"""


@pytest.mark.parametrize("selector", MORE_THAN_NEEDED)
def test_scores_by_a_hidden_layer_keep_raw_keys_beside_prepared_ones(selector):
    attention, x = built(selector, heads=4), drawn(3, 40, DIM)
    with torch.no_grad():
        _, state = walk(attention, x, 1)
    per_token = state_bytes([state]) / (3 * 40 * 4 * 8)
    assert per_token == pytest.approx(MORE_THAN_NEEDED[selector], rel=0.03)


WINDOWS = {
    "sliding_window[window=8]": 8,
    "streaming[window=8,sinks=3]": 11,
    "sliding_window[window=16,position=rope]": 16,
    "sliding_window[window=1]": 1,
    "block_local[block=8]": 8,
    "block_local[block=7,position=rope]": 7,
    "block_local[block=1]": 1,
    "dilated[window=4,dilation=3]": 10,
    "dilated[window=3,dilation=2,position=rope]": 5,
    "adaptive_span[largest=6,ramp=2]": 8,
    "adaptive_span[largest=6,ramp=2,mask=sliding_window[window=4]]": 4,
    "adaptive_span[largest=6,ramp=2,mask=sliding_window[window=16]]": 8,
    "sliding_window[window=8,head=mla]": 8,
    "sliding_window[window=8,head=tpa]": 8,
    "sliding_window[window=8,head=mqa]": 8,
}
FORGETTING = [name for name, one in registrations(NORMALIZERS).items() if one.target.visible_alone]
"""Normalizers that say that a hidden key changes nothing."""
WINDOWS |= {f"sliding_window[window=8,normalizer={name}]": 8 for name in FORGETTING}
BY_PLACE = [name for name, one in registrations(POSITIONS).items() if one.target.by_place]
"""Positions that say that they go by the places of keys, wherever in the cache these are."""
WINDOWS |= {f"streaming[window=8,sinks=3,position={name}]": 11 for name in BY_PLACE}


@pytest.mark.parametrize("parts", [1, 3, 17])
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("selector", list(WINDOWS))
def test_windows_forget_what_no_later_query_sees(selector, parts, gradients):
    selector = selector.replace("head=mqa", "head=gqa[kv_heads=1]")
    attention, x = built(selector, heads=None if "head" in selector else 2), drawn(2, 60, DIM)
    wanted, answer = attention.answer_all(x, x)
    with torch.set_grad_enabled(gradients):
        found, state = walk(attention, x, parts)
    torch.testing.assert_close(found, wanted)
    width = next(w for name, w in WINDOWS.items() if name.startswith(selector.partition(",h")[0]))
    held = state.cache.source.num_keys
    assert held <= width + width // 8 + parts
    assert state.cache.forgotten == 60 - held
    if not gradients:
        assert state.cache.room is None or state.cache.room.capacity <= width + width // 8 + parts
    assert answer.state.cache.source.num_keys == 60  # one call has every key


def test_a_cache_keeps_what_the_longest_span_reads():
    attention, x = built("adaptive_span[largest=6,ramp=2]", heads=2), drawn(2, 60, DIM)
    with torch.no_grad():
        attention.variant.normalizer.share.fill_(1.0)
        wanted, whole = attention.answer_all(x, x)
        found, state = walk(attention, x, 1)
    torch.testing.assert_close(found, wanted)
    assert (whole.weights[0, 0, 59] > 0).nonzero().min() == 59 - 7
    assert state.cache.source.num_keys == 8


@pytest.mark.parametrize(
    "selector",
    ["streaming[window=4,sinks=2]", "block_local[block=4]", "dilated[window=3,dilation=2]"],
)
def test_weights_of_a_window_stand_at_the_places_of_their_keys(selector):
    attention, x = built(selector, heads=2), drawn(2, 20, DIM)
    _, whole = attention.answer_all(x, x)
    state = attention.start(None, x)
    for t, one in enumerate(x.split(1, 1)):
        _, answer = attention.attend(one, None, state, own=(one, None, None))
        state = answer.state
        assert answer.weights.shape[3] == t + 1
        torch.testing.assert_close(answer.weights, whole.weights[:, :, t : t + 1, : t + 1])


@pytest.mark.parametrize(
    "selector",
    [
        "sliding_window[window=4,position=shaw_rpr]",
        "sliding_window[window=4,normalizer=hardmax]",
        "mha",
        "additive",
    ],
)
def test_others_forget_nothing(selector):
    _, state = walk(built(selector, heads=2), drawn(1, 20, DIM), 1)
    assert state.cache.source.num_keys == 20
    assert not state.cache.forgotten


def test_rows_that_are_picked_have_forgotten_as_much():
    attention, x = built("sliding_window[window=4]", heads=2), drawn(3, 20, DIM)
    order = torch.tensor([2, 0])
    with torch.no_grad():
        _, state = walk(attention, x, 1)
        new = drawn(3, 1, DIM, seed=3)
        wanted, _ = attention.attend(new, None, state, own=(new, None, None))
        few = new[order]
        found, _ = attention.attend(few, None, state.select(order), own=(few, None, None))
    torch.testing.assert_close(found, wanted[order])
