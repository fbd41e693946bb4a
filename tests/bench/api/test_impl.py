"""Names of implementations."""

import pytest

from bench.api.errors import UnknownName
from bench.api.impl import impl_of


@pytest.mark.parametrize("name", ["triton", "flex", "jit", "reference"])
def test_an_implementation_that_nobody_wrote_is_refused_and_never_replaced(name):
    with pytest.raises(UnknownName, match=f"no impl named {name!r}"):
        impl_of(name)
