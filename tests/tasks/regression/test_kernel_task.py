"""Kernel regression: textbook numbers, points that are left out, widths of kernels."""

import math

import numpy as np
import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.trace import Mode
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.evaluate import example_maps
from tasks.regression.kernel_1d import Kernel1d, Kernel1dConfig, function
from tasks.regression.kernel_diabetes import KernelDiabetes, KernelDiabetesConfig
from tasks.regression.kernel_task import Points, band_width


def built(variant, task="kernel_1d"):
    cell = quality_cell(Request(preset="smoke"), resolve(variant), DefaultTask(task=task), 3).cell
    with torch.random.fork_rng():
        found = assemble(cell, None)
    return found.task, found.system.there


def predicted(task, backbone, batch):
    trace = backbone(batch, Mode())
    said = backbone.emit(trace.states, trace.context, trace.embedded)[..., 0]
    return (said * task.deviation + task.mean).detach().numpy()


@pytest.mark.parametrize("task", ["kernel_1d", "kernel_diabetes"])
def test_a_fixed_bandwidth_is_the_textbook_estimate(task):
    task, backbone = built("nadaraya_watson[beta=4,learn=false]", task)
    asked = task.held_out("test")
    x, y = task.points.x.numpy().astype(float), task.points.y.numpy().astype(float)
    center, spread = x.mean(0), x.std(0)
    expected = []
    for point in asked.x.numpy().astype(float):
        apart = ((point - center) / spread - (x - center) / spread) ** 2
        kernel = np.exp(-4 * apart.sum(1) / 2)
        expected.append((kernel * y).sum() / kernel.sum())
    said = predicted(task, backbone, task.evaluation("test")[0])[0]
    np.testing.assert_allclose(said, expected, rtol=1e-3)


def test_uniform_weights_answer_the_mean():
    task, backbone = built("uniform")
    said = predicted(task, backbone, task.evaluation("test")[0])
    np.testing.assert_allclose(said, float(task.mean), rtol=1e-4)


def test_a_point_that_is_left_out_never_answers_itself():
    task, backbone = built("nadaraya_watson[beta=1e6,learn=false]")
    _, seen, left_out = task.evaluation("test")
    itself = predicted(task, backbone, seen)[0]
    np.testing.assert_allclose(itself, task.points.y.numpy(), rtol=1e-4, atol=1e-4)
    weights = backbone(left_out, Mode()).weights[:, 0]
    assert not weights.diagonal().any()


def test_the_examples_names_its_points_and_is_answered_in_units_of_the_data():
    task, backbone = built("nadaraya_watson[beta=100,learn=false]")
    (shown,) = example_maps(task, backbone, torch.device("cpu"))
    assert shown["query"][:2] == ["0.00", "0.10"]
    assert shown["query"][-1] == "5.00"
    said = [float(word) for word in shown["said"]]
    truth = [float(word) for word in shown["reference"].split()]
    # standardized answers would be zero on average, and the curve is 2.8
    assert np.mean(said) == pytest.approx(np.mean(truth), abs=0.6)
    assert task.tokens([0, 0], source=False) == ["y", "y"]


def test_only_training_points_are_read_and_scaled_by():
    task = Kernel1d(Kernel1dConfig(points=20), seed=0)
    for batch in (*task.evaluation("test"), next(task.training(4, torch.Generator()))):
        x, y = batch.sources[0].frames[0].unbind(-1)
        torch.testing.assert_close(x, task._x(task.points.x)[:, 0])
        torch.testing.assert_close(y, task._y(task.points.y))
    real = KernelDiabetes(KernelDiabetesConfig(), seed=0)
    rows = {part: {tuple(row) for row in p.x.tolist()} for part, p in real.parts.items()}
    assert [len(rows[part]) for part in ("train", "validation", "test")] == [300, 71, 71]
    assert not rows["train"] & (rows["test"] | rows["validation"])
    assert not rows["validation"] & rows["test"]
    assert real.notes["parts"] == (
        "train 300 rows 8525b2c0fee8, validation 71 rows a425251c34be, test 71 rows b56664181f5f"
    ), "the draw of patients has changed"
    torch.testing.assert_close(real.center, real.parts["train"].x.mean(0))


def test_noise_stands_in_training_points_alone():
    task = Kernel1d(Kernel1dConfig(points=500), seed=0)
    noise = task.points.y - function(task.points.x[:, 0])
    assert 0.4 < float(noise.std()) < 0.6
    test = task.held_out("test")
    torch.testing.assert_close(test.y, function(test.x[:, 0]))


def test_the_width_of_a_gaussian_is_known():
    keys = torch.linspace(-5, 5, 2001)[:, None]
    queries = torch.tensor([[0.0], [1.0]])
    weights = torch.softmax(-(torch.cdist(queries, keys) ** 2) / 2 / 0.3**2, -1)
    expected = 2 * math.sqrt(2 * math.log(2)) * 0.3
    assert band_width(weights, queries, keys) == pytest.approx(expected, abs=0.02)
    assert band_width(torch.zeros(2, 2001), queries, keys) == 0.0


def test_linear_regression_beats_the_mean_on_diabetes():
    task = KernelDiabetes(KernelDiabetesConfig(), seed=0)
    found = task.baselines()
    assert found["linear regression"] < 0.7 * found["training mean"]


def test_a_task_without_points_is_refused():
    from bench.api.errors import Refused

    cell = quality_cell(
        Request(preset="smoke"),
        resolve("uniform"),
        DefaultTask(task="after_marker", backbone="kernel_regression"),
        0,
    ).cell
    with pytest.raises(Refused, match="kernel_regression reads points"):
        assemble(cell, None)


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(InvalidConfig, match="points must be at least 2"):
        Kernel1dConfig(points=1)
    with pytest.raises(InvalidConfig, match="between 2 and 300"):
        KernelDiabetesConfig(train=400)


def test_a_learned_bandwidth_beats_the_mean_and_a_line():
    task, backbone = built("nadaraya_watson[beta=4]")
    task = Kernel1d(Kernel1dConfig(), seed=0)
    optimizer = torch.optim.Adam(backbone.parameters(), lr=0.1)
    batches = task.training(50, torch.Generator().manual_seed(0))
    for _ in range(100):
        batch = next(batches)
        trace = backbone(batch, Mode())
        said = backbone.emit(trace.states, trace.context, trace.embedded)
        optimizer.zero_grad()
        (said - batch.values).square().mean().backward()
        optimizer.step()
    said = predicted(task, backbone, task.evaluation("test")[0])[0]
    error = float(((said - task.held_out("test").y.numpy()) ** 2).mean())
    assert error < 0.4 * task.baselines()["linear regression"]
    assert isinstance(task.points, Points)


def test_margins_are_a_twentieth_of_the_variance_of_what_is_estimated():
    curve = function(torch.linspace(0, 5, 10_001).double())
    assert Kernel1d.margin == pytest.approx(float(curve.var()) / 20, rel=0.05)
    task = KernelDiabetes(KernelDiabetesConfig(), seed=0)
    assert KernelDiabetes.margin == pytest.approx(float(task.points.y.var()) / 20, rel=0.05)
