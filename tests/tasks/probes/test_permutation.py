import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from bench.api.registry import make
from bench.api.selector import parse
from tasks.probes import permutation
from tasks.probes.interventions import interventions


def measured(seen, selector="permutation[draws=3]"):
    return {s.metric: s.value for s in make("probe", parse(selector)).measure(seen)}


def test_permutations_move_weights_among_real_keys_only(padded):
    (test,) = interventions(padded("additive"), torch.Generator().manual_seed(0))
    assert not test.real.all()
    shuffled = []
    original = test.predict

    def spy(change):
        shuffled.append(change(test.weights[:, None, :])[:, 0])
        return original(change)

    test.predict = spy
    make("probe", parse("permutation[draws=4]"))._shuffled(test, torch.Generator().manual_seed(0))
    assert len(shuffled) == 4
    for found in shuffled:
        torch.testing.assert_close(found.sort(-1).values, test.weights.sort(-1).values)
        assert (found[~test.real] == 0).all()
    assert any(not torch.equal(found, test.weights) for found in shuffled)


@pytest.mark.parametrize("draws", [1, 3, 4])
def test_of_an_even_number_of_permutations_the_median_is_between_the_two_in_the_middle(
    subject, monkeypatch, draws
):
    (test,) = interventions(subject("additive"), torch.Generator().manual_seed(0))
    seen, moved = [], permutation._moved
    monkeypatch.setattr(permutation, "_moved", lambda *told: seen.append(moved(*told)) or seen[-1])
    probe = make("probe", parse(f"permutation[draws={draws}]"))
    found = probe._shuffled(test, torch.Generator().manual_seed(0))
    assert len(seen) == draws
    expected = np.median(torch.stack(seen).numpy(), axis=0)
    torch.testing.assert_close(found, torch.from_numpy(expected))


def test_a_model_that_ignores_its_context_does_not_move(subject, monkeypatch):
    seen = subject("additive", batches=4)
    backbone = seen.backbone
    plain = backbone.emit
    monkeypatch.setattr(backbone, "emit", lambda s, c, e: plain(s, torch.zeros_like(c), e))
    found = measured(seen)
    assert found["permuted_change_share"] == pytest.approx(0.0, abs=1e-12)
    assert found["uniform_change_share"] == pytest.approx(0.0, abs=1e-12)


def test_tau_is_scipys_over_real_keys(padded):
    (test,) = interventions(padded("additive"), torch.Generator().manual_seed(0))
    other = torch.rand(test.weights.shape, dtype=torch.float64)
    found = permutation._tau(test, other)
    for row in range(len(found)):
        real = test.real[row]
        expected = kendalltau(test.weights[row][real], other[row][real]).statistic
        assert float(found[row]) == pytest.approx(expected, nan_ok=True)


def test_each_metric_is_the_mean_of_a_loop_over_examples(padded):
    seen = padded("additive")
    found = measured(seen)
    (test,) = interventions(seen, torch.Generator().manual_seed(0))
    gradient, uniform = test.gradient().abs(), test.uniform()
    moved, taus = [], {"tau_gradient_share": [], "tau_erasure_share": []}
    for row in range(len(test.real)):
        keys = test.real[row].nonzero().flatten().tolist()
        if len(keys) < 2 or not seen.batches[0].mask[row].any():
            continue
        even = torch.zeros_like(test.weights)
        even[row, keys] = 1 / len(keys)
        asked = test.predict(even[:, None].expand_as)
        torch.testing.assert_close(asked[row], uniform[row])
        moved.append(float((test.predicted[row] - asked[row]).abs().sum() / 2))
        erased = []
        for key in keys:
            without = torch.zeros_like(test.real)
            without[row, key] = True
            gap = test.predicted[row] - test.without(without)[row]
            erased.append(float(gap.abs().sum() / 2))
        weights = test.weights[row, keys]
        others = {"tau_gradient_share": gradient[row, keys], "tau_erasure_share": erased}
        for name, other in others.items():
            taus[name].append(kendalltau(weights, other).statistic)
    assert found["uniform_change_share"] == pytest.approx(np.mean(moved))
    assert found["uniform_change_share"] > 1e-4
    assert found["permuted_change_share"] > 1e-4
    for name, values in taus.items():
        assert found[name] == pytest.approx(np.mean(values))
    assert found["tau_gradient_share"] != found["tau_erasure_share"]


def test_uniform_attention_is_not_moved_by_uniform_weights(subject):
    found = measured(subject("uniform", batches=4))
    assert found["uniform_change_share"] == pytest.approx(0.0, abs=1e-12)
    assert found["permuted_change_share"] == pytest.approx(0.0, abs=1e-12)
    assert "tau_gradient_share" not in found  # constant weights have no order
