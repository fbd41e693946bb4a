import pytest
import torch

from bench.api.errors import InvalidConfig, Refused
from variants.losses.coverage_eq1 import CoverageEq1Config, CoverageEq1Loss

EOS = 2


def term(inputs, **options):
    found, carry = CoverageEq1Loss(CoverageEq1Config(**options))(inputs, {})
    assert carry == {}
    return found


def test_golden_penalties_of_all_keys_and_of_the_inner_ones(seen, golden_weights):
    given = seen(golden_weights)
    assert 3 * term(given, leave_out="none").item() == pytest.approx(0.32)
    assert 3 * term(given, leave_out="ends").item() == pytest.approx(0.16)
    assert 3 * term(given, weight=10.0, leave_out="ends").item() == pytest.approx(1.6)


def test_eos_is_left_out_wherever_a_row_ends(seen, drawn_weights):
    lengths = [4, 2]
    weights = drawn_weights(rows=2, lengths=lengths)
    tokens = [[7, 8, 9, EOS], [7, EOS, 0, 0]]
    found = term(seen(weights, tokens=tokens, lengths=lengths))
    total = sum((1 - weights[0, 0, :, s].sum().item()) ** 2 for s in range(3))
    total += (1 - weights[1, 0, :, 0].sum().item()) ** 2
    assert found.item() == pytest.approx(total / 10, abs=1e-12)


def test_ends_are_those_of_the_real_keys(seen, drawn_weights):
    lengths = [4, 3, 1]
    weights = drawn_weights(lengths=lengths)
    found = term(seen(weights, lengths=lengths), leave_out="ends")
    covered = weights[:, 0].sum(1)
    total = (1 - covered[0, 1:3]).square().sum() + (1 - covered[1, 1]).square()
    torch.testing.assert_close(found, total / 15, rtol=0, atol=1e-12)


def test_padding_of_source_and_target_counts_for_nothing(seen, drawn_weights):
    weights = drawn_weights(rows=1, steps=5, keys=4, lengths=[3])
    mask = [[True, True, True, False, False]]
    found = term(seen(weights, lengths=[3], mask=mask), leave_out="none")
    alone = term(seen(weights[:, :, :3, :3]), leave_out="none")
    torch.testing.assert_close(found, alone, rtol=0, atol=1e-14)


def test_heads_are_averaged(seen, drawn_weights):
    weights = drawn_weights(heads=2)
    both = term(seen(weights.mean(1, keepdim=True)))
    torch.testing.assert_close(term(seen(weights)), both)


def test_fewer_states_than_words_cannot_leave_words_out(seen, golden_weights):
    given = seen(golden_weights, tokens=[[5, 6, 7]])
    short = given.batch.sources[0].tokens[:, :2]
    changed = given.batch.sources[0].__class__(short, None)
    batch = given.batch.__class__(**{**given.batch.__dict__, "sources": (changed,)})
    given = given.__class__(given.trace, given.nll, batch, 0.5)
    with pytest.raises(Refused, match="fewer states than words"):
        term(given)
    assert 3 * term(given, leave_out="none").item() == pytest.approx(0.32)


def test_the_weight_must_not_be_negative():
    with pytest.raises(InvalidConfig, match="got -1"):
        CoverageEq1Config(weight=-1.0)
