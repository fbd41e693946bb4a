"""Multi-head projections whose queries and keys have a width of their own."""

import pytest
import torch
from torch import nn

import variants
from bench.api.errors import InvalidConfig
from bench.api.kept_bytes import state_bytes
from bench.conformance import certify

FLOAT32 = 4
OF_WIDTHS = ("shapes", "heads", "splits", "oracle", "gradients", "dtypes", "padding_invariance")
"""Checks that may see the width of keys."""


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["scaled_dot", "additive", "linear_attention", "mamba2_ssd"])
def test_narrow_and_wide_keys_keep_the_certificate(variant):
    for width in (1, 5):
        selector = f"{variant}[head=multi[heads=2,key_width={width}]]"
        found = certify(selector, checks=OF_WIDTHS)
        assert found.green(), found.failed


def test_the_width_of_values_is_the_default():
    plain = variants.build("mha", dim=8, heads=2, regime="causal")
    asked = variants.build("mha[head=multi[key_width=4]]", dim=8, heads=2, regime="causal")
    shapes = [{name: p.shape for name, p in one.named_parameters()} for one in (plain, asked)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("width", [3, 4, 16])
def test_the_state_of_a_recurrence_is_a_matrix_of_key_width_by_value_width(width):
    attention = variants.build(
        f"mamba2_ssd[head=multi[key_width={width}]]", dim=8, heads=2, regime="causal"
    )
    x = torch.randn(1, 5, 8)
    with torch.no_grad():
        _, answer = attention.answer_all(x, x)
    assert state_bytes([answer.state]) == 2 * width * 4 * FLOAT32


def test_weights_of_pytorch_are_not_taken_where_widths_differ():
    module = variants.as_multihead("mha[head=multi[key_width=2]]", 8, 2)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        module.load_state_dict(nn.MultiheadAttention(8, 2).state_dict())


def test_a_negative_width_is_refused_with_a_sentence():
    with pytest.raises(InvalidConfig, match="key_width must be at least 0, got -1"):
        variants.build("mha[head=multi[key_width=-1]]", dim=8, heads=2)
