import pytest
import torch
from torch.nn import functional

import variants
from bench.api.call import QueryShape
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source


def set_table(table, rows):
    with torch.no_grad():
        table.copy_(torch.tensor(rows, dtype=table.dtype).view_as(table))


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("use", ["both", "keys", "values"])
@pytest.mark.parametrize("tables", ["per_head", "shared"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, use, tables):
    equals_oracle(f"shaw_rpr[clip=2,use={use},tables={tables}]", regime)


def test_a_clip_beyond_every_distance_and_other_scores_equal_the_loops(equals_oracle):
    equals_oracle("shaw_rpr[clip=30]", "causal")
    equals_oracle("scaled_dot[position=shaw_rpr[clip=1],score=additive[width=3]]", "self")


def test_golden_weights_and_outputs(answer, beneath):
    variant = beneath("shaw_rpr[clip=1]", heads=1, widths=(1, 1, 1), regime="self")
    set_table(variant.positions[0].key_table, [-1.0, 0.0, 1.0])
    set_table(variant.positions[0].value_table, [10.0, 0.0, 20.0])
    ones = torch.ones(1, 1, 3, 1, dtype=torch.float64)
    found = answer(variant, ones, Source(ones, ones))
    expected = [
        [0.155362, 0.422319, 0.422319],
        [0.090031, 0.244728, 0.665241],
        [0.211942, 0.211942, 0.576117],
    ]
    for row, weights in zip(found.weights[0, 0].tolist(), expected, strict=True):
        assert row == pytest.approx(weights, abs=1e-6)
    outputs = [17.892752, 15.205125, 5.238831]
    assert found.output.flatten().tolist() == pytest.approx(outputs, abs=1e-6)


def pairs(query, key, value, keys, values):
    """The equation itself, with a vector a_ij for each pair: `keys` and `values` are L L E."""
    energy = torch.einsum("bhie,bhje->bhij", query, key)
    energy = (energy + torch.einsum("bhie,hije->bhij", query, keys)) / query.shape[-1] ** 0.5
    weights = energy.softmax(-1)
    return weights @ value + torch.einsum("bhij,hije->bhie", weights, values)


def batched(query, key, value, keys, values):
    """The authors' code: queries first, so that all heads meet a row's vectors in one product."""
    rows, heads, length, width = query.shape

    def meet(x, table):  # B H L E and H L E N -> B H L N, shared tables as the authors have them
        assert torch.equal(table, table[:1].expand_as(table))
        flat = x.permute(2, 0, 1, 3).reshape(length, rows * heads, -1)
        found = flat @ table[0]
        return found.view(length, rows, heads, -1).permute(1, 2, 0, 3)

    energy = query @ key.transpose(-1, -2) + meet(query, keys.transpose(-1, -2))
    weights = (energy / width**0.5).softmax(-1)
    return weights @ value + meet(weights, values)


def skewed(query, key, value, key_table, value_table):
    """Unclipped: all 2 L - 1 distances at once, shifted by padding and another shape."""
    length, width = query.shape[-2:]

    def skew(x):
        x = functional.pad(x, (0, 1)).flatten(-2)
        x = functional.pad(x, (0, length - 1))
        return x.unflatten(-1, (length + 1, 2 * length - 1))[..., :length, length - 1 :]

    energy = query @ key.transpose(-1, -2) + skew(query @ key_table.transpose(-1, -2))
    weights = (energy / width**0.5).softmax(-1)
    # the transpose of the same shift, by autograd
    mass = torch.zeros(*query.shape[:3], 2 * length - 1, dtype=query.dtype).requires_grad_()
    (mass,) = torch.autograd.grad(skew(mass), mass, weights)
    return weights @ value + mass @ value_table


@pytest.mark.parametrize("tables", ["per_head", "shared"])
@pytest.mark.parametrize("clip", [0, 3, 8, 20])
def test_four_ways_to_compute_it_agree(answer, beneath, draw, tables, clip):
    length = 9
    drawn = draw(2, 2, length, length, lengths=())
    variant = beneath(f"shaw_rpr[clip={clip},tables={tables}]", regime="self")
    found = answer(variant, drawn.query, drawn.source).output
    position = variant.positions[0]
    distance = torch.arange(length)[None] - torch.arange(length)[:, None]
    row = distance.clamp(-clip, clip) + clip
    key_table, value_table = (t.detach().expand(2, -1, -1) for t in position.parameters())
    taken = drawn.query, drawn.source.key, drawn.source.value
    near = {"rtol": 0, "atol": 1e-12}
    wanted = pairs(*taken, key_table[:, row], value_table[:, row])
    torch.testing.assert_close(found, wanted, **near)
    if tables == "shared":
        wanted = batched(*taken, key_table[:, row], value_table[:, row])
        torch.testing.assert_close(found, wanted, **near)
    if clip >= length - 1:
        inner = slice(clip - length + 1, clip + length)
        wanted = skewed(*taken, key_table[:, inner], value_table[:, inner])
        torch.testing.assert_close(found, wanted, **near)


def lecture(query, source, position, *, scaled=True, masked=True, square=False):
    """A common tutorial's code, and what is wrong with it, each to be switched."""
    length, keys = query.shape[2], source.num_keys
    places = torch.arange(length) if square else torch.arange(keys - length, keys)
    distance = (torch.arange(keys) - places[:, None]).clamp(-position.clip, position.clip)
    row = distance + position.clip
    energy = torch.einsum("bhie,bhje->bhij", query, source.key)
    energy = energy + torch.einsum("bhie,hije->bhij", query, position.key_table[:, row])
    if scaled:
        energy = energy / query.shape[-1] ** 0.5
    if masked and source.mask is not None:
        energy = energy.masked_fill(~source.mask[:, None, None], -torch.inf)
    weights = energy.softmax(-1)
    mixed = torch.einsum("bhij,hije->bhie", weights, position.value_table[:, row])
    return weights @ source.value + mixed


@pytest.mark.parametrize("fault", ["none", "unscaled", "unmasked", "square"])
def test_what_is_wrong_with_a_common_tutorial_is_noticed(beneath, draw, fault):
    """No scale, no mask, and as many queries as keys; the last query alone has a cache of keys."""
    drawn = draw(3, 2, 6, 6)
    variant = beneath("shaw_rpr[clip=2]", regime="causal")
    state = variant.start(None, QueryShape(3, 2, 5, torch.float64, torch.device("cpu")))
    key, value, mask = drawn.source.key, drawn.source.value, drawn.source.mask
    early, late = (
        Source(key[:, :, part], value[:, :, part], mask[:, part])
        for part in (slice(0, 5), slice(5, 6))
    )
    state = variant.attend(drawn.query[:, :, :5], None, state, new=early).state
    found = variant.attend(drawn.query[:, :, 5:], None, state, new=late).output
    faults = {
        "scaled": fault != "unscaled",
        "masked": fault != "unmasked",
        "square": fault == "square",
    }
    wrong = lecture(drawn.query[:, :, 5:], drawn.source, variant.positions[0], **faults)
    off = (found - wrong).abs().max().item()
    assert (off < 1e-12) == (fault == "none")
    assert fault == "none" or off > 1e-2


def test_its_indices_are_where_its_queries_are(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    source = Source(*(x.to("meta") for x in (drawn.source.key, drawn.source.value)))
    variant = beneath("shaw_rpr[clip=2]", regime="causal").to("meta")
    assert answer(variant, drawn.query.to("meta"), source).output.device.type == "meta"


@pytest.mark.parametrize(("tables", "copies"), [("shared", 1), ("per_head", 2)])
def test_tables_have_a_vector_for_each_distance_up_to_the_clip(beneath, tables, copies):
    variant = beneath(f"shaw_rpr[clip=3,tables={tables}]", widths=(5, 5, 5), regime="self")
    plain = beneath("scaled_dot", widths=(5, 5, 5), regime="self")
    count = [sum(p.numel() for p in one.parameters()) for one in (variant, plain)]
    assert count[0] - count[1] == 2 * (2 * 3 + 1) * 5 * copies


def test_with_zero_tables_it_is_the_scaled_dot_product(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    variant = beneath("shaw_rpr[clip=2]", regime="self")
    with torch.no_grad():
        for table in variant.positions[0].parameters():
            table.zero_()
    plain = beneath("scaled_dot", regime="self")
    torch.testing.assert_close(
        answer(variant, drawn.query, drawn.source).output,
        answer(plain, drawn.query, drawn.source).output,
        rtol=0,
        atol=1e-12,
    )


def test_with_clip_zero_keys_cancel_and_values_add_a_constant(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6, lengths=())
    variant = beneath("shaw_rpr[clip=0]", regime="self")
    found = answer(variant, drawn.query, drawn.source)
    plain = answer(beneath("scaled_dot", regime="self"), drawn.query, drawn.source)
    torch.testing.assert_close(found.weights, plain.weights, rtol=0, atol=1e-12)
    constant = variant.positions[0].value_table[:, 0][None, :, None]
    torch.testing.assert_close(found.output, plain.output + constant, rtol=0, atol=1e-12)


def test_keys_beyond_the_clip_on_one_side_may_change_places(answer, beneath, draw):
    drawn = draw(1, 2, 8, 8, lengths=())
    variant = beneath("shaw_rpr[clip=2]", regime="self")
    order = torch.tensor([0, 1, 2, 3, 7, 5, 6, 4])
    swapped = Source(drawn.source.key[:, :, order], drawn.source.value[:, :, order])
    plain = answer(variant, drawn.query, drawn.source).output
    found = answer(variant, drawn.query, swapped).output
    torch.testing.assert_close(found[:, :, :3], plain[:, :, :3], rtol=0, atol=1e-12)
    assert (found[:, :, 3] - plain[:, :, 3]).abs().max() > 1e-3


def test_it_attends_beyond_the_clip(answer, beneath, draw):
    drawn = draw(1, 2, 8, 8, lengths=())
    weights = answer(beneath("shaw_rpr[clip=1]", regime="self"), *drawn[:2]).weights
    assert (weights[:, :, 0, 2:] > 0).all()


def test_only_distances_matter_not_places(beneath, ask, draw):
    """One query asked everywhere scores a distance alike at every place."""
    drawn = draw(1, 2, 6, 6, lengths=())
    position = beneath("shaw_rpr[clip=3]", regime="self").positions[0]
    whole = position.energy(ask(drawn.query, drawn.source))
    same = drawn.query[:, :, :1].expand_as(drawn.query)
    energy = position.energy(ask(same, drawn.source))
    assert torch.equal(energy[..., :-1, :-1], energy[..., 1:, 1:])
    assert not torch.equal(whole[..., :-1, :-1], whole[..., 1:, 1:])


def test_left_and_right_differ(answer, beneath, draw):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = beneath("shaw_rpr[clip=3]", regime="self")
    turned = Source(drawn.source.key.flip(2), drawn.source.value.flip(2))
    plain = answer(variant, drawn.query, drawn.source).output
    back = answer(variant, drawn.query.flip(2), turned).output.flip(2)
    assert (plain - back).abs().max() > 1e-3


def test_decoding_with_a_cache_counts_distances_from_the_last_key(answer, beneath, draw):
    drawn = draw(1, 2, 9, 9, lengths=())
    variant = beneath("shaw_rpr[clip=2]", regime="causal")
    whole = answer(variant, drawn.query, drawn.source).output
    state = variant.start(None, QueryShape(1, 2, 5, torch.float64, torch.device("cpu")))
    for place in range(9):
        at = slice(place, place + 1)
        new = Source(drawn.source.key[:, :, at], drawn.source.value[:, :, at])
        found = variant.attend(drawn.query[:, :, at], None, state, new=new)
        state = found.state
        torch.testing.assert_close(found.output, whole[:, :, at], rtol=0, atol=1e-12)


def test_two_sequences_pooling_and_negative_clips_are_refused():
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="shaw_rpr: relative positions need one sequence"):
            variants.build("shaw_rpr", dim=8, heads=2, regime=regime)
    with pytest.raises(InvalidConfig, match="clip must be at least 0, got -1"):
        variants.build("shaw_rpr[clip=-1]", dim=8, heads=2, regime="self")
