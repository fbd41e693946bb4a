"""A realistic run folder made of numbers nobody measured, to look at and to test reports with."""

import math
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from bench.api.cell import Cell
from results.row import Record, Row, Status

BASE = "bahdanau[width=64]"
ENVIRONMENT = "e1a2b3c4d5e6"
LENGTHS = (64, 128, 256, 512)
METRICS = {
    "token_accuracy": ("Token accuracy", "fraction", "higher", "quality"),
    "bleu": ("BLEU", "BLEU points", "higher", "quality"),
    "loss_nats": ("Loss", "nats/token", "lower", "quality"),
    "train_loss_nats": ("Training loss", "nats/token", "lower", "diagnostic"),
    "alignment_entropy_nats": ("Alignment entropy", "nats", "none", "diagnostic"),
    "train_tokens_per_s": ("Training throughput", "tokens/s", "higher", "speed"),
    "decode_tokens_per_s": ("Decoding throughput", "tokens/s", "higher", "speed"),
    "train_step_time_ms": ("Training step", "ms", "lower", "speed"),
    "train_cpu_s": ("Training CPU time", "s", "lower", "speed"),
    "forward_time_ms": ("Forward", "ms", "lower", "speed"),
    "forward_backward_time_ms": ("Forward + backward", "ms", "lower", "speed"),
    "decode_step_time_ms": ("Decode step", "ms", "lower", "speed"),
    "peak_memory_bytes": ("Peak memory", "bytes", "lower", "memory"),
    "forward_flops_analytic_count": ("Forward FLOPs", "FLOPs", "lower", "size"),
    "parameters_count": ("Parameters", "count", "none", "size"),
    "network_forward_flops_count": ("FLOPs of the network", "count", "none", "size"),
    "slot_parameters_count": ("Parameters in the slot", "count", "none", "size"),
}


@dataclass(frozen=True)
class Shape:
    """How one pretended variant behaves."""

    short: str
    quality: float
    family: str = "content-based"
    speed: float = 1.0
    exponent: float = 2.0
    parameters: int = 210_000
    control: bool = False
    decoder_differs: bool = False
    red: bool = False


VARIANTS: dict[str, Shape] = {
    BASE: Shape("bahdanau", 0.90),
    "luong_general": Shape("luong_general", 0.89, speed=0.7, parameters=196_000),
    "scaled_dot": Shape("scaled_dot", 0.895, speed=0.45, parameters=180_000),
    "shaw_rpr[clip=16]": Shape("shaw_rpr", 0.94, "position", 0.95, 2.0, 214_000),
    "linear_attention[feature_map=elu]": Shape("linear_attention", 0.80, "linear", 0.5, 1.0),
    "lstmn": Shape("lstmn", 0.86, "recurrent", 1.9, 2.1, 260_000, decoder_differs=True),
    "mocha[chunk=4]": Shape("mocha", 0.97, "monotonic", 1.3, 2.0, red=True),
    "no_attention": Shape("no_attention", 0.45, "control", 0.2, 0.9, 150_000, control=True),
}
TASKS = {
    "reversal[length=24]": ("reversal", "token_accuracy", "open (generated here)", True, 0.05, 1.0),
    "translation[pair=de-en]": (
        "translation",
        "bleu",
        "non-commercial (Multi30k)",
        False,
        None,
        None,
    ),
    "recall[pairs=8]": ("recall", "loss_nats", "open (generated here)", True, 2.08, 0.0),
}


def catalog(*, ranks: bool = True, preset: str = "standard") -> dict[str, object]:
    """What the run writes about its names."""
    variants: dict[str, dict[str, object]] = {
        name: {
            "short": shape.short,
            "name": shape.short,
            "title": f"{shape.short.replace('_', ' ').capitalize()} attention",
            "formula": "v . tanh(W q + U k) | k in 1..S",
            "default_task": "" if shape.family == "recurrent" else "reversal",
            "paper": "Bahdanau et al., 2015" if name == BASE else "Somebody et al., 2020",
            "url": "https://arxiv.org/abs/1409.0473",
            "where": "section 3.1",
            "family": shape.family,
            "control": "negative" if shape.control else None,
            "decoder_differs": shape.decoder_differs,
            "deviations": "none",
        }
        for name, shape in VARIANTS.items()
    }
    variants["luong_general"]["ablation"] = {"base": BASE, "axis": "score", "value": "general"}
    variants["scaled_dot"]["ablation"] = {"base": BASE, "axis": "score", "value": "scaled_dot"}
    tasks = {
        name: {
            "short": short,
            "title": f"{short.capitalize()} task",
            "paper": "Elliott et al., 2016",
            "url": "https://arxiv.org/abs/1605.00459",
            "primary": primary,
            "license": {"name": rights, "redistributable": drawn},
            "generated": drawn,
            "needs_download": not drawn,
            "chance": chance,
            "ceiling": ceiling,
        }
        for name, (short, primary, rights, drawn, chance, ceiling) in TASKS.items()
    }
    metrics = {
        name: {
            "title": title,
            "unit": unit,
            "better": better,
            "group": group,
            "low": None if "correlation" in unit else 0.0,
            "high": 1.0 if unit.startswith("fraction") else 100.0 if "BLEU" in unit else None,
        }
        for name, (title, unit, better, group) in METRICS.items()
    }
    return {
        "variants": variants,
        "tasks": tasks,
        "metrics": metrics,
        "baseline": BASE,
        "commands": [f"python -m bench run --preset {preset} --variants all --out runs/demo"],
        "preset": preset,
        "ranks": ranks,
    }


def quality_cell(task: str, variant: str, seed: int) -> Cell:
    """The question of one training run."""
    return Cell(
        kind="quality",
        task=task,
        backbone="seq2seq[width=64]",
        variant=variant,
        slot="cross",
        protocol="adam[lr=0.003,steps=400]",
        seed=seed,
        revisions="seq2seq:1 task:1 variant:1",
    )


def speed_cell(variant: str, length: int) -> Cell:
    """The question of one timing."""
    return replace(
        quality_cell(f"attend[batch=4,heads=1,length={length},width=64]", variant, 0),
        kind="speed",
        backbone="none",
        protocol=f"rounds[beside={BASE},count=8]",
    )


def score(primary: str, level: float) -> float:
    """One latent quality in the unit of each metric."""
    return {"token_accuracy": level, "bleu": 38 * level, "loss_nats": 2.4 * (1.02 - level)}[primary]


def quality_rows(task: str, shape: Shape, seed: int) -> Iterable[Row]:
    """Curves, final scores and counts of one training run."""
    primary, draw = TASKS[task][1], random.Random(f"{task}{shape.short}{seed}")
    level = min(0.995, shape.quality + draw.gauss(0, 0.012) + 0.004 * seed)
    step_ms = 12 * (0.6 + 0.4 * shape.speed)
    for step in range(0, 401, 40):
        now = level * (1 - math.exp(-step / 90)) + 0.02 * draw.random()
        for axis, x in (("step", float(step)), ("cpu_s", step * step_ms / 1000)):
            value = score(primary, min(now, 0.999))
            yield Row(metric=primary, value=value, axis=axis, x=x, split="validation")
        loss = 3.2 * (1 - now) + 0.03
        yield Row(metric="train_loss_nats", value=loss, axis="step", x=float(step), split="train")
    yield Row(metric=primary, value=score(primary, level), split="test")
    for length in (12, 24, 36, 48):
        far = level * (1 - 0.004 * (length - 12) * (2.2 - shape.quality))
        value = score(primary, far)
        yield Row(metric=primary, value=value, axis="length", x=float(length), split="test")
    yield Row(metric="alignment_entropy_nats", value=2.5 - 2 * level, split="test")
    yield Row(metric="train_tokens_per_s", value=32 * 24 / step_ms * 1000 * draw.gauss(1, 0.02))
    yield Row(metric="train_step_time_ms", value=step_ms * draw.gauss(1, 0.02))
    yield Row(metric="train_cpu_s", value=0.4 * step_ms)
    yield Row(metric="parameters_count", value=float(shape.parameters))
    yield Row(metric="network_forward_flops_count", value=float(4096 * shape.parameters))
    yield Row(metric="slot_parameters_count", value=float(shape.parameters // 10))


def speed_rows(shape: Shape, length: int) -> Iterable[Row]:
    """Rounds of one timing with the baseline and its double in each."""
    draw = random.Random(f"{shape.short}{length}")
    at = {"axis": "length", "x": float(length)}
    grow = (length / 64) ** shape.exponent
    for metric, base in (("forward_time_ms", 0.4), ("decode_step_time_ms", 0.05)):
        for repeat in range(8):
            load = draw.gauss(1, 0.05)
            level = base * load
            named = {
                "": level * shape.speed * grow,
                "reference": level * (length / 64) ** 2,
                "aa_control": level * (length / 64) ** 2 * draw.gauss(1, 0.02),
            }
            for whose, value in named.items():
                noisy = value * draw.gauss(1, 0.01)
                yield Row(metric=metric, value=noisy, repeat=repeat, baseline=whose, **at)
    yield Row(metric="peak_memory_bytes", value=2e5 * grow * shape.speed, **at)
    yield Row(metric="forward_flops_analytic_count", value=1e6 * grow, **at)


def artifacts(task: str, shape: Shape) -> dict[str, object]:
    """One attention map beside its gold alignment, and samples."""
    source = ["die", "Katze", "sitzt", "auf", "der", "alten", "Matte", "."]
    query = ["the", "cat", "is", "sitting", "on", "the", "old", "mat", "."]
    gold_at = [0, 1, 2, 2, 3, 4, 5, 6, 7]
    spread = 0.35 + 2 * (1 - shape.quality)
    weights = []
    for target in gold_at:
        raw = [math.exp(-((key - target) ** 2) / (2 * spread**2)) for key in range(len(source))]
        weights.append([value / sum(raw) for value in raw])
    gold = [[1.0 if key == target else 0.0 for key in range(len(source))] for target in gold_at]
    title = f"{TASKS[task][0]}, sentence 1"
    entry = {"title": title, "query": query, "source": source, "weights": weights, "gold": gold}
    output = " ".join(query if shape.quality > 0.85 else query[:4] + ["mat"] * 5)
    sample = {"source": " ".join(source), "reference": " ".join(query), "output": output}
    return {"attention": [entry], "samples": [sample]}


def record(cell: Cell, status: Status, rows: Iterable[Row] = (), detail: str = "") -> Record:
    """One finished cell."""
    return Record(
        cell=asdict(cell),
        id=cell.id,
        status=status,
        detail=detail,
        environment=ENVIRONMENT,
        seconds=4.2,
        finished="2026-11-20T12:00:00Z",
        rows=tuple(rows),
    )
