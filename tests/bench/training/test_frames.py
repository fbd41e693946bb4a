"""Sources of numbers, answers in numbers, and what a task shows beside its scores."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.answer import Picture
from bench.api.batch import Batch, Sizes, Text
from bench.api.errors import Refused
from bench.api.metric import Metric, Scored
from bench.api.registry import Registration, add_registration
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.task import Task, TaskPreset
from bench.api.trace import Mode
from bench.training.assemble import assemble
from bench.training.quality import train_cell
from bench.training.refusals import cell_refusal

MSE = Metric(
    name="mean_squared_error", title="Error", unit="squared", low=0.0, high=None, better="lower"
)
WIDTH = 3


class Sums(Task):
    """The number at the place whose second feature is one."""

    metrics = (MSE,)
    regresses = True
    presets = {
        "smoke": TaskPreset(
            options="sums", backbone="pooling[embedding=16]", protocol="adam[steps=100]", seconds=1
        )
    }

    def __init__(self, config, seed, data_dir=None):
        super().__init__(config, seed, data_dir)
        self.sizes = Sizes((1,), 1, 6, source_frames=(WIDTH,))

    def batch(self, rows, generator):
        frames = torch.rand(rows, 6, WIDTH, generator=generator)
        place = torch.randint(6, (rows,), generator=generator)
        frames[..., 1] = torch.nn.functional.one_hot(place, 6)
        return Batch(
            sources=(Text(torch.zeros(rows, 6, dtype=torch.int64), None, None, frames, (2, 3)),),
            inputs=torch.ones(rows, 1, dtype=torch.int64),
            targets=torch.zeros(rows, 1, dtype=torch.int64),
            mask=torch.ones(rows, 1, dtype=torch.bool),
            values=frames[torch.arange(rows), place, 0].view(rows, 1, 1),
            names=tuple(f"example {row}" for row in range(rows)),
        )

    def training(self, batch_size, generator):
        while True:
            yield self.batch(batch_size, generator)

    def evaluation(self, split):
        return [self.batch(64, torch.Generator().manual_seed(5))]

    def score(self, split, answers):
        error = torch.cat([(a.values - a.batch.values).square().flatten() for a in answers])
        return [Scored(metric=MSE.name, value=float(error.mean()))]

    def baselines(self):
        return {"mean": 1 / 12}

    def examples(self):
        return self.batch(2, torch.Generator().manual_seed(6))

    def picture(self, batch, row):
        return Picture(batch.sources[0].frames[row, :, 0].view(2, 3).tolist(), (2, 3))

    def tokens(self, ids: Sequence[int], *, source: bool) -> list[str]:
        return ["" for _ in ids]


@pytest.fixture
def sums(monkeypatch):
    monkeypatch.setitem(registry._ENTRIES, "task", dict(registry._ENTRIES["task"]))
    add_registration(Registration(axis="task", name="sums", target=Sums, module=__name__))
    return "sums"


def test_a_network_that_reads_frames_learns_to_say_a_number(sums, smoke):
    result = train_cell(smoke("additive", task=sums, protocol="adam[steps=150,lr=0.01]"))
    final = {row.baseline: row.value for row in result.rows if row.split == "test"}
    assert final[""] < final["mean"] / 3


def test_the_examples_has_weights_pictures_and_the_number_said(sums, smoke):
    shown = train_cell(smoke("additive", task=sums)).artifact["examples"]
    assert [one["title"] for one in shown] == ["example 0", "example 1"]
    for one in shown:
        assert len(one["weights"]) == 1
        assert sum(one["weights"][0]) == pytest.approx(1, abs=1e-3)
        assert one["picture"]["grid"] == [2, 3]
        float(one["output"])
        assert one["said"] == [one["output"]]
        assert one["sentences"] is None


def test_the_loss_of_numbers_is_half_the_squared_error(sums, smoke):
    built = assemble(smoke("additive", task=sums), None)
    batch = built.task.evaluation("test")[0]
    terms, _ = built.system.losses(batch, Mode(read="train"), {})
    trace = built.system.there(batch, Mode())
    said = built.system.there.emit(trace.states, trace.context, trace.embedded)
    expected = (said - batch.values).square().mean() / 2
    assert float(terms["nll"].detach()) == pytest.approx(float(expected.detach()))


@pytest.mark.parametrize(
    ("variant", "backbone", "why"),
    [
        ("additive", "rnn_seq2seq", "rnn_seq2seq says words, and Sums asks for numbers."),
        ("copynet", "pooling", "copynet predicts words, and Sums asks for numbers."),
    ],
)
def test_what_says_words_is_refused_where_numbers_are_asked(sums, variant, backbone, why):
    assert cell_refusal(resolve(variant), Sums, parse(backbone), "pool") == why


def test_a_backbone_of_words_refuses_frames(sums, smoke):
    cell = replace(smoke("additive", task=sums), backbone="hierarchical", slot="pool")
    with pytest.raises(Refused, match="hierarchical reads words, and the task has frames"):
        assemble(cell, None)


def test_a_batch_picks_and_moves_all_that_it_holds():
    batch = replace(
        Sums(None, 0).batch(4, torch.Generator().manual_seed(0)), extra_words=(("a",),) * 4
    )
    picked = batch.select(torch.tensor([2, 2, 0]))
    assert picked.sources[0].grid == (2, 3)
    assert torch.equal(picked.sources[0].frames[0], batch.sources[0].frames[2])
    assert torch.equal(picked.values[2], batch.values[0])
    assert (picked.names, picked.extra_words) == (
        ("example 2", "example 2", "example 0"),
        (("a",),) * 3,
    )
    assert batch.to(torch.device("meta")).sources[0].frames.device.type == "meta"
