"""Requests: code that is timed alone is not trained, and CPU times of a GPU are not matched."""

import pytest

from bench.api.cell import parse_label
from bench.api.errors import InvalidConfig, Refused
from bench.running.request import Request
from bench.training.quality import train_cell


@pytest.mark.parametrize("impl", ["compiled", "sdpa"])
def test_training_with_code_that_is_timed_alone_is_refused_with_a_sentence(impl):
    with pytest.raises(InvalidConfig, match=rf"--impl {impl} is timed, not trained.*--no-quality"):
        Request(impl=impl)
    assert Request(impl=impl, quality=False).impl == impl


def test_what_is_trained_is_scored_with_weights_which_fused_code_does_not_give():
    label = (
        "quality after_marker[evaluate=8,length=8] @ pooling @ scaled_dot / pool / adam[steps=2]"
    )
    with pytest.raises(Refused, match="impl=sdpa cannot return weights"):
        train_cell(parse_label(f"{label} / impl=sdpa"))
    assert train_cell(parse_label(label)).rows


def test_a_gpu_spends_no_cpu_time_that_could_be_matched():
    with pytest.raises(InvalidConfig, match=r"--match time compares CPU times.*--match flops"):
        Request(match="time", device="cuda")
    assert Request(match="time").match == "time"
    assert Request(match="flops", device="cuda").match == "flops"
