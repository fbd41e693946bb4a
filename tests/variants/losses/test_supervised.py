import math

import pytest
import torch

from bench.api.batch import Batch
from bench.api.call import Attended
from bench.api.errors import InvalidConfig, Refused
from bench.api.loss import LossInputs
from bench.api.source import State
from bench.api.trace import Trace
from variants.losses.supervised import SupervisedConfig, SupervisedLoss

DISTANCES = ("ce", "mul", "mse")


def term(weights, gold, mask=None, **options):
    """The loss of weights `B H T S`."""
    rows, _, steps, _ = weights.shape
    mask = torch.ones(rows, steps, dtype=torch.bool) if mask is None else mask
    blank = torch.zeros(rows, steps, 1, dtype=weights.dtype)
    words = torch.zeros(rows, steps, dtype=torch.int64)
    trace = Trace(blank, blank, blank, (Attended(blank[:, None], weights, State(), {}),), (None,))
    batch = Batch((), words, words, mask, gold=gold)
    found, carry = SupervisedLoss(SupervisedConfig(**options))(
        LossInputs(trace, torch.zeros(rows, steps), batch, 0.5), {}
    )
    assert carry == {}
    return found


def gold(*rows):
    return torch.tensor([rows], dtype=torch.float64)


def energies(*shape):
    rng = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=rng, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        ("ce", -(0.5 * math.log(0.5) + 0.5 * math.log(0.25)) - math.log(0.7)),
        ("mul", -math.log(0.375) - math.log(0.7)),
        ("mse", 0.5 * (0.0 + 0.25**2 + 0.25**2) + 0.5 * (0.3**2 + 0.2**2 + 0.1**2)),
    ],
)
def test_distances_by_hand(distance, expected):
    weights = torch.tensor([[[[0.5, 0.25, 0.25], [0.7, 0.2, 0.1]]]], dtype=torch.float64)
    links = gold([0.5, 0.5, 0.0], [1.0, 0.0, 0.0])
    found = term(weights, links, distance=distance, weight=3.0)
    assert found.item() == pytest.approx(3 * expected / 2)


def test_the_cross_entropy_pulls_scores_by_weights_minus_gold():
    energy = energies(1, 1, 3, 4)
    links = gold([0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 1])
    term(torch.softmax(energy, -1), links).backward()
    torch.testing.assert_close(3 * energy.grad[:, 0], torch.softmax(energy, -1)[:, 0] - links)


def test_the_squared_distance_rests_at_the_gold_alignment():
    links = gold([0.5, 0.5, 0.0], [0.25, 0.25, 0.5])
    weights = links[:, None].clone().requires_grad_()
    found = term(weights, links, distance="mse")
    found.backward()
    assert found.item() == 0
    assert not weights.grad.any()


@pytest.mark.parametrize("distance", DISTANCES)
def test_words_without_a_link_and_padding_are_left_out(distance):
    energy = energies(1, 1, 4, 3)
    links = gold([1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1])
    mask = torch.tensor([[True, True, True, False]])
    found = term(torch.softmax(energy, -1), links, mask, distance=distance)
    found.backward()
    kept = term(torch.softmax(energy, -1)[:, :, [0, 2]], links[:, [0, 2]], distance=distance)
    torch.testing.assert_close(3 * found, 2 * kept)
    assert not energy.grad[0, 0, 1].any()
    assert not energy.grad[0, 0, 3].any()
    assert energy.grad[0, 0, 0].any()


@pytest.mark.parametrize("distance", DISTANCES)
def test_weights_of_exactly_zero_keep_value_and_gradient_finite(distance):
    weights = torch.tensor([[[[1.0, 0.0], [0.0, 0.0]]]]).requires_grad_()
    found = term(weights, torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]), distance=distance)
    found.backward()
    assert torch.isfinite(found)
    assert torch.isfinite(weights.grad).all()


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_batch_without_any_link_costs_nothing(distance):
    assert term(torch.full((1, 1, 2, 3), 1 / 3), torch.zeros(1, 2, 3), distance=distance) == 0


def test_heads_are_averaged():
    weights = torch.softmax(energies(2, 3, 4, 5), -1)
    links = torch.eye(4, 5, dtype=torch.float64).expand(2, 4, 5)
    torch.testing.assert_close(term(weights, links), term(weights.mean(1, keepdim=True), links))


def test_it_is_refused_without_gold_alignments():
    with pytest.raises(Refused, match="gold alignments"):
        term(torch.ones(1, 1, 1, 1), None)


def test_the_weight_must_not_be_negative():
    with pytest.raises(InvalidConfig, match="got -1"):
        SupervisedConfig(weight=-1.0)


UNALIGNED = ([0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0.5, 0.5], [0, 0, 0])
"""Words 0, 2, 3 and 5 have no link."""


@pytest.mark.parametrize(
    ("policy", "filled"),
    [
        ("ignore", {1: [1, 0, 0], 4: [0, 0.5, 0.5]}),
        ("null", {0: 2, 1: [1, 0, 0], 2: 2, 3: 2, 4: [0, 0.5, 0.5], 5: 2}),
        ("copy_prev", {1: 1, 2: 1, 3: 1, 4: 4, 5: 4}),
        ("copy_next", {0: 1, 1: 1, 2: 4, 3: 4, 4: 4}),
    ],
)
@pytest.mark.parametrize("distance", DISTANCES)
def test_words_without_a_link_get_the_one_that_is_asked_for(policy, filled, distance):
    """A number names the row that is copied, or the last key under `null`."""
    weights = torch.softmax(energies(1, 1, 6, 3), -1).detach()
    rows = []
    for row in filled.values():
        if policy == "null" and isinstance(row, int):
            rows.append([0, 0, 1])
        else:
            rows.append(UNALIGNED[row] if isinstance(row, int) else row)
    expected = term(weights[:, :, list(filled)], gold(*rows), distance=distance)
    found = term(weights, gold(*UNALIGNED), distance=distance, unaligned=policy)
    torch.testing.assert_close(6 * found, len(filled) * expected)


def test_the_null_word_is_the_last_real_key(seen):
    weights = torch.softmax(energies(2, 1, 1, 4), -1).detach()
    given = seen(weights, lengths=[4, 2], gold=torch.zeros(2, 1, 4))
    found, _ = SupervisedLoss(SupervisedConfig(unaligned="null"))(given, {})
    expected = -(weights[0, 0, 0, 3].log() + weights[1, 0, 0, 1].log()) / 2
    torch.testing.assert_close(found, expected)


def test_links_of_padding_are_not_copied():
    weights = torch.full((1, 1, 3, 2), 0.5, dtype=torch.float64)
    links = gold([0, 0], [0, 0], [1, 0])
    mask = torch.tensor([[True, True, False]])
    assert term(weights, links, mask, unaligned="copy_next") == 0


def test_smoothing_spreads_links_over_real_neighbors_and_keeps_their_sum(seen):
    weights = torch.softmax(energies(1, 1, 3, 5), -1).detach()
    links = gold([0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0.5, 0, 0, 0.5, 0])
    given = seen(weights, lengths=[4], gold=links)
    found, _ = SupervisedLoss(SupervisedConfig(smoothing=0.8, distance="mse"))(given, {})
    total = 0.0
    for t in (0, 2):
        near = [
            sum(links[0, t, u].item() * math.exp(-((s - u) ** 2) / (2 * 0.8**2)) for u in range(5))
            for s in range(4)
        ]
        wanted = [value / sum(near) for value in near] + [0.0]
        total += 0.5 * sum((wanted[s] - weights[0, 0, t, s].item()) ** 2 for s in range(5))
    assert found.item() == pytest.approx(total / 3, abs=1e-12)


def test_a_narrow_gaussian_changes_nothing():
    weights = torch.softmax(energies(1, 1, 2, 4), -1).detach()
    links = gold([0, 1, 0, 0], [0, 0, 0, 1])
    for distance in DISTANCES:
        torch.testing.assert_close(
            term(weights, links, distance=distance, smoothing=0.05),
            term(weights, links, distance=distance),
        )


@pytest.mark.parametrize("distance", DISTANCES)
def test_following_the_gradient_leads_to_the_gold_alignment(distance):
    energy = energies(1, 1, 3, 4).detach().requires_grad_()
    links = gold([0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1])
    assert torch.softmax(energy, -1).argmax(-1).tolist() != [[[1, 0, 3]]]
    optimizer = torch.optim.Adam([energy], lr=0.3)
    for _ in range(60):
        optimizer.zero_grad()
        term(torch.softmax(energy, -1), links, distance=distance, weight=10.0).backward()
        optimizer.step()
    assert (torch.softmax(energy, -1)[0, 0] * links[0]).sum(-1).min() > 0.95
