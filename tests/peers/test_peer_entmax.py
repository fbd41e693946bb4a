"""The authors' library of sparse normalizers; its weights are ours, our gradients are not its."""

import pytest

from tests.peers.agreement import attend, below_heads, drawn, peer

entmax = peer("entmax")


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_a_sparse_normalizer_is_that_of_the_library_with_its_gradient(agree, name):
    query, key, value = (drawn(2, 2, 7, 5, seed=seed) for seed in range(3))
    mine = below_heads(name, heads=2, width=5, regime="self")
    energy = query @ key.mT / 5**0.5
    agree(
        name,
        "entmax",
        "weights of the library, our own gradient beside its",
        attend(mine, query, key, value),
        getattr(entmax, name)(energy, dim=-1) @ value,
        inputs={"query": query, "key": key, "value": value},
    )


def test_entmax_of_a_given_alpha_is_that_of_the_library_with_its_gradient(agree):
    query, key, value = (drawn(2, 2, 7, 5, seed=seed) for seed in range(3))
    chosen = "entmax[alpha=1.3]"
    mine = below_heads(chosen, heads=2, width=5, regime="self")
    weights = entmax.entmax_bisect(query @ key.mT / 5**0.5, alpha=1.3, dim=-1, n_iter=60)
    agree(
        chosen,
        "entmax",
        "alpha 1.3 by bisection, our own gradient beside its",
        attend(mine, query, key, value),
        weights @ value,
        inputs={"query": query, "key": key, "value": value},
    )
