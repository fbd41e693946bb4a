import pytest

import variants
from bench.api import registry
from bench.api.errors import InvalidConfig
from bench.api.selector import parse

variants.load_all()
SPLIT = [
    name for name, found in registry.registrations("head").items() if hasattr(found.config, "heads")
]
"""Heads whose number is an option."""


@pytest.mark.parametrize("name", SPLIT)
def test_heads_that_do_not_divide_the_model_width_are_refused_by_their_name(name):
    sentence = rf"^{name}: heads must divide the model width 12, got 5\.$"
    with pytest.raises(InvalidConfig, match=sentence):
        registry.make("head", parse(f"{name}[heads=5]"), 12, 12, "causal")
