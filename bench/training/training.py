"""A system on its way: one update after the other, by the protocol of its cell."""

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import nn

from bench.api.batch import Batch
from bench.api.errors import Diverged
from bench.api.metric import Metric
from bench.api.noise import Noise
from bench.api.trace import Mode
from bench.training.evaluate import Clock, Evaluated
from bench.training.patience import Patience
from bench.training.protocol import AdamProtocol
from bench.training.system import Carry, System


@dataclass
class Training:
    """A system on its way: optimizer, carry, clocks and the curve so far."""

    system: System
    optimizer: torch.optim.Optimizer
    protocol: AdamProtocol
    clock: Clock
    seed: int
    carry: Carry
    precision: AbstractContextManager[object] = field(default_factory=nullcontext)
    """Entered where the losses of a step are computed."""
    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    losses: list[float] = field(default_factory=list)
    step_seconds: list[float] = field(default_factory=list)
    curve: list[tuple[int, float]] = field(default_factory=list)
    """Steps and scores of the validations."""
    patience: Patience = field(init=False)
    looked: int = 0
    """Updates before the last validation."""
    longest: Batch | None = None
    """A batch of the longest sequences up to now."""

    def __post_init__(self) -> None:
        """Start with a rate that was not halved."""
        self.patience = Patience(self.protocol)

    def pass_over(self, batch: Batch) -> None:
        """Take note of a batch, as an update does."""
        if self.longest is None or batch.inputs.shape[1] > self.longest.inputs.shape[1]:
            self.longest = batch

    def update(self, batch: Batch) -> None:
        """Take one step on one batch.

        Raises:
            Diverged: The loss or its gradient is not finite.
        """
        self.pass_over(batch)
        start = self.clock()
        protocol = self.protocol
        for group in self.optimizer.param_groups:
            group["lr"] = protocol.rate_at(self.step) * self.patience.rate
        mode = Mode(
            read="train",
            noise=Noise(self.seed * 1_000_003 + self.step),
            progress=self.share,
            want_weights=self.system.wants_weights,
        )
        self.optimizer.zero_grad(set_to_none=True)
        with self.precision:
            terms, self.carry = self.system.losses(batch, mode, self.carry)
        loss = torch.stack(list(terms.values())).sum() if len(terms) > 1 else terms["nll"]
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.system.parameters(), protocol.clip)
        self.optimizer.step()
        # one look at all four: each makes the host wait for a GPU
        seen = (terms["nll"].detach(), loss.detach(), norm, batch.mask.sum())
        value, whole, length, tokens = torch.stack([one.double() for one in seen]).tolist()
        taken = self.clock() - start
        self.step += 1
        self.seconds += taken
        self.step_seconds.append(taken)
        self.tokens += int(tokens)
        self.losses.append(value)
        if not math.isfinite(whole):
            raise Diverged(f"the training loss was {whole} at step {self.step}.")
        if not math.isfinite(length):  # the parameters are lost, which no later loss may show
            raise Diverged(f"the norm of the gradient was {length} at step {self.step}.")

    def look(self, validated: Evaluated, reached: float | None, watched: Metric) -> None:
        """Keep the score of a validation, and its weights if it is the best one."""
        self.looked = self.step
        if reached is not None:
            self.curve.append((self.step, reached))
        self.patience.look(self.step, reached, validated, self.system, watched)

    def is_good(self, watched: Metric) -> bool:
        """Whether the last validation is as good as the protocol asks for."""
        level = self.protocol.stop_at
        if level <= 0 or not self.curve or self.curve[-1][0] != self.step:
            return False
        reached = self.curve[-1][1]
        return reached <= level if watched.better == "lower" else reached >= level

    @property
    def finished(self) -> bool:
        """Whether the budget is spent."""
        limit = self.protocol.cpu_seconds
        return self.step >= self.protocol.steps or (limit > 0 and self.seconds >= limit)

    @property
    def share(self) -> float:
        """Share of the budget that is spent."""
        shares = [self.step / self.protocol.steps]
        if self.protocol.cpu_seconds > 0:
            shares.append(self.seconds / self.protocol.cpu_seconds)
        return min(1.0, max(shares))


def start_training(
    system: System,
    protocol: AdamProtocol,
    seed: int,
    clock: Clock,
    precision: AbstractContextManager[object] | None = None,
) -> Training:
    """Make the optimizer, AdamW, for a system that is already on its device."""
    optimizer = torch.optim.AdamW(
        system.parameters(), lr=protocol.lr, weight_decay=protocol.weight_decay, fused=True
    )
    carry = system.init_carry()
    return Training(system, optimizer, protocol, clock, seed, carry, precision or nullcontext())
