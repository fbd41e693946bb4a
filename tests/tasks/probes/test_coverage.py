import pytest

from bench.api.registry import make
from bench.api.selector import parse
from tasks.metrics.text_scores import dropped, repeated
from tasks.probes.observations import observations


def measured(seen):
    return {s.metric: s.value for s in make("probe", parse("coverage")).measure(seen)}


def test_it_equals_a_loop_over_keys(subject):
    seen = subject("additive", batches=6)
    over = under = keys = 0
    for one in observations(seen):
        for row, line in enumerate(one.batch.mask.tolist()):
            targets = [t for t, scored in enumerate(line) if scored]
            for s in range(one.weights.shape[2]):
                total = sum(float(one.weights[row, t, s]) for t in targets)
                over += total > 1.5
                under += total < 0.5
                keys += 1
    found = measured(seen)
    assert found["over_covered_share"] == pytest.approx(over / keys)
    assert found["under_covered_share"] == pytest.approx(under / keys)
    assert keys > 100


def test_repeats_and_drops_of_known_outputs():
    assert repeated([5, 6, 5, 6, 5, 6], [5, 6]) == (3, 5)
    assert repeated([5, 6, 5, 6], [5, 6, 5, 6]) == (0, 3)
    assert dropped([], [1, 2]) == (2, 2)
    assert dropped([2, 1], [1, 2]) == (0, 2)


def test_a_model_that_repeats_and_drops_is_caught(subject, monkeypatch):
    seen = subject("additive", batches=4)
    plain = seen.backbone.generate

    def stuck(batch, most, mode):
        said = plain(batch, most, mode)
        return type(said)(tuple((77, 77, 77, 77) for _ in said.tokens), said.steps)

    monkeypatch.setattr(seen.backbone, "generate", stuck)
    monkeypatch.setattr(seen.task, "decodes", True)
    found = measured(seen)
    assert found["repeated_bigram_share"] == pytest.approx(2 / 3)
    assert found["dropped_word_share"] > 0.5
