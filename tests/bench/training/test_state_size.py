"""What decoding keeps, from live tensors."""

import doctest
from dataclasses import replace

import pytest
import torch

from bench.api.kept_bytes import bytes_of
from bench.training import state_size
from bench.training.quality import train_cell

WIDTH, LAYERS, HEADS, FLOAT = 16, 2, 2, 4
BACKBONE = f"transformer_decoder[width={WIDTH},layers={LAYERS},heads={HEADS}]"


def kept(smoke, variant, task="offset[length=8,beyond=12,evaluate=8]", dtype="float32", **more):
    cell = smoke(variant, task=task, **{"backbone": BACKBONE, "slot": "causal", **more})
    found = [
        row for row in train_cell(replace(cell, dtype=dtype)).rows if row.metric == "state_bytes"
    ]
    return [(row.value, row.axis, row.split) for row in found]


@pytest.mark.parametrize("length", [8, 11])
def test_softmax_attention_keeps_a_key_and_a_value_of_every_token_in_every_layer(length, smoke):
    found = kept(smoke, "scaled_dot", f"offset[length={length},beyond=12,evaluate=8]")
    assert found == [(2 * length * WIDTH * LAYERS * FLOAT, "", "")]


@pytest.mark.parametrize("length", [8, 11])
def test_linear_attention_keeps_a_matrix_and_a_sum_of_keys_at_any_length(length, smoke):
    per_head = WIDTH // HEADS
    found = kept(smoke, "linear_attention", f"offset[length={length},beyond=12,evaluate=8]")
    assert found == [(LAYERS * HEADS * per_head * (per_head + 1) * FLOAT, "", "")]


def test_attention_that_samples_when_it_is_scored_keeps_as_much_as_where_it_does_not(smoke):
    assert kept(smoke, "hard_reinforce[inference=sample]") == kept(smoke, "hard_reinforce") != []


@pytest.mark.parametrize("rank", [1, 2])
def test_tensor_product_attention_keeps_the_factors_of_keys_and_values(rank, smoke):
    found = kept(smoke, f"tpa[heads={HEADS},rank={rank}]")
    per_token = 2 * rank * (HEADS + WIDTH // HEADS)
    assert found == [(8 * per_token * LAYERS * FLOAT, "", "")]


def test_the_longest_sequence_of_training_counts_whenever_it_came(smoke):
    task = "causal_copy[shortest=1,length=3,beyond=4,evaluate=8]"
    found = kept(smoke, "scaled_dot", task, protocol="adam[steps=30,batch=2]")
    assert found == [(2 * (2 * 3) * WIDTH * LAYERS * FLOAT, "", "")]


def test_numbers_of_half_the_size_take_half_the_bytes(smoke):
    (half,), (whole,) = (kept(smoke, "scaled_dot", dtype=name) for name in ("float32", "float64"))
    assert whole[0] == 2 * half[0]


def test_attention_to_a_source_keeps_nothing_that_grows_and_has_no_such_row(smoke):
    done = train_cell(smoke("additive"))
    assert not [row for row in done.rows if row.metric == "state_bytes"]


def test_what_two_tensors_share_counts_once():
    assert doctest.testmod(state_size).failed == 0
    whole = torch.zeros(4, 6)
    key, value = whole.split(2, 1)[:2]
    assert bytes_of([key, value]) == 2 * 4 * 2 * FLOAT
    assert bytes_of([key, key]) == 4 * 2 * FLOAT
    assert bytes_of([torch.zeros(1, 3).expand(5, 3)]) == 3 * FLOAT
    assert bytes_of([torch.zeros(0), torch.zeros(2, dtype=torch.bool)]) == 2
