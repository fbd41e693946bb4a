"""Documents with a lead: the summary is its weighty words, and gold says where they stand."""

import pytest
import torch

from bench.api.answer import Answer
from bench.api.errors import InvalidConfig
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.quality import train_cell
from tasks.summarization.lead_copy import COMMA, GREETING, PLAIN, STOP, LeadCopy, LeadCopyConfig


def make(**options) -> LeadCopy:
    return LeadCopy(LeadCopyConfig(**{"evaluate": 80, **options}), seed=1)


def test_the_summary_is_the_weighty_words_of_the_lead_in_their_order():
    greeted = 0
    for pair in make().held("test"):
        source = pair.source
        if source[0] == GREETING:
            assert source[2] == COMMA
            source, greeted = source[3:], greeted + 1
        lead = source[: source.index(STOP)]
        assert len(lead) == 8
        assert pair.target == tuple(word for word in lead if word not in PLAIN)
        assert len(pair.target) == 4
        assert source.count(STOP) == 3
    assert 20 < greeted < 60


def test_names_are_unknown_and_copied_by_ids_of_their_own_row():
    task = make(unknown=0.5)
    batch = task.evaluation("validation")[0]
    names = batch.targets >= len(task.vocabulary)
    share = float(names[batch.mask].float().mean())
    assert share == pytest.approx(0.5 * 4 / 5, abs=0.1)
    for row in range(5):
        words = task.words(batch.targets[row][batch.mask[row]].tolist(), batch.extra_words[row])
        assert " ".join(words[:-1]) == batch.references[row]


def test_gold_says_where_every_word_of_the_summary_stands():
    stream = make().training(16, torch.Generator().manual_seed(0))
    batch = next(stream)
    assert torch.equal(batch.gold.sum(-1)[batch.mask], torch.ones(int(batch.mask.sum())))
    places = batch.gold.argmax(-1)
    assert torch.equal(batch.extended.gather(1, places)[batch.mask], batch.targets[batch.mask])


def test_the_summary_itself_scores_one_and_its_first_word_less():
    task = make()
    whole, first = [], []
    for batch in task.evaluation("test"):
        rows = [
            tuple(row[mask][:-1].tolist())
            for row, mask in zip(batch.targets, batch.mask, strict=True)
        ]
        whole.append(Answer(batch, generated=tuple(rows)))
        first.append(Answer(batch, generated=tuple(row[:1] for row in rows)))
    best = {scored.metric: scored.value for scored in task.score("test", whole)}
    assert best["rouge_1_f1"] == best["rouge_2_f1"] == pytest.approx(1.0)
    assert best["unknown_said_proportion"] == 1.0
    less = {scored.metric: scored.value for scored in task.score("test", first)}
    assert less["rouge_1_f1"] == pytest.approx(0.4, abs=0.02)
    assert less["rouge_2_f1"] == 0.0


def test_baselines_know_where_the_lead_begins_and_not_which_words_weigh():
    found = make().baselines()
    assert 0.5 < found["first words"] < found["words of the lead"]
    # the whole lead, of which half of the words weigh, is better than half of it
    assert found["words of the lead"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("options", [{"weighty": 9}, {"unknown": 1.5}, {"sentences": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidConfig, match="lead_copy: "):
        make(**options)


@pytest.mark.slow
def test_a_pointer_learns_to_copy_names_where_plain_attention_cannot():
    request = Request(preset="quick", training="adam[steps=300,evaluate_every=300]")
    default_task = DefaultTask(task="lead_copy[evaluate=64,sentences=2,vocab=20]")
    found = {}
    for name in ("additive", "pointer_generator"):
        rows = train_cell(quality_cell(request, resolve(name), default_task, 0).cell).rows
        found[name] = {
            r.metric: r.value for r in rows if r.split == "test" and not (r.axis or r.baseline)
        }
    assert found["additive"]["unknown_said_proportion"] == 0.0
    assert found["pointer_generator"]["unknown_said_proportion"] > 0.3
