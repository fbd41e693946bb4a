"""Scores that are wide if written plainly: time and peak memory beside plain code, in one run.

    python tests/benchmarks/wide_scores.py additive --rounds 5
    python tests/benchmarks/wide_scores.py decoder
    python tests/benchmarks/wide_scores.py shaw

Forms are interleaved in random rounds, one thread, CPU time; a ratio is the geometric mean over
rounds of the time over that of the first form, with its t interval.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from bench.api.loading import load_package
from bench.api.resolve import resolve
from bench.timing.memory import peak_bytes
from bench.timing.shape import AttendShape
from bench.timing.timed_inputs import draw_inputs
from bench.timing.workloads import build, forward, forward_backward
from results.statistics import ratio_interval
from variants.scores.tanh_sum import tanh_sum

Work = Callable[[], object]
CHUNK = 2**20


class Form(NamedTuple):
    """One way to compute a thing: forward without gradients, and forward with backward."""

    forward: Work
    training: Work


def trained(function: Callable[..., Tensor], leaves: tuple[Tensor, ...]) -> Form:
    """Both works of a function of leaves."""
    asked = tuple(leaf.detach().clone().requires_grad_() for leaf in leaves)
    gradient = torch.randn_like(function(*leaves))

    def run() -> Tensor:
        with torch.no_grad():
            return function(*leaves)

    def train() -> None:
        for leaf in asked:
            leaf.grad = None
        function(*asked).backward(gradient)
        for leaf in asked:
            leaf.grad = None

    return Form(run, train)


def whole(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    """All hidden units of all pairs at once."""
    return (torch.tanh(query.unsqueeze(3) + key.unsqueeze(2)) @ v.unsqueeze(1)).squeeze(-1)


def chunked(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    """Some queries at a time, tanh in place, all of it kept for the backward pass."""
    return torch.cat([_chunk(q, key, v) for q in _split(query, key)], 2)


def checkpointed(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    """Some queries at a time, computed again in the backward pass."""
    parts = [checkpoint(_chunk, q, key, v, use_reentrant=False) for q in _split(query, key)]
    return torch.cat(parts, 2)


def ours(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    """Sigmoids or reciprocals."""
    return tanh_sum(2 * query, 2 * key, v)


def _chunk(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    return ((query.unsqueeze(3) + key.unsqueeze(2)).tanh_() @ v.unsqueeze(1)).squeeze(-1)


def _split(query: Tensor, key: Tensor) -> tuple[Tensor, ...]:
    return query.split(max(1, CHUNK // (key.numel())), 2)


def additive() -> dict[str, Form]:
    """The sum of tanh at B 4, L 512, d 64, and the whole of scaled-dot attention as a measure."""
    leaves = (torch.randn(4, 1, 512, 64), torch.randn(4, 1, 512, 64), torch.randn(1, 64, 1) / 8)
    forms = {f.__name__: trained(f, leaves) for f in (whole, chunked, checkpointed, ours)}
    return forms | variants_at("scaled_dot", "additive", "additive_fourier", heads=1)


def decoder() -> dict[str, Form]:
    """Twenty steps of one query each, B 64, S 20, d 128, as in a recurrent decoder."""
    leaves = (torch.randn(64, 1, 20, 128), torch.randn(64, 1, 20, 128), torch.randn(1, 128, 1) / 11)

    def steps(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda query, key, v: torch.cat([function(q, key, v) for q in query.split(1, 2)], 2)

    def prepared(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
        twice = 2 * key  # once a source, as in the score
        return torch.cat([tanh_sum(2 * q, twice, v) for q in query.split(1, 2)], 2)

    forms = {"whole": steps(whole), "chunked": steps(chunked), "ours": prepared}
    return {name: trained(function, leaves) for name, function in forms.items()}


def shaw() -> dict[str, Form]:
    """Relative positions at B 4, H 4, L 512, d 64, k 16, beside fused and plain attention."""
    size, width, clip = (4, 4, 512, 64), 64, 16
    leaves = (*(torch.randn(size) for _ in range(3)), *(torch.randn(33, width) for _ in range(2)))
    distance = torch.arange(512) - torch.arange(512)[:, None]
    row = distance.clamp(-clip, clip) + clip

    def table(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        energy = q @ k.transpose(-1, -2) + torch.einsum("bhie,ije->bhij", q, keys[row])
        weights = (energy / width**0.5).softmax(-1)
        return weights @ v + torch.einsum("bhij,ije->bhie", weights, values[row])

    def index(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        spread = (q @ keys.T).gather(-1, row.expand(4, 4, -1, -1))
        weights = ((q @ k.transpose(-1, -2) + spread) / width**0.5).softmax(-1)
        mass = weights.new_zeros(*size[:3], 33).scatter_add(-1, row.expand_as(weights), weights)
        return weights @ v + mass @ values

    plain = {f.__name__: trained(f, leaves) for f in (table, index)}
    names = ("scaled_dot", "shaw_rpr[tables=shared]", "shaw_rpr[use=keys]", "shaw_rpr[use=values]")
    return variants_at(*names, heads=4, regime="self") | plain


def variants_at(*names: str, heads: int, regime: str = "cross") -> dict[str, Form]:
    """Whole variants beneath their heads."""
    shape = AttendShape(batch=4, heads=heads, length=512, width=64, regime=regime)  # type: ignore[arg-type]
    inputs = draw_inputs(shape, torch.device("cpu"), torch.float32, 0)
    built = {name: build(resolve(name), shape, "auto", seed=0) for name in names}
    return {n: Form(forward(v, inputs), forward_backward(v, inputs)) for n, v in built.items()}


def measure(forms: dict[str, Form], rounds: int) -> None:
    """Print a line of JSON for each form."""
    works = {(name, kind): getattr(form, kind) for name, form in forms.items() for kind in KINDS}
    times: dict[tuple[str, str], list[float]] = {work: [] for work in works}
    order = random.Random(0)
    for turn in range(rounds + 1):
        for work in order.sample(sorted(works), len(works)):
            start = time.process_time()
            works[work]()
            if turn:  # the first round warms up
                times[work].append(1000 * (time.process_time() - start))
    first = next(iter(forms))
    for name in forms:
        line: dict[str, object] = {"form": name}
        for kind in KINDS:
            ratio = ratio_interval(np.log(np.divide(times[name, kind], times[first, kind])))
            line[f"{kind}_ms"] = round(statistics.median(times[name, kind]), 2)
            line[f"{kind}_ratio"] = round(ratio.estimate, 4)
            line[f"{kind}_within"] = [round(ratio.low, 4), round(ratio.high, 4)]
            line[f"{kind}_mb"] = round(peak_bytes(works[name, kind], torch.device("cpu")) / 1e6, 1)
        print(json.dumps(line), flush=True)


KINDS = ("forward", "training")
PROBLEMS = {"additive": additive, "decoder": decoder, "shaw": shaw}


def main() -> None:
    parser = argparse.ArgumentParser(description="Wide scores beside plain code.")
    parser.add_argument("problem", choices=sorted(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    load_package("variants")
    measure(PROBLEMS[options.problem](), options.rounds)


if __name__ == "__main__":
    main()
