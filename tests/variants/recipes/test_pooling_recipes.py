"""Recipes that turn a sequence into one vector."""

import pytest
import torch

from bench.api.loading import load_package
from bench.api.resolve import resolve

MINE = ("last_state", "mean_pooling", "seq2vec_attention")


@pytest.fixture(scope="module", autouse=True)
def _encoders_are_loaded():
    load_package("tasks")


@pytest.mark.parametrize("name", MINE)
def test_a_recipe_resolves_has_a_pooling_default_task_and_prints_every_choice(name):
    spec = resolve(name)
    assert spec.registered.default_task.task == "after_marker"
    assert spec.registered.default_task.backbone.startswith("pooling[encoder=")
    assert resolve(spec.canonical).canonical == spec.canonical


def test_mean_pooling_is_the_mean_of_the_real_states(equals_oracle):
    found = equals_oracle("mean_pooling", "pool", heads=None)
    for row, length in enumerate(found.lengths):
        mean = found.source.value[row, :, :length].mean(1, keepdim=True)
        torch.testing.assert_close(found.parallel.output[row], mean, rtol=0, atol=1e-12)


def test_last_state_is_the_state_of_the_last_real_token(equals_oracle):
    found = equals_oracle("last_state", "pool", heads=None)
    for row, length in enumerate(found.lengths):
        last = found.source.value[row, :, length - 1 : length]
        assert torch.equal(found.parallel.output[row], last)


def test_attention_over_a_recurrent_network_fixes_its_encoder_and_takes_the_scores_options():
    spec = resolve("seq2vec_attention[width=8]")
    assert spec.fixes["encoder"].name == "uni_rnn"
    assert spec.axes["score"][0].show() == "additive[width=8]"
    assert resolve("seq2vec_attention[score=context_vector]").axes["score"][0].name == (
        "context_vector"
    )
