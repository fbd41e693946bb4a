"""When a run looks at its scores to see what is decided, and what each look may spend."""

from dataclasses import dataclass

SPENT = 0.25
"""Share of what is left of the error rate that a look spends."""

LARGEST_FIRST = 10_000
"""Seeds of a first look, at most."""


@dataclass(frozen=True, kw_only=True)
class Looks:
    """When a run looks at its scores: at numbers of seeds that are fixed before it begins."""

    first: int
    """Seeds of the first look, at least 2."""
    first_seed: int = 0
    """Seeds are taken in order from this one."""

    def seeds(self, number: int) -> range:
        """Seeds of a look, counted from 1; 3, 5, 8, 13, 21 ... after a first look at 3."""
        count = self.first
        for _ in range(number - 1):
            count = -(-8 * count // 5)  # 1.6 times as many, rounded up, in whole numbers
        return range(self.first_seed, self.first_seed + count)

    def most(self, most_seeds: int) -> int:
        """How many looks there are if no variant gets more seeds than this."""
        number = 0
        while len(self.seeds(number + 1)) <= most_seeds:
            number += 1
        return number

    def share(self, number: int) -> float:
        """Share of the error rate that a look spends: a quarter of what earlier looks left.

        It needs no last look, so seeds can be added to a run that was thought to be complete.
        """
        return float(SPENT * (1 - SPENT) ** (number - 1))
