import pytest
import torch

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


def test_buckets_equal_a_vector_for_each_pair_of_places(answer, beneath, draw):
    drawn = draw(2, 2, 9, 9, lengths=())
    variant = beneath("shaw_rpr[clip=3]", regime="self")
    position = variant.positions[0]
    distance = torch.arange(9)[None] - torch.arange(9)[:, None]
    row = distance.clamp(-3, 3) + 3
    keys, values = position.key_table[:, row], position.value_table[:, row]
    energy = torch.einsum("bhie,bhje->bhij", drawn.query, drawn.source.key)
    energy = (energy + torch.einsum("bhie,hije->bhij", drawn.query, keys)) / 5**0.5
    weights = energy.softmax(-1)
    expected = weights @ drawn.source.value + torch.einsum("bhij,hije->bhie", weights, values)
    found = answer(variant, drawn.query, drawn.source)
    torch.testing.assert_close(found.output, expected, rtol=0, atol=1e-12)


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


def test_gradients_are_right(answer, beneath, draw):
    drawn = draw(2, 2, 3, 3, (3, 3, 2), lengths=[3, 2])
    variant = beneath("shaw_rpr[clip=1]", widths=(3, 3, 2), regime="causal")
    names = ("key_table", "value_table")

    def output(query, *tables):
        changed = {f"positions.0.{n}": t for n, t in zip(names, tables, strict=True)}
        holder = torch.nn.Module()
        holder.positions = torch.nn.ModuleList(variant.positions)
        holder.forward = lambda: answer(variant, query, drawn.source).output
        return torch.func.functional_call(holder, changed, ())

    tables = [getattr(variant.positions[0], n).detach().requires_grad_() for n in names]
    assert torch.autograd.gradcheck(output, (drawn.query.requires_grad_(), *tables))


def test_two_sequences_pooling_and_negative_clips_are_refused():
    for regime in ("cross", "pool"):
        with pytest.raises(Refused, match="shaw_rpr: relative positions need one sequence"):
            variants.build("shaw_rpr", dim=8, heads=2, regime=regime)
    with pytest.raises(InvalidConfig, match="clip must be at least 0, got -1"):
        variants.build("shaw_rpr[clip=-1]", dim=8, heads=2, regime="self")
