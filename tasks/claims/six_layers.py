"""The network of C38 and C53: six blocks on a task that nothing but positions answers."""

from functools import partial

from bench.api.claim import Side

NETWORK = "tagger[width=64,layers=6]"
WITHOUT_RESIDUAL = "tagger[width=64,layers=6,residual=false]"

in_six_layers = partial(
    Side,
    variant="sinusoid",
    backbone=NETWORK,
    task="distant_pair[found_by=distance,nearest=4,farthest=4,length=28,pairs=8,evaluate=256]",
    training="adam[steps=400]",
)
"""A side of the network, which adds sinusoids to embeddings unless something else is said."""
