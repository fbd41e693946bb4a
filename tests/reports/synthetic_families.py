"""A run of comparisons by family: real and diagnostic tasks, baselines, published results,
examples."""

import copy
import math
import random
from pathlib import Path
from typing import Any

from synthetic import VARIANTS, catalog, quality_cell, record, score
from synthetic_run import write_json, write_run

from results.row import Record, Row

REVERSAL, RECALL = "reversal[length=24]", "recall[pairs=8]"
TRANSLATION, DIGITS, KERNEL = "translation[pair=de-en]", "digits[cells=9]", "kernel_line"
FAMILIES = {
    REVERSAL: "diagnostics",
    RECALL: "diagnostics",
    TRANSLATION: "machine translation",
    DIGITS: "image captioning",
    KERNEL: "kernel regression",
}
WITHOUT = {
    REVERSAL: {"majority": 0.25, "copy the source": 0.4},
    TRANSLATION: {"copy the source": 3.5},
}
ANCHOR = {
    "what": "RNNsearch-50, WMT 14 en-fr",
    "metric": "bleu",
    "value": 26.75,
    "text": "Bahdanau et al., 2015",
    "url": "https://arxiv.org/abs/1409.0473",
    "where": "Table 1",
    "differs": "Other languages and 400 times as many sentences.",
    "about": "translation[pair=de-en]",
}
BETAS = (1, 4, 16)


def families_catalog() -> dict[str, Any]:
    """The catalog of the other run, with families, published results and two more tasks."""
    names: dict[str, Any] = copy.deepcopy(catalog())
    names["variants"]["no_attention"]["control"] = "uniform_baseline"
    for task, short in ((DIGITS, "digits"), (KERNEL, "kernel_line")):
        names["tasks"][task] = {**names["tasks"][REVERSAL], "short": short, "title": short}
        names["tasks"][task] |= {"chance": None, "ceiling": None}
    for task, family in FAMILIES.items():
        names["tasks"][task] |= {"family": family, "needs_download": False, "published_results": []}
    names["tasks"][TRANSLATION] |= {"needs_download": True, "published_results": [ANCHOR]}
    names["tasks"][DIGITS] |= {
        "license": {"name": "BSD (scikit-learn)", "redistributable": True},
        "generated": False,
    }
    for beta in BETAS:
        name = f"nadaraya_watson[beta={beta}]"
        names["variants"][name] = {**names["variants"]["scaled_dot"], "short": name}
    names["metrics"]["band_width"] = {"title": "Width of the kernel", "unit": "deviations"}
    return names


def families_records(seeds: int) -> list[Record]:
    """Scores of all variants on three tasks and of some on the others."""
    found = [
        _scored(task, name, seed)
        for task in (REVERSAL, RECALL, TRANSLATION, DIGITS)
        for name in VARIANTS
        for seed in range(seeds)
        if task != DIGITS or name in ("scaled_dot", "lstmn", "no_attention")
    ]
    return [*found, *(_banded(beta, seed) for beta in BETAS for seed in range(seeds))]


def _scored(task: str, name: str, seed: int) -> Record:
    draw = random.Random(f"{task}{name}{seed}")
    level = min(0.995, VARIANTS[name].quality + draw.gauss(0, 0.004))
    metric = {RECALL: "loss_nats", TRANSLATION: "bleu"}.get(task, "token_accuracy")
    rows = [Row(metric=metric, value=score(metric, level), split=s) for s in ("validation", "test")]
    for other, value in WITHOUT.get(task, {}).items():
        rows.append(Row(metric=metric, value=value, split="test", baseline=other))
    for metric, value in (("train_tokens_per_s", 900.0), ("train_step_time_ms", 12.0)):
        rows.append(Row(metric=metric, value=value * draw.gauss(1, 0.02)))
    rows.append(Row(metric="parameters_count", value=float(VARIANTS[name].parameters)))
    return record(quality_cell(task, name, seed), "ok", rows)


def _banded(beta: int, seed: int) -> Record:
    cell = quality_cell(KERNEL, f"nadaraya_watson[beta={beta}]", seed)
    band = 2.3 * beta**-0.5 + 0.01 * seed
    values = {"token_accuracy": 0.9 - 0.01 * beta, "band_width": band}
    rows = [Row(metric=name, value=value, split="test") for name, value in values.items()]
    return record(cell, "ok", rows)


def examples(task: str, name: str) -> list[dict[str, Any]]:
    """Our own examples: two sentences, or a picture of three by three places."""
    quality = VARIANTS[name].quality
    if task == DIGITS:
        gray = [[(row * column % 7) / 6 for column in range(12)] for row in range(12)]
        picture = {"gray": gray, "grid": [3, 3]}
        return [_shown("picture 1", list("123456789"), ["seven", "one"], quality, picture)]
    if task == KERNEL:
        return []
    return [
        _shown(
            "the cat sits", ["die", "Katze", "sitzt", "."], ["the", "cat", "sits", "."], quality
        ),
        _shown("a dog", ["ein", "Hund"], ["a", "dog"], quality),
    ]


def _shown(
    title: str, source: list[str], said: list[str], quality: float, picture: object = None
) -> dict[str, Any]:
    weights = [
        [math.exp(-((key - row) ** 2) / (0.1 + 8 * (1 - quality))) for key in range(len(source))]
        for row in range(len(said))
    ]
    rows = [[value / sum(row) for value in row] for row in weights]
    gold = [[float(key == row) for key in range(len(source))] for row in range(len(said))]
    return {
        "title": title,
        "query": said,
        "source": source,
        "weights": rows,
        "gold": None if picture else gold,
        "reference": " ".join(said),
        "output": " ".join(said),
        "said": said,
        "picture": picture,
    }


def _curve(beta: int) -> dict[str, Any]:
    """A kernel over points of a line, as tasks of regression store it."""
    x = [at / 4 for at in range(9)]
    mass = [[math.exp(-beta * (key - asked) ** 2 / 2) for key in x] for asked in x]
    weights = [[value / sum(row) for value in row] for row in mass]
    names = [f"{value:.2f}" for value in x]
    return {
        "title": "a whole curve",
        "query": names,
        "source": names,
        "weights": weights,
        "gold": None,
        "reference": " ".join(names),
        "output": "",
        "said": names,
        "picture": None,
    }


def write_families(folder: Path, *, seeds: int = 3) -> Path:
    """Write the run folder with the examples of two seeds, which differ."""
    records = families_records(seeds)
    write_run(folder, records=records, catalog_data=families_catalog(), tasks=[REVERSAL])
    for finished in records:
        name, task = str(finished.cell["variant"]), str(finished.cell["task"])
        beta = next((beta for beta in BETAS if name == f"nadaraya_watson[beta={beta}]"), None)
        if beta and finished.cell["seed"] == 0:
            write_json(folder / "artifacts" / f"{finished.id}.json", {"examples": [_curve(beta)]})
        if name in VARIANTS and finished.cell["seed"] in (0, 1):
            shown = examples(task, name)
            if finished.cell["seed"] == 1:
                shown = [{**one, "output": "of the second seed"} for one in shown]
            write_json(folder / "artifacts" / f"{finished.id}.json", {"examples": shown})
    return folder
