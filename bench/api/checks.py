"""The checks of a certificate by name, for whoever runs or prints them."""

from collections.abc import Mapping

MEANING: Mapping[str, str] = {
    "runs_somewhere": "it can be built in at least one place",
    "shapes": "outputs, weights, terms and state have the shapes of the contract",
    "config": "defaults lie in their search ranges, and a misspelled option is refused",
    "causality": "no later key reaches a query: gradients are exactly zero",
    "padding_invariance": "a padded batch equals its rows one by one",
    "batch_invariance": "rows do not see each other, and nothing is kept between calls",
    "splits": "all queries at once, one by one and in uneven parts give the same answers",
    "oracle": "output, weights and terms equal plain loops, row by row",
    "gradients": "gradients equal those of the loops, where training draws or begins, too",
    "long": (
        "150 keys equal the loops and uneven calls; rows of a large batch, and of a padded one, "
        "stand alone"
    ),
    "weight_law": (
        "weights are zero on hidden keys, not negative, and sum to one or to less, "
        "or to what a part that gives other weights declares"
    ),
    "permutation_law": "keys in another order give the same output",
    "dead_rows": "a row without any key gives zeros and finite gradients",
    "one_key": "a single key gives its value, or a share of it",
    "dtypes": "float32, bfloat16 and float16 stay near float64",
    "determinism": "only training draws, and the same from the same seed",
    "stream": "reading key by key equals the hard read of the whole source",
    "memory_pure": "nothing that was given is changed in place",
    "heads": "a slot equals its projections, its heads and its merge by plain loops",
    "output": "probabilities sum to one; they and the likelihood equal plain loops",
    "loss": (
        "each loss equals plain loops over single examples, in nats per scored target; of what it "
        "carries to the next batch only names and shapes are looked at"
    ),
    "start": "parameters that are not drawn begin where their parts declare",
    "start_entropy": (
        "before training, weights over states of variance 1 have 0.3 to 1 of the uniform entropy, "
        "or a part says why not"
    ),
    "cost": "operations and bytes grow with length no faster than declared",
    "compile": "it is traced as one graph, which computes the same; no kernels are built of it",
}
"""What each check of a certificate holds, in the order in which they are printed."""
