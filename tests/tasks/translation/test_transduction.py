"""Every rule against a few lines of plain Python, row by row."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.translation.transduction import Transduction, TransductionConfig

PAD, BOS, EOS = 0, 1, 2
RULES = ("copy", "reverse", "swap", "dict", "svo", "fert")


def places(rule: str, words: list[int]) -> list[int]:
    """The source place of every target word, as the rule is told."""
    count = len(words)
    if rule == "reverse":
        return list(range(count))[::-1]
    if rule == "swap":
        return [p + 1 if p % 2 == 0 and p + 1 < count else p - p % 2 for p in range(count)]
    if rule == "svo":
        last_third = -(-count // 3)
        return [*range(count - last_third, count), *range(count - last_third)]
    if rule == "fert":
        found = [place for place, word in enumerate(words) for _ in range((word - 4) % 4)]
        return found or [0]
    return list(range(count))


def make(rule: str, **options) -> Transduction:
    sizes = {"min_length": 1, "max_length": 7, "beyond": 9, "vocab": 8, "evaluate": 40, **options}
    return Transduction(TransductionConfig(rule=rule, **sizes), seed=3)


def batches(task: Transduction):
    stream = task.training(40, torch.Generator().manual_seed(0))
    return [next(stream), next(stream), *task.evaluation("validation"), *task.evaluation("test")]


def source_words(batch, row: int) -> list[int]:
    """Words of a source without its end, after checking end and padding."""
    tokens = batch.sources[0].tokens[row].tolist()
    end = tokens.index(EOS)
    assert tokens[end + 1 :] == [PAD] * (len(tokens) - end - 1)
    assert min(tokens[:end], default=4) >= 4
    if batch.sources[0].mask is None:
        assert end == len(tokens) - 1, "a padded source needs a mask"
    else:
        real = [place <= end for place in range(len(tokens))]
        assert batch.sources[0].mask[row].tolist() == real
    return tokens[:end]


@pytest.mark.parametrize("rule", RULES)
def test_targets_inputs_masks_and_gold_follow_the_rule(rule):
    task = make(rule)
    lengths = set()
    for batch in batches(task):
        width, steps = batch.sources[0].tokens.shape[1], batch.targets.shape[1]
        for row in range(len(batch.targets)):
            words = source_words(batch, row)
            lengths.add(len(words))
            found = places(rule, words)
            said = [words[place] for place in found]
            if rule not in ("copy", "reverse"):
                said = [int(task.table[word]) for word in said]
            padding = steps - len(said) - 1
            assert batch.targets[row].tolist() == [*said, EOS, *[PAD] * padding]
            assert batch.inputs[row].tolist() == [BOS, *said, EOS, *[PAD] * padding][:steps]
            assert batch.mask[row].tolist() == [True] * (len(said) + 1) + [False] * padding
            gold = torch.zeros(steps, width)
            for step, place in enumerate([*found, len(words)]):
                gold[step, place] = 1
            assert torch.equal(batch.gold[row], gold)
        assert torch.equal(batch.extended, batch.sources[0].tokens)
        assert batch.num_extra == 0
    assert lengths == {1, 2, 3, 4, 5, 6, 7, 8, 9}


def test_the_dictionary_is_a_permutation_shared_by_all_seeds():
    tables = [Transduction(TransductionConfig(rule="dict"), seed).table for seed in (0, 5)]
    assert torch.equal(tables[0], tables[1])
    assert tables[0][:4].tolist() == [0, 1, 2, 3]
    assert sorted(tables[0][4:].tolist()) == list(range(4, 14))
    assert tables[0].tolist() != list(range(14)), "a dictionary that copies is no dictionary"


def test_a_fertile_word_without_copies_gives_its_first_symbol_once():
    task = make("fert", min_length=1, max_length=1)
    batch = task.evaluation("validation")[0]
    empty = (batch.sources[0].tokens[:, 0] - 4) % 4 == 0
    assert empty.any()
    assert not empty.all()
    assert (batch.mask[empty].sum(1) == 2).all()


def test_training_lengths_are_uniform_between_the_bounds():
    task = make("copy", min_length=3, max_length=6)
    stream = task.training(400, torch.Generator().manual_seed(0))
    counts = torch.bincount(next(stream).mask.sum(1) - 1, minlength=8).tolist()
    assert [bool(count) for count in counts] == [False] * 3 + [True] * 4 + [False]
    assert min(counts[3:7]) > 60


def test_the_test_has_four_lengths_inside_and_two_beyond_the_training_range():
    task = make("copy", min_length=2, max_length=8, beyond=16)
    assert task.test_lengths() == [2, 4, 6, 8, 12, 16]
    found = [int(batch.mask.sum(1)[0]) - 1 for batch in task.evaluation("test")]
    assert found == [2, 4, 6, 8, 12, 16]
    assert all(len(batch.targets) == 40 for batch in task.evaluation("test"))


@pytest.mark.parametrize("rule", RULES)
def test_no_sequence_is_longer_and_no_id_larger_than_the_sizes_say(rule):
    task = make(rule)
    for batch in batches(task):
        longest = max(batch.targets.shape[1], batch.sources[0].tokens.shape[1])
        assert longest <= task.sizes.max_length
        assert batch.targets.max() < task.sizes.target_vocab
        assert batch.sources[0].tokens.max() < task.sizes.source_vocabs[0]


def test_a_pool_of_pairs_is_drawn_once_and_used_again():
    task = make("copy", pairs=5, vocab=30, min_length=5)
    stream = task.training(64, torch.Generator().manual_seed(0))
    seen = {tuple(source_words(batch, row)) for batch in (next(stream),) for row in range(64)}
    again = {tuple(source_words(batch, row)) for batch in (next(stream),) for row in range(64)}
    assert seen == again
    assert len(seen) == 5


def test_samples_print_the_longest_length_inside_training():
    task = make("reverse", evaluate=2)
    answers = [Answer(batch, predicted=batch.targets) for batch in task.evaluation("test")]
    shown = task.samples(answers, 5)
    assert len(shown) == 2
    for sample in shown:
        words = sample.source.split()
        assert len(words) == 8
        assert sample.reference.split() == [*words[-2::-1], "</s>"]
        assert sample.output == sample.reference


@pytest.mark.parametrize(
    "options",
    [
        {"min_length": 5, "max_length": 4},
        {"beyond": 3},
        {"min_length": 0},
        {"vocab": 0},
        {"evaluate": 0},
        {"pairs": -1},
    ],
)
def test_impossible_options_are_refused_with_the_numbers(options):
    sizes = {"min_length": 2, "max_length": 4, "beyond": 6, **options}
    with pytest.raises(InvalidConfig, match=r"transduction: .* got .*\d"):
        TransductionConfig(**sizes)
