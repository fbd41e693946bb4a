"""Dropped words and repeated bigrams, in all and at each source length."""

import pytest

from bench.api.registry import make
from bench.api.selector import parse
from tasks.metrics.text_scores import dropped, repeated

TASK = "transduction[rule=copy,min_length=1,max_length=3,beyond=6,vocab=6,evaluate=8]"


def measured(seen):
    return {
        (s.metric, s.x): s.value for s in make("probe", parse("content_by_length")).measure(seen)
    }


def test_counts_equal_a_loop_over_sentences_of_each_length(subject):
    from bench.api.trace import Mode

    seen = subject("additive", task=TASK, batches=99)
    counts = {}
    for batch in seen.batches:
        said = seen.backbone.generate(batch, seen.task.sizes.max_length, Mode()).tokens
        for row, words in enumerate(said):
            length = int(batch.state_mask()[row].sum()) - 1  # without EOS
            pairs = zip(batch.targets[row].tolist(), batch.mask[row].tolist(), strict=True)
            wanted = [word for word, real in pairs if real and word != seen.task.sizes.eos]
            missing, again = dropped(words, wanted), repeated(words, wanted)
            for key in (None, float(length)):
                old = counts.get(key, (0, 0, 0, 0))
                counts[key] = tuple(a + b for a, b in zip(old, (*missing, *again), strict=True))
    found = measured(seen)
    assert len(counts) > 3, "several lengths"
    for key, (missing, words, again, bigrams) in counts.items():
        assert found["dropped_content_share", key] == pytest.approx(missing / max(1, words))
        assert found["repeated_content_share", key] == pytest.approx(again / max(1, bigrams))


@pytest.mark.parametrize(("said", "drops", "repeats"), [(1, 0.5, 0.5), (77, 1.0, 0.5)])
def test_a_network_that_says_one_word_for_ever_drops_and_repeats(
    subject, monkeypatch, said, drops, repeats
):
    seen = subject("additive", task=TASK, batches=99)
    plain = seen.backbone.generate

    def stuck(batch, most, mode):
        found = plain(batch, most, mode)
        return type(found)(tuple((said,) * 9 for _ in found.tokens), found.steps)

    monkeypatch.setattr(seen.backbone, "generate", stuck)
    found = measured(seen)
    assert found["dropped_content_share", None] >= drops
    assert found["repeated_content_share", None] >= repeats
