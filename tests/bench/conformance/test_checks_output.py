"""The check `output`: planted defects of outputs, and every option of every output."""

import pytest
import torch

from bench.api.config import NoOptions
from bench.api.registry import registrations
from bench.conformance import as_text, certify
from variants.outputs.copynet import CopyNetConfig, CopyNetOutput
from variants.outputs.neural_cache import NeuralCacheConfig, NeuralCacheOutput
from variants.outputs.pointer_generator import PointerGeneratorConfig, PointerGeneratorOutput
from variants.outputs.pointer_sentinel import PointerSentinelConfig, PointerSentinelOutput
from variants.outputs.softmax import SoftmaxOutput


def red(plant, target, config=NoOptions, score="additive"):
    plant("output", target, config)
    found = certify(f"{score}[output=planted]", checks=["output"])
    assert not found.green(), "the defect was not found"
    return found.failed["output"]


def test_a_distribution_that_is_not_normalized(plant):
    class Raw(SoftmaxOutput):
        def log_probs(self, trace, emit, batch):
            logits = emit(trace.states, trace.context, trace.embedded)
            return torch.nn.functional.pad(logits, (0, batch.num_extra), value=-torch.inf)

    assert "probabilities of all words sum to another" in red(plant, Raw)


def test_likelihoods_that_forget_to_normalize(plant):
    class Raw(SoftmaxOutput):
        def nll(self, trace, emit, batch):
            logits = emit(trace.states, trace.context, trace.embedded)
            known = torch.where(batch.targets < self.sizes.vocab, batch.targets, self.sizes.unk)
            return torch.where(batch.mask, -logits.gather(-1, known[..., None])[..., 0], 0.0)

    assert "the likelihood of row 0 differs" in red(plant, Raw)


def test_a_gate_that_is_inverted(plant):
    class Inverted(PointerGeneratorOutput):
        def _gates(self, states, context, embedded):
            generate, copy = super()._gates(states, context, embedded)
            return copy, generate

    assert "differs from the loops" in red(plant, Inverted, PointerGeneratorConfig)


def test_a_gradient_that_is_cut_in_the_gate(plant):
    class Cut(PointerGeneratorOutput):
        def _gates(self, states, context, embedded):
            return super()._gates(states.detach(), context, embedded)

    assert "the gradient of the states" in red(plant, Cut, PointerGeneratorConfig)


def test_copies_of_padding(plant):
    class Padded(CopyNetOutput):
        def _copy_scores(self, trace):
            scores = super()._copy_scores(trace)
            return torch.where(scores < -1e29, 0.0, scores)

    assert "differ" in red(plant, Padded, CopyNetConfig)


def test_a_cache_that_forgets_its_last_step_in_decoding(plant):
    class Forgetful(NeuralCacheOutput):
        def step(self, trace, emit, batch, words, carried):
            said, _ = super().step(trace, emit, batch, words, carried)
            return said, carried

    assert "said alone" in red(plant, Forgetful, NeuralCacheConfig)


def test_an_own_loss_that_is_divided_by_rows(plant):
    class Unit(PointerSentinelOutput):
        def own_losses(self, trace, emit, batch):
            (term,) = super().own_losses(trace, emit, batch).values()
            return {"gate": term * batch.mask.sum() / len(batch.mask)}

    assert "nats per target" in red(plant, Unit, PointerSentinelConfig)


def test_targets_that_are_not_scored_and_cost_something(plant):
    class Unmasked(SoftmaxOutput):
        def nll(self, trace, emit, batch):
            found = self.log_probs(trace, emit, batch)
            known = torch.where(batch.targets < self.sizes.vocab, batch.targets, self.sizes.unk)
            return -found.gather(-1, known[..., None])[..., 0]

    assert "not scored cost something" in red(plant, Unmasked)


OPTIONS = (
    "pointer_generator[force_copy=true]",
    "pointer_generator[heads=1]",
    "copynet[selective_read=false]",
    "lexicon_linear[gate=state]",
    "neural_cache[in_training=true]",
    "neural_cache[window=1]",
    "pointer_sentinel[gate_loss=0.0,window=1]",
    "ssnt[end=sum]",
    "conv_copy[filters1=3,filters2=3,width1=2,width2=3,width3=1]",
)


@pytest.mark.parametrize("selector", [*registrations("output"), *OPTIONS])
def test_every_output_holds_with_each_of_its_choices(selector):
    found = certify(f"additive[output={selector}]", checks=["output"])
    assert found.green(), as_text([found])


def test_likelihoods_that_are_wrong_where_there_is_no_memory(plant):
    class Halved(SoftmaxOutput):
        def nll(self, trace, emit, batch):
            found = super().nll(trace, emit, batch)
            return 0.5 * found if trace.memories[0] is None else found

    assert red(plant, Halved).startswith("causal")


def test_an_output_that_reads_a_source_is_left_out_where_there_is_none():
    found = certify("lexicon_bias", checks=["output"], regimes=["causal"])
    assert "its output reads a source" in found.skipped["output"]
    assert certify("lexicon_bias", checks=["output"]).green()
