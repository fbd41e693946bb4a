"""Texts with one label: parts, vocabularies, evidence and scores of the tasks that read or draw."""

import gzip
import itertools
from dataclasses import replace

import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from bench.api.options import canonical
from bench.api.probe import Subject
from bench.api.registry import DefaultTask, make, registrations
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.evaluate import evaluate
from bench.training.quality import train_cell
from tasks.classification.bags_of_words import area_baselines
from tasks.classification.hier_doc import ASSERTIONS, HEDGES
from tasks.classification.keyword_cls import TOPICS
from tasks.classification.labeled_texts import PARTS, Labeled, heaviest_segment
from tasks.classification.mimic3_demo import divided, interval
from tasks.classification.read_texts import _digest, hide_words
from tasks.classification.visits import COURSES, GRAVE
from tasks.data.corpus import parts_note
from tasks.data.tables import held_out
from tasks.metrics.labels import label_scores, ranking_scores

DRAWN = ("keyword_cls", "hier_doc", "visits")
TRAIN = "a fine film\t1\nshared words\t0\na dull film\t0\na dull film\t1\n"


@pytest.fixture
def sst2(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    texts = {"train": TRAIN, "dev": "Shared  words\t0\n", "test": "zyzzyva a film\t1\na\t0\n"}
    folder = tmp_path / "sst2_sentences"
    folder.mkdir()
    for stem, text in texts.items():
        (folder / f"{stem}.tsv.gz").write_bytes(gzip.compress(text.encode()))
    return lambda options="sst2[least=1]": make("task", parse(options), 0, tmp_path)


def shown(task, batch):
    text = batch.sources[0]
    mask = torch.ones_like(text.tokens, dtype=torch.bool) if text.mask is None else text.mask
    rows = zip(text.tokens, mask, strict=True)
    return [task.tokens(row[real].tolist(), source=True) for row, real in rows]


def perfect(task, split="test"):
    """Answers that are right and certain, with all weight on the first evidence."""
    for batch in task.evaluation(split):
        weights = None
        if batch.gold is not None:
            places = batch.gold[:, 0].argmax(-1)
            weights = torch.nn.functional.one_hot(places, batch.gold.shape[2]).float()[:, None]
        nothing = torch.zeros(batch.targets.shape)
        yield Answer(batch, predicted=batch.targets, nll=nothing, weights=weights)


def values(scores):
    return {scored.metric: scored.value for scored in scores}


def test_words_of_the_test_alone_are_unknown(sst2):
    task = sst2()
    (batch,) = task.evaluation("test")
    assert sorted(shown(task, batch)) == [["<unk>", "a", "film"], ["a"]]
    assert batch.names == ("a", "zyzzyva a film")


def test_a_part_with_fewer_texts_than_asked_for_is_noted(sst2):
    asked = sst2("sst2[least=1,train=200,validate=1,test=3]")
    assert asked.notes["fewer rows"] == "2 of 200 in train, 2 of 3 in test"
    assert "fewer rows" not in sst2("sst2[least=1,train=2]").notes


@pytest.mark.parametrize("name", ["sst2", "imdb", "ag_news"])
def test_a_wrong_number_is_told_in_the_name_of_its_task_and_option(name):
    with pytest.raises(InvalidConfig, match=f"^{name}: train must be >= 0, and 0 is all; got -5"):
        canonical("task", parse(f"{name}[train=-5]"))


def test_texts_that_occur_elsewhere_are_not_trained_on(sst2):
    task = sst2()
    assert [row.text for row in task.parts["train"]] == ["a fine film", "a dull film"]
    # one is in validation, and one is a repeat inside training
    assert task.notes["repeats"] == (
        "2 training texts that are repeated or that other parts have too are left out"
    )
    assert "shared" not in task.vocabulary.words


def test_another_held_out_part_has_another_hash():
    rows = tuple({"text": f"text {n}", "label": n % 2} for n in range(40))
    train, held = held_out(rows, 10)
    told = parts_note({"train": train, "validation": held})
    assert told == parts_note(dict(zip(("train", "validation"), held_out(rows, 10), strict=True)))
    moved = parts_note({"train": (*train[1:], held[0]), "validation": (train[0], *held[1:])})
    assert all(told.split()[at] != moved.split()[at] for at in (3, 7))
    assert told.split()[3] != parts_note({"train": train[::-1]}).split()[3]


def test_the_cache_gives_the_same_texts_again(sst2):
    first, again = sst2(), sst2()
    assert first.notes["parts"] == again.notes["parts"]
    assert first.notes["parts"].startswith("train 2 rows ")
    assert first.parts == again.parts
    assert first.vocabulary.words == again.vocabulary.words
    assert len(sst2("sst2[least=2]").vocabulary) < len(first.vocabulary)


def test_an_epoch_has_every_training_text_once(sst2):
    task = sst2("sst2[least=1,hidden=0.0]")
    stream = task.training(1, torch.Generator().manual_seed(0))
    texts = [shown(task, next(stream))[0] for _ in range(2)]
    assert sorted(texts) == [["a", "dull", "film"], ["a", "fine", "film"]]


def test_hidden_words_are_about_their_share(sst2):
    (batch,) = sst2().evaluation("test")
    text = replace(batch.sources[0], tokens=torch.full((2, 5000), 9), mask=None)
    found = hide_words(replace(batch, sources=(text,)), 0.25, torch.Generator().manual_seed(0))
    assert set(found.sources[0].tokens.flatten().tolist()) == {3, 9}
    assert abs((found.sources[0].tokens == 3).float().mean() - 0.25) < 0.02


@pytest.mark.parametrize("name", DRAWN)
def test_right_answers_and_weights_have_the_best_scores(name):
    task = make("task", parse(f"{name}[evaluate=50]"), 0)
    found = values(task.score("test", list(perfect(task))))
    assert found.pop("alignment_entropy_nats") == 0
    assert set(found.values()) == {1.0}
    assert set(found) == {metric.name for metric in task.metrics} - {"alignment_entropy_nats"}


def test_wrong_answers_are_counted():
    task = make("task", parse("keyword_cls[evaluate=50]"), 0)
    wrong = [replace(a, predicted=(a.predicted + 1) % 4) for a in perfect(task)]
    found = values(task.score("test", wrong))
    assert found["label_accuracy"] == 0
    assert found["macro_f1"] == 0


def test_macro_f1_weighs_a_rare_label_as_much_as_a_frequent_one():
    (first, *_) = perfect(make("task", parse("keyword_cls[evaluate=50]"), 0))
    true, said = torch.tensor([[0], [0], [0], [1]]), torch.zeros(4, 1, dtype=torch.int64)
    batch = replace(first.batch, targets=true, mask=torch.ones(4, 1, dtype=torch.bool))
    found = values(label_scores([Answer(batch, predicted=said)]))
    assert found["macro_f1"] == pytest.approx((6 / 7 + 0) / 2)
    assert found["label_accuracy"] == 3 / 4


def test_certain_and_wrong_ranks_last():
    task = make("task", parse("visits[evaluate=50]"), 0)
    wrong = [replace(a, nll=torch.full(a.batch.targets.shape, 20.0)) for a in perfect(task)]
    assert values(task.score("test", wrong))["auroc"] == pytest.approx(0, abs=1e-6)


def test_certain_errors_of_one_label_are_not_above_certain_answers_of_the_other():
    task = make("task", parse("visits[evaluate=50]"), 0)
    wrong = [replace(a, nll=40.0 * (a.batch.targets == 1)) for a in perfect(task)]
    assert values(task.score("test", wrong))["auroc"] == 0.5, "all records are surely survived"


def test_the_area_is_that_of_the_margins_whichever_label_is_the_positive_one():
    task = make("task", parse("visits[evaluate=400]"), 0)
    generator = torch.Generator().manual_seed(0)
    answers, margins, true = [], [], []
    for answer in perfect(task):
        targets = answer.batch.targets
        logits = 4.0 * torch.randn(*targets.shape, 2, generator=generator)
        logits[..., 1] += 6.0 * targets
        nll = -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        answers.append(replace(answer, nll=nll))
        margins += (logits[..., 1] - logits[..., 0]).flatten().tolist()
        true += targets.flatten().tolist()
    one, other = (values(ranking_scores(answers, label)) for label in (1, 0))
    assert one["auroc"] == pytest.approx(other["auroc"], abs=1e-12)
    assert one["auroc"] == pytest.approx(roc_auc_score(true, margins), abs=1e-3)
    assert one["auprc"] == pytest.approx(average_precision_score(true, margins), abs=1e-3)
    assert abs(one["auprc"] - one["auroc"]) > 2e-3


def test_the_heaviest_sentence_is_that_of_the_largest_sum():
    task = make("task", parse("hier_doc[evaluate=1]"), 0)
    (answer,) = perfect(task)
    segments = answer.batch.sources[0].segments
    evidence = segments[0][answer.batch.gold[0, 0] > 0][0]
    inside = (segments == evidence).float()
    others = 1 - inside
    one_word = torch.zeros_like(others).scatter(1, others.argmax(1, keepdim=True), 1.0)
    # one heavy word elsewhere against a sentence of lighter ones
    weights = 0.6 * inside / inside.sum() + 0.4 * one_word
    assert heaviest_segment([replace(answer, weights=weights[:, None])]) == 1.0
    weights = 0.4 * inside / inside.sum() + 0.6 * one_word
    assert heaviest_segment([replace(answer, weights=weights[:, None])]) == 0.0
    assert heaviest_segment([replace(answer, weights=None)]) is None
    starts = torch.zeros_like(others).scatter(1, inside.argmax(1, keepdim=True), 1.0)
    assert heaviest_segment([replace(answer, weights=(starts + one_word)[:, None])]) == 0.0
    assert heaviest_segment([replace(answer, weights=torch.zeros_like(weights)[:, None])]) == 0.0


def test_one_topic_is_meant_and_the_others_are_denied():
    task = make("task", parse("keyword_cls[evaluate=80]"), 3)
    topics = {word: name for name, words in TOPICS.items() for word in words}
    (batch,) = task.evaluation("test")
    for words, label, gold in zip(shown(task, batch), batch.references, batch.gold, strict=True):
        assert 40 <= len(words) <= 80
        places = [at for at, word in enumerate(words) if word in topics]
        meant = [at for at in places if at == 0 or words[at - 1] != "not"]
        assert len(places) == 3
        assert [topics[words[at]] for at in meant] == [label]
        assert gold[0].nonzero().flatten().tolist() == meant
    assert set(batch.references) == set(TOPICS)


def test_one_sentence_asserts_its_topic_and_all_others_hedge():
    task = make("task", parse("hier_doc[evaluate=40]"), 3)
    (batch,) = task.evaluation("test")
    segments = batch.sources[0].segments
    for row, words in enumerate(shown(task, batch)):
        numbers = segments[row][: len(words)].tolist()
        (place,) = [at for at, word in enumerate(words) if word in ASSERTIONS]
        assert words[place + 1] in TOPICS[batch.references[row]]
        assert sum(word in HEDGES for word in words) == numbers[-1]
        expected = [at for at, number in enumerate(numbers) if number == numbers[place]]
        assert batch.gold[row, 0].nonzero().flatten().tolist() == expected


def test_one_grave_event_decides_and_other_notes_say_anything():
    task = make("task", parse("visits[evaluate=60]"), 3)
    (batch,) = task.evaluation("test")
    said = []
    for words, label in zip(shown(task, batch), batch.references, strict=True):
        (place,) = [at for at, word in enumerate(words) if word in GRAVE]
        assert words[place + 1] in COURSES[task.labels.index(label)]
        said += [sum(word in notes for word in words) for notes in COURSES]
    assert min(said) > 0


@pytest.mark.parametrize(
    "options",
    [
        "keyword_cls[decoys=4]",
        "keyword_cls[length=5]",
        "hier_doc[sentences=1]",
        "visits[events=1]",
        "visits[evaluate=1]",
        "sst2[hidden=1.0]",
        "sst2[vocab=4]",
        "imdb[words=0]",
        "mimic3_demo[least=0]",
    ],
)
def test_options_without_meaning_are_refused(options):
    with pytest.raises(InvalidConfig, match=options.partition("[")[0]):
        make("task", parse(options), 0)


def test_records_of_one_outcome_have_no_area_and_are_refused_before_training():
    size = "visits[events=4,codes=20,noise=10,evaluate={}]"
    with pytest.raises(InvalidConfig, match=r"under seed 0 .* evaluate=4 records of test"):
        make("task", parse(size.format(4)), 0)
    with pytest.raises(InvalidConfig, match="records of validation"):
        make("task", parse(size.format(2)), 3)
    for enough in (12, 64):
        task = make("task", parse(size.format(enough)), 0)
        assert values(task.score("test", [*perfect(task)]))["auroc"] == 1.0


def test_a_test_without_a_label_has_no_baseline_of_the_area():
    rows = [Labeled([number % 3], number % 2) for number in range(12)]
    assert area_baselines(rows, rows, 3)["majority"] == 0.5
    assert area_baselines(rows, rows[::2], 3) == {}


def test_a_patient_is_in_one_part_and_every_part_has_deaths():
    stays = [{"patient": str(at // 2), "label": int(at % 6 == 0)} for at in range(80)]
    parts = divided(stays)
    assert parts == divided(stays)
    for one, other in itertools.combinations(parts.values(), 2):
        assert not {stay["patient"] for stay in one} & {stay["patient"] for stay in other}
    assert sum(len(part) for part in parts.values()) == 80
    assert all({stay["label"] for stay in part} == {0, 1} for part in parts.values())


def test_the_interval_says_how_little_is_known():
    true = [True, False] * 10
    chance = [0.6 if at % 3 else 0.4 for at in range(20)]
    text = interval(true, chance)
    assert "n = 20 stays with 10 deaths" in text
    low, high = (float(text.split()[at]) for at in (1, 3))
    assert low < 0.5 < high
    assert interval([True] * 3, [0.1, 0.2, 0.3]).startswith("no interval")


@pytest.mark.parametrize("name", ["keyword_cls", "visits"])
def test_weights_of_texts_can_be_erased(name):
    cell = quality_cell(
        Request(preset="smoke"), resolve("context_vector"), DefaultTask(task=name), 0
    ).cell
    with torch.random.fork_rng():
        built = assemble(cell, None)
    seen = evaluate(
        built.task, built.system.there, "test", torch.device("cpu"), itertools.count().__next__
    )
    batches = tuple(answer.batch for answer in seen.answers)
    built.system.there.eval()
    subject = Subject(backbone=built.system.there, task=built.task, batches=batches, seed=0)
    found = values(make("probe", parse("erasure[most=4]")).measure(subject))
    assert {"erase_flip_share", "erased_by_attention_share", "erased_by_random_share"} <= set(found)


FAMILIES = {"text classification", "long documents", "event sequences"}
MINE = [n for n, e in registrations("task").items() if e.target.family in FAMILIES]


@pytest.mark.parametrize("name", MINE)
def test_no_entry_of_a_comparison_is_refused(name):
    from bench.training.refusals import cell_refusal

    target = registrations("task")[name].target
    assert target.comparison
    for one in target.comparison:
        default_task = DefaultTask(task=one.task or name, backbone=one.backbone, slot=one.slot)
        cell = quality_cell(Request(preset="smoke"), resolve(one.variant), default_task, 0).cell
        reason = cell_refusal(resolve(cell.variant), target, parse(cell.backbone), cell.slot)
        assert reason is None


def learned(task, variant, protocol, **place):
    default_task = DefaultTask(task=task, **place)
    cell = quality_cell(
        Request(preset="families", tasks=task, training=protocol), resolve(variant), default_task, 0
    ).cell
    rows = train_cell(cell).rows
    return {
        row.metric: row.value
        for row in rows
        if row.split == "test" and not (row.axis or row.baseline)
    }


@pytest.mark.slow
def test_attention_learns_which_words_count():
    options = "keyword_cls[length=24,noise=100,evaluate=200]"
    found = learned(options, "context_vector", "adam[lr=0.005,steps=200,evaluate_every=200]")
    assert found["label_accuracy"] > 0.7


@pytest.mark.slow
def test_attention_finds_the_sentence_that_decides():
    options = "hier_doc[sentences=8,noise=100,evaluate=200]"
    found = learned(options, "han", "adam[lr=0.01,steps=120,evaluate_every=120]")
    assert found["label_accuracy"] > 0.8
    assert found["top_sentence_match"] > 0.6


@pytest.mark.slow
def test_attention_finds_the_planted_event():
    options = "visits[events=12,codes=100,noise=50,evaluate=200]"
    found = learned(options, "seq2vec_attention", "adam[lr=0.01,steps=120,evaluate_every=120]")
    assert found["auroc"] > 0.9
    assert found["top_event_match"] > 0.5


def test_texts_in_another_order_are_other_texts_for_the_cache():
    # labels do not go through the cache: ids kept for another order would have others' labels
    rows = {part: [("one text", 0), ("two", 1)] for part in PARTS}
    turned = {**rows, "train": rows["train"][::-1]}
    assert _digest(rows) != _digest(turned)
