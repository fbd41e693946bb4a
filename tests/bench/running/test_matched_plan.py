"""`--match` after planning: all seeds share a width, and what has none is left out."""

import fcntl
from contextlib import closing
from dataclasses import replace

import psutil
import pytest
import torch

from bench.api import registry
from bench.api.backbone import BACKBONES
from bench.api.selector import parse
from bench.running.code_of_cells import CodeOfCells
from bench.running.machine_lock import lock_file
from bench.running.matched_plan import match_plan
from bench.running.plan import plan
from bench.running.request import Request
from bench.running.source_code import SourceCode
from bench.training import matching
from bench.training.matching import Matcher
from results.pack import Pack, write_pack
from results.store import Store

SMALL = Request(
    variants="multi_dimensional,uniform",
    tasks="transduction",
    preset="smoke",
    seeds=2,
    speed=False,
    match="params",
)


def matched(**changed):
    return match_plan(plan(replace(SMALL, **changed)), None)


def backbones(made):
    found = {}
    for one in made.quality:
        found.setdefault(one.spec.name, set()).add(one.cell.backbone)
    return found


def test_every_seed_of_a_variant_has_one_network_and_the_baseline_keeps_its_own():
    before, after = backbones(plan(SMALL)), backbones(matched())
    assert all(len(names) == 1 for names in after.values())
    assert after["scaled_dot"] == before["scaled_dot"]
    assert after["uniform"] == before["uniform"]
    assert after["multi_dimensional"] != before["multi_dimensional"]
    assert len(matched().quality) == 6


def test_a_network_is_matched_with_the_baselines_whatever_its_learning_rate():
    made = plan(SMALL)
    rates = {"scaled_dot": 0.003, "multi_dimensional": 0.01, "uniform": 0.001}
    tuned = [
        replace(
            one,
            cell=replace(
                one.cell,
                protocol=parse(one.cell.protocol).with_options(lr=rates[one.spec.name]).show(),
            ),
        )
        for one in made.quality
    ]
    found = match_plan(replace(made, quality=tuned), None)
    assert not found.left_out
    assert backbones(found) == backbones(matched())


def test_a_network_has_the_size_of_the_baseline_in_the_nearest_network():
    """As reports compare: the baseline may be trained in two networks of the same backbone."""
    other = "rnn_seq2seq[encoder=uni_rnn]"
    made = plan(replace(SMALL, seeds=1))
    twice = [
        *made.quality,
        *plan(replace(SMALL, seeds=1, backbone=other)).quality,
    ]
    found = match_plan(replace(made, quality=twice), None)
    alone = matched(seeds=1, backbone=other)
    assert backbones(alone)["multi_dimensional"] <= backbones(found)["multi_dimensional"]


def test_what_cannot_be_matched_is_left_out_with_the_command_that_runs_it_as_it_is(monkeypatch):
    decoder = registry.find(BACKBONES, "transformer_decoder").target
    monkeypatch.setattr(decoder, "sized_by", ("width",))
    made = matched(variants="linear_attention", tasks="recall", match="flops", seeds=1)
    assert [one.spec.name for one in made.quality] == ["scaled_dot"]
    (left,) = made.left_out
    assert left.reason.startswith("--match flops: no width of transformer_decoder gives it ")
    assert "--cell" in left.command
    assert "--match" not in left.command


def test_what_the_budget_left_out_is_told_with_its_matched_network():
    asked = replace(SMALL, variants="multi_dimensional", tasks="", preset="quick", minutes=0.02)
    before = plan(asked)
    after = match_plan(before, None)
    planned = {one.cell.label for one in before.quality} | {one.label for one in before.left_out}
    changed = [one for one in after.left_out if one.label not in planned]
    assert changed
    assert all("does not fit" in one.reason for one in changed)
    assert all(one.label in one.command for one in changed)


@pytest.mark.parametrize("match", ["params", "flops"])
def test_without_a_baseline_of_its_kind_nothing_can_be_matched(match):
    made = plan(replace(SMALL, match=match, seeds=1))
    made.quality = [one for one in made.quality if one.spec.name != "scaled_dot"]
    after = match_plan(made, None)
    assert not after.quality
    assert after.left_out
    assert all("holds no scaled_dot on this task" in one.reason for one in after.left_out)


def by_size(system, task, cell):
    """Steps whose time is the number of parameters, so that no clock takes part."""
    return lambda: 1e-9 * sum(one.numel() for one in system.parameters())


def test_steps_are_timed_with_the_one_thread_that_cells_are_trained_with(monkeypatch):
    threads = []

    def step_seconds(system, task, cell):
        threads.append(torch.get_num_threads())
        return by_size(system, task, cell)

    monkeypatch.setattr(matching, "step_seconds", step_seconds)
    torch.set_num_threads(2)
    matched(match="time", seeds=1)
    assert set(threads) == {1}
    assert torch.get_num_threads() == 2, "what the command had before"


@pytest.mark.parametrize(("match", "alone"), [("time", True), ("params", False)])
def test_steps_are_timed_alone_on_the_machine(monkeypatch, match, alone):
    blocked = []
    made = Matcher.matched

    def seen(matcher, cell, like):
        with lock_file().open("a") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
                blocked.append(False)
            except BlockingIOError:
                blocked.append(True)
        return made(matcher, cell, like)

    monkeypatch.setattr(matching, "step_seconds", by_size)
    monkeypatch.setattr(Matcher, "matched", seen)
    matched(match=match, seeds=1)
    assert blocked == [alone, alone]
    with lock_file().open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody holds it any more


def test_networks_that_were_matched_by_time_are_kept_for_the_next_run(tmp_path, monkeypatch):
    monkeypatch.setattr(matching, "step_seconds", by_size)
    made = plan(replace(SMALL, match="time"))
    with closing(Store.create(tmp_path)) as store:
        found = backbones(match_plan(made, None, store))
        assert found["multi_dimensional"] != backbones(made)["multi_dimensional"]

        monkeypatch.setattr(matching, "step_seconds", timed_once_more)
        assert backbones(match_plan(made, None, store)) == found


def test_networks_of_the_run_that_is_reused_are_taken_and_kept(tmp_path, monkeypatch):
    made = plan(replace(SMALL, match="time"))
    with closing(Store.create(tmp_path / "a")) as first, closing(Store.create(tmp_path / "b")) as b:
        monkeypatch.setattr(matching, "step_seconds", by_size)
        found = backbones(match_plan(made, None, first))
        monkeypatch.setattr(matching, "step_seconds", timed_once_more)
        assert backbones(match_plan(made, None, b, first)) == found
        assert backbones(match_plan(made, None, b)) == found, "without the run that was reused"
        pack = Pack(write_pack(first, tmp_path / "a.parquet"))
        with closing(Store.create(tmp_path / "c")) as c, pytest.raises(TimedOnceMoreError):
            match_plan(made, None, c, pack)


class TimedOnceMoreError(BaseException):
    """No mistake of a network, which would be left to its row."""


def timed_once_more(system, task, cell):
    raise TimedOnceMoreError


def other_timing(source, roots, settings=(), honest=SourceCode.digest):
    """What hashes are after an edit of what times a step, which no training reaches."""
    roots = [*roots]
    edited = ("bench.training.step_time", "relative_time") in source.reached(roots)
    return honest(source, roots, settings) + "edited" * edited


@pytest.mark.parametrize("other", ["baseline", "code", "timing", "machine"])
def test_networks_that_were_matched_elsewhere_or_beside_something_else_are_matched_again(
    tmp_path, monkeypatch, other
):
    asked = replace(SMALL, match="time", seeds=1)
    with closing(Store.create(tmp_path)) as store:
        monkeypatch.setattr(matching, "step_seconds", by_size)
        first = match_plan(plan(asked), None, store)
        monkeypatch.setattr(matching, "step_seconds", timed_once_more)
        with monkeypatch.context() as changed:
            if other == "code":
                changed.setattr(CodeOfCells, "digest", lambda *_: "0ther")
            if other == "timing":
                changed.setattr(SourceCode, "digest", other_timing)
            if other == "machine":
                changed.setattr(psutil, "cpu_count", lambda logical: 999)
            now = replace(asked, baseline="uniform") if other == "baseline" else asked
            with pytest.raises(TimedOnceMoreError):
                match_plan(plan(now), None, store)
        again = match_plan(plan(asked), None, store)
        assert backbones(again) == backbones(first), "what was kept for the first has gone"


def test_networks_that_an_earlier_version_kept_by_label_alone_are_matched_again(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(matching, "step_seconds", by_size)
    made = plan(replace(SMALL, match="time", seeds=1))
    with closing(Store.create(tmp_path)) as store:
        kept = {one.cell.label: "rnn_seq2seq[hidden=3]" for one in made.quality}
        store.write_json("matched.json", kept)
        assert backbones(match_plan(made, None, store)) == backbones(match_plan(made, None))
