from itertools import pairwise

import pytest

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode

LENGTHS = "transduction[rule=copy,min_length=1,max_length=4,beyond=6,vocab=6,evaluate=8]"


def measured(seen):
    found = make("probe", parse("content_by_length")).measure(seen)
    return {(one.metric, one.x): one.value for one in found}


def saying(monkeypatch, seen, words):
    """Let the network say `words(reference)` of every sentence."""
    plain = seen.backbone.generate

    def generate(batch, most, mode):
        said = plain(batch, most, mode)
        rows = zip(batch.targets, batch.mask, strict=True)
        wanted = [line[mask][:-1].tolist() for line, mask in rows]
        return type(said)(tuple(tuple(words(one)) for one in wanted), said.steps)

    monkeypatch.setattr(seen.backbone, "generate", generate)


def test_it_equals_a_loop_over_words(subject):
    seen = subject("additive", task=LENGTHS, batches=9)
    found = measured(seen)
    for batch in seen.batches:
        said = seen.backbone.generate(batch, seen.task.sizes.max_length, Mode()).tokens
        length = batch.sources[0].tokens.shape[1] - 1
        missing = words = again = bigrams = 0
        for row, spoken in enumerate(said):
            wanted = batch.targets[row, :length].tolist()
            for word in set(wanted):
                missing += max(0, wanted.count(word) - list(spoken).count(word))
            words += len(wanted)
            pairs = list(pairwise(spoken))
            asked = list(pairwise(wanted))
            for pair in set(pairs):
                again += max(0, pairs.count(pair) - max(1, asked.count(pair)))
            bigrams += len(pairs)
        assert found["dropped_content_share", length] == pytest.approx(missing / words)
        assert found["repeated_content_share", length] == pytest.approx(again / max(1, bigrams))
    assert {x for _, x in found} == {None, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0}


def test_a_network_that_forgets_the_end_drops_more_of_what_is_longer(subject, monkeypatch):
    seen = subject("additive", task=LENGTHS, batches=9)
    saying(monkeypatch, seen, lambda wanted: wanted[:4])
    found = measured(seen)
    assert [found["dropped_content_share", x] for x in (3.0, 4.0)] == [0, 0]
    assert 0 < found["dropped_content_share", 5.0] <= 1 / 5
    assert found["dropped_content_share", 6.0] > found["dropped_content_share", 5.0]
    assert all(found["repeated_content_share", x] == 0 for x in (None, 4.0, 6.0))


def test_a_network_that_starts_again_repeats_and_drops_nothing(subject, monkeypatch):
    seen = subject("additive", task=LENGTHS, batches=9)
    saying(monkeypatch, seen, lambda wanted: wanted + wanted if len(wanted) > 4 else wanted)
    found = measured(seen)
    assert found["repeated_content_share", 4.0] == 0
    assert found["repeated_content_share", 6.0] > 0.3
    assert found["dropped_content_share", None] == 0


def test_silence_drops_everything_and_repeats_nothing(subject, monkeypatch):
    seen = subject("additive", task=LENGTHS, batches=9)
    saying(monkeypatch, seen, lambda _: [])
    found = measured(seen)
    assert (found["dropped_content_share", 6.0], found["repeated_content_share", 6.0]) == (1, 0)


def test_what_does_not_decode_is_refused(subject):
    with pytest.raises(Refused, match="does not decode"):
        measured(subject("additive", task="keyword_cls"))
