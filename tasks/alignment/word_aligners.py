"""Non-neural word aligners: the diagonal, and IBM model 1."""

from collections.abc import Mapping, Sequence

import numpy as np

from tasks.data.words import EOS
from tasks.metrics.links import Links

BASELINE_PAIRS = 5000
"""Largest number of training pairs for IBM model 1; more of them take seconds."""


def diagonal(source: int, target: int) -> Links:
    """Each target word with the source word at the same share of the sentence."""
    return {(min(source - 1, round(j * source / target)), j) for j in range(target)}


def ibm_model_1(
    pairs: Sequence[tuple[list[int], list[int]]], rounds: int = 5
) -> dict[tuple[int, int], float]:
    """p(target word | source word) by expectation maximization, after Brown et al., 1993.

    https://aclanthology.org/J93-2003, section 4.1. The end of the source is the null word.
    """
    if not pairs:
        return {}
    sources, targets, rows, base = [], [], [], 0
    for source, target in pairs:
        known = np.asarray(source)
        said = np.asarray(target[:-1], dtype=np.int64)
        sources.append(np.tile(known, len(said)))
        targets.append(np.repeat(said, len(known)))
        rows.append(np.repeat(base + np.arange(len(said)), len(known)))
        base += len(said)
    source_of, target_of, row = (np.concatenate(one) for one in (sources, targets, rows))
    wide = int(target_of.max()) + 1
    keys, cell = np.unique(source_of.astype(np.int64) * wide + target_of, return_inverse=True)
    chance = np.ones(len(keys))
    for _ in range(rounds):
        share = chance[cell]
        share /= np.bincount(row, share, base)[row]
        counts = np.bincount(cell, share, len(keys))
        chance = counts / np.bincount(keys // wide, counts)[keys // wide]
    return {
        (int(key // wide), int(key % wide)): float(p) for key, p in zip(keys, chance, strict=True)
    }


def model_links(
    model: Mapping[tuple[int, int], float], source: Sequence[int], target: Sequence[int]
) -> Links:
    """The likeliest source word of each target word; ties go to the one nearest the diagonal."""
    found = set()
    for j, word in enumerate(target):
        straight = j * len(source) / len(target)
        best = max(
            range(len(source)),
            key=lambda i: (model.get((source[i], word), 0.0), -abs(i - straight)),
        )
        if model.get((source[best], word), 0.0) >= model.get((EOS, word), 0.0):
            found.add((best, j))
    return found
