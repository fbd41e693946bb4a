"""What stands only where queries and keys are of one sequence says so in these sentences."""

from collections.abc import Mapping
from types import MappingProxyType

from bench.api.capabilities import Capability

ONE_SEQUENCE: Mapping[Capability, str] = MappingProxyType(
    {
        "cross": "distances need one sequence, and cross attention has two",
        "pool": "distances need one sequence, and the query of pooling is not in it",
    }
)
"""Of parts that look at the distance between query and key."""
CAUSAL_ONLY: Mapping[Capability, str] = MappingProxyType(
    {**ONE_SEQUENCE, "self": "it reads earlier keys, and all keys are there at once"}
)
"""Of parts that look back from the query."""
