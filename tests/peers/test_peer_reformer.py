"""reformer-pytorch: hashed attention with sorted chunks, shared queries and keys."""

import torch
from torch.nn import functional

from tests.peers.agreement import attend, below_heads, drawn, peer

reformer = peer("reformer_pytorch", "reformer-pytorch")

ROWS, LENGTH, WIDTH, ROUNDS, BUCKETS = 3, 24, 6, 3, 4


def test_hashed_attention_is_that_of_reformer_pytorch(agree):
    """Two chunks a round lose no key: those of a bucket stand one after the other, by place."""
    theirs = reformer.LSHAttention(
        bucket_size=LENGTH // 2,
        n_hashes=ROUNDS,
        causal=True,
        allow_duplicate_attention=False,
        attend_across_buckets=False,
    ).eval()
    by_chunks = theirs.hash_vectors
    theirs.hash_vectors = lambda chunks, x, **options: by_chunks(BUCKETS, x, **options)
    name = f"reformer_lsh[buckets={BUCKETS},rounds={ROUNDS}]"
    mine = below_heads(name, heads=1, width=WIDTH)
    shared, value = (drawn(ROWS, LENGTH, WIDTH, seed=seed) for seed in range(2))
    torch.manual_seed(5)
    wanted = theirs(shared, value)[0]
    torch.manual_seed(5)
    directions = torch.randn(1, WIDTH, ROUNDS, BUCKETS // 2, dtype=torch.float64)
    mine.mask.rotations.copy_(directions.transpose(1, 2))
    query = shared[:, None]
    found = attend(mine, query, functional.normalize(query, dim=-1), value[:, None])
    agree(
        name,
        "reformer-pytorch",
        f"{LENGTH} places, its rotations, shared queries and keys",
        found[:, 0],
        wanted,
        inputs={"shared": shared, "value": value},
        limit=1e-8,
        note="it adds 1e-9 where it counts rounds; each round has two chunks and four buckets, so "
        "that chunks cut no bucket",
    )
