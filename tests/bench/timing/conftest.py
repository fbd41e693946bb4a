import importlib

import pytest
import torch

NEEDED = (
    "variants.scores.scaled_dot",
    "variants.scores.additive",
    "variants.masks.full",
    "variants.normalizers.softmax",
    "variants.outputs.softmax",
)


@pytest.fixture(autouse=True)
def one_thread():
    for name in NEEDED:
        importlib.import_module(name)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
