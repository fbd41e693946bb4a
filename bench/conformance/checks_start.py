"""Starts: parameters that are not drawn begin where their parts declare, and no seed is set."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from bench.api import registry
from bench.api.loss import LOSSES, LossSizes
from bench.api.output import OUTPUTS
from bench.api.resolve import VariantSpec
from bench.api.start import Starting
from bench.conformance.compare import expect, expect_near
from bench.conformance.place import Placed, build_subject
from bench.conformance.run_of_decoder import run_of_decoder

SINGLE = 1e-6
"""Parameters start in float32."""


def start(subject: Placed, spec: VariantSpec) -> None:
    """What is the same under two seeds is declared, and begins at what is declared."""
    one, two = (_fresh(subject, spec, seed) for seed in (1, 2))
    for (name, part), (_, other) in zip(_parts(one), _parts(two), strict=True):
        mine, others = _own(part), _own(other)
        _declared_begin_there(name, part.starts, mine)
        for parameter, value in mine.items():
            drawn = not torch.equal(value, others[parameter]) or not value.numel()
            if parameter not in part.starts:
                sentence = f"{name}: {parameter} is not drawn, and `starts` does not declare it"
                expect(drawn, f"{sentence} (it begins with {value.flatten()[0]:.4g})")


def _declared_begin_there(
    name: str, declared: Mapping[str, float | Tensor], parameters: Mapping[str, Tensor]
) -> None:
    for parameter, begin in declared.items():
        expect(parameter in parameters, f"{name} declares a start of {parameter}, and has none")
        value = parameters[parameter].detach()
        wanted = torch.as_tensor(begin, dtype=value.dtype).expand_as(value)
        sentence = f"{name}: {parameter} starts elsewhere than declared"
        expect_near(value, wanted, SINGLE, sentence)


def _fresh(subject: Placed, spec: VariantSpec, seed: int) -> nn.ModuleDict:
    """The slot, the output and the losses as training begins with them."""
    impl = subject.variant.impl
    sizes = run_of_decoder(subject).sizes
    built = build_subject(spec, subject.placement, impl, fresh=seed)
    sentence = "building it sets the seed of torch, so that all seeds of a run start alike"
    expect(not built.reseeded, sentence)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        output = registry.make(OUTPUTS, spec.axes["output"][0], sizes)
        losses = [registry.make(LOSSES, selector) for selector in spec.axes["loss"]]
        for loss in losses:
            loss.attach(LossSizes(sizes.source, sizes.states, sizes.embedded))
    return nn.ModuleDict({"slot": built.slot, "output": output, "losses": nn.ModuleList(losses)})


def _parts(whole: nn.Module) -> Iterator[tuple[str, Starting]]:
    """Every part that can declare where it starts, by the name of its class."""
    for module in whole.modules():
        if isinstance(module, Starting):
            yield type(module).__name__, module


def _own(part: Starting) -> dict[str, Tensor]:
    """Parameters that belong to a part and to none inside it."""
    inner = {
        id(parameter)
        for module in part.modules()
        if module is not part and isinstance(module, Starting)
        for parameter in module.parameters()
    }
    return {name: p for name, p in part.named_parameters() if id(p) not in inner}
