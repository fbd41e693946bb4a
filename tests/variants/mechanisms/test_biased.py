"""Positions that add to energies of mechanisms: what is added, where, and what has no place."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import variants
from bench.api.call import Dims, QueryShape
from bench.api.config import NoOptions
from bench.api.errors import Refused
from bench.api.position import Position
from bench.api.registry import make, registrations
from bench.api.selector import parse
from bench.api.source import Source
from bench.conformance import as_text, certify
from variants.mechanisms.biased import Biased
from variants.mechanisms.nsa import GATES

variants.load_all()
DIM, HEADS, RELATIONS = 12, 2, 5

OF_PLACES = (
    "alibi",
    "distance_bias",
    "fire",
    "fox",
    "kerple",
    "kerple[kernel=power]",
    "t5_bias",
    "tupe",
)
"""Positions whose energies go by places and gates alone."""
OF_KEYS = ("deberta[content_to_position=false]",)
OF_QUERIES = (
    "deberta[position_to_content=false]",
    "relation_aware[use=keys]",
    "shaw_rpr[use=keys]",
)
OF_BOTH = ("cope", "deberta", "transformer_xl")
EVERY = (*OF_PLACES, *OF_KEYS, *OF_QUERIES, *OF_BOTH)
TAKEN = {
    "act": (*OF_PLACES, *OF_KEYS),
    "differential": EVERY,
    "hopfield": (*OF_PLACES, *OF_KEYS),
    "memn2n": OF_PLACES,
    "multi_token": tuple(one for one in EVERY if one != "relation_aware[use=keys]"),
    "nsa": EVERY,
    "selective": EVERY,
    "talking_heads": EVERY,
}
"""Positions that add to energies which each mechanism takes; it refuses the rest of `EVERY`."""
SMALL = {"multi_token": "queries=3,keys=3,", "nsa": "block=3,chosen=3,window=2,"}
PAIRS = [(name, position) for name, taken in TAKEN.items() for position in (*taken, "rope+alibi")]
REFUSED = [(name, one) for name, taken in TAKEN.items() for one in EVERY if one not in taken]
QUICK = [(n, one) for n, one in PAIRS if one in ("alibi", "fox", "cope", "rope+alibi")]
LATER = [pytest.param(*one, marks=pytest.mark.slow) for one in PAIRS if one not in QUICK]
BOTH_WAYS = {"act", "differential", "hopfield", "memn2n", "talking_heads"}
ONE_WAY = {"cope", "fire", "fox"}


def built(selector, regime="causal", seed=0):
    torch.manual_seed(seed)
    made = variants.build(
        selector, dim=DIM, heads=HEADS, regime=regime, attention_only=True, relations=RELATIONS
    )
    made = made.double().eval()
    with torch.no_grad():  # away from where they start, for some tables start at zero
        for one in made.variant.stacked.parameters() if made.variant.positions else ():
            one.add_(torch.randn(one.shape, dtype=one.dtype))
    return made


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def chain_like(attention, position, score="scaled_dot"):
    """The chain with the same heads and the same positions."""
    chain = built(f"{score}[position={position}]")
    assert not chain.load_state_dict(attention.state_dict(), strict=False).missing_keys
    return chain


def answered(attention, x, mask=None, parts=None, labels=None):
    """The output, where so many tokens come at a time."""
    state, found, at = attention.start(None, x), [], 0
    for one in x.split(parts or x.shape[1], 1):
        here = slice(at, at + one.shape[1])
        real = None if mask is None else mask[:, here]
        extras = {} if labels is None else {"relation": labels[:, here]}
        output, answer = attention.attend(one, None, state, own=(one, real, None), extras=extras)
        state, at = answer.state, here.stop
        found.append(output)
    return torch.cat(found, 1)


def test_these_positions_are_all_that_add_to_energies_and_nothing_else():
    adding = set()
    for name, one in registrations("position").items():
        hooks = one.target.energy is not Position.energy
        adding |= {name} if hooks else set()
    assert adding == {parse(position).name for position in EVERY}
    biased = {n for n, one in registrations("mechanism").items() if issubclass(one.target, Biased)}
    assert biased == set(TAKEN)


@pytest.mark.parametrize(("name", "position"), [*QUICK, *LATER])
def test_vectorized_code_equals_the_loops(equals_oracle, name, position):
    selector = f"{name}[{SMALL.get(name, '')}position={position}]"
    compared = equals_oracle(selector, "causal", dim=DIM)
    assert any(one.changes_energy for one in compared.slot.variant.positions)
    if name in BOTH_WAYS and position not in ONE_WAY:
        equals_oracle(selector, "self", dim=DIM, padded=False)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "position"), QUICK)
def test_pairs_of_each_kind_are_green(name, position):
    found = certify(f"{name}[position={position}]")
    assert found.green(), as_text([found])


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_gradients_padding_and_causality_are_certified(name):
    checks = ["gradients", "padding_invariance", "causality", "dead_rows"]
    found = certify(f"{name}[position=t5_bias+fox]", checks=checks)
    assert found.green(), as_text([found])
    assert set(found.passed) == set(checks)


@pytest.mark.parametrize(("name", "position"), PAIRS)
def test_what_is_added_changes_what_is_read(name, position):
    biased = built(f"{name}[position={position}]")
    plain = built(f"{name}[position=rope]" if "rope" in position else name)
    plain.load_state_dict(biased.state_dict(), strict=False)
    x, labels = drawn(2, 9, DIM), torch.arange(162).view(2, 9, 9) % RELATIONS
    gap = answered(biased, x, labels=labels) - answered(plain, x)
    assert float(gap.detach().abs().max()) > 1e-3


AS_A_CHAIN = {
    "act[hops=1": "dot",
    "hopfield[steps=1": "scaled_dot",
    "memn2n[hops=1": "dot",
    "multi_token[queries=3,keys=3": "scaled_dot",
    "selective[": "scaled_dot",
    "talking_heads[": "scaled_dot",
}
"""What is, as it starts, a chain, and the score of that chain: one hop or step, a kernel of a
single one, heads that are not mixed, and two tokens for `selective`."""


@st.composite
def sentences(draw):
    """Rows of several lengths, padded on the right, and how many tokens come at a time."""
    length = draw(st.integers(1, 9))
    lengths = draw(st.lists(st.integers(1, length), min_size=1, max_size=3))
    seed = draw(st.integers(0, 10**6))
    return drawn(len(lengths), length, DIM, seed=seed), lengths, draw(st.integers(1, length))


@pytest.mark.parametrize("begin", sorted(AS_A_CHAIN))
@settings(max_examples=25, deadline=None)
@given(sentence=sentences(), position=st.sampled_from((*OF_PLACES, "rope+alibi", "alibi+fox")))
def test_what_is_a_chain_at_its_start_is_that_chain_with_the_same_positions(
    begin, sentence, position
):
    x, lengths, parts = sentence
    if begin == "selective[":  # a third token would be told what the second one says
        x, lengths, parts = x[:, :2], [min(one, 2) for one in lengths], min(parts, 2)
    comma = "" if begin.endswith("[") else ","
    attention = built(f"{begin}{comma}position={position}]")
    chain = chain_like(attention, position, AS_A_CHAIN[begin])
    mask = torch.arange(x.shape[1]) < torch.tensor(lengths)[:, None]
    found, wanted = answered(attention, x, mask, parts), answered(chain, x, mask)
    torch.testing.assert_close(found[mask], wanted[mask], rtol=0, atol=1e-11)


@pytest.mark.parametrize("position", [*OF_QUERIES, *OF_BOTH])
@pytest.mark.parametrize("begin", ["multi_token[queries=3,keys=3,", "talking_heads["])
def test_positions_that_look_at_queries_and_keys_see_those_of_a_chain(begin, position):
    if position not in TAKEN[begin.partition("[")[0]]:
        return
    attention = built(f"{begin}position={position}]")
    x, labels = drawn(2, 8, DIM), torch.arange(128).view(2, 8, 8) % RELATIONS
    found = answered(attention, x, parts=3, labels=labels)
    wanted = answered(chain_like(attention, position), x, labels=labels)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-11)


# differential


def without_lambda(variant, value=0.0):
    """lambda = exp(value) - exp(0) + start."""
    with torch.no_grad():
        variant.added.zero_()
        variant.taken.zero_()
        variant.added[:, 0] = abs(value) ** 0.5
    return variant


def with_positions_of(variant, other):
    variant.stacked.load_state_dict(other.stacked.state_dict())
    return variant


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("position", ["alibi", "t5_bias", "kerple", "alibi+t5_bias"])
def test_the_first_map_alone_is_a_chain_of_the_first_half(beneath, answer, draw, position, regime):
    drawn = draw(queries=6, keys=6, widths=(6, 6, 4))
    begin = f"differential[start=0,norm=false,position={position}]"
    variant = without_lambda(beneath(begin, widths=(6, 6, 4), regime=regime))
    found = answer(variant, drawn.query, drawn.source)
    half = Source(drawn.source.key[..., :3], drawn.source.value, drawn.source.mask)
    chain = beneath(f"scaled_dot[position={position}]", widths=(3, 3, 4), regime=regime)
    wanted = answer(with_positions_of(chain, variant), drawn.query[..., :3], half)
    torch.testing.assert_close(found.weights, wanted.weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.output, wanted.output, rtol=0, atol=1e-12)


@pytest.mark.parametrize("position", ["alibi", "t5_bias", "kerple"])
def test_both_maps_have_what_is_added_so_that_equal_maps_under_lambda_one_are_nothing(
    beneath, answer, draw, position
):
    drawn = draw(queries=6, keys=6, widths=(3, 3, 4))
    doubled = Source(drawn.source.key.repeat(1, 1, 1, 2), drawn.source.value, drawn.source.mask)
    begin = f"differential[start=0,norm=false,position={position}]"
    variant = beneath(begin, widths=(6, 6, 4), regime="causal")
    # exp(log 2) - exp(0) = 1
    variant = without_lambda(variant, float(torch.tensor(2.0, dtype=torch.float64).log()))
    found = answer(variant, drawn.query.repeat(1, 1, 1, 2), doubled).output
    torch.testing.assert_close(found, torch.zeros_like(found), rtol=0, atol=1e-12)


# hopfield


@pytest.mark.parametrize("position", ["alibi", "fire", "t5_bias"])
@pytest.mark.parametrize("beta", [0.5, 3.0])
def test_one_step_at_any_beta_is_a_chain_whose_queries_are_longer(
    beneath, answer, draw, position, beta
):
    drawn = draw(queries=6, keys=6)
    variant = beneath(f"hopfield[steps=1,beta={beta},position={position}]", regime="causal")
    chain = beneath(f"scaled_dot[position={position}]", regime="causal")
    found = answer(variant, drawn.query, drawn.source)
    wanted = answer(with_positions_of(chain, variant), beta * drawn.query, drawn.source)
    torch.testing.assert_close(found.weights, wanted.weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.output, wanted.output, rtol=0, atol=1e-12)


def test_every_step_has_what_is_added(beneath, answer, draw):
    drawn = draw(2, 2, 6, 6, lengths=())
    variant = beneath("hopfield[steps=2,position=distance_bias[sign=false]]", regime="self")
    table = variant.positions[0].table
    place = torch.arange(6)
    more = table[:, (place[:, None] - place).abs().clamp(max=table.shape[1] - 1)]
    scale, key = 5**-0.5, drawn.source.key
    moved = (scale * drawn.query @ key.mT + more).softmax(-1) @ key
    expected = (scale * moved @ key.mT + more).softmax(-1) @ drawn.source.value
    torch.testing.assert_close(answer(variant, drawn.query, drawn.source).output, expected)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 8), st.floats(0.1, 5.0), st.floats(0.0, 5.0), st.integers(0, 10**6))
def test_the_energy_of_the_network_falls_with_every_step_whatever_is_added(
    keys, scale, height, seed
):
    key, x = drawn(keys, 4, seed=seed), drawn(5, 4, seed=seed + 1)
    more, seen = height * drawn(5, keys, seed=seed + 2), []
    for _ in range(4):
        energy = scale * x @ key.mT + more
        seen.append(x.square().sum(-1) / 2 - energy.logsumexp(-1) / scale)
        x = energy.softmax(-1) @ key
    for before, after in pairwise(seen):
        assert (after <= before + 1e-9).all()


# talking heads


def test_heads_that_are_mixed_see_what_each_others_positions_add(beneath, answer, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = beneath("talking_heads[position=alibi]", regime="causal", seed=None)
    plain = answer(variant, drawn.query, drawn.source).weights
    with torch.no_grad():
        variant.before.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    turned = answer(variant, drawn.query, drawn.source).weights
    torch.testing.assert_close(turned, plain.flip(1), rtol=0, atol=1e-12)


def test_what_is_added_is_mixed_with_the_energies(beneath, answer, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = beneath("talking_heads[position=distance_bias[sign=false]]", regime="self")
    table, place = variant.positions[0].table, torch.arange(6)
    more = table[:, (place[:, None] - place).abs().clamp(max=table.shape[1] - 1)]
    energy = 5**-0.5 * drawn.query @ drawn.source.key.mT + more
    wanted = torch.einsum("gh,bhls->bgls", variant.before, energy).softmax(-1)
    wanted = torch.einsum("gh,bhls->bgls", variant.after, wanted)
    torch.testing.assert_close(answer(variant, drawn.query, drawn.source).weights, wanted)


# selective


def test_what_a_token_says_includes_what_positions_add(beneath, answer):
    """Energies are the added number alone: 2 at distance one, and 0 elsewhere."""
    variant = beneath(
        "selective[position=distance_bias[sign=false]]",
        heads=1,
        widths=(2, 2, 2),
        regime="causal",
    )
    with torch.no_grad():
        variant.positions[0].table.zero_()
        variant.positions[0].table[:, 1] = 2.0
    nothing = torch.zeros(1, 1, 4, 2, dtype=torch.float64)
    weights = answer(variant, nothing, Source(nothing, nothing)).weights[0, 0]
    # the third token says 2 of the second, which lowers it for the fourth; the first is spared
    wanted = torch.softmax(torch.tensor([0.0, -2.0, 2.0, 0.0], dtype=torch.float64), 0)
    torch.testing.assert_close(weights[3], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("position", ["alibi", "kerple"])
def test_a_first_head_whose_energies_are_never_positive_says_nothing(
    beneath, answer, draw, position
):
    drawn = draw(2, 2, 7, 7)
    variant = beneath(f"selective[position={position}]", regime="causal")
    chain = with_positions_of(beneath(f"scaled_dot[position={position}]", regime="causal"), variant)
    silent = drawn.query * torch.tensor([0.0, 1.0], dtype=torch.float64)[None, :, None, None]
    found = answer(variant, silent, drawn.source)
    wanted = answer(chain, silent, drawn.source)
    torch.testing.assert_close(found.weights, wanted.weights, rtol=0, atol=1e-12)


# multi-token


def test_energies_of_the_query_before_come_with_what_was_added_for_it(beneath, answer, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = beneath("multi_token[queries=2,keys=3,position=alibi]", regime="causal")
    with torch.no_grad():
        variant.kernel.zero_()
        variant.kernel[:, 0, 1] = 1.0
    found = answer(variant, drawn.query, drawn.source).weights
    place = torch.arange(6, dtype=torch.float64)
    slope = torch.tensor([2.0**-4, 2.0**-8], dtype=torch.float64)[:, None, None]
    energy = drawn.query @ drawn.source.key.mT / 5**0.5 - slope * (place[:, None] - place).abs()
    for t in range(1, 6):
        before = energy[0, :, t - 1, : t + 1].clone()
        before[:, t] = 0  # its own future, which counts as zero
        torch.testing.assert_close(
            found[0, :, t, : t + 1], torch.softmax(before, -1), rtol=0, atol=1e-12
        )


# native sparse attention


def gated(attention, x, gates):
    """The output where every query has these gates, and where there are none of its own."""
    heads = attention.heads
    source = attention._with_inputs(heads.source(x, None, None), x)
    extras = {GATES: torch.tensor(gates).double().expand(*x.shape[:2], HEADS, 3)}
    found = attention.variant.attend(
        heads.query(x), None, attention.start(None, x), new=source, extras=extras
    )
    return heads.merge(found.output)


OPEN, SHUT = 60.0, -60.0
BRANCHES = {
    "block=1": ((OPEN, SHUT, SHUT), "scaled_dot"),
    "block=32": ((SHUT, OPEN, SHUT), "scaled_dot"),
    "block=4,chosen=16": ((SHUT, OPEN, SHUT), "scaled_dot"),
    "block=4,window=5": ((SHUT, SHUT, OPEN), "sliding_window[window=5]"),
}
"""What a single branch of it is: means of one key each, all blocks, a window."""


@pytest.mark.parametrize("options", sorted(BRANCHES))
@pytest.mark.parametrize("position", [*OF_PLACES, "rope+alibi", "cope", "transformer_xl"])
def test_every_branch_of_nsa_is_its_chain_with_the_same_positions(options, position):
    gates, score = BRANCHES[options]
    attention, x = built(f"nsa[{options},position={position}]"), drawn(2, 15, DIM)
    name, _, own = score.rstrip("]").partition("[")
    chain = built(f"{name}[{own + ',' if own else ''}position={position}]")
    assert not chain.load_state_dict(attention.state_dict(), strict=False).missing_keys
    torch.testing.assert_close(gated(attention, x, gates), chain(x))


@pytest.mark.parametrize("padding", [(), (2, 3), (4, 5, 6, 7), (9,)])
def test_the_energy_of_a_mean_is_the_mean_of_the_energies_of_its_real_keys(beneath, draw, padding):
    drawn, size, length = draw(1, 2, 14, 14, lengths=()), 4, 14
    variant = beneath("nsa[block=4,position=t5_bias]", regime="causal")
    real = torch.tensor([s not in padding for s in range(length)])
    source = Source(drawn.source.key, drawn.source.value, real[None])
    gates = torch.tensor((OPEN, SHUT, SHUT)).double().expand(1, length, 2, 3)
    shape = QueryShape(1, 2, 5, torch.float64, torch.device("cpu"))
    found = variant.attend(
        drawn.query, None, variant.start(None, shape), new=source, extras={GATES: gates}
    ).output
    position, place = variant.positions[0], torch.arange(length)
    distance = (place[:, None] - place).clamp(min=0)
    energy = variant.scale * drawn.query @ source.key.mT
    energy = energy + position.table[:, position.row_of[distance]]
    for t in range(length):
        blocks = [place[n : n + size] for n in range(0, t - size + 2, size)]
        blocks = [one[real[one]] for one in blocks if real[one].any()]
        wanted = torch.zeros_like(found[:, :, t])
        if blocks:
            weights = torch.stack([energy[:, :, t, one].mean(-1) for one in blocks], -1).softmax(-1)
            means = torch.stack([source.value[:, :, one].mean(2) for one in blocks], 2)
            wanted = (weights.unsqueeze(-1) * means).sum(2)
        torch.testing.assert_close(found[:, :, t], wanted, rtol=0, atol=1e-12)


# what has no place


@pytest.mark.parametrize(("name", "position"), REFUSED)
def test_energies_that_a_mechanism_cannot_hold_are_refused_with_the_reason(name, position):
    reason = {
        "act": "act changes the query at every hop",
        "hopfield": "hopfield moves the query at every step",
        "memn2n": "memn2n (changes the query at every hop|has other keys in later hops)",
        "multi_token": "multi_token keeps vectors alone of the queries before",
    }
    with pytest.raises(Refused, match=reason[name]):
        built(f"{name}[position={position}]")


@pytest.mark.parametrize("position", ["shaw_rpr", "shaw_rpr[use=values]", "relation_aware"])
@pytest.mark.parametrize("name", sorted(TAKEN))
def test_what_adds_to_outputs_is_refused_and_not_left_out(name, position):
    if (name, position) == ("multi_token", "relation_aware"):
        return  # refused for its labels first
    with pytest.raises(Refused, match="adds to outputs, and this mechanism reads values alone"):
        built(f"{name}[position={position}]")


class Told(Position):
    """Gives a feature."""

    gives_features = True
    num_features = 1


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_features_are_refused_for_want_of_a_score_that_takes_them(name):
    dims = Dims(HEADS, HEADS, 6, 6, 6, model_width=DIM, regime="causal")
    attention = make("mechanism", parse(name), dims, "auto")
    with pytest.raises(Refused, match="dot products, which take none"):
        attention.stack_positions((Told(NoOptions(), dims),))


@pytest.mark.parametrize("name", sorted(BOTH_WAYS))
def test_the_position_that_gives_features_says_so_itself(name):
    with pytest.raises(Refused, match="needs a score that accepts per-key features"):
        built(f"{name}[position=cohn_position]", "self")


def test_gates_of_positions_stand_beside_those_of_the_mechanism():
    variant = built("nsa[position=alibi+fox]").variant
    assert set(variant.query_inputs) == {GATES}
    assert set(variant.key_inputs) == {"forget"}
    assert set(built("differential[position=fox]").key_maps) == {"forget"}
