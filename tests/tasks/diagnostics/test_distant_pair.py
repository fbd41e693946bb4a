"""Pairs at a distance: who asks, who answers, and that nothing else does."""

import pytest
import torch

from bench.api.errors import InvalidConfig
from tasks.diagnostics.distant_pair import DistantPair, DistantPairConfig

FIRST = 4


def make(**options) -> DistantPair:
    sizes = {"farthest": 8, "length": 24, "pairs": 3, "symbols": 5, "evaluate": 25, **options}
    return DistantPair(DistantPairConfig(**sizes), seed=1)


def rows(task: DistantPair):
    """Distance, names of tokens, and the answer of each scored place."""
    stream = task.training(25, torch.Generator().manual_seed(0))
    several = [(None, next(stream)), *zip(task.tested, task.evaluation("test"), strict=True)]
    for distance, batch in several:
        found = zip(batch.sources[0].tokens, batch.targets, batch.mask, strict=True)
        for words, targets, mask in found:
            asked = mask.nonzero().flatten().tolist()
            names = task.tokens(targets.tolist(), source=False)
            answers = {place: names[place] for place in asked}
            yield distance, task.tokens(words.tolist(), source=True), answers


def test_the_partner_of_a_kind_stands_at_the_distance_on_one_side():
    gaps = set()
    for distance, words, answers in rows(make()):
        assert len(answers) == 3
        for place, answer in answers.items():
            kind = words[place].removeprefix("?")
            (partner,) = [at for at, word in enumerate(words) if word.startswith(f"{kind}:")]
            assert words[partner] == f"{kind}:{answer}"
            assert distance in (None, abs(partner - place))
            gaps.add(partner - place)
        plain = [word for word in words if word.isalpha()]
        assert len(plain) == len(words) - 2 * 3
    assert gaps == {sign * far for far in (2, 4, 8) for sign in (-1, 1)}


def test_the_partner_at_a_distance_is_one_symbol_among_others():
    sides = set()
    for distance, words, answers in rows(make(found_by="distance")):
        assert len(answers) == 3
        for place, answer in answers.items():
            asked = int(words[place].removeprefix("?"))
            assert words[place + asked] == answer
            assert distance in (None, abs(asked))
            sides.add(asked)
        assert sum(word.isalpha() for word in words) == len(words) - 3
    assert sides == {sign * far for far in (2, 4, 8) for sign in (-1, 1)}


@pytest.mark.parametrize("found_by", ["kind", "distance"])
def test_no_place_belongs_to_two_pairs_even_where_they_fill_the_sequence(found_by):
    task = make(found_by=found_by, nearest=1, farthest=5, length=18, pairs=5)
    assert task.tested == (1, 2, 4, 5)
    for distance, batch in zip(task.tested, task.evaluation("test"), strict=True):
        assert (batch.mask.sum(1) == 5).all()
        for _, words, answers in rows(task):
            assert len(answers) == 5
            assert sum(word.startswith("?") for word in words) == 5
        if found_by == "kind":
            marked = batch.sources[0].tokens >= task.marked
            assert (marked.sum(1) == 5).all(), distance


def test_pairs_stand_anywhere():
    places = {place for _, _, answers in rows(make(evaluate=200)) for place in answers}
    assert places == set(range(24))


def test_ids_fit_the_vocabularies_and_inputs_are_answers_that_came_before():
    for found_by in ("kind", "distance"):
        task = make(found_by=found_by)
        seen = set()
        for batch in task.evaluation("test"):
            seen |= set(batch.sources[0].tokens.flatten().tolist())
            assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
            assert batch.targets.max() < task.sizes.target_vocab
        assert seen == set(range(FIRST, task.sizes.source_vocabs[0]))


def test_scores_are_told_by_distance_and_the_farthest_is_the_plain_one():
    task = make()
    assert (task.tested, task.inside, task.axis) == ((2, 4, 8), 8, "difficulty")
    assert {d for d, _, _ in rows(task)} == {None, 2, 4, 8}
    drawn = {
        int(batch.mask.sum()) and _distance(task, batch)
        for _, batch in zip(
            range(30), task.training(2, torch.Generator().manual_seed(3)), strict=False
        )
    }
    assert drawn == {2, 4, 8}, "training has every distance"


def _distance(task, batch) -> int:
    words = task.tokens(batch.sources[0].tokens[0].tolist(), source=True)
    asked = words.index("?0")
    (partner,) = [at for at, word in enumerate(words) if word.startswith("0:")]
    return abs(partner - asked)


@pytest.mark.parametrize(
    "options",
    [
        {"nearest": 0},
        {"nearest": 9},
        {"pairs": 0},
        {"symbols": 1},
        {"evaluate": 0},
        {"length": 14},
        {"pairs": 7},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="distant_pair: "):
        make(**options)
