"""Interpolated n-grams, the non-neural baselines of language modeling."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


class Ngrams:
    """Counts of one, two and three tokens, mixed with weights fitted on the validation part.

    p_1 is add-one smoothed; p_n(w | h) is the share of w after the n - 1 tokens of h, and that of
    a shorter history where h is unseen or lies before the window (Jelinek & Mercer, 1980,
    "Interpolated estimation of Markov source parameters from sparse data").
    """

    def __init__(self, ids: Ids, vocab: int) -> None:
        self.vocab = vocab
        self.single = np.bincount(ids, minlength=vocab)
        self.tables = [
            np.unique(
                self._keys([ids[place : len(ids) - n + 1 + place] for place in range(n)]),
                return_counts=True,
            )
            for n in (1, 2, 3)
        ]

    def nats(self, order: int, validation: Ids, test: Ids, rounds: int = 8) -> float:
        """Mean negative log likelihood of the test windows' tokens (nats)."""
        chances = self._chances(order, validation)
        shares = np.full(order, 1 / order)
        for _ in range(rounds):  # expectation and maximization of the mixture's weights
            part = chances * shares
            shares = (part / part.sum(-1, keepdims=True)).mean(0)
        return float(-np.log(self._chances(order, test) @ shares).mean())

    def _chances(self, order: int, windows: Ids) -> npt.NDArray[np.float64]:
        """p_1 ... p_order of every token but the first ones."""
        words = windows[:, 1:]
        found = [(self.single[words] + 1) / (self.single.sum() + self.vocab)]
        for n in range(2, order + 1):
            shorter = found[-1]
            # the history of tokens near the start of a window is shorter
            columns = [windows[:, place : windows.shape[1] - n + 1 + place] for place in range(n)]
            times = self._count(n, columns)
            history = self._count(n - 1, columns[:-1])
            known = np.where(history > 0, times / np.maximum(history, 1), shorter[:, n - 2 :])
            found.append(np.concatenate((shorter[:, : n - 2], known), 1))
        return np.stack(found, -1).reshape(-1, order)

    def _count(self, n: int, columns: Sequence[Ids]) -> Ids:
        keys, counts = self.tables[n - 1]
        asked = self._keys(columns)
        place = np.searchsorted(keys, asked).clip(max=len(keys) - 1)
        return np.where(keys[place] == asked, counts[place], 0)

    def _keys(self, columns: Sequence[Ids]) -> Ids:
        """One number for some tokens in a row."""
        total = np.zeros_like(columns[0])
        for column in columns:
            total = total * self.vocab + column
        return total
