import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source

variants.load_all()
DIM = 8


def built(options="", regime="causal"):
    torch.manual_seed(0)
    return variants.build(f"reformer_lsh{options}", dim=DIM, heads=2, regime=regime).double()


def drawn(*shape, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def weights_of(attention, x):
    """Of one row, by head."""
    return attention.answer_all(x, x, want_weights=True)[1].weights[0]


@pytest.fixture
def seen(component, ask):
    """Which keys each query sees, of one head, one row and directions that are given."""

    def find(rotations, vectors, regime="causal", real=None):
        rounds, width, half = rotations.shape
        options = f"lsh[rounds={rounds},buckets={2 * half}]"
        mask = component("mask", options, heads=1, widths=(width,) * 3, regime=regime)
        mask.rotations.copy_(rotations)
        x = vectors.double()[None, None]
        source = Source(x, x, real)
        parts = {"mask": mask.prepare(source)}
        call = ask(x, source, causal=regime == "causal", parts=parts)
        return mask.window(call)[0][0, 0]

    return find


def by_rounds(attention, x):
    """The paper's sum over rounds: outputs of each, weighed by their sums of exponentials.

    A pair counts one over the number of rounds in which it meets, and the own key, which is in
    every bucket, has an energy that is lower by 1e5 (appendix A).
    """
    query, source, _ = attention.heads.own(x, None, None, {})
    key, value = source.key[0], source.value[0]
    rotations = attention.variant.mask.rotations
    heads = []
    for head, rows in enumerate(query[0]):
        turned = [rows @ rotations[head, r] for r in range(rotations.shape[1])]
        buckets = [torch.cat((one, -one), -1).argmax(-1) for one in turned]
        found = []
        for i, asked in enumerate(rows):
            outputs, sums = [], []
            for bucket in buckets:
                mates = [j for j in range(i + 1) if bucket[j] == bucket[i]]
                energy = []
                for j in mates:
                    meets = sum(bool(other[j] == other[i]) for other in buckets)
                    hidden = 1e5 if j == i else math.log(meets)
                    energy.append(asked @ key[head, j] / math.sqrt(len(asked)) - hidden)
                energy = torch.stack(energy)
                sums.append(energy.logsumexp(0))
                outputs.append(energy.softmax(0) @ value[head, mates])
            share = torch.stack(sums).softmax(0)
            found.append(sum(s * o for s, o in zip(share, outputs, strict=True)))
        heads.append(torch.stack(found))
    return attention.heads.merge(torch.stack(heads)[None])


@pytest.mark.parametrize("options", ["", "[rounds=1]", "[rounds=3,buckets=2]", "[buckets=64]"])
def test_one_softmax_over_all_rounds_is_the_sum_over_rounds_of_the_paper(options):
    attention, x = built(options), drawn(1, 23, DIM)
    torch.testing.assert_close(attention(x), by_rounds(attention, x))


def test_quadrants_are_buckets_of_two_directions(seen):
    """[x R; -x R] with R the identity: the largest of x, y, -x and -y."""
    vectors = torch.tensor([[2.0, 1], [1, 2], [3, -1], [-2, 1], [-1, -3], [1, 3], [5, 4], [-4, 3]])
    found = seen(torch.eye(2)[None], vectors)
    # right, up, right, left, down, up, right, left
    wanted = [[0], [1], [0], [3], [4], [1], [0, 2], [3]]
    assert [row.nonzero().flatten().tolist() for row in found] == wanted


def test_rounds_join_what_they_find(seen):
    vectors = torch.tensor([[2.0, 1], [2, -1], [-2, 1], [2, 1]])
    right = torch.tensor([[1.0], [0]])
    up = torch.tensor([[0.0], [1]])
    assert seen(torch.stack((right,)), vectors)[3].tolist() == [True, True, False, False]
    assert seen(torch.stack((up,)), vectors)[3].tolist() == [True, False, True, False]
    assert seen(torch.stack((right, up)), vectors)[3].tolist() == [True, True, True, False]


def test_in_both_directions_later_keys_are_mates_and_padding_is_none(seen):
    vectors = torch.tensor([[2.0, 1], [-1, 1], [3, 1], [4, 1]])
    right = torch.tensor([[[1.0], [0]]])
    real = torch.tensor([[True, True, True, False]])
    found = seen(right, vectors, "self", real)
    assert found[:3].tolist() == [
        [False, False, True, False],
        [False, True, False, False],
        [True, False, False, False],
    ]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.sampled_from([2, 4, 8]), st.integers(2, 14), st.integers(0, 10**6))
def test_only_what_never_met_another_key_reads_itself(rounds, buckets, length, seed):
    attention = built(f"[rounds={rounds},buckets={buckets}]")
    weights = weights_of(attention, drawn(1, length, DIM, seed=seed))
    own = weights.diagonal(dim1=-2, dim2=-1)
    others = weights.sum(-1) - own
    assert bool(((own == 1) ^ (own == 0)).all())
    torch.testing.assert_close(others, 1 - own)
    assert bool((own[:, 0] == 1).all())


def test_a_token_finds_its_own_copy():
    """Equal states have equal buckets in every round."""
    x = drawn(1, 9, DIM)
    x[0, 7] = x[0, 2]
    weights = weights_of(built("[rounds=1,buckets=64]"), x)
    assert bool((weights[:, 7, 2] > 0).all())
    assert bool((weights[:, 7, 7] == 0).all())


def test_one_bucket_for_all_is_every_earlier_key():
    hashed = built()
    torch.nn.init.zeros_(hashed.variant.mask.rotations)
    past = variants.build(
        "mha[head=shared_qk,mask=strictly_past]", dim=DIM, heads=2, regime="causal"
    ).double()
    past.load_state_dict(hashed.state_dict(), strict=False)
    x = drawn(2, 11, DIM)
    torch.testing.assert_close(hashed(x)[:, 1:], past(x)[:, 1:])


def test_the_size_of_a_vector_does_not_matter_to_its_buckets(component):
    mask, x = component("mask", "lsh", heads=2), drawn(2, 2, 7, 5)
    one, two = (mask.prepare(Source(x * scale, x))["buckets"] for scale in (1.0, 30.0))
    assert torch.equal(one, two)
    assert not torch.equal(one[:, 0], one[:, 1])
    assert not torch.equal(one[..., 0], one[..., 1])


def test_rotations_go_by_seed_and_layer(component):
    def rotations(options="", **dims):
        return component("mask", f"lsh{options}", heads=2, **dims).rotations

    assert torch.equal(rotations(), rotations("[seed=0]"))
    assert not torch.equal(rotations(), rotations("[seed=1]"))
    assert not torch.equal(rotations(), rotations(layer=1))
    assert abs(float(rotations("[rounds=8,buckets=64]").std()) - 1) < 0.05


def test_a_key_keeps_two_bytes_a_round(component):
    x = drawn(1, 2, 7, 5)
    kept = component("mask", "lsh[rounds=3]", heads=2).prepare(Source(x, x))["buckets"]
    assert kept.shape == (1, 2, 7, 3)
    assert kept.element_size() == 2


def test_options_that_make_no_hash_are_refused():
    with pytest.raises(InvalidConfig, match="rounds must be at least 1, got 0"):
        built("[rounds=0]")
    with pytest.raises(InvalidConfig, match="buckets must be even and from 2 to 32768, got 5"):
        built("[buckets=5]")
    with pytest.raises(InvalidConfig, match="got 65536"):
        built("[buckets=65536]")


def test_buckets_need_keys_of_the_own_sequence():
    with pytest.raises(Refused, match="keys of another sequence"):
        built(regime="cross")
    with pytest.raises(Refused, match="reads its own key, which is in another sequence"):
        variants.build("mha[mask=lsh]", dim=DIM, regime="cross")
