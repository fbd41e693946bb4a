"""Coverage and errors, sentence by sentence."""

import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.registry import make
from bench.api.selector import parse
from tasks.probes import coverage_errors
from tasks.probes.coverage_errors import Sentence, _scored
from tasks.probes.observations import observations, probabilities

FERT = "transduction[rule=fert,min_length=2,max_length=4,vocab=6,evaluate=24]"

COPY = "transduction[rule=copy,min_length=4,max_length=4,vocab=6,evaluate=48]"


def measured(seen, selector="coverage_errors"):
    return {(s.metric, s.x): s.value for s in make("probe", parse(selector)).measure(seen)}


@pytest.mark.parametrize("fertility", [1, 2])
def test_sentences_equal_a_loop_over_words(subject, fertility):
    seen = subject("additive", task=FERT, batches=2)
    probe = make("probe", parse(f"coverage_errors[fertility={fertility}]"))
    found = [
        one for each in observations(seen) for one in probe._sentences(seen, each)
    ]  # the sentences that are correlated
    wanted = []
    for each in observations(seen):
        best = probabilities(seen, each).argmax(-1)
        for row, mask in enumerate(each.batch.mask.tolist()):
            targets = [at for at, real in enumerate(mask) if real]
            links = {
                s: [t for t in targets if float(each.gold[row, t, s]) > 0]
                for s in range(each.weights.shape[2])
            }
            words = [s for s, those in links.items() if len(those) >= fertility]
            if not words:
                continue
            coverage = max(sum(float(each.weights[row, t, s]) for t in targets) for s in words)
            asked = sorted({t for s in words for t in links[s]})
            wrong = [t for t in asked if int(best[row, t]) != int(each.batch.targets[row, t])]
            source = int(each.batch.state_mask()[row].sum()) - 1  # without EOS
            wanted.append((source, len(targets), coverage, len(wrong) / len(asked)))
    assert len(wanted) > 10
    for mine, theirs in zip(found, wanted, strict=True):
        assert tuple(mine) == pytest.approx(theirs)


def sentences(coverage, errors, source=4, targets=5):
    return [Sentence(source, targets, c, e) for c, e in zip(coverage, errors, strict=True)]


@pytest.mark.parametrize(("errors", "r"), [((0.0, 0.1, 0.5), 1.0), ((0.5, 0.2, 0.1), -1.0)])
def test_ranks_that_agree_or_disagree_have_the_ends_of_the_range(errors, r):
    (found,) = _scored(sentences((1.0, 1.5, 9.0), errors))
    assert found.metric == coverage_errors.CORRELATION
    assert found.value == pytest.approx(r)


def test_lengths_explain_nothing():
    short = sentences((1.0, 1.1), (0.0, 0.0), source=2, targets=3)
    long = sentences((3.0, 3.1), (1.0, 1.0), source=8, targets=9)
    assert _scored([*short, *long]) == [], "coverage and errors differ by length alone"


def test_sentences_that_are_all_right_have_no_correlation():
    assert _scored(sentences((1.0, 2.0, 3.0), (0.0, 0.0, 0.0))) == []


def test_a_network_that_errs_where_it_looks_twice_is_caught(subject, monkeypatch):
    seen = subject("additive", task=COPY)

    def erring(subject, each):
        covered = (each.weights * each.batch.mask[..., None]).sum(1).amax(-1)
        wrong = covered > covered.median()
        right = torch.nn.functional.one_hot(each.batch.targets, 20).double()
        return torch.where(wrong[:, None, None], right.roll(1, -1), right)

    monkeypatch.setattr(coverage_errors, "probabilities", erring)
    assert measured(seen)[coverage_errors.CORRELATION, None] > 0.3


def test_a_fertility_of_nothing_is_refused():
    with pytest.raises(InvalidConfig, match="fertility must be at least 1"):
        make("probe", parse("coverage_errors[fertility=0]"))
