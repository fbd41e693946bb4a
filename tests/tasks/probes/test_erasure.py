from dataclasses import replace

import pytest
import torch

from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode
from tasks.probes.erasure import ORDERS, _single, _until_flip
from tasks.probes.interventions import Intervention
from tasks.probes.observations import at, erase, js_divergence, one_target, total_variation


def measured(seen, selector="erasure"):
    return {s.metric: s.value for s in make("probe", parse(selector)).measure(seen)}


def test_erased_weights_are_zero_and_the_others_keep_the_sum():
    weights = torch.tensor([[[0.5, 0.3, 0.2]], [[0.2, 0.2, 0.6]]])
    keys = torch.tensor([[True, False, False], [False, False, True]])
    found = erase(keys)(weights)
    torch.testing.assert_close(found, torch.tensor([[[0.0, 0.6, 0.4]], [[0.5, 0.5, 0.0]]]))


def test_erasing_everything_leaves_zeros():
    assert erase(torch.ones(1, 2, dtype=torch.bool))(torch.tensor([[[0.5, 0.5]]])).sum() == 0


@pytest.mark.parametrize("variant", ["additive", "bahdanau", "tu_coverage"])
def test_an_edit_changes_its_own_target_only_and_earlier_ones_never(subject, variant):
    seen = subject(variant, batches=8)
    batch = seen.batches[-1]
    plain = seen.backbone(batch, Mode()).weights
    targets = torch.full((len(batch.targets),), 1)
    keys = torch.zeros(plain.shape[0], plain.shape[2], dtype=torch.bool)
    keys[:, 0] = True
    edited = seen.backbone(batch, Mode(edit=at(targets, erase(keys)))).weights
    assert (edited[:, 1, 0] == 0).all()
    torch.testing.assert_close(edited[:, 0], plain[:, 0])
    if variant == "additive":  # no later state has seen it
        torch.testing.assert_close(edited[:, 2:], plain[:, 2:])


def test_the_gradient_is_that_of_the_decisions_probability(subject):
    seen = subject("additive", batches=6)
    batch = seen.batches[-1]
    test = Intervention(seen, batch, one_target(batch, torch.Generator().manual_seed(0)))
    gradient, step = test.gradient(), 1e-5
    for key in range(gradient.shape[1]):
        found = []
        for sign in (1, -1):
            bump = torch.zeros_like(test.weights)
            bump[:, key] = sign * step
            edit = at(test.targets, lambda w, bump=bump: w + bump[:, None])
            trace = seen.backbone(batch, Mode(edit=edit))
            p = seen.backbone.output.log_probs(trace, seen.backbone.emit, batch).exp()
            rows = torch.arange(len(p))
            found.append(p[rows, test.targets, test.decision])
        torch.testing.assert_close(
            gradient[:, key], (found[0] - found[1]) / (2 * step), atol=1e-7, rtol=1e-5
        )


def until_a_flip(test, scores):
    """By a loop: the share of the keys of each row that is erased, and how many decisions flip."""
    shares, flips = [], 0
    for row in range(len(scores)):
        real = test.real[row].nonzero().flatten()
        order = real[scores[row, real].argsort(descending=True)].tolist()
        for count in range(1, len(order) + 1):
            keys = torch.zeros_like(test.real)
            keys[row, order[:count]] = True
            if int(test.without(keys)[row].argmax()) != int(test.decision[row]):
                flips += 1
                break
        shares.append(count / len(order))
    return shares, flips


def test_keys_until_a_flip_equal_a_loop(subject):
    seen = subject("additive", seed=1, batches=8)
    batch = seen.batches[-1]
    test = Intervention(seen, batch, one_target(batch, torch.Generator().manual_seed(0)))
    found = _until_flip(test, test.weights, 64)
    expected, flips = until_a_flip(test, test.weights)
    assert found.tolist() == pytest.approx(expected)
    assert flips > 0


@pytest.mark.parametrize("padding", [False, True])
def test_every_order_erases_by_its_own_scores(subject, padded, padding):
    seen = padded("additive") if padding else subject("additive", seed=1, batches=8)
    batch = seen.batches[-1]
    test = Intervention(seen, batch, one_target(batch, torch.Generator().manual_seed(0)))
    gradient = test.gradient()
    orders = {
        "attention": test.weights,
        "gradient": gradient.abs(),
        "attention_gradient": (test.weights * gradient).abs(),
    }
    probe = make("probe", parse("erasure[most=64]"))
    found = probe._many(test, torch.Generator().manual_seed(0))
    for name, scores in orders.items():
        expected, _ = until_a_flip(test, scores)
        assert found[f"erased_by_{name}_share"].tolist() == pytest.approx(expected)
    if not padding:
        assert len({tuple(values.tolist()) for values in found.values()}) > 2


def test_the_largest_weight_is_erased_beside_a_random_other_one(padded):
    seen = padded("additive")
    (batch,) = seen.batches
    test = Intervention(seen, batch, one_target(batch, torch.Generator().manual_seed(0)))
    found = _single(test, torch.Generator().manual_seed(0))
    for row in range(len(test.real)):
        real = test.real[row].nonzero().flatten().tolist()
        apart, flipped = {}, {}
        for key in real:
            keys = torch.zeros_like(test.real)
            keys[row, key] = True
            without = test.without(keys)[row]
            apart[key] = float(js_divergence(test.predicted[row], without))
            flipped[key] = int(without.argmax()) != int(test.decision[row])
        top = max(real, key=lambda key: float(test.weights[row, key]))
        assert bool(found["erase_flip_share"][row]) == flipped[top]
        gaps = [apart[top] - apart[key] for key in real if key != top]
        if gaps:
            nearest = min(
                gaps, key=lambda gap: abs(gap - float(found["erase_js_difference_nats"][row]))
            )
            assert float(found["erase_js_difference_nats"][row]) == pytest.approx(
                nearest, abs=1e-12
            )


def test_all_metrics_are_shares_or_divergences(subject):
    found = measured(subject("additive", batches=6), "erasure[most=8]")
    assert set(found) >= {f"erased_by_{order}_share" for order in ORDERS}
    assert all(0 <= value <= 1 for name, value in found.items() if name.endswith("_share"))
    assert abs(found["erase_js_difference_nats"]) < 0.7


def test_sources_of_one_key_have_nothing_to_compare(subject):
    seen = subject("additive", batches=1, backbone="rnn_seq2seq[encoder=embed]")
    (batch,) = seen.batches
    (text,) = batch.sources
    first = torch.arange(text.tokens.shape[1]).expand_as(text.tokens) < 1
    one = replace(batch, sources=(replace(text, mask=first),))
    with pytest.raises(Refused, match="one key only"):
        measured(replace(seen, batches=(one,)))


def test_distances_of_distributions():
    p, q = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    assert float(js_divergence(p, q)) == pytest.approx(0.693147, abs=1e-6)
    assert float(total_variation(p, q)) == 1.0
    assert float(js_divergence(p, p)) == 0.0


def test_bad_options_and_networks_without_weights_are_refused(subject):
    with pytest.raises(InvalidConfig, match="at least 1"):
        make("probe", parse("erasure[most=0]"))
    with pytest.raises(Refused):
        measured(subject("none_state"))
