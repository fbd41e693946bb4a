"""Windows of a text, likelihoods in the field's units, rare repeats, counts of n-grams."""

import gzip
import itertools
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.api import registry
from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from bench.api.noise import Noise
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.trace import Mode
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.evaluate import evaluate
from tasks.data.characters import Characters
from tasks.language_modeling.language_model import LanguageConfig
from tasks.language_modeling.ngrams import Ngrams
from tasks.language_modeling.stdlib_code import StdlibCode
from tasks.language_modeling.tinyshakespeare import TinyShakespeare
from tasks.language_modeling.wikitext2_mini import WikiText2Mini, WikiTextConfig

REAL = os.environ.get("BENCH_DATA_DIR", "")
UNK = 3


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_DATA_DIR", raising=False)


def plays(tmp_path: Path, text: str, **options) -> TinyShakespeare:
    folder = tmp_path / "plays" / "tinyshakespeare"
    folder.mkdir(parents=True)
    (folder / "input.txt.gz").write_bytes(gzip.compress(text.encode()))
    sizes = {"window": 8, "validate": 2, "test": 2, "common": 2, **options}
    return TinyShakespeare(LanguageConfig(**sizes), seed=0, data_dir=folder.parent)


def articles(tmp_path: Path, valid: list[str], test: list[str], **options) -> WikiText2Mini:
    folder = tmp_path / "articles" / "wikitext2"
    folder.mkdir(parents=True)
    for name, lines in (("valid", valid), ("test", test)):
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode()))
    sizes = {"window": 4, "validate": 2, "test": 2, "common": 2, **options}
    return WikiText2Mini(WikiTextConfig(**sizes), seed=0, data_dir=folder.parent)


TEXT = "abracadabra" * 36 + "abr\n"
"""Four hundred characters; the last one is in the test alone."""


def test_the_text_is_cut_into_ninety_five_and_five_hundredths(tmp_path):
    task = plays(tmp_path, TEXT)
    assert {split: len(ids) for split, ids in task.parts.items()} == {
        "train": 360,
        "validation": 20,
        "test": 20,
    }
    whole = [n for split in ("train", "validation", "test") for n in task.parts[split].tolist()]
    assert "".join(task.characters.decode(whole)) == TEXT[:-1] + "\N{REPLACEMENT CHARACTER}"


def test_windows_of_evaluation_follow_each_other_and_each_token_is_predicted_from_the_last(
    tmp_path,
):
    task = plays(tmp_path, TEXT)
    (batch,) = task.evaluation("test")
    assert batch.inputs.shape == (2, 8)
    assert batch.mask.all()
    assert batch.inputs.flatten().tolist() == task.parts["test"][:16].tolist()
    assert batch.targets.flatten().tolist() == task.parts["test"][1:17].tolist()


def test_a_part_with_fewer_windows_than_asked_for_is_noted(tmp_path):
    task = plays(tmp_path, TEXT, validate=3, test=2)
    assert task.notes["fewer rows"] == "2 of 3 in validation"
    assert len(task.windows("validation")) == 2


def test_a_part_with_as_many_windows_as_asked_for_is_not_noted(tmp_path):
    assert "fewer rows" not in plays(tmp_path, TEXT).notes


def test_windows_of_training_lie_in_the_training_part(tmp_path):
    task = plays(tmp_path, TEXT)
    batch = next(task.training(16, torch.Generator().manual_seed(0)))
    train = "".join(task.characters.decode(task.parts["train"].tolist()))
    for row, target in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
        assert "".join(task.characters.decode([*row, target[-1]])) in train


def test_a_character_of_the_test_alone_is_unknown(tmp_path):
    task = plays(tmp_path, TEXT[:-5] + "ÿ" + "abra")
    assert "ÿ" not in task.characters.names
    # it and the end of the only line
    assert task.parts["test"].tolist().count(UNK) == 2
    assert UNK not in task.parts["train"].tolist()


def test_a_word_of_the_test_alone_is_unknown_and_lines_end(tmp_path):
    valid = [" the storm was near . ", " "] * 10
    task = articles(tmp_path, valid, [" the odd storm <unk> ", " the storm . "])
    assert task.words.decode(task.parts["test"].tolist()) == [
        "the", "<unk>", "storm", "<unk>", "</s>", "the", "storm", ".", "</s>",
    ]  # fmt: skip
    # nine tenths of the lines are for training
    assert len(task.parts["train"]) == 9 * (6 + 1)
    assert len(task.parts["validation"]) == 6 + 1


def test_the_vocabulary_is_cut_to_the_most_frequent_words(tmp_path):
    valid = ["a a a b b c"] * 10
    task = articles(tmp_path, valid, ["a b c a b c"], vocab=6)
    assert task.words.words[4:] == ("a", "b")
    assert task.words.decode(task.parts["test"].tolist())[:3] == ["a", "b", "<unk>"]


def test_a_rare_repeat_is_known_not_frequent_and_was_there_before(tmp_path):
    task = articles(tmp_path, ["a a a b b c d"] * 10, ["a b c d a b c d"])
    row = task.words.encode(["c", "a", "a", "d", "c", "zzz", "zzz", "d", "b", "b"])
    # "</s>" is as frequent as "c"; the two most frequent words are a and b
    assert task.rare_repeats(row) == [n in (4, 7) for n in range(10)]


def test_characters_of_a_rare_word_count_behind_its_first_one(tmp_path):
    task = plays(tmp_path, "to be to be hum or wag " * 40)
    row = task.encode("hum to hum to wag")
    marks = "".join("x" if one else "." for one in task.rare_repeats(row))
    assert marks == "........xx......."
    assert task.frequent == {"to", "be"}


def answers(task, nats):
    """The same likelihood at every token that is no rare repeat, twice that at those."""
    found = []
    for batch in task.evaluation("test"):
        rare = task._rare(batch)
        found.append(Answer(batch, predicted=batch.targets, nll=torch.where(rare, 2 * nats, nats)))
    return found


def test_likelihoods_become_bits_and_perplexity(tmp_path):
    task = articles(tmp_path, ["a a a b b c d"] * 10, ["c a c a c a c a c a c a"])
    found = {s.metric: s.value for s in task.score("test", answers(task, math.log(8)))}
    # the two windows read c a c a c and c a c a c, whose first tokens are not predicted
    assert found["perplexity"] == pytest.approx(8 ** (1 + 4 / 8))
    assert found["rare_repeat_perplexity"] == pytest.approx(64)
    letters = plays(tmp_path, "to be to be hum hum or " * 40, window=20)
    found = {s.metric: s.value for s in letters.score("test", answers(letters, math.log(8)))}
    assert found["rare_repeat_bits_per_character"] == pytest.approx(6)
    assert 3 < found["bits_per_character"] < 6


def test_both_metrics_are_better_when_lower():
    for task in (TinyShakespeare, WikiText2Mini, StdlibCode):
        assert [metric.better for metric in task.metrics] == ["lower", "lower"]


def test_n_grams_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    train, windows = rng.integers(0, 4, 60), rng.integers(0, 4, (3, 6))
    train[train == 3] = 0  # an unseen token
    model = Ngrams(train, 4)
    words = train.tolist()

    def share(history, word):
        n = len(history)
        if not history:
            return (words.count(word) + 1) / (60 + 4)
        grams = [tuple(words[i : i + n + 1]) for i in range(60 - n)]
        shorter = [tuple(words[i : i + n]) for i in range(60 - n + 1)]
        if not shorter.count(tuple(history)):
            return share(history[1:], word)
        return grams.count((*history, word)) / shorter.count(tuple(history))

    found = model._chances(3, windows).reshape(3, 5, 3)
    for row, t in itertools.product(range(3), range(5)):
        past = windows[row, : t + 1].tolist()
        for n in (1, 2, 3):
            history = past[len(past) - min(n - 1, len(past)) :]
            assert found[row, t, n - 1] == pytest.approx(share(history, windows[row, t + 1]))


def test_longer_histories_help_where_text_repeats(tmp_path):
    task = plays(tmp_path, "to be to be hum or wag " * 40)
    found = list(task.baselines().values())
    assert found[0] > found[1] > found[2]
    assert list(task.baselines()) == ["unigram", "bigram, interpolated", "trigram, interpolated"]


def test_characters_survive_encoding():
    known = Characters("abc\n")
    assert known.decode(known.encode("a\nc").tolist()) == ["a", "\n", "c"]
    assert known.encode("é\U0001f600").tolist() == [UNK, UNK]


def test_lines_of_our_own_are_shown_with_their_padding_unscored():
    task = StdlibCode(LanguageConfig(window=64, validate=1, test=1), seed=0)
    batch = task.examples()
    assert batch.names == batch.references == task.writes
    for row, text in enumerate(task.writes):
        said = task.characters.decode(batch.targets[row][batch.mask[row]].tolist())
        assert "".join(said) == text[1:65]
    (first, *_) = task.evaluation("test")
    (sample,) = task.samples([Answer(first, first.targets)], 1)
    assert sample.reference == sample.output
    assert task.tokens(task.encode("a\n"), source=False) == ["a", "⏎"]


def test_programs_of_the_parts_differ_and_the_note_names_python():
    task = StdlibCode(LanguageConfig(), seed=0)
    assert "standard library of Python 3." in task.notes["data"]
    assert len(task.parts["train"]) > 8 * len(task.parts["test"])


@pytest.mark.parametrize("options", [{"window": 1}, {"validate": 0}, {"common": -1}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match=r"^language modeling: window must be at least 2"):
        LanguageConfig(**options)


def test_a_window_that_no_part_holds_is_refused(tmp_path):
    with pytest.raises(InvalidConfig, match=r"^language modeling: the validation part has 20 "):
        plays(tmp_path, TEXT, window=20)
    with pytest.raises(InvalidConfig, match="vocab must be more than 4"):
        WikiTextConfig(vocab=4)


def trained(task: str, backbone: str, variant: str, steps: int, data_dir=None) -> dict[str, float]:
    """The test scores of a small model after some steps."""
    request = Request(preset="quick", backbone=backbone)
    cell = quality_cell(request, resolve(variant), DefaultTask(task=task), 0).cell
    with torch.random.fork_rng():
        torch.manual_seed(0)
        built = assemble(cell, data_dir)
        optimizer = torch.optim.Adam(built.system.parameters(), lr=0.01)
        stream = built.task.training(8, torch.Generator().manual_seed(0))
        carry = built.system.init_carry()
        for step in range(steps):
            terms, carry = built.system.losses(
                next(stream), Mode(read="train", noise=Noise(step)), carry
            )
            optimizer.zero_grad()
            sum(terms.values()).backward()
            optimizer.step()
    clock = itertools.count().__next__
    found = evaluate(built.task, built.system.there, "test", torch.device("cpu"), clock)
    return {
        **{s.metric: s.value for s in found.scores},
        **{f"{name} baseline": value for name, value in built.task.baselines().items()},
    }


def test_a_small_recurrent_decoder_learns_more_than_single_characters():
    options = "stdlib_code[window=32,validate=8,test=32]"
    found = trained(options, "rnn_decoder[hidden=64,embedding=32]", "scaled_dot", 60)
    assert found["bits_per_character"] < found["unigram baseline"] - 0.5


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="BENCH_DATA_DIR names no directory with Tiny Shakespeare")
def test_attention_with_positions_beats_bigrams_and_no_attention_does_not():
    bits = {}
    for variant in ("shaw_rpr", "last_state"):
        found = trained(
            "tinyshakespeare[window=64]",
            "transformer_decoder[width=64,layers=2,heads=2]",
            variant,
            200,
            Path(REAL),
        )
        bits[variant] = found["bits_per_character"]
    assert bits["shaw_rpr"] < bits["last_state"] - 0.15
    assert bits["shaw_rpr"] < found["bigram, interpolated baseline"] - 0.1


def test_the_tasks_belong_to_one_family():
    for name in ("tinyshakespeare", "wikitext2_mini", "stdlib_code"):
        assert registry.find("task", name).target.family == "language modeling"
