"""A small network beats a named baseline on real data: families whose own tests do not show it."""

import os
from pathlib import Path

import pytest

from bench.api import registry
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell

REAL = os.environ.get("BENCH_DATA_DIR", "")

NAMING = "method_naming[evaluate=300,vocab=500,words=20]"
LEARNS = [
    # task, variant, backbone ("" for the task's own), steps, baseline, margin of the ranking metric
    # one caption said of everything has up to 4.7 BLEU, 4.4 more than the source as it is
    ("translation[test=100]", "additive", "", 400, "copy the source", 5.0),
    ("incremental_translation[test=100]", "additive", "", 400, "copy the source", 5.0),
    ("multi_source_translation[test=100]", "scaled_dot", "", 300, "copy the source", 5.0),
    # on real sentences no network of this size beats the diagonal: test_word_alignment.py
    ("string_alignment", "scaled_dot", "", 400, "diagonal", 0.3),
    ("taught_strings", "supervised_attention", "", 400, "IBM model 1", 0.05),
    ("sst2[test=600]", "context_vector", "", 300, "majority", 0.15),
    # copying the first words of the body is reached and not clearly beaten
    (NAMING, "pointer_net", "", 300, "nearest source", 0.02),
    ("imdb", "han", "", 200, "majority", 0.1),
    ("spoken_digits", "scaled_dot", "", 200, "most frequent word", 0.2),
    ("babi", "dot", "", 250, "most frequent answer of its type", 0.1),
    ("kernel_diabetes", "nadaraya_watson", "", 100, "training mean", 1000.0),
    ("induction", "scaled_dot", "", 400, "most frequent answer", 0.4),
    ("repeat_copy[repeats=1]", "ntm_memory", "", 800, "most frequent answer", 0.8),
    ("labeled_edges", "relation_aware", "", 300, "most frequent answer", 0.8),
    ("table_questions", "neural_programmer", "", 1000, "most frequent number", 0.2),
    # so are the first words of an e-mail
    ("aeslc", "copynet", "", 500, "most frequent summary", 0.05),
]


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR names no directory of real data")
@pytest.mark.parametrize(
    ("task", "variant", "backbone", "steps", "baseline", "margin"),
    LEARNS,
    ids=[parse(row[0]).name for row in LEARNS],
)
def test_attention_learns_beyond_what_is_a_non_neural_baseline(
    task, variant, backbone, steps, baseline, margin
):
    request = Request(preset="quick", training=f"adam[steps={steps},evaluate_every={steps}]")
    default_task = DefaultTask(task=task, backbone=backbone)
    cell = quality_cell(request, resolve(variant), default_task, 11).cell
    rows = [row for row in train_cell(cell, data_dir=Path(REAL)).rows if row.split == "test"]
    metric = registry.find("task", parse(task).name).target.metrics[0]
    plain = [row for row in rows if row.metric == metric.name and not row.axis]
    (found,) = [row.value for row in plain if not row.baseline]
    # a baseline has one value, under the metric that ranks
    (level,) = [row.value for row in rows if row.baseline == baseline]
    gain = found - level
    assert (gain if metric.better == "higher" else -gain) > margin
