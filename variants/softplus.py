"""The inverse of softplus, for parameters that must start at a given positive value."""

import math


def inverse_softplus(x: float) -> float:
    """The argument at which softplus is x; x must be positive."""
    return x + math.log(-math.expm1(-x))
