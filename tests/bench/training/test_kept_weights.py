"""Kept weights say what made them, and are read for nothing else."""

import errno

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_model
from torch import nn

from bench.api.errors import DataUnavailable
from bench.running.runner import reason_of
from bench.training.kept_weights import Origin, load_weights, save_weights

OURS = Origin(code="0123456789ab", data={"data/words.txt": "ba9876543210"})
HERE = torch.device("cpu")


def tied():
    """A network that holds one matrix twice, as embeddings and outputs may."""
    system = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    system[1].weight = system[0].weight
    return system


@pytest.fixture
def path(tmp_path):
    """A file of weights of today."""
    place = tmp_path / "models" / "cell.safetensors"
    save_weights(tied(), place, OURS)
    return place


def test_weights_come_back_as_they_were(tmp_path):
    before, after = tied(), tied()
    save_weights(before, tmp_path / "one", OURS)
    load_weights(after, tmp_path / "one", HERE, OURS)
    assert torch.equal(before[0].weight, after[0].weight)


def test_a_full_disk_is_an_error_of_the_system(tmp_path, monkeypatch):
    """So that a training of hours is not stored as failed (ADR 29)."""

    def full(*_, **__):
        raise SafetensorError("Error while serializing: I/O error: No space left (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_model", full)
    with pytest.raises(OSError, match="No space left") as raised:
        save_weights(tied(), tmp_path / "one", OURS)
    assert raised.value.errno == errno.ENOSPC
    assert reason_of(raised.value).environmental


@pytest.mark.parametrize(
    "origin",
    [
        Origin(code="other", data=OURS.data),
        Origin(code=OURS.code),
        Origin(code=OURS.code, data={"data/words.txt": "other"}),
    ],
)
def test_weights_of_other_code_or_data_are_refused(path, origin):
    with pytest.raises(DataUnavailable, match=r"not made by the code .* --keep-models into ano"):
        load_weights(tied(), path, HERE, origin)


def test_weights_of_a_result_that_no_longer_holds_are_refused(path):
    with pytest.raises(DataUnavailable, match=r"of today; train it again with --keep-models\."):
        load_weights(tied(), path, HERE, Origin())


def test_weights_of_an_earlier_version_say_nothing_and_are_refused(path):
    save_model(tied(), str(path))
    with pytest.raises(DataUnavailable, match="not made by the code"):
        load_weights(tied(), path, HERE, OURS)


@pytest.mark.parametrize("length", [0, 5, 60, -1])
def test_a_damaged_file_is_refused(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataUnavailable, match=r"cannot be loaded \(.*\); delete the file"):
        load_weights(tied(), path, HERE, OURS)


def test_weights_of_another_network_are_refused(path):
    with pytest.raises(DataUnavailable, match="cannot be loaded"):
        load_weights(nn.Linear(2, 2), path, HERE, OURS)
