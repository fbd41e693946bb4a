"""What is trained: one backbone, or two directions that share a batch and a joint loss."""

import copy
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bench.api.backbone import Backbone
from bench.api.batch import Batch, Text
from bench.api.loss import JointLoss, Loss, LossInputs
from bench.api.trace import Mode, Trace

Carry = dict[str, dict[str, Tensor]]
"""What each loss carries from step to step; part of a checkpoint."""

BACK = "_back"
"""Ends the names of terms of the second direction."""


class System(nn.Module):
    """Backbones and the losses summed over them."""

    def __init__(
        self,
        there: Backbone,
        losses: dict[str, Loss],
        back: Backbone | None = None,
        joint: JointLoss | None = None,
    ) -> None:
        super().__init__()
        self.there = there
        self.back = back
        self.joint = joint
        self.named_losses = losses
        # a loss with parameters learns those of one direction; the other begins as its copy
        self.back_losses = copy.deepcopy(losses) if back is not None else {}
        self.terms = nn.ModuleDict(losses)
        self.back_terms = nn.ModuleDict(self.back_losses)

    def init_carry(self) -> Carry:
        """Carry before the first step, of each loss in each direction."""
        ends = ("",) if self.back is None else ("", BACK)
        return {name + end: loss.init() for name, loss in self.named_losses.items() for end in ends}

    @property
    def wants_weights(self) -> bool:
        """Whether training asks for single weights, because a loss or an output reads them."""
        parts = [*self.named_losses.values(), self.there.output]
        return self.joint is not None or any("weights" in part.needs for part in parts)

    def losses(
        self, batch: Batch, mode: Mode, carry: Carry
    ) -> tuple[dict[str, Float[Tensor, ""]], Carry]:
        """Terms to be summed and minimized (nats per target token), and the next carry."""
        copies = max((loss.copies for loss in self.named_losses.values()), default=1)
        batch = repeat_batch(batch, copies)
        there = self._inputs(self.there, batch, mode, copies)
        terms, after = self._terms(self.there, there, self.named_losses, carry, "")
        if self.back is not None and self.joint is not None:
            back = self._inputs(self.back, reverse_batch(batch), mode.backwards(), copies)
            more, next_carry = self._terms(self.back, back, self.back_losses, carry, BACK)
            terms |= {**more, "joint": self.joint(there, back)}
            after |= next_carry
        return terms, after

    def _terms(
        self,
        backbone: Backbone,
        inputs: LossInputs,
        losses: dict[str, Loss],
        carry: Carry,
        end: str,
    ) -> tuple[dict[str, Float[Tensor, ""]], Carry]:
        """Likelihood and losses of one direction, named with its ending."""
        terms, after = {f"nll{end}": _per_token(inputs)}, {}
        own = backbone.output.own_losses(inputs.trace, backbone.emit, inputs.batch)
        terms |= {name + end: term for name, term in own.items()}
        for name, loss in losses.items():
            terms[name + end], after[name + end] = loss(inputs, carry[name + end])
        return terms, after

    @staticmethod
    def _inputs(backbone: Backbone, batch: Batch, mode: Mode, copies: int) -> LossInputs:
        batch = backbone.arrange(batch)
        trace = backbone(batch, mode)
        nll = negative_log_likelihood(backbone, trace, batch)
        return LossInputs(trace, nll, batch, mode.progress, copies)


def negative_log_likelihood(
    backbone: Backbone, trace: Trace, batch: Batch
) -> Float[Tensor, "B ..."]:
    """What training minimizes, for each target (nats), zero where the batch does not score.

    Of numbers: that of a normal distribution with unit variance, less its constant, which is half
    the squared error.
    """
    if batch.values is None:
        return backbone.output.nll(trace, backbone.emit, batch)
    missed = predicted_values(backbone, trace) - batch.values
    return torch.where(batch.mask, missed.square().sum(-1) / 2, 0.0)


def predicted_values(backbone: Backbone, trace: Trace) -> Float[Tensor, "B T K"]:
    """The numbers that a network predicts: its output layer, taken as it is."""
    return backbone.emit(trace.states, trace.context, trace.embedded)


def _per_token(inputs: LossInputs) -> Float[Tensor, ""]:
    """Mean over scored tokens; outputs without a factor per token give one number a row."""
    return inputs.nll.sum() / inputs.batch.mask.sum().clamp(min=1)


def repeat_batch(batch: Batch, count: int) -> Batch:
    """Every example `count` times, its copies one after the other."""
    if count == 1:
        return batch

    rows = torch.arange(len(batch.targets), device=batch.targets.device)
    return batch.select(rows.repeat_interleave(count))


def reverse_batch(batch: Batch) -> Batch:
    """Swap source and target: what the other direction of a reversible pair is trained on.

    Both sides end in EOS, so targets are the source tokens and the source is the targets. A word
    with several links spreads its gold row over them.
    """
    text = batch.sources[0]
    gold = None
    if batch.gold is not None:
        # the share of a link in the row of a target word says nothing of the other direction
        links = (batch.gold.transpose(1, 2) > 0).to(batch.gold.dtype)
        gold = links / links.sum(-1, keepdim=True).clamp(min=1)
    real = text.mask if text.mask is not None else torch.ones_like(text.tokens, dtype=torch.bool)
    start = batch.inputs[:, :1]
    return replace(
        batch,
        sources=(Text(batch.targets, batch.mask),),
        inputs=torch.cat((start, text.tokens[:, :-1]), 1),
        targets=text.tokens,
        mask=real,
        extended=batch.targets,
        gold=gold,
    )
