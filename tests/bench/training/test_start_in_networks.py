"""Attention of a fresh network on its own task starts on several keys, or a part says why not.

The certificate asks this of states of variance one. Here the states are those of the encoder and
decoder of a variant's default task, at the sizes of `quick`, before the first step.
"""

import pytest
import torch

from bench.api.errors import DataUnavailable, Refused
from bench.api.loading import load_package
from bench.api.noise import Noise
from bench.api.start import Starting
from bench.api.trace import Mode
from bench.conformance.checks_start_entropy import LOW
from bench.running.plan import plan
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.protocol import read_protocol

load_package("variants")
load_package("tasks")
CELLS = {
    one.spec.name: one.cell
    for one in plan(Request(variants="all", preset="quick", speed=False, minutes=600)).quality
    if one.cell.seed == 0
}


ONE_KEY = {"last_state"}
"""What reads one key by its definition."""


def shares(weights, real):
    """Entropy of each query with several keys, over that of equal weights."""
    seen = torch.where(real, weights.double(), 0.0)
    seen = seen / seen.sum(-1, keepdim=True).clamp_min(1e-300)
    entropy = -torch.special.xlogy(seen, seen).sum(-1)
    count = real.sum(-1).expand_as(entropy)
    asked = (count > 1) & (seen.sum(-1) > 0.5)
    return entropy[asked] / count[asked].double().log()


def real_keys(batch, weights):
    queries, keys = weights.shape[-2:]
    mask = batch.state_mask() if batch.sources else None
    if mask is not None and mask.shape[1] == keys:
        return mask[:, None, None, :].expand(-1, 1, queries, keys)
    return torch.ones(queries, keys, dtype=torch.bool).tril().expand(len(weights), 1, -1, -1)


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_a_fresh_network_looks_at_several_keys(name):
    cell = CELLS[name]
    torch.manual_seed(0)
    try:
        built = assemble(cell, None)
    except (Refused, DataUnavailable) as error:
        pytest.skip(str(error))
    generator = torch.Generator().manual_seed(0)
    batch = next(iter(built.task.training(read_protocol(cell.protocol).batch, generator)))
    with torch.no_grad():
        trace = built.system.there.eval()(batch, Mode(read="expected", noise=Noise(0)))
    found = [
        shares(one.weights, real_keys(batch, one.weights))
        for one in trace.attended
        if one.weights is not None
    ]
    if name in ONE_KEY or not sum(map(len, found)):
        pytest.skip("no weights of several keys")
    if any(bool((one.weights < 0).any()) for one in trace.attended if one.weights is not None):
        pytest.skip("weights with a sign have no entropy")
    start = float(torch.cat(found).mean())
    parts = [one for one in built.system.modules() if isinstance(one, Starting)]
    declared = [one.starts_outside for one in parts if one.starts_outside]
    assert start >= LOW or declared, f"{start:.2f} of the uniform entropy, and no part says why"
