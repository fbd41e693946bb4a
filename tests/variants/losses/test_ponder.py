from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import LossInputs
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.source import State
from bench.api.trace import Trace


def inputs(*slots: torch.Tensor) -> LossInputs:
    mask = torch.tensor([[True, True, False], [True, False, False]])
    words = torch.zeros(2, 3, dtype=torch.long)
    answers = tuple(
        Attended(torch.zeros(2, 1, 3, 4), None, State(), {"ponder": ponder}) for ponder in slots
    )
    nothing = torch.zeros(2, 3, 0)
    trace = Trace(nothing, nothing, nothing, answers, (None,) * len(slots))
    return LossInputs(trace, torch.zeros(2, 3), Batch((), words, words, mask), 1.0)


def test_hops_of_scored_targets_are_averaged_and_priced():
    ponder = torch.tensor([[2.0, 3.0, 90.0], [4.0, 90.0, 90.0]], requires_grad=True)
    loss = registry.make("loss", parse("ponder[weight=0.1]"))
    term, carry = loss(inputs(ponder), loss.init())
    assert carry == {}
    torch.testing.assert_close(term, torch.tensor(0.3))
    term.backward()
    scored = torch.tensor([[0.1, 0.1, 0.0], [0.1, 0.0, 0.0]]) / 3
    torch.testing.assert_close(ponder.grad, scored)


def test_hops_of_several_slots_add_up():
    ponder = torch.full((2, 3), 2.0)
    loss = registry.make("loss", parse("ponder[weight=1.0]"))
    assert loss(inputs(ponder, 2 * ponder), {})[0].item() == 6.0


def test_slots_that_count_no_hops_cost_nothing_and_one_must_count_them():
    loss = registry.make("loss", parse("ponder[weight=1.0]"))
    given = inputs(torch.full((2, 3), 2.0), torch.full((2, 3), 9.0))
    first, second = given.trace.attended
    mixed = given.trace._replace(attended=(first, second._replace(terms={})))
    assert loss(replace(given, trace=mixed), {})[0].item() == 2.0
    none = given.trace._replace(attended=(second._replace(terms={}),))
    with pytest.raises(Refused, match=r"ponder needs a mechanism that counts its hops; use act\."):
        loss(replace(given, trace=none), {})


def test_it_needs_a_mechanism_that_counts_hops_and_a_target_for_each_query():
    capabilities = frozenset({"padding", "stepwise", "equal_width"})
    assert resolve("act[loss=ponder]").refusal(capabilities | {"causal"}) is None
    reason = resolve("scaled_dot[loss=ponder]").refusal(capabilities | {"causal"})
    assert reason == "ponder needs a mechanism that counts its hops, which nothing here gives."
    assert "within the source" in resolve("act[loss=ponder]").refusal(capabilities | {"self"})


def test_a_negative_price_is_refused():
    with pytest.raises(InvalidConfig, match="weight must be at least 0"):
        registry.make("loss", parse("ponder[weight=-1.0]"))
