import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from bench.api.source import Source


@pytest.mark.parametrize("options", ["places=2", "places=4", "places=64"])
def test_vectorized_code_equals_the_loops(equals_oracle, options):
    equals_oracle(f"cope[{options}]", "causal")


@pytest.fixture
def counted(component, ask):
    """`counted(query, key, places)` -> energies of one head; place n has the vector (n, 0)."""

    def make(query, key, places=64):
        width = query.shape[-1]
        position = component(
            "position", f"cope[places={places}]", heads=1, widths=(width, width, 1), regime="causal"
        )
        with torch.no_grad():
            position.table.zero_()
            position.table[:, 0] = torch.arange(places)
        return position.energy(ask(query, Source(key, key), causal=True))[0, 0]

    return make


def test_golden_places_where_a_key_counts_and_where_it_does_not(counted):
    """Keys along the query have gates of one, keys against it none; the query itself is (1, 0)."""
    sign = torch.tensor([1.0, -1.0, 1.0, 1.0], dtype=torch.float64)
    key = torch.stack((100 * sign, torch.zeros(4, dtype=torch.float64)), -1)
    query = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, 1, 4, 2)
    energy = counted(query, key[None, None])
    torch.testing.assert_close(
        energy[3], torch.tensor([3.0, 2.0, 2.0, 1.0], dtype=torch.float64), rtol=0, atol=1e-10
    )


def test_golden_places_between_two_vectors(counted):
    """A key without content counts one half, so that places are 2, 1.5, 1 and 0.5."""
    query = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, 1, 4, 2)
    energy = counted(query, torch.zeros(1, 1, 4, 2, dtype=torch.float64))
    assert energy[3].tolist() == [2.0, 1.5, 1.0, 0.5]


def test_beyond_the_last_vector_all_keys_are_alike(counted):
    query = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, 1, 6, 2)
    energy = counted(query, torch.zeros(1, 1, 6, 2, dtype=torch.float64), places=2)
    assert energy[5].tolist() == [1.0, 1.0, 1.0, 1.0, 1.0, 0.5]


def test_where_every_key_counts_it_is_a_vector_for_each_distance(answer, beneath, draw):
    """With gates of one it is the key term of relative position vectors, but for its scale."""
    drawn = draw(1, 1, 6, 6, widths=(5, 5, 4), lengths=())
    query = drawn.query.abs() * 100
    source = Source(drawn.source.key.abs() * 100, drawn.source.value)
    variant = beneath("cope[places=8]", heads=1, regime="causal")
    other = beneath("shaw_rpr[clip=6,use=keys]", heads=1, regime="causal")
    with torch.no_grad():
        vectors = variant.positions[0].table
        for distance in range(6):
            other.positions[0].key_table[0, 6 - distance] = vectors[distance + 1] * 5**0.5
    found = [answer(v, query, source).weights for v in (variant, other)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-9)


def test_at_the_start_it_is_the_scaled_dot_product(answer, beneath, draw):
    drawn = draw(2, 2, 6, 6)
    variant = beneath("cope", regime="causal", seed=None)
    plain = beneath("scaled_dot", regime="causal")
    found = [answer(v, drawn.query, drawn.source).output for v in (variant, plain)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_gradients_reach_the_gates(beneath, answer, draw):
    drawn = draw(1, 1, 5, 5, lengths=())
    key = drawn.source.key.clone().requires_grad_()
    variant = beneath("cope", heads=1, regime="causal")
    weights = answer(variant, drawn.query, Source(key, drawn.source.value)).weights
    # what key 2 adds to the distance of keys 0 and 1 moves the ratio of their weights to key 3's
    (weights[0, 0, 4, 0] / weights[0, 0, 4, 3]).log().backward()
    assert key.grad[0, 0, 2].abs().sum() > 1e-3


def test_sizes_and_places_without_a_meaning_are_refused():
    with pytest.raises(InvalidConfig, match="places must be at least 2"):
        variants.build("cope[places=1]", dim=8, heads=2, regime="causal")
    for regime in ("cross", "self", "pool"):
        with pytest.raises(Refused, match="cope: it counts keys up to the query"):
            variants.build("cope", dim=8, heads=2, regime=regime)


def test_latent_heads_turn_the_end_of_a_key_but_it_counts_by_all_of_it():
    slot = variants.build("mla[heads=2,position=cope+rope]", dim=16, regime="causal")
    cope, rope = slot.variant.positions
    dims = slot.heads.dims
    assert cope.table.shape[1] == dims.query_width
    assert rope.width == dims.turned_width < dims.query_width
    x = torch.randn(2, 5, 16)
    assert slot.attend(x, None, slot.start(None, x), own=(x, None, None))[0].shape == x.shape
