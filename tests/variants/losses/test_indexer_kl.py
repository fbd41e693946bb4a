import pytest
import torch

from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.cell import Cell
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import LossInputs
from bench.api.resolve import resolve
from bench.api.source import State
from bench.api.trace import Mode, Trace
from bench.training.assemble import assemble
from variants.lightning_indexer import KEY, KL, QUERY, WEIGHT
from variants.losses.indexer_kl import IndexerKl, IndexerKlConfig

MASK = torch.tensor([[False, True, True, False], [True, False, False, False]])
"""Three scored targets: the first row counts three queries, the second one."""


def inputs(*layers):
    """What the loss sees of layers with these divergences; None says none."""
    blank = torch.zeros(2, 4, 1, dtype=torch.float64)
    words = torch.zeros(2, 4, dtype=torch.int64)
    terms = [{} if s is None else {KL: torch.tensor(s).double()} for s in layers]
    attended = tuple(Attended(blank[:, None], None, State(), found) for found in terms)
    trace = Trace(blank, blank, blank, attended, (None,) * len(attended))
    return LossInputs(trace, blank[..., 0], Batch((), words, words, MASK), 0.5)


def cost(*layers, weight=1.0):
    found, _ = IndexerKl(IndexerKlConfig(weight=weight))(inputs(*layers), {})
    return float(found)


ONE = [[1.0, 2.0, 6.0, 90.0], [5.0, 90.0, 90.0, 90.0]]


def test_it_is_the_mean_over_queries_of_rows_that_count_by_their_targets():
    """(2 * (1 + 2 + 6) / 3 + 1 * 5) / 3, and nothing behind the last scored target."""
    assert cost(ONE) == pytest.approx(11 / 3)


def test_layers_are_added_and_those_without_an_indexer_cost_nothing():
    assert cost(ONE, ONE) == pytest.approx(22 / 3)
    assert cost(ONE, None) == pytest.approx(11 / 3)


def test_where_no_layer_has_an_indexer_it_is_refused():
    with pytest.raises(Refused, match="needs attention with an indexer; use dsa or csa"):
        cost(None)


def test_the_weight_multiplies_and_must_not_be_negative():
    assert cost(ONE, weight=0.5) == pytest.approx(11 / 6)
    with pytest.raises(InvalidConfig, match="weight must be at least 0, got -1"):
        IndexerKlConfig(weight=-1.0)


def test_attention_without_an_indexer_is_refused():
    given = frozenset({"causal", "padding", "equal_width"})
    reason = resolve("scaled_dot[loss=indexer_kl]").refusal(given)
    assert reason == "indexer_kl needs an indexer that chooses keys, which nothing here gives."
    assert resolve("dsa").refusal(given) is None


@pytest.mark.parametrize("variant", ["dsa", "dsa[loss=none]"])
def test_a_quality_cell_trains_the_indexer_by_it_alone(variant):
    """One step of a cell of two layers: who gets a gradient, with the loss and without it."""
    task = "recall[pairs=2,more_pairs=4,vocab=16,evaluate=4]"
    cell = Cell(
        kind="quality",
        variant=variant,
        task=task,
        backbone=BACKBONE,
        slot="causal",
        protocol="adam",
    )
    built = assemble(cell, None)
    batch = next(iter(built.task.training(4, torch.Generator().manual_seed(0))))
    system = built.system
    terms, _ = system.losses(batch, Mode(read="train", progress=0.5), system.init_carry())
    assert set(terms) == ({"nll", "indexer_kl"} if variant == "dsa" else {"nll"})
    sum(terms.values()).backward()
    for name, parameter in system.named_parameters():
        indexes = any(word in name for word in (QUERY, WEIGHT, KEY))
        learns = parameter.grad is not None and bool(parameter.grad.any())
        if indexes:
            assert learns == (variant == "dsa"), name
    system.zero_grad()
    if variant == "dsa":
        terms, _ = system.losses(batch, Mode(read="train", progress=0.5), system.init_carry())
        terms["indexer_kl"].backward()
        for name, parameter in system.named_parameters():
            learns = parameter.grad is not None and bool(parameter.grad.any())
            assert learns == any(word in name for word in (QUERY, WEIGHT, KEY)), name


BACKBONE = "transformer_decoder[width=16,layers=2,heads=2]"
