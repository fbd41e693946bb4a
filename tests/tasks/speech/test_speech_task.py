"""Spoken words: frames of sound, strings of recordings, word error rate."""

import math
import os
import random
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from tasks.data.sound import LogMel, fit_scale, to_frames
from tasks.speech.speech_task import EOS, FIRST
from tasks.speech.spoken_digits import SpokenDigits, SpokenDigitsConfig
from tasks.speech.spoken_strings import draw_strings
from tasks.speech.tone_words import ToneWords, ToneWordsConfig

SMALL = runpy.run_path(str(Path(__file__).parents[1] / "small_data" / "fsdd.py"))


@pytest.fixture(scope="module")
def tones():
    return ToneWords(ToneWordsConfig(takes=3, test=12, validate=6), seed=1)


@pytest.fixture
def digits(tmp_path):
    SMALL["write"](tmp_path, random.Random(0))
    return SpokenDigits(SpokenDigitsConfig(test=10, validate=6), 0, tmp_path)


def test_strings_that_no_speaker_has_words_for_are_refused(tones):
    part = tones.recordings["validation"]
    with pytest.raises(InvalidConfig, match="no speaker has 1000 recordings for one string"):
        draw_strings(part, (1000, 1000), torch.Generator().manual_seed(0))


def test_strings_that_a_part_has_no_recordings_for_are_refused_before_training(tmp_path):
    with pytest.raises(InvalidConfig, match="tone_words: no speaker of validation has 20 record"):
        ToneWords(ToneWordsConfig(min_words=20, max_words=20, takes=3), 0)
    SMALL["write"](tmp_path, random.Random(0))
    with pytest.raises(InvalidConfig, match="spoken_digits: no speaker of train has 5000 record"):
        SpokenDigits(SpokenDigitsConfig(min_words=5000, max_words=5000), 0, tmp_path)


def test_a_tone_is_loudest_in_the_band_that_holds_it():
    sound = LogMel()
    for hertz in (500, 1000, 2500):
        wave = torch.sin(2 * math.pi * hertz * torch.arange(1600) / sound.rate)
        loudest = int(sound.bands(wave[None])[0, 5].argmax())
        top = 2595 * math.log10(1 + 4000 / 700)
        middle = 700 * (10 ** (top * (loudest + 1) / (sound.mels + 1) / 2595) - 1)
        assert abs(middle - hertz) < 0.12 * hertz


def test_frames_have_no_mean_and_the_deviation_of_one_over_the_training_part():
    draws = torch.Generator().manual_seed(0)
    waves = [torch.randn(800, generator=draws) * level for level in (0.01, 0.1, 1.0)]
    sound = LogMel()
    frames, mask = to_frames(waves, sound, fit_scale(waves, sound))
    assert frames.shape == (3, 5, sound.width)
    assert mask.all()
    bands = frames.unflatten(2, (sound.stack, sound.mels)).flatten(0, 2)
    torch.testing.assert_close(bands.mean(0), torch.zeros(sound.mels), rtol=0, atol=1e-4)
    torch.testing.assert_close(bands.std(0), torch.ones(sound.mels), rtol=0, atol=1e-4)


def test_longer_neighbors_change_no_frame():
    draws = torch.Generator().manual_seed(0)
    short, long = (torch.randn(samples, generator=draws) for samples in (500, 1600))
    sound = LogMel()
    scale = fit_scale([short, long], sound)
    together, mask = to_frames([short, long], sound, scale)
    alone, _ = to_frames([short], sound, scale)
    assert mask.sum(1).tolist() == [4, 10]
    torch.testing.assert_close(together[0, :4], alone[0], rtol=0, atol=1e-5)
    assert not together[0, 4:].any()


def test_strings_are_of_one_speaker_and_of_recordings_of_their_part(digits):
    batches = [*digits.evaluation("test"), *digits.evaluation("validation")]
    counts = {len(text.split()) for batch in batches for text in batch.references}
    assert counts <= {2, 3, 4}
    part = digits.recordings["test"]
    for spoken in digits._fixed("test"):
        assert len({part[index].speaker for index in spoken.parts}) == 1
    sounds = {
        name: {tuple(one.wave.tolist()) for one in p} for name, p in digits.recordings.items()
    }
    assert not sounds["train"] & sounds["test"]
    assert not sounds["train"] & sounds["validation"]


def test_the_scale_comes_from_the_training_part_alone(digits, tmp_path):
    waves = [one.wave for one in digits.recordings["train"]]
    expected = fit_scale(waves, digits.sound)
    torch.testing.assert_close(digits.scale.mean, expected.mean)


def test_single_words_of_the_test_come_once_each(tmp_path):
    SMALL["write"](tmp_path, random.Random(0))
    config = SpokenDigitsConfig(min_words=1, max_words=1, test=40)
    task = SpokenDigits(config, 0, tmp_path)
    assert sorted(spoken.parts for spoken in task._fixed("test")) == [(n,) for n in range(40)]


def test_gold_lies_on_the_frames_that_a_word_was_spoken_in(tones):
    batch = tones.evaluation("test")[0]
    words = batch.targets >= FIRST
    torch.testing.assert_close(batch.gold.sum(-1), words.float())
    assert not batch.gold[batch.targets == EOS].any()
    places = torch.arange(batch.gold.shape[2]).float()
    middles = (batch.gold[0] * places).sum(-1)[words[0]]
    assert bool((middles.diff() > 0).all()), "words follow each other"


def test_every_recording_of_training_comes_at_most_once_an_epoch(tones):
    part = tones.recordings["train"]
    strings = draw_strings(part, tones.counts, torch.Generator().manual_seed(0))
    used = [index for spoken in strings for index in spoken.parts]
    assert len(used) == len(set(used)) > 0.9 * len(part)


def answers(task, change):
    return [
        Answer(
            batch,
            generated=tuple(
                tuple(change(row[mask].tolist()[:-1]))
                for row, mask in zip(batch.targets, batch.mask, strict=True)
            ),
        )
        for batch in task.evaluation("test")
    ]


def plain(scored):
    return {s.metric: s.value for s in scored if not s.axis}


def test_errors_are_counted_per_word_of_the_reference(tones):
    right = plain(tones.score("test", answers(tones, lambda words: words)))
    assert right == {"word_error_rate": 0.0, "sequence_accuracy": 1.0}
    silent = plain(tones.score("test", answers(tones, lambda words: [])))
    assert silent == {"word_error_rate": 1.0, "sequence_accuracy": 0.0}
    total = sum(len(t.split()) for b in tones.evaluation("test") for t in b.references)
    less = plain(tones.score("test", answers(tones, lambda words: words[1:])))
    assert less["word_error_rate"] == pytest.approx(12 / total)
    one_more = plain(tones.score("test", answers(tones, lambda words: [*words, FIRST])))
    assert one_more["word_error_rate"] == pytest.approx(12 / total)


def test_the_picture_has_a_place_a_state(tones):
    batch = tones.examples()
    real = (
        int(batch.sources[0].mask[0].sum())
        if batch.sources[0].mask is not None
        else (batch.sources[0].tokens.shape[1])
    )
    for stride in (1, 2):
        picture = tones.picture(replace(batch, stride=stride), 0)
        assert picture.grid == (1, -(-real // stride))
        assert len(picture.gray) == tones.sound.mels
        assert len(picture.gray[0]) == picture.grid[1] * stride * tones.sound.stack
        assert min(map(min, picture.gray)) == 0.0
        assert max(map(max, picture.gray)) == 1.0


def test_lengths_that_make_no_sense_are_refused():
    with pytest.raises(InvalidConfig, match="min_words <= max_words"):
        ToneWordsConfig(min_words=3, max_words=2)
    with pytest.raises(InvalidConfig, match="takes at least 1"):
        ToneWordsConfig(takes=0)


@pytest.mark.skipif(not os.environ.get("BENCH_DATA_DIR"), reason="BENCH_DATA_DIR is not set")
def test_the_real_archive_has_2400_300_and_300_recordings():
    task = SpokenDigits(SpokenDigitsConfig(), 0)
    sizes = {part: len(found) for part, found in task.recordings.items()}
    assert sizes == {"train": 2400, "validation": 300, "test": 300}
    assert task.baselines()["most frequent word"] > 0.9
