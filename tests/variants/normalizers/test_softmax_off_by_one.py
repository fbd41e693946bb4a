import pytest
import torch

from bench.api.errors import Refused
from bench.api.source import Source

GOLDEN = [0.397407, 0.241039, 0.161573, 0.053783]
"""Of the energies 1, 0.5, 0.1 and -1: exp(e) / (1 + sum of all exp(e)), computed by hand."""


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
@pytest.mark.parametrize("padded", [True, False])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, padded):
    equals_oracle("softmax_off_by_one", regime, padded=padded)


def test_golden_weights(row):
    assert row("softmax_off_by_one", [1, 0.5, 0.1, -1]) == pytest.approx(GOLDEN, abs=5e-7)


def test_it_is_softmax_with_one_more_key_of_energy_zero_and_value_zero(beneath, answer, draw):
    drawn = draw(lengths=())
    found = answer(beneath("dot[normalizer=softmax_off_by_one]"), drawn.query, drawn.source)
    more = Source(
        torch.nn.functional.pad(drawn.source.key, (0, 0, 0, 1)),
        torch.nn.functional.pad(drawn.source.value, (0, 0, 0, 1)),
    )
    wanted = answer(beneath("dot"), drawn.query, more)
    torch.testing.assert_close(found.output, wanted.output, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.weights, wanted.weights[..., :-1], rtol=0, atol=1e-12)


def test_energies_far_below_zero_read_nothing_and_far_above_it_is_the_softmax(row):
    assert sum(row("softmax_off_by_one", [-50.0, -60.0])) < 1e-20
    energies = [801.0, 800.0, 799.0]
    assert row("softmax_off_by_one", energies) == pytest.approx(row("softmax", energies))


def test_hidden_keys_and_rows_without_keys_weigh_nothing(row):
    weights = row("softmax_off_by_one", [1.0, 5.0, 0.0], [True, False, True])
    e = torch.tensor([1.0, 0.0], dtype=torch.float64).exp()
    assert weights == pytest.approx([float(e[0] / (1 + e.sum())), 0, float(e[1] / (1 + e.sum()))])
    assert row("softmax_off_by_one", [1.0, 2.0], [False, False]) == [0, 0]


def test_what_needs_weights_that_sum_to_one_is_refused(beneath):
    with pytest.raises(Refused, match="pointer_generator needs weights that sum to one"):
        beneath("additive[normalizer=softmax_off_by_one,output=pointer_generator]")
