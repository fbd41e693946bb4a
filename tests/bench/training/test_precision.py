from dataclasses import replace

import pytest
import torch

from bench.training import quality
from bench.training.quality import train_cell


def of(rows, metric, axis=""):
    return [row for row in rows if (row.metric, row.axis) == (metric, axis)]


def test_training_in_bfloat16_keeps_parameters_in_float32_and_multiplies_in_bfloat16(
    smoke, monkeypatch
):
    seen = set()
    original = torch.nn.functional.linear

    def linear(x, *more, **named):
        found = original(x, *more, **named)
        seen.add(found.dtype)
        return found

    monkeypatch.setattr(torch.nn.functional, "linear", linear)
    result = train_cell(replace(smoke(), dtype="bfloat16"))
    assert {p.dtype for p in result.system.parameters()} == {torch.float32}
    assert torch.bfloat16 in seen
    plain = train_cell(smoke())
    one, other = (of(found.rows, "train_loss_nats", "step")[0].value for found in (result, plain))
    assert one == pytest.approx(other, rel=0.05)
    assert one != other


def test_seconds_on_a_gpu_are_called_wall_seconds_and_those_on_a_cpu_are_not(smoke, monkeypatch):
    rows = train_cell(smoke()).rows
    assert of(rows, "train_cpu_s")
    assert {row.axis for row in rows} >= {"step", "cpu_s"}
    monkeypatch.setattr(quality, "clocked", lambda device: "wall_s")
    rows = train_cell(smoke()).rows
    assert not of(rows, "train_cpu_s")
    assert of(rows, "train_wall_s")
    assert "wall_s" in {row.axis for row in rows}
    assert "cpu_s" not in {row.axis for row in rows}


def test_the_clock_of_a_device_has_its_name():
    assert quality.clocked("cpu") == "cpu_s"
    assert quality.clocked("cuda") == "wall_s"
