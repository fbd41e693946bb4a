"""Every variant in every regime and workload, there and on the host: the same numbers."""

from dataclasses import replace

import torch
from device import NAME, OnDevice, Pretended

from bench.api.axes import CHAIN_AXES
from bench.api.call import REGIMES
from bench.api.errors import Refused
from bench.api.resolve import resolve
from bench.timing.shape import WORKLOADS, AttendShape
from bench.timing.timed_inputs import draw_inputs
from bench.timing.workloads import MAKERS, build

LENGTH = 9


def same_code(spec):
    """Equal where two variants differ only in what stands around attention."""
    if spec.mechanism is not None:
        return spec.mechanism.show()
    return " ".join("+".join(one.show() for one in spec.axes[axis]) for axis in CHAIN_AXES)


def variants_there(names, *, long):
    """Sentences about what differs or breaks; without `long` the same code runs once, padded."""
    wrong, seen, calls = [], set(), 0
    for name in names:
        spec = resolve(name)
        code = same_code(spec)
        if code in seen and not long:
            continue
        seen.add(code)
        for regime in REGIMES:
            shape = AttendShape(batch=2, heads=2, length=LENGTH, width=4, regime=regime)
            try:
                build(spec, shape, "auto", seed=0)
            except Refused:
                continue
            for padded in (False, True) if long else (True,):
                found, count = _compared(spec, shape, padded=padded)
                calls += count
                wrong += [f"{name}, {regime}: {one}" for one in found]
    return wrong, calls


def _compared(spec, shape, *, padded):
    inputs = _padded(draw_inputs(shape, torch.device("cpu"), torch.float32, 0), padded)
    here = build(spec, shape, "auto", seed=0)
    wrong, count = [], 0
    for workload in WORKLOADS:
        try:
            wanted = _called(MAKERS[workload], here, inputs)
        except (Refused, NotImplementedError):
            continue
        count += 1
        try:
            with Pretended():
                there = build(spec, shape, "auto", seed=0).to(NAME)
                found = _called(MAKERS[workload], there, _moved(inputs))
        except Exception as error:  # noqa: BLE001  # whatever breaks is a sentence
            wrong.append(f"{workload}: {type(error).__name__}: {error}")
            continue
        for at, (mine, usual) in enumerate(zip(found, wanted, strict=True)):
            if (mine is None) != (usual is None):
                wrong.append(f"{workload}: result {at} is there on one device alone")
            elif mine is not None and not isinstance(mine, OnDevice):
                wrong.append(f"{workload}: result {at} lies on {mine.device}")
            elif mine is not None and not torch.allclose(
                mine.host, usual, rtol=1e-3, atol=1e-4, equal_nan=True
            ):
                wrong.append(f"{workload}: result {at} differs")
    return wrong, count


def _called(maker, variant, inputs):
    """Output, or the gradients of all parameters."""
    attended = maker(variant, inputs)()
    if attended is None:
        return [parameter.grad for parameter in variant.parameters()]
    return [attended.output]


def _padded(inputs, padded):
    if not padded:
        return inputs
    keys = inputs.source.num_keys
    lengths = torch.tensor([[keys], [max(1, keys - 3)]])
    source = replace(inputs.source, mask=torch.arange(keys).expand(2, -1) < lengths)
    more = replace(inputs.next_source, mask=torch.ones(2, 1, dtype=torch.bool))
    return replace(inputs, source=source, next_source=more)


def _moved(inputs):
    def source(one):
        mask = None if one.mask is None else one.mask.to(NAME)
        there = {name: getattr(one, name).to(NAME) for name in ("key", "value", "tokens")}
        return replace(one, mask=mask, **there)

    tensors = {n: getattr(inputs, n).to(NAME) for n in ("query", "next_query", "gradient")}
    return replace(
        inputs, source=source(inputs.source), next_source=source(inputs.next_source), **tensors
    )
