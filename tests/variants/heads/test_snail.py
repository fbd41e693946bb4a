import pytest
import torch

import variants
from bench.api.config import build_config
from bench.api.errors import InvalidConfig
from bench.api.selector import parse
from bench.conformance.suite import certify
from variants.heads.snail import SnailConfig


def test_keys_and_values_have_widths_of_their_own_and_nothing_maps_back():
    slot = variants.build("snail[key=3,value=4]", dim=10, regime="causal").double()
    x = torch.randn(2, 5, 10, dtype=torch.float64)
    output, found = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
    assert slot.output_width == 4
    heads = slot.heads
    query, key = heads.to_query(x), heads.to_key(x)
    energy = query @ key.mT / 3**0.5
    hidden = torch.ones(5, 5).triu(1).bool()
    weights = torch.softmax(energy.masked_fill(hidden, -torch.inf), -1)
    torch.testing.assert_close(found.weights[:, 0], weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(output, weights @ heads.to_value(x), rtol=0, atol=1e-12)
    assert {name for name, _ in heads.named_parameters()} == {
        f"to_{part}.{kind}" for part in ("query", "key", "value") for kind in ("weight", "bias")
    }


def test_queries_and_keys_of_other_widths_meet_in_one():
    slot = variants.build("additive[head=snail]", dim=10, source_dim=6, regime="cross")
    memory = slot.prepare(torch.randn(2, 7, 6))
    x = torch.randn(2, 5, 10)
    output, _ = slot.attend(x, memory, slot.start(memory, x))
    assert output.shape == (2, 5, 16)


def test_the_recipe_has_a_green_certificate():
    certificate = certify("snail", checks=("shapes", "oracle", "dtypes", "dead_rows"))
    assert certificate.green(), certificate.failed


def test_wrong_widths_are_refused():
    asked = parse("snail[key=0]")
    with pytest.raises(InvalidConfig, match="at least 1"):
        build_config(SnailConfig, asked.options, asked.name)
