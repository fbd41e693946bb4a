"""What says that it tells places apart sees earlier tokens in another order; `nope` does not."""

import pytest
import torch

import variants
from bench.api.errors import InvalidConfig
from bench.api.registry import listed_variants
from bench.api.resolve import resolve

TOKENS, WIDTH = 6, 8


def tells_places(name: str) -> bool:
    return any("places" in part.gives for _, part in resolve(name).parts)


NAMES = sorted(filter(tells_places, listed_variants()))


def moved(name: str) -> float:
    """How much the output of the last token changes where all earlier ones are reversed."""
    torch.manual_seed(0)
    made = variants.build(name, dim=WIDTH, heads=2, regime="causal", attention_only=True)
    made = made.double().eval()
    x = torch.randn(1, TOKENS, WIDTH, dtype=torch.float64)
    turned = torch.cat((x[:, :-1].flip(1), x[:, -1:]), 1)
    return float((made(x) - made(turned))[:, -1].detach().abs().max())


def test_these_tell_places_without_the_axis_position():
    assert NAMES == ["canon", "cosformer", "path", "retnet"]


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_earlier_tokens_counts(name):
    assert moved(name) > 1e-6


@pytest.mark.parametrize("off", ["rotation", "forgets"])
def test_either_half_of_retention_tells_places_alone(off):
    name = f"retnet[{off}=false]"
    assert tells_places(name)
    assert moved(name) > 1e-6


def test_retention_without_both_halves_says_nothing_wrong_because_it_is_refused():
    with pytest.raises(InvalidConfig, match="nothing tells places apart"):
        tells_places("retnet[rotation=false,forgets=false]")


def test_without_positions_it_does_not():
    assert moved("nope") < 1e-12
