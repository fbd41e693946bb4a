import numpy as np
import pytest
from scipy import stats

from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import make
from bench.api.selector import parse
from tasks.probes.coverage_errors import Sentence, _scored
from tasks.probes.observations import observations, probabilities

COPIED = "transduction[rule=copy,min_length=1,max_length=5,vocab=6,evaluate=48]"
VISITED = "transduction[rule=fert,min_length=2,max_length=5,beyond=7,vocab=8,evaluate=48]"


def measured(seen, selector="coverage_errors"):
    found = make("probe", parse(selector)).measure(seen)
    return {one.x: one.value for one in found}


def by_loops(seen, fertility):
    """Length, targets, largest coverage and errors of every sentence with such a word."""
    found = []
    for one in observations(seen):
        said = probabilities(seen, one).argmax(-1)
        for row, line in enumerate(one.batch.mask.tolist()):
            targets = [t for t, scored in enumerate(line) if scored]
            linked = {t: [s for s, g in enumerate(one.gold[row, t].tolist()) if g] for t in targets}
            places = range(one.weights.shape[2])
            counted = [s for s in places if sum(s in linked[t] for t in targets) >= fertility]
            if not counted:
                continue
            coverage = max(sum(float(one.weights[row, t, s]) for t in targets) for s in counted)
            asked = [t for t in targets if set(linked[t]) & set(counted)]
            wrong = sum(int(said[row, t]) != int(one.batch.targets[row, t]) for t in asked)
            words = len(one.batch.sources[0].tokens[row]) - 1
            found.append((words, len(targets), coverage, wrong / len(asked)))
    return found


def test_on_copying_it_is_the_rank_correlation_at_each_length(subject):
    seen = subject("additive", task=COPIED, batches=9)
    found, rows = measured(seen), by_loops(seen, 1)
    lengths = {length for length, *_ in rows}
    for length in lengths:
        _, _, coverage, errors = zip(*[row for row in rows if row[0] == length], strict=True)
        r = stats.spearmanr(coverage, errors).statistic
        assert found[float(length)] == pytest.approx(r, abs=1e-9)
    assert len(lengths) > 3


def test_words_with_fewer_links_do_not_count(subject):
    seen = subject("additive", task=VISITED, batches=9, seed=1)
    rows = by_loops(seen, 2)
    found = measured(seen, "coverage_errors[fertility=2]")
    known = [length for length in found if length is not None]
    assert len(known) > 2
    for length in known:
        mine = [row for row in rows if row[0] == length]
        columns = zip(*(row[2:] for row in mine), strict=True)
        ranks = np.array([stats.rankdata(np.round(column, 9)) for column in columns])
        # sentences of as many targets are compared with one another
        for group in {row[1] for row in mine}:
            members = [row[1] == group for row in mine]
            ranks[:, members] -= ranks[:, members].mean(1, keepdims=True)
        r = (ranks[0] * ranks[1]).sum() / np.sqrt((ranks**2).sum(1).prod())
        assert found[length] == pytest.approx(r, abs=1e-9)
    assert found != measured(seen)


def test_length_alone_makes_no_correlation():
    """Longer sentences have more coverage and more errors here, and nothing else differs."""
    draw = np.random.default_rng(0)
    sentences = [
        Sentence(4, targets, targets + 0.1 * draw.normal(), 0.1 * targets + 0.01 * draw.normal())
        for targets in range(4, 12)
        for _ in range(100)
    ]
    coverage, errors = [one.coverage for one in sentences], [one.error for one in sentences]
    assert stats.spearmanr(coverage, errors).statistic > 0.9
    (found,) = _scored(sentences)
    assert abs(found.value) < 0.1


def test_a_word_that_is_visited_at_every_error_is_seen():
    sentences = [Sentence(4, 5, 1 + 0.2 * wrong, wrong / 5) for wrong in (0, 1, 2, 0, 3, 1)]
    assert [one.value for one in _scored(sentences, 4)] == pytest.approx([1.0])


def test_a_network_without_errors_has_no_correlation():
    assert _scored([Sentence(4, 5, float(at), 0.0) for at in range(9)]) == []
    assert _scored([]) == []


def test_what_cannot_be_measured_is_refused(subject):
    with pytest.raises(InvalidConfig, match="at least 1"):
        make("probe", parse("coverage_errors[fertility=0]"))
    with pytest.raises(Refused):
        measured(subject("none_state"))
