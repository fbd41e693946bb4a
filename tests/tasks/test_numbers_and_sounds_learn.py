"""A little training beats the named baseline: in long-term memory, and in words of tones."""

import itertools

import pytest
import torch

from bench.api.noise import Noise
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.trace import Mode
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.evaluate import evaluate


def trained(task, backbone, variant, steps):
    default_task = DefaultTask(task=task, backbone=backbone)
    cell = quality_cell(Request(preset="quick"), resolve(variant), default_task, 0).cell
    with torch.random.fork_rng():
        torch.manual_seed(0)
        built = assemble(cell, None)
    optimizer = torch.optim.Adam(built.system.parameters(), lr=4e-3)
    batches = built.task.training(32, torch.Generator().manual_seed(0))
    for step in range(steps):
        mode = Mode(read="train", noise=Noise(step), progress=step / steps)
        terms, _ = built.system.losses(next(batches), mode, built.system.init_carry())
        optimizer.zero_grad()
        sum(terms.values()).backward()
        torch.nn.utils.clip_grad_norm_(built.system.parameters(), 1.0)
        optimizer.step()
    clock = itertools.count().__next__
    found = evaluate(built.task, built.system.there, "test", torch.device("cpu"), clock)
    return found.value(built.task.metrics[0].name), built.task.baselines()


@pytest.mark.slow
def test_attention_remembers_two_numbers_of_a_long_sequence():
    small = "pooling_perceptron[embedding=32,hidden=32]"
    task = "adding[min_length=20,max_length=60]"
    success, baselines = trained(task, small, "feed_forward", 400)
    assert success > 0.3 + baselines["training mean"]


@pytest.mark.slow
def test_attention_hears_words_of_tones():
    errors, baselines = trained("tone_words", "", "additive", 120)
    assert errors < baselines["most frequent word"] - 0.15
