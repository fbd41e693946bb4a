"""Every loss is in the unit of the likelihood: a term of its paper, divided by target tokens.

Papers add their terms to likelihoods that are summed over words. Here the likelihood is divided by
the number of scored target tokens, so each term is divided by it, too. A batch of sentences that
are written twice, one after the other, has twice the tokens, and what a paper sums over words
doubles with them. What a paper has once a sentence does not.
"""

from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.batch import Batch, Text
from bench.api.call import Attended
from bench.api.loss import JOINTS, LOSSES, LossInputs, LossSizes
from bench.api.selector import parse
from bench.api.source import Memory, Source, State
from bench.api.trace import Trace

TWICE_AS_LONG = {
    "coverage_eq1": 1.0,
    "coverage_loss[start=0]": 1.0,
    "doubly_stochastic": 1.0,
    "fertility_hinge[limit=1.0]": 1.0,
    "global_fertility[start=0]": 1.0,
    "indexer_kl": 1.0,  # each scored target has the mean over queries
    "latency[variance=0.5]": 0.5,  # once a sentence
    "mi_coverage_norm": 1.0,
    "ponder": 1.0,
    "quantity": 1.0,
    "rationale[baseline=none]": 2.0,  # the costs of a sentence times its log probabilities
    "reinforce[baseline=none,reward=token]": 1.0,
    "reinforce[baseline=none,entropy=0.0]": 2.0,  # the reward of a sentence times its draws
    "span_penalty": 1.0,  # each scored target has the span of its layer
    "supervised": 1.0,
}
"""How much a loss grows if each sentence is written twice."""
JOINTLY = {"agreement_trace": 1.0, "agreement_l2": 1.0}
TERMS = (
    "ponder",
    "log_prob",
    "entropy",
    "coverage_left",
    "expected_delay",
    "delay_leading",
    "delay_variance",
    "span",
    "indexer_kl",
)


def draw(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=rng, dtype=torch.float64)


def sentence(steps, keys, seed=0):
    """What a loss sees of one sentence pair without padding."""
    # a tenth of the weight is missing, as where a walk can run off the end
    weights = 0.9 * torch.softmax(3 * draw(1, 1, steps, keys, seed=seed), -1)
    terms = {name: draw(1, steps, seed=seed + 1 + n) for n, name in enumerate(TERMS)}
    selection = {name: draw(1, keys, seed=seed + 9 + n) for n, name in enumerate(SELECTED)}
    selection["real"] = torch.ones(1, keys, dtype=torch.float64)
    gold = torch.nn.functional.one_hot(torch.arange(steps) % keys, keys).double()[None]
    states = draw(1, keys, 2, seed=seed + 20)
    return seen(weights, terms, selection, gold, states, draw(1, steps, seed=seed + 30))


SELECTED = ("selected", "log_prob")


def seen(weights, terms, selection, gold, states, nll, mask=None, real=None):
    rows, _, steps, keys = weights.shape
    mask = torch.ones(rows, steps, dtype=torch.bool) if mask is None else mask
    words = torch.full((rows, keys), 5)
    blank = weights.new_zeros(rows, steps, 1)
    memory = Memory(Source(states[:, None], states[:, None], real, words))
    attended = Attended(blank[:, None], weights, State(), terms)
    trace = Trace(blank, blank, blank, (attended,), (memory,), (selection,))
    targets = torch.full((rows, steps), 5)
    batch = Batch((Text(words, real),), targets, targets, mask, extended=words, gold=gold)
    return LossInputs(trace, nll, batch, 0.5)


def parts(given):
    """The tensors that `seen` takes."""
    trace, batch = given.trace, given.batch
    states = trace.memories[0].source.value[:, 0]
    attended = trace.attended[0]
    return attended.weights, attended.terms, trace.source_terms[0], batch.gold, states, given.nll


def twice(given):
    """The sentence and its copy as one sentence: each copy attends to its own words."""
    weights, terms, selection, gold, states, nll = parts(given)
    keys = weights.shape[-1]
    later = {"expected_delay": keys, "delay_leading": keys}
    # what is left of the coverage is summed over all keys, and both copies leave theirs
    longer = {k: torch.cat((v, v + later.get(k, 0)), 1) for k, v in terms.items()}
    longer["coverage_left"] = 2 * longer["coverage_left"]
    return seen(
        torch.block_diag(weights[0, 0], weights[0, 0])[None, None],
        longer,
        {name: torch.cat((value, value), 1) for name, value in selection.items()},
        torch.block_diag(gold[0], gold[0])[None],
        torch.cat((states, states), 1),
        torch.cat((nll, nll), 1),
    )


def batched(given):
    """The sentence twice in one batch."""
    weights, terms, selection, gold, states, nll = parts(given)

    def rows(value):
        return torch.cat((value, value))

    both = [{name: rows(value) for name, value in one.items()} for one in (terms, selection)]
    return seen(rows(weights), *both, rows(gold), rows(states), rows(nll))


def padded(given, more=3):
    """The sentence with padding at its end: no weight on padded keys, noise at padded steps."""
    weights, terms, selection, gold, states, nll = parts(given)
    _, _, steps, keys = weights.shape

    def longer(value, fill):
        return torch.cat((value, torch.full((1, more), fill, dtype=value.dtype)), 1)

    wide = torch.nn.functional.pad(weights, (0, more))
    noise = wide[:, :, -1:].expand(-1, -1, more, -1)
    return seen(
        torch.cat((wide, noise), 2),
        {name: longer(value, 7.0) for name, value in terms.items()},
        {name: longer(value, 0.0) for name, value in selection.items()},
        torch.nn.functional.pad(gold, (0, more, 0, more), value=0.0),
        torch.nn.functional.pad(states, (0, 0, 0, more), value=7.0),
        longer(nll, 0.0),
        mask=torch.arange(steps + more)[None] < steps,
        real=torch.arange(keys + more)[None] < keys,
    )


def measure(selector, given):
    loss = registry.make(LOSSES, parse(selector))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        loss.attach(LossSizes(source=2, states=1, embedded=1))
    return loss.double()(given, loss.init())[0].item()


def test_every_loss_is_here():
    assert {parse(name).name for name in TWICE_AS_LONG} == set(registry.registrations(LOSSES))
    assert set(JOINTLY) == set(registry.registrations(JOINTS))


@pytest.mark.parametrize(("selector", "factor"), TWICE_AS_LONG.items())
def test_a_loss_is_divided_by_the_target_tokens(selector, factor):
    given = sentence(3, 4)
    once = measure(selector, given)
    assert abs(once) > 1e-6
    assert measure(selector, twice(given)) == pytest.approx(factor * once)
    assert measure(selector, batched(given)) == pytest.approx(once)


@pytest.mark.parametrize("selector", [*TWICE_AS_LONG, "rationale[baseline=none,coherence=0.5]"])
def test_padding_changes_no_loss(selector):
    given = sentence(3, 4)
    assert measure(selector, padded(given)) == pytest.approx(measure(selector, given))


@pytest.mark.parametrize(("name", "factor"), JOINTLY.items())
def test_a_joint_loss_is_divided_by_the_target_tokens(name, factor):
    joint = registry.make(JOINTS, parse(name))
    there, back = sentence(3, 4), sentence(4, 3, seed=50)
    once = joint(there, back).item()
    assert abs(once) > 1e-6
    assert joint(twice(there), twice(back)).item() == pytest.approx(factor * once)
    assert joint(batched(there), batched(back)).item() == pytest.approx(once)
    assert joint(padded(there), padded(back)).item() == pytest.approx(once)
    silent = replace(there, nll=there.nll + 1)
    assert joint(silent, back).item() == pytest.approx(once)
