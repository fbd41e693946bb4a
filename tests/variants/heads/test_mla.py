import math

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig
from bench.api.resolve import resolve
from bench.timing.shape import AttendShape
from bench.timing.timed_dims import timed_dims

variants.load_all()
DIM, HEADS, LATENT, TURNED = 12, 4, 16, 8
WIDTH = DIM // HEADS


def built(selector, **place):
    torch.manual_seed(0)
    return variants.build(selector, dim=DIM, **{"regime": "causal", **place}).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("options", ["", ",query_latent=0", ",position=none", ",position=alibi"])
@pytest.mark.parametrize("form", ["mixed", "absorbed"])
def test_all_forms_compute_the_same(form, options):
    latent = built(f"mla[form={form}{options}]")
    naive = built(f"mla[form=naive{options}]")
    naive.load_state_dict(latent.state_dict())
    with torch.no_grad():
        latent.heads.gain.copy_(drawn(LATENT))
        naive.heads.gain.copy_(drawn(LATENT))
    one, two = drawn(2, 9, DIM).requires_grad_(), drawn(2, 9, DIM).requires_grad_()
    found, wanted = latent(one), naive(two)
    torch.testing.assert_close(found, wanted)
    found.square().sum().backward()
    wanted.square().sum().backward()
    torch.testing.assert_close(one.grad, two.grad)
    torch.testing.assert_close(latent.heads.key_up.grad, naive.heads.key_up.grad)
    torch.testing.assert_close(latent.heads.value_up.grad, naive.heads.value_up.grad)


def test_under_a_plain_dot_product_energies_of_latent_vectors_have_another_factor():
    latent, naive = (built(f"dot[head=mla[form={form}]]") for form in ("absorbed", "naive"))
    naive.load_state_dict(latent.state_dict())
    with torch.no_grad():
        naive.heads.to_query.weight.mul_(((LATENT + TURNED) / (WIDTH + TURNED)) ** 0.5)
    x = drawn(2, 9, DIM)
    torch.testing.assert_close(latent(x), naive(x))


LONGEST = LATENT * WIDTH // (LATENT - WIDTH)
"""Most queries that ask the latent vector: then n (2 C + R) products a key are at most those of n
pairs and of what is written out, n (2 E + R) + 2 C E."""


def test_only_many_queries_have_keys_and_values_written_out():
    mixed, absorbed = built("mla"), built("mla[form=absorbed]")
    few, many = drawn(1, LONGEST, DIM), drawn(1, LONGEST + 1, DIM)
    assert mixed.heads.query(few).shape[-1] == LATENT + TURNED
    assert mixed.heads.query(many).shape[-1] == WIDTH + TURNED
    assert absorbed.heads.query(many).shape[-1] == LATENT + TURNED
    wide = built("mla[latent=3]")  # no wider than a head, so it never pays
    assert wide.heads.query(drawn(1, 99, DIM)).shape[-1] == 3 + TURNED


@pytest.mark.parametrize("parts", [1, 2, LONGEST + 1, 6])
@pytest.mark.parametrize("padding", [0, 3])
def test_any_split_of_a_prompt_is_answered_like_the_whole(parts, padding):
    attention, x = built("mla"), drawn(2, 11, DIM)
    real = torch.arange(11).expand(2, -1) < torch.tensor([[11], [11 - padding]])
    wanted = attention(x, mask=real)
    state, found, at = attention.start(None, x), [], 0
    with torch.no_grad():
        for one in x.split(parts, 1):
            own = (one, real[:, at : at + one.shape[1]], None)
            output, answer = attention.attend(one, None, state, own=own)
            state, at = answer.state, at + one.shape[1]
            found.append(output)
    torch.testing.assert_close(torch.cat(found, 1)[real], wanted[real])
    assert state.cache.source.key.shape == (2, 1, 11, LATENT + TURNED)


@pytest.mark.parametrize(
    "option",
    ["score=general", "score=additive", "position=cope", "mask=sliding_window", "normalizer=top_k"],
)
def test_what_goes_by_the_width_of_keys_reads_the_latent_vector(option):
    mixed, absorbed = built(f"mla[{option}]"), built(f"mla[form=absorbed,{option}]")
    absorbed.load_state_dict(mixed.state_dict())
    x = drawn(2, 3 * LONGEST, DIM)
    assert not mixed.heads.any_width
    assert mixed.heads.query(x).shape[-1] == LATENT + TURNED
    assert torch.equal(mixed(x), absorbed(x))


@pytest.mark.parametrize("queries", [1, LONGEST + 1])
def test_values_of_other_states_than_the_keys_are_read(queries):
    """As in `nn.MultiheadAttention`, whose keys and values are two arguments."""
    mixed = built("mla[position=none]", regime="cross")
    naive = built("mla[position=none,form=naive]", regime="cross")
    naive.load_state_dict(mixed.state_dict())
    x, source, values = drawn(2, queries, DIM), drawn(2, 5, DIM, seed=2), drawn(2, 5, DIM, seed=3)
    found = []
    for attention in (mixed, naive):
        memory = attention.prepare(source, values=values)
        state = attention.start(memory, x)
        found.append(attention.attend(x, memory, state, want_weights=False)[0])
    torch.testing.assert_close(*found)
    assert not torch.allclose(found[0], mixed(x, source))


def test_weights_are_those_of_the_latent_vector():
    mixed, absorbed = built("mla"), built("mla[form=absorbed]")
    absorbed.load_state_dict(mixed.state_dict())
    x = drawn(2, 9, DIM)
    found, wanted = (one.answer_all(x, x)[1].weights for one in (mixed, absorbed))
    torch.testing.assert_close(found, wanted)


def rotated(x, places):
    """Pairs of neighbors turned by angles of rotary positions, as complex numbers."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    count = pairs.shape[-1]
    frequency = 10000.0 ** (-torch.arange(count, dtype=x.dtype) / count)
    turn = torch.polar(torch.ones(len(places), count).double(), places[:, None] * frequency)
    return torch.view_as_real(pairs * turn).flatten(-2)


def normed(x, gain):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gain


def test_it_is_equations_9_to_19_of_the_paper():
    attention = built("mla")
    heads = attention.heads
    h = drawn(7, DIM)
    places = torch.arange(7, dtype=torch.float64)
    c_kv = normed(h @ heads.to_latent.weight.T, heads.gain)
    c_q = normed(h @ heads.to_query_latent.weight.T, heads.query_gain)
    k_r = rotated(h @ heads.to_turned.weight.T, places)
    q = (c_q @ heads.to_query.weight.T).unflatten(-1, (HEADS, WIDTH + TURNED))
    read = []
    for i in range(HEADS):
        q_c, q_r = q[:, i, :WIDTH], rotated(q[:, i, WIDTH:], places)
        k_c, v_c = c_kv @ heads.key_up[i].T, c_kv @ heads.value_up[i].T
        energy = (q_c @ k_c.T + q_r @ k_r.T) / math.sqrt(WIDTH + TURNED)
        future = torch.ones(7, 7, dtype=torch.bool).triu(1)
        read.append(torch.softmax(energy.masked_fill(future, -math.inf), -1) @ v_c)
    wanted = torch.cat(read, -1) @ heads.to_output.weight.T
    torch.testing.assert_close(attention(h[None])[0], wanted)


def step_by_step(attention, x):
    state, found = attention.start(None, x), []
    for one in x.split(1, 1):
        output, answer = attention.attend(one, None, state, own=(one, None, None))
        state = answer.state
        found.append(output)
    return torch.cat(found, 1), state


@pytest.mark.parametrize("selector", ["mla", "mla[position=none]"])
def test_a_cache_keeps_the_latent_vector_and_the_turned_key_and_nothing_else(selector):
    attention = built(selector)
    x = drawn(2, 9, DIM)
    for output, state in (step_by_step(attention, x), whole(attention, x)):
        torch.testing.assert_close(output, attention(x))
        source = state.cache.source
        assert source.key.shape == (2, 1, 9, LATENT + TURNED)
        assert source.value.untyped_storage().data_ptr() == source.key.untyped_storage().data_ptr()
        assert not any(state.cache.parts.values())
        chosen = state.select(torch.tensor([1, 0])).cache.source
        torch.testing.assert_close(chosen.value, chosen.key[..., :LATENT])


def whole(attention, x):
    output, answer = attention.answer_all(x, x)
    return output, answer.state


def test_the_latent_part_of_a_key_is_not_turned():
    attention = built("mla")
    x = drawn(1, 1, DIM).expand(1, 5, DIM)
    _, state = whole(attention, x)
    key = state.cache.source.key[0, 0]
    torch.testing.assert_close(key[:, :LATENT], key[:1, :LATENT].expand(5, -1))
    assert not torch.allclose(key[1, LATENT:], key[2, LATENT:])


def test_another_sequence_has_no_places_to_turn_by():
    x, source = drawn(2, 3, DIM), drawn(2, 5, DIM, seed=2)
    attention = built("mla[position=none]", regime="cross")
    naive = built("mla[position=none,form=naive]", regime="cross")
    naive.load_state_dict(attention.state_dict())
    torch.testing.assert_close(attention(x, source), naive(x, source))


@pytest.mark.parametrize("options", ["heads=5", "heads=0", "latent=0", "turned=0"])
def test_sizes_that_make_no_heads_are_refused(options):
    with pytest.raises(InvalidConfig, match="mla: "):
        built(f"mla[{options}]")


def test_beneath_its_heads_it_is_timed_on_one_key_as_wide_as_the_cache():
    dims = timed_dims(resolve("mla"), AttendShape(heads=2, width=32))
    assert (dims.heads, dims.kv_heads) == (2, 1)
    assert (dims.query_width, dims.key_width, dims.value_width) == (24, 24, 16)


def test_a_latent_that_is_the_state_and_no_turned_part_are_plain_heads():
    plain = variants.build("mha[head=multi[heads=4]]", dim=16, regime="causal").double()
    latent = variants.build("mla[latent=16,query_latent=0]", dim=16, regime="causal").double()
    theirs, mine, (width, turned) = plain.heads, latent.heads, (4, 8)
    x = drawn(2, 9, 16)
    x = x / x.square().mean(-1, keepdim=True).sqrt()  # so that the norm of the latent is idle
    with torch.no_grad():
        mine.to_latent.weight.copy_(torch.eye(16))
        mine.to_turned.weight.zero_()
        content = theirs.to_query.weight.unflatten(0, (4, width))
        # the paper divides by the root of the whole width, the turned part among it
        whole = torch.zeros(4, width + turned, 16, dtype=x.dtype)
        whole[:, :width] = content * math.sqrt((width + turned) / width)
        mine.to_query.weight.copy_(whole.flatten(0, 1))
        mine.key_up.copy_(theirs.to_key.weight.unflatten(0, (4, width)))
        mine.value_up.copy_(theirs.to_value.weight.unflatten(0, (4, width)))
        mine.to_output.weight.copy_(theirs.to_output.weight)
    torch.testing.assert_close(latent(x), plain(x), rtol=1e-5, atol=1e-5)
