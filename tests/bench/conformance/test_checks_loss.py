"""The check `loss`: planted defects of losses, and every option of every loss."""

import pytest
import torch

from bench.api.registry import registrations
from bench.api.selector import parse
from bench.conformance import as_text, certify
from variants.losses.agreement_trace import AgreementTraceConfig, AgreementTraceLoss
from variants.losses.coverage_eq1 import CoverageEq1Config, CoverageEq1Loss
from variants.losses.coverage_loss import CoverageLoss, CoverageLossConfig
from variants.losses.ponder import PonderConfig, PonderLoss
from variants.losses.reinforce import ReinforceConfig, ReinforceLoss


def red(plant, target, config, selector="additive[loss=planted]"):
    plant("loss", target, config)
    found = certify(selector, checks=["loss"])
    assert not found.green(), "the defect was not found"
    return found.failed["loss"]


def test_a_loss_with_the_wrong_sign(plant):
    class Reward(CoverageEq1Loss):
        def forward(self, inputs, carry):
            term, carry = super().forward(inputs, carry)
            return -term, carry

    assert "differs from the loops" in red(plant, Reward, CoverageEq1Config)


def test_a_loss_in_another_unit(plant):
    class OfRows(CoverageEq1Loss):
        def forward(self, inputs, carry):
            term, carry = super().forward(inputs, carry)
            mask = inputs.batch.mask
            return term * mask.sum() / len(mask), carry

    assert "nats per scored target" in red(plant, OfRows, CoverageEq1Config)


def test_a_loss_that_counts_targets_that_are_not_scored(plant):
    class Unmasked(CoverageLoss):
        def forward(self, inputs, carry):
            weights = inputs.trace.weights
            before = weights.cumsum(1) - weights
            total = torch.minimum(weights, before).sum()
            return self.config.weight * total / inputs.batch.mask.sum(), carry

    assert "differs from the loops" in red(plant, Unmasked, CoverageLossConfig)


def test_a_reward_whose_gradient_goes_into_the_likelihood(plant):
    class Leaking(ReinforceLoss):
        def _reward(self, inputs):
            return (
                torch.where(inputs.batch.mask, -inputs.nll, 0.0)
                .sum(1, keepdim=True)
                .expand(-1, inputs.nll.shape[1])
            )

    sentence = red(plant, Leaking, ReinforceConfig, "hard_reinforce[loss=planted]")
    assert "in the gradient of the likelihood" in sentence


def test_a_surrogate_whose_log_probability_is_held_still(plant):
    class Stopped(ReinforceLoss):
        def forward(self, inputs, carry):
            term, carry = super().forward(inputs, carry)
            return term.detach() + 0 * inputs.nll.sum(), carry

    sentence = red(plant, Stopped, ReinforceConfig, "hard_reinforce[loss=planted]")
    assert "in the gradient of" in sentence


def test_a_joint_loss_that_punishes_agreement(plant):
    class Contrary(AgreementTraceLoss):
        def forward(self, there, back):
            return -super().forward(there, back)

    plant("joint", Contrary, AgreementTraceConfig)
    found = certify("additive[direction=both[joint=planted]]", checks=["loss"])
    assert "differs from the loops" in found.failed["loss"]


CHOICES = {
    "ponder": "act[loss=ponder]",
    "mi_coverage_norm": "mi_coverage",
    "indexer_kl": "dsa[loss=indexer_kl[weight=0.5]]",
    "quantity": "raffel_monotonic[loss=quantity[weight=0.5]]",
    "quantity[end=false]": "raffel_monotonic[loss=quantity[end=false]]",
    "latency": "mma_h[loss=latency[heads=leading,variance=0.3,weight=0.2]]",
    "rationale": "rationale[coherence=0.1,sparsity=0.3]",
    "rationale[baseline=none]": "rationale[baseline=none]",
    "reinforce": "hard_reinforce",
    "reinforce[baseline=none]": "hard_reinforce[loss=reinforce[baseline=none,reward=rest]]",
    "reinforce[baseline=learned]": "hard_reinforce[loss=reinforce[baseline=learned,reward=token]]",
    "reinforce[baseline=leave_one_out]": "hard_reinforce[loss=reinforce[baseline=leave_one_out]]",
    "span_penalty": "adaptive_span[loss=span_penalty[weight=0.05]]",
    "supervised": "additive[loss=supervised]",
    "supervised[distance=mul]": "additive[loss=supervised[distance=mul,unaligned=copy_prev]]",
    "supervised[distance=mse]": "additive[loss=supervised[distance=mse,unaligned=copy_next]]",
    "supervised[unaligned=null]": "additive[loss=supervised[smoothing=1.0,unaligned=null]]",
    "coverage_eq1": "coverage_eq1",
    "coverage_eq1[leave_out=ends]": "coverage_eq1[leave_out=ends]",
    "coverage_loss": "coverage_loss",
    "doubly_stochastic": "doubly_stochastic",
    "doubly_stochastic[target=ratio]": "doubly_stochastic[target=ratio]",
    "fertility_hinge": "fertility_hinge[leave_out=none,limit=0.5]",
    "global_fertility": "global_fertility",
    "global_fertility[distribution=lognormal]": "global_fertility[distribution=lognormal]",
    "agreement_l2": "agreement_l2",
    "agreement_trace": "agreement_trace",
}
"""Loss -> a variant that trains with it."""


def test_every_loss_is_here():
    known = {*registrations("loss"), *registrations("joint")}
    assert known == {parse(name).name for name in CHOICES}


@pytest.mark.parametrize("name", CHOICES)
def test_every_loss_holds_with_each_of_its_choices(name):
    found = certify(CHOICES[name], checks=["loss"])
    assert found.passed == ("loss",), as_text([found])


def test_a_loss_with_the_wrong_sign_where_there_is_no_memory(plant):
    class Reward(PonderLoss):
        def forward(self, inputs, carry):
            term, carry = super().forward(inputs, carry)
            return (-term if inputs.trace.memories[0] is None else term), carry

    sentence = red(plant, Reward, PonderConfig, "act[loss=planted]")
    assert sentence.startswith("causal")
