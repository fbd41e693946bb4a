import pytest
import torch

import variants
from bench.api.call import Dims
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import make, registrations
from bench.api.selector import parse
from bench.conformance import as_text, certify

variants.load_all()
DIM, HEADS, LENGTH, AWAY = 16, 2, 21, 256

OF_DISTANCES = {
    "deltanet",
    "differential",
    "gated_deltanet",
    "gated_deltaproduct",
    "gsa",
    "hopfield",
    "linformer",
    "log_linear",
    "mamba2_ssd",
    "multi_token",
    "nsa",
    "nystrom",
    "selective",
    "talking_heads",
    "titans",
}
"""They see queries and keys through their dot products, or those of sums of keys, alone."""
OF_PLACES = {
    "act": "what is read is added to the query itself",
    "based": "a map stands between the turned vector and its features",
    "csa": "keys of a block are weighed number by number",
    "dpfp": "features are made of turned numbers one by one",
    "gdn2": "each unit of the key decays and erases by itself",
    "gla": "each unit of the key decays by itself",
    "hca": "keys of a block are weighed number by number",
    "hedgehog": "a map stands between the turned vector and its features",
    "kda": "each unit of the key decays by itself",
    "linear_attention": "features are made of turned numbers one by one",
    "memn2n": "what is read is added to the query itself",
    "mesa": "each unit of the key has a ridge of its own",
    "performer": "directions are drawn, and distances alone count in their mean",
    "ttt": "what is read is added to the query itself",
}
"""Mechanisms that see more of a turned vector than dot products, and what."""
WITHOUT_POSITIONS = {
    "cosformer": "it turns features by itself",
    "hgrn2": "what is its key is the input of a gate",
    "lstmn": "its energies are those of hidden states, and no dot products",
    "max_pooling": "it has no queries",
    "multi_dimensional": "its energies are no dot products",
    "nadaraya_watson": "its kernel sees distances of vectors in a space of the user",
    "ntm_memory": "it reads slots that have no place in the sentence",
    "path": "it has positions of its own",
    "retnet": "it turns queries and keys by itself",
    "rwkv7": "each unit of a key is scaled after projecting, when turning is over",
}
"""Mechanisms that refuse positions, and why."""
TURNED_ALIKE = {"deltanet", "gated_deltanet", "gated_deltaproduct", "hopfield", "titans"}
"""They see products of keys with keys, too."""
ALL = sorted({*OF_DISTANCES, *OF_PLACES})
TURNING = sorted(name for name, one in registrations("position").items() if one.target.turns)
BOTH_SIDES = {"linformer", "nystrom"}
"""They have no causal form, so they take no steps of decoding."""


def built(selector, heads=HEADS):
    torch.manual_seed(0)
    regime = "self" if parse(selector).name in BOTH_SIDES else "causal"
    made = variants.build(selector, dim=DIM, heads=heads, regime=regime, attention_only=True)
    return made.double().eval()


def drawn_everywhere(attention):
    """Parameters of the mechanism away from where they start, or too much would look alike."""
    rng = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for one in attention.variant.parameters():
            one.add_(0.3 * torch.randn(one.shape, generator=rng, dtype=one.dtype))
    return attention


def sentence(rows=2):
    rng = torch.Generator().manual_seed(1)
    return torch.randn(rows, LENGTH, DIM, generator=rng, dtype=torch.float64)


def moved(name, position="rope"):
    """How much the output changes where every token is turned as if it stood further on."""
    attention, x = drawn_everywhere(built(f"{name}[position={position}]")), sentence()
    turn, before = attention.variant.turn, attention(x)
    attention.variant.turn = lambda y, offset, keys=False: turn(y, offset + AWAY, keys=keys)
    return float((attention(x) - before).detach().abs().max())


def test_every_mechanism_takes_positions_or_has_a_reason():
    found = registrations("mechanism")
    takes = {name for name, one in found.items() if one.target.takes_positions}
    assert takes == set(ALL)
    assert set(found) - takes == set(WITHOUT_POSITIONS)


@pytest.mark.parametrize(
    ("name", "position"),
    [
        (name, position)
        for name in sorted(OF_DISTANCES)
        for position in TURNING
        if position != "xpos" or name not in TURNED_ALIKE | BOTH_SIDES  # there it is refused
    ],
)
def test_distances_alone_count_where_dot_products_are_all_that_is_seen(name, position):
    assert moved(name, position) < 1e-12


@pytest.mark.parametrize("name", sorted(TURNED_ALIKE))
def test_keys_are_not_turned_otherwise_than_queries_where_keys_meet_keys(name):
    with pytest.raises(
        Refused, match=r"Xpos turns keys otherwise than queries, and .* such as rope"
    ):
        built(f"{name}[position=xpos]")


def test_positions_that_turn_are_found():
    assert TURNING == ["rope", "xpos"]


@pytest.mark.parametrize("name", sorted(OF_PLACES))
def test_places_count_where_more_is_seen(name):
    assert moved(name) > 1e-3


@pytest.mark.parametrize("name", ALL)
def test_turning_changes_what_is_read(name):
    turned, plain, x = built(f"{name}[position=rope]"), built(name), sentence()
    plain.load_state_dict(turned.state_dict())
    assert float((turned(x) - plain(x)).detach().abs().max()) > 1e-3


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("name", sorted(set(ALL) - BOTH_SIDES))
def test_steps_of_decoding_equal_the_whole_pass(name, parts):
    attention, x = drawn_everywhere(built(f"{name}[position=rope]")), sentence()
    state, found = attention.start(None, x), []
    with torch.no_grad():
        for one in x.split(parts, 1):
            output, answer = attention.attend(one, None, state, own=(one, None, None))
            state = answer.state
            found.append(output)
        torch.testing.assert_close(torch.cat(found, 1), attention(x), rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_mechanisms_that_are_turned_are_green(name):
    found = certify(f"{name}[position=rope]")
    assert found.green(), as_text([found])


@pytest.mark.parametrize("position", ["alibi", "shaw_rpr", "t5_bias"])
@pytest.mark.parametrize("name", ["deltanet", "gla", "performer", "csa", "hca"])
def test_positions_that_need_energies_are_refused_and_not_left_out(name, position):
    with pytest.raises(Refused, match="this mechanism has none"):
        built(f"{name}[position={position}]")


@pytest.mark.parametrize("name", sorted(WITHOUT_POSITIONS))
def test_others_have_no_axis_of_positions(name):
    with pytest.raises(InvalidConfig, match="no axis 'position'"):
        built(f"{name}[position=rope]")


@pytest.mark.parametrize("name", ["deltanet", "linear_attention", "mamba2_ssd"])
@pytest.mark.parametrize("position", ["none", "rope"])
def test_padding_takes_places_where_positions_turn(name, position):
    attention, x = drawn_everywhere(built(f"{name}[position={position}]")), sentence()
    prompt, last = x[:, :-1], x[:, -1:]
    mask = torch.arange(LENGTH - 1).expand(2, -1) < 9
    _, behind = attention.attend(
        prompt, None, attention.start(None, prompt), own=(prompt, mask, None)
    )
    padded, _ = attention.attend(last, None, behind.state, own=(last, None, None))
    alone = attention(torch.cat((prompt[:, :9], last), 1))
    gap = float((padded - alone[:, -1:]).detach().abs().max())
    assert gap > 1e-3 if position == "rope" else gap < 1e-12


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_both_maps_of_differential_attention_are_turned_by_the_same_angles(layout):
    variant = built(f"differential[position=rope[layout={layout}]]").variant
    half = variant.map_width
    dims = Dims(HEADS, HEADS, half, half, half, model_width=DIM, regime="causal")
    rope = make("position", parse(f"rope[layout={layout}]"), dims)
    x, places = sentence()[:, None, :, : 2 * half], torch.arange(3, 3 + LENGTH)
    found = variant.turn(x, 3)
    for part in (slice(0, half), slice(half, None)):
        torch.testing.assert_close(found[..., part], rope.turn(x[..., part], places))


def test_maps_of_differential_attention_do_not_cut_through_what_is_left_unturned():
    with pytest.raises(Refused, match="leave a part unturned"):
        built("differential[head=mla,position=rope]", heads=None)
