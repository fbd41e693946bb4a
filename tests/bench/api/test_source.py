"""Source, memory and state: growing a cache and picking rows."""

import pytest
import torch

from bench.api.source import Memory, Source, State, branch, leaf, tree_join, tree_map


def source(rows=3, heads=2, keys=4, *, mask=True, tokens=True, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Source(
        key=torch.randn(rows, heads, keys, 5, generator=generator),
        value=torch.randn(rows, heads, keys, 6, generator=generator),
        mask=torch.rand(rows, keys, generator=generator) > 0.3 if mask else None,
        tokens=torch.randint(0, 9, (rows, keys), generator=generator) if tokens else None,
        extras={"gate": torch.randn(rows, heads, keys, generator=generator)},
    )


def memory(**options):
    found = source(**options)
    return Memory(found, {"score": {"key": found.key * 2}, "mask": {}})


def same(left, right):
    assert torch.equal(left.source.key, right.source.key)
    assert torch.equal(left.source.value, right.source.value)
    assert torch.equal(left.source.key_mask(), right.source.key_mask())
    assert torch.equal(leaf(left.source.extras, "gate"), leaf(right.source.extras, "gate"))
    assert torch.equal(leaf(left.parts, "score", "key"), leaf(right.parts, "score", "key"))


def pieces(whole, at):
    """The memory cut in two along its keys."""

    def cut(keys, rows):
        s = whole.source
        part = Source(
            key=s.key[:, :, keys],
            value=s.value[:, :, keys],
            mask=None if s.mask is None else s.mask[:, keys],
            tokens=None if s.tokens is None else s.tokens[:, keys],
            extras=tree_map(lambda x: x[:, :, keys], s.extras),
        )
        return Memory(part, tree_map(lambda x: x[:, :, keys], whole.parts))

    return cut(slice(0, at), None), cut(slice(at, None), None)


@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("mask", [True, False])
def test_extending_a_part_gives_the_whole(at, mask):
    whole = memory(mask=mask)
    first, rest = pieces(whole, at)
    grown = first.extend(rest)
    same(grown, whole)
    assert torch.equal(grown.source.tokens, whole.source.tokens)
    assert (grown.source.mask is None) == (not mask)


def test_a_mask_on_one_side_is_written_out_on_the_other():
    masked, plain = memory(mask=True), memory(mask=False, seed=1)
    grown = masked.extend(plain).source
    assert torch.equal(grown.mask[:, :4], masked.source.mask)
    assert grown.mask[:, 4:].all()
    assert plain.extend(masked).source.mask[:, :4].all()


def test_tokens_are_kept_only_where_both_sides_have_them():
    assert memory(tokens=False).extend(memory()).source.tokens is None


def test_the_length_is_the_number_of_real_keys():
    assert source(mask=False).length.tolist() == [4, 4, 4]
    real = torch.tensor([[True, False, True, False]] * 3)
    found = source(mask=False)
    masked = Source(key=found.key, value=found.value, mask=real)
    assert masked.length.tolist() == [2, 2, 2]
    assert torch.equal(masked.key_mask(), real)
    assert found.key_mask().all()


@pytest.mark.parametrize("rows", [[0], [2, 0], [1, 1, 2, 0]])
def test_picking_rows_picks_them_everywhere(rows):
    whole, index = memory(), torch.tensor(rows)
    chosen = whole.select(index)
    assert torch.equal(chosen.source.key, whole.source.key[rows])
    assert torch.equal(chosen.source.mask, whole.source.mask[rows])
    assert torch.equal(chosen.source.tokens, whole.source.tokens[rows])
    assert torch.equal(leaf(chosen.source.extras, "gate"), leaf(whole.source.extras, "gate")[rows])
    assert torch.equal(leaf(chosen.parts, "score", "key"), leaf(whole.parts, "score", "key")[rows])
    assert branch(chosen.parts, "mask") == {}
    assert memory(mask=False, tokens=False).select(index).source.mask is None


def test_picking_and_extending_commute():
    first, rest = pieces(memory(), 2)
    index = torch.tensor([2, 1])
    same(first.extend(rest).select(index), first.select(index).extend(rest.select(index)))


def test_a_state_picks_what_it_carries_and_its_cache():
    carried = {"history0": {"coverage": torch.arange(3.0).view(3, 1)}, "normalizer": {}}
    state = State(offset=4, carried=carried, cache=memory())
    chosen = state.select(torch.tensor([2, 2]))
    assert chosen.offset == 4
    assert leaf(chosen.carried, "history0", "coverage").flatten().tolist() == [2.0, 2.0]
    assert torch.equal(chosen.cache.source.key, state.cache.source.key[[2, 2]])
    assert State().select(torch.tensor([0])).cache is None


def test_a_tree_knows_its_leaves_from_its_branches():
    tree = {"a": {"b": torch.ones(1)}, "c": torch.zeros(1)}
    assert leaf(tree, "a", "b") == 1
    assert set(branch(tree, "a")) == {"b"}
    with pytest.raises(AssertionError, match="is a branch, not a leaf"):
        leaf(tree, "a")
    with pytest.raises(AssertionError, match="below a leaf"):
        leaf(tree, "c", "d")
    with pytest.raises(AssertionError, match="is a leaf, not a branch"):
        branch(tree, "c")
    joined = tree_join(tree, tree, 0)
    assert leaf(joined, "a", "b").tolist() == [1.0, 1.0]


def test_the_newest_keys_are_the_last_ones_with_all_that_stands_beside_them():
    first, rest = pieces(memory(), 1)
    found, wanted = first.extend(rest).newest(3), rest.source
    assert torch.equal(found.key, wanted.key)
    assert torch.equal(found.value, wanted.value)
    assert torch.equal(found.key_mask(), wanted.key_mask())
    assert torch.equal(found.tokens, wanted.tokens)
    assert torch.equal(leaf(found.extras, "gate"), leaf(wanted.extras, "gate"))
    assert memory(mask=False, tokens=False).newest(2).mask is None


@pytest.mark.parametrize("gradients", [False, True])
def test_keys_without_values_are_kept_like_others_and_can_be_read_with_values(gradients):
    whole = memory()
    first, rest = (piece.without_values() for piece in pieces(whole, 2))
    with torch.set_grad_enabled(gradients):
        grown = first.extend(rest)
    assert grown.source.value.shape == (3, 2, 4, 0)
    same(grown.with_values(whole.source.value), whole)
    index = torch.tensor([2, 1])
    same(grown.select(index).with_values(whole.source.value[index]), whole.select(index))


def test_keys_that_are_not_real_are_not_counted():
    keys = torch.zeros(2, 1, 4, 1)
    mask = torch.tensor([[False, True, False, True], [True, True, False, False]])
    assert Source(keys, keys, mask).rank.tolist() == [[0, 1, 1, 2], [1, 2, 2, 2]]
    assert Source(keys, keys).rank.tolist() == [[1, 2, 3, 4]] * 2


def test_the_end_is_behind_the_last_real_key_wherever_others_are_hidden():
    keys = torch.zeros(3, 1, 4, 1)
    mask = torch.tensor([[False, True, False, True], [True, True, False, False], [False] * 4])
    assert Source(keys, keys, mask).end.tolist() == [4, 2, 0]
    assert Source(keys, keys).end.tolist() == [4] * 3
    none = keys[:, :, :0]
    assert Source(none, none, mask[:, :0]).end.tolist() == [0] * 3
