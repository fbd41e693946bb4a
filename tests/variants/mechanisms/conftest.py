import dataclasses

import pytest
import torch


@pytest.fixture
def beside():
    """`beside(variant, source, **given)` -> the source with what the variant wants beside keys.

    What is given by name is a number or a tensor that broadcasts; the rest is drawn.
    """

    def make(variant, source, seed=3, **given):
        rng = torch.Generator().manual_seed(seed)
        rows, heads, keys, _ = source.key.shape
        extras = {}
        for name, one in variant.key_inputs.items():
            drawn = torch.randn(
                rows, one.num_heads(heads), keys, one.width, generator=rng, dtype=torch.float64
            )
            if name in given:
                drawn = torch.as_tensor(given[name], dtype=torch.float64).expand_as(drawn)
            extras[name] = drawn
        return dataclasses.replace(source, extras=extras)

    return make
