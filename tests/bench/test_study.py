"""Studies: equal budgets, validation only, fresh seeds for winners, and kills that cost nothing."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from bench import study as studies
from bench.api import registry
from bench.api.config import Choices, FloatRange, IntRange
from bench.api.errors import InvalidConfig
from bench.api.headline import area_under_curve
from bench.api.resolve import resolve
from bench.running.code_of_cells import CodeOfCells
from bench.running.job import JobResult, Outcome
from bench.running.read_files import DataFiles
from bench.running.request import Request
from bench.running.session import Session
from bench.running.worker import WorkerSettings
from bench.study import distribution, expected_seconds, opened_storage, run_studies, study_name
from bench.study_request import FRESH_SEED, SAMPLERS, StudyRequest
from bench.training.protocol import read_protocol
from bench.trial_cells import drawn_cell, knobs_of, trial_cell
from results.ledger import LedgerReader
from results.row import Row
from results.store import Store

ROOT = Path(__file__).parents[2]
REQUEST = Request(variants="additive,dot", tasks="after_marker", preset="smoke")
RANKED = registry.find("task", "after_marker").target.ranking_metric().name
ASKED = StudyRequest(request=REQUEST, trials=4, final_seeds=2)


class Scored:
    """An executor whose validation score is a function of the learning rate."""

    def __init__(self, stop_after=None, status="ok", environmental=False):
        self.done, self.stop_after, self.status = [], stop_after, status
        self.environmental = environmental

    def run(self, jobs, jobs_at_once, watch):
        for job in jobs:
            if self.stop_after is not None and len(self.done) >= self.stop_after:
                raise KeyboardInterrupt
            self.done.append(job)
            (cell,) = job.cells
            status = self.status(cell) if callable(self.status) else self.status
            rows = self.rows_of(cell)
            if cell.kind == "quality":
                rows += (Row(metric=RANKED, value=0.1, split="test"),)
            outcome = Outcome(cell, status, "", rows)
            if status != "ok":
                lost = self.environmental
                outcome = Outcome(cell, status, "no.", environmental=lost)
            yield job, JobResult((outcome,))

    @staticmethod
    def rows_of(cell):
        rate = read_protocol(cell.protocol).lr
        return (
            Row(metric=RANKED, value=1 - abs(rate - 0.003), split="validation"),
            Row(metric=RANKED, value=0.0, axis="step", x=1.0, split="validation"),
        )


@pytest.fixture
def tune(tmp_path):
    """`tune(asked, **executor options)` -> (results, executor), in one folder."""
    opened = []

    def run(asked=ASKED, folder="run", jobs=2, retry=(), filed=None, **options):
        store = Store.create(tmp_path / folder)
        opened.append(store)
        executor = Scored(**options)
        session = Session(
            store,
            WorkerSettings(),
            jobs=jobs,
            retry=frozenset(retry),
            stream=io.StringIO(),
            executor=executor,
        )
        try:
            return run_studies(asked, session, ({} if filed is None else filed).update), executor
        except KeyboardInterrupt:
            return None, executor
        finally:
            store.close()

    return run


def trials(tmp_path, folder="run"):
    storage = f"sqlite:///{tmp_path / folder / 'study.db'}"
    return {
        name.split(" @ ")[1]: optuna.load_study(study_name=name, storage=storage).trials
        for name in optuna.get_all_study_names(storage)
    }


def rates(executor, name):
    return [
        read_protocol(job.cells[0].protocol).lr
        for job in executor.done
        if job.cells[0].kind == "trial" and job.cells[0].variant.startswith(name)
    ]


def test_ranges_become_distributions():
    assert distribution(IntRange(8, 64, log=True)) == IntDistribution(8, 64, log=True)
    assert distribution(FloatRange(0.1, 1.0)) == FloatDistribution(0.1, 1.0)
    assert distribution(Choices(("a", 1, True))) == CategoricalDistribution(("a", 1, True))


def test_every_variant_gets_the_same_number_of_trials_and_the_winner_fresh_seeds(tune, tmp_path):
    results, executor = tune()
    cells = [job.cells[0] for job in executor.done]
    by_name = {
        name: [c for c in cells if c.kind == "trial" and c.variant.startswith(name)]
        for name in ("additive", "dot")
    }
    assert {name: len(found) for name, found in by_name.items()} == {"additive": 4, "dot": 4}
    finals = [cell for cell in cells if cell.kind == "quality"]
    assert sorted(cell.seed for cell in finals) == [
        FRESH_SEED,
        FRESH_SEED,
        FRESH_SEED + 1,
        FRESH_SEED + 1,
    ]
    assert {cell.seed for found in by_name.values() for cell in found} == {0}
    for result in results:
        best = min(rates(executor, result.variant), key=lambda rate: abs(rate - 0.003))
        assert result.parameters["lr"] == best
        assert result.best_value == pytest.approx(1 - abs(best - 0.003))
        assert {read_protocol(p.cell.protocol).lr for p in result.finals} == {best}
    assert (tmp_path / "run" / "study.db").is_file()


def test_every_trial_is_filed_under_its_study_and_number_before_it_is_trained(tune):
    filed = {}
    known = []

    def status(cell):
        known.append(cell.id in filed.values())
        return "diverged"

    asked = replace(ASKED, request=replace(REQUEST, variants="dpfp,dpfp[shifts=1]"))
    _, executor = tune(asked, filed=filed, status=status)
    names = ("dpfp", "dpfp[shifts=1]")
    assert [*filed] == [f"{name} {number}" for name in names for number in range(4)]
    assert known == [True] * 7
    assert {job.cells[0].id for job in executor.done} == {*filed.values()}
    assert filed["dpfp 3"] == filed["dpfp[shifts=1] 3"], "where one draws what the other has"


def test_trials_that_a_study_finds_in_its_storage_are_filed_too(tune):
    """A version that filed none may have asked for them."""
    first, second = {}, {}
    tune(filed=first)
    _, executor = tune(filed=second)
    assert executor.done == []
    assert second == first


def test_all_variants_try_the_same_learning_rates(tune):
    _, executor = tune()
    assert rates(executor, "additive") == rates(executor, "dot")
    assert len(set(rates(executor, "dot"))) == 4


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_resumed_study_tries_new_values_and_repeats_none(tune, sampler):
    asked = replace(ASKED, request=replace(REQUEST, variants="dot"), sampler=sampler)
    _, first = tune(asked, stop_after=2)
    _, second = tune(asked)
    tried = rates(first, "dot") + rates(second, "dot")
    assert len(tried) == len(set(tried)) == 4
    third, executor = tune(asked)
    assert executor.done == []
    assert third[0].best_value is not None


def test_a_study_goes_on_in_a_folder_that_was_moved(tune, tmp_path):
    asked = replace(ASKED, request=replace(REQUEST, variants="dot"))
    _, whole = tune(asked, folder="whole")
    _, first = tune(asked, folder="before", stop_after=2)
    (tmp_path / "before").rename(tmp_path / "after")
    _, second = tune(asked, folder="after")
    tried = rates(first, "dot") + rates(second, "dot")
    assert sorted(set(tried)) == sorted(rates(whole, "dot"))
    (found,) = trials(tmp_path, "after").values()
    assert not [one for one in found if one.state == TrialState.RUNNING]


def test_the_second_half_of_a_few_trials_is_not_drawn_blindly(tune):
    """Optuna's default would make all of them random."""
    few = replace(ASKED, request=replace(REQUEST, variants="dot"), trials=8)
    blind, asked = (
        rates(tune(replace(few, sampler=name), folder=name, jobs=1)[1], "dot")
        for name in ("random", "tpe")
    )
    assert asked[:4] == blind[:4]
    assert asked[4:] != blind[4:]


def test_a_trial_that_was_running_is_asked_again_and_counted_once(tune, tmp_path):
    asked = replace(ASKED, request=replace(REQUEST, variants="dot"))
    _, whole = tune(asked, folder="whole")
    _, first = tune(asked, stop_after=1)
    (before,) = trials(tmp_path).values()
    running = [t.params["lr"] for t in before if t.state == TrialState.RUNNING]
    assert len(running) == 2, "the first of the pair had finished, and nobody had told the study"
    _, second = tune(asked, stop_after=2)
    results, third = tune(asked)
    tried = rates(first, "dot") + rates(second, "dot") + rates(third, "dot")
    assert sorted(tried) == sorted(rates(whole, "dot"))
    (after,) = trials(tmp_path).values()
    complete = [t for t in after if t.state == TrialState.COMPLETE]
    assert len(complete) == 4
    assert not [t for t in after if t.state in (TrialState.RUNNING, TrialState.WAITING)]
    assert sorted(t.user_attrs["number"] for t in complete) == [0, 1, 2, 3]
    assert results[0].best_trial in range(4)
    stored = Store(tmp_path / "run").ledger().records
    assert len({record.id for record in stored}) == len(stored) == 4 + 2


def test_a_failed_trial_is_spent_and_a_variant_without_a_value_stops_no_other(tune):
    results, executor = tune(status=lambda cell: "ok" if "dot" in cell.variant[:4] else "diverged")
    assert [result.best_value is None for result in results] == [True, False]
    assert results[0].finals == ()
    assert len(rates(executor, "additive")) == 4
    capabilities = studies.study_facts(ASKED, results)
    assert capabilities["additive"]["best_trial"] == "none gave a value"
    assert capabilities["dot"]["best_validation"] > 0.9


@pytest.mark.parametrize(
    ("lost", "retry", "again"),
    [
        ({"status": "failed"}, (), False),
        ({"status": "failed"}, ("timeout",), False),
        ({"status": "failed"}, ("failed",), True),
        ({"status": "refused", "environmental": True}, (), True),
    ],
)
def test_a_lost_trial_is_asked_again_where_its_cell_would_be(tune, tmp_path, lost, retry, again):
    asked = replace(ASKED, request=replace(REQUEST, variants="dot"))
    (nothing,), first = tune(asked, **lost)
    assert nothing.best_value is None
    (result,), second = tune(asked, retry=retry)
    assert rates(second, "dot") == (rates(first, "dot") if again else [])
    assert (result.best_value is not None) == again
    (after,) = trials(tmp_path).values()
    complete = [t for t in after if t.state == TrialState.COMPLETE]
    assert [t.user_attrs["number"] for t in complete] == ([0, 1, 2, 3] if again else [])
    _, third = tune(asked, retry=retry)
    assert not third.done, "nothing is lost any more, or nobody asked for it"


def test_trials_of_other_data_are_asked_again(tune, tmp_path, monkeypatch):
    asked = replace(ASKED, request=replace(REQUEST, variants="dot"))
    _, first = tune(asked)
    with monkeypatch.context() as changed:
        changed.setattr(DataFiles, "changed", lambda self, data: ["words.txt"])
        (result,), second = tune(asked)
    assert rates(second, "dot") == rates(first, "dot")
    assert result.best_trial in range(4)
    _, third = tune(asked)
    assert not third.done


ODD = replace(ASKED, request=replace(REQUEST, variants="differential,dot"))


def test_options_that_do_not_go_together_are_drawn_anew_at_the_same_rate(tune, tmp_path):
    """`start` of `differential` has no meaning beside `by_layer`, and both are drawn."""
    results, executor = tune(ODD)
    assert rates(executor, "differential") == rates(executor, "dot")
    assert [result.best_value is None for result in results] == [False, False]
    assert [result.illegal for result in results] == [{}, {}]
    found = trials(tmp_path)["differential"]
    odd = [one for one in found if "why" in one.user_attrs]
    assert odd, "else this test shows nothing"
    assert {one.state for one in odd} == {TrialState.FAIL}
    assert "leave start out" in odd[0].user_attrs["why"]
    complete = [one for one in found if one.state == TrialState.COMPLETE]
    assert sorted(one.user_attrs["number"] for one in complete) == [0, 1, 2, 3]
    assert not tune(ODD)[1].done, "nothing is lost"


def test_a_study_that_an_earlier_version_stopped_at_such_a_draw_goes_on(tune, tmp_path):
    _, whole = tune(ODD, folder="whole")
    asked = replace(ODD, request=replace(ODD.request, variants="differential"))
    spec = resolve("differential")
    Store.create(tmp_path / "run").close()
    study = optuna.create_study(
        storage=f"sqlite:///{tmp_path / 'run' / 'study.db'}",
        study_name=study_name("differential", spec, asked),
        direction="maximize",
    )
    study.enqueue_trial({"lr": 0.002, "differential.start": 0.3, "differential.by_layer": True})
    ranges = {knob.name: distribution(knob.range) for knob in knobs_of(spec, asked)}
    study.ask(ranges).set_user_attr("number", 0)
    (result,), executor = tune(asked)
    assert result.best_value is not None
    assert rates(executor, "differential")[0] == 0.002
    assert sorted(rates(executor, "differential")[1:]) == sorted(rates(whole, "dot")[1:])
    (found,) = trials(tmp_path).values()
    assert not [one for one in found if not one.state.is_finished()]


def test_where_no_options_go_together_trials_are_spent_and_the_study_says_why(tune):
    asked = replace(ODD, request=replace(REQUEST, variants="differential[by_layer=true],dot"))
    results, executor = tune(asked)
    assert results[0].best_value is None
    assert [*results[0].illegal] == [0, 1, 2, 3]
    assert "leave start out" in results[0].illegal[0]
    assert results[1].finals
    assert len(rates(executor, "dot")) == 4
    facts = studies.study_facts(asked, results)
    assert facts["differential[by_layer=true]"]["illegal"].keys() == {"0", "1", "2", "3"}
    assert "illegal" not in facts["dot"]
    again, executor = tune(asked)
    assert not executor.done
    assert again[0].illegal == results[0].illegal


def test_what_is_drawn_for_any_variant_goes_together():
    """Without training: a trial is asked for, and its cell is made."""
    for name in sorted(registry.listed_variants()):
        asked = replace(ASKED, request=replace(REQUEST, variants=name))
        spec = resolve(name)
        knobs = knobs_of(spec, asked)
        study = optuna.create_study()
        for _ in range(2):
            trial, planned = studies._ask(
                study, asked, knobs, "", partial(drawn_cell, spec, asked, knobs)
            )
            assert planned.spec.canonical.show() == planned.cell.variant, name
            study.tell(trial, 0.0)


def test_trials_with_patience_are_chosen_by_what_chose_their_weights(tune, monkeypatch):
    """Far beyond training, where a score is noise, what ranks would choose at random."""
    request = Request(variants="dot", tasks="transduction[rule=copy]", preset="smoke")
    plain = StudyRequest(request=request, trials=4, final_seeds=1)
    patient = replace(plain, request=replace(request, training="adam[patience=3]"))
    task = registry.find("task", "transduction").target
    ranks, chooses = task.ranking_metric().name, task.choosing_metric().name

    def rows_of(cell):
        protocol = read_protocol(cell.protocol)
        near = 1 - abs(protocol.lr - 0.003)
        known = {ranks: 1 - near, **({chooses: near} if protocol.patience else {})}
        return tuple(Row(metric=m, value=v, split="validation") for m, v in known.items())

    monkeypatch.setattr(Scored, "rows_of", staticmethod(rows_of))
    (result,), executor = tune(patient)
    tried = rates(executor, "dot")
    assert result.parameters["lr"] == min(tried, key=lambda rate: abs(rate - 0.003))
    assert result.chosen_by == chooses
    assert studies.study_facts(patient, [result])["dot"]["chosen_by"] == chooses
    (result,), _ = tune(plain, folder="plain")
    assert result.parameters["lr"] == max(tried, key=lambda rate: abs(rate - 0.003))
    assert result.chosen_by == ranks


@pytest.mark.parametrize("folder", ["a b", "what?", "100%20", "h#y", "{x}"])
def test_a_study_is_kept_in_its_folder_whatever_the_name_of_that(tune, tmp_path, folder):
    tune(replace(ASKED, trials=1, final_seeds=1), folder=folder)
    assert (tmp_path / folder / "study.db").is_file()
    assert [one.name for one in tmp_path.iterdir()] == [folder]


def test_a_metric_that_should_be_low_is_minimized(tune, fresh_registry):
    registered = registry.find("task", "after_marker")
    lower = replace(registered.target.metrics[0], better="lower")
    declared = {"metrics": (lower,), "headline": area_under_curve(lower)}
    target = type("Low", (registered.target,), declared)
    registry._ENTRIES["task"]["after_marker"] = replace(registered, target=target)
    results, executor = tune()
    worst = max(rates(executor, "dot"), key=lambda rate: abs(rate - 0.003))
    assert results[1].parameters["lr"] == worst


def test_another_question_is_another_study():
    spec = resolve("dot")
    names = {
        study_name("dot", spec, asked)
        for asked in (
            ASKED,
            replace(ASKED, trial_seconds=3.0),
            replace(ASKED, sampler="tpe"),
            replace(ASKED, request=replace(REQUEST, training="adam[steps=3]")),
            replace(ASKED, request=replace(REQUEST, first_seed=1)),
            replace(ASKED, request=replace(REQUEST, backbone="pooling[embedding=8]")),
        )
    }
    assert len(names) == 6
    same = (
        replace(ASKED, trials=9, final_seeds=1, storage="elsewhere"),
        replace(ASKED, request=replace(REQUEST, variants="dot,general", jobs=7)),
    )
    for asked in same:
        assert study_name("dot", spec, asked) == study_name("dot", spec, ASKED)


def test_after_an_edit_every_trial_is_asked_again(tune, monkeypatch):
    _, before = tune()
    unedited = CodeOfCells.digest
    monkeypatch.setattr(
        CodeOfCells, "digest", lambda self, cell, made=(): f"edited {unedited(self, cell, made)}"
    )
    _, after = tune()
    for name in ("additive", "dot"):
        assert rates(after, name) == rates(before, name)


def test_more_trials_can_be_added_to_a_study(tune):
    tune()
    _, executor = tune(replace(ASKED, trials=6))
    assert len(rates(executor, "dot")) == 2


def test_a_study_that_goes_on_with_fewer_trials_chooses_among_as_many(tune):
    """Else a variant that was tuned before would have had more trials than a new one."""
    _, executor = tune()
    (again, *_), more = tune(replace(ASKED, trials=2))
    assert not [job for job in more.done if job.cells[0].kind == "trial"]
    first = rates(executor, again.variant)[:2]
    assert again.parameters["lr"] == min(first, key=lambda rate: abs(rate - 0.003))


def test_a_limit_of_seconds_takes_the_place_of_a_cooldown():
    """Where the task has one, as calibrated tasks have."""
    request = Request(variants="additive", tasks="recall", preset="quick")
    asked = StudyRequest(request=request, trial_seconds=1.0)
    ((_, spec),) = request.specs
    protocol = read_protocol(trial_cell(spec, asked, (), {}).cell.protocol)
    assert (protocol.cpu_seconds, protocol.cooldown) == (1.0, 0.0)
    assert expected_seconds(asked) > 0


HOLDER = """
import sys
from results.store import Store
from hashlib import sha256
assert Store(sys.argv[1]).reserve(sha256(sys.argv[2].encode()).hexdigest()[:12])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_study_that_another_process_runs_is_refused(tune, tmp_path):
    folder = Store.create(tmp_path / "run").folder
    name = study_name("additive", resolve("additive"), ASKED)
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InvalidConfig, match="another process runs this study"):
            tune()
    finally:
        other.communicate()


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"trials": 0}, r"trials must be at least 1, got 0\."),
        ({"final_seeds": -1}, r"final seeds must be at least 1, got -1\."),
        ({"trial_seconds": float("nan")}, r"a number >= 0.*; got nan\."),
        ({"trial_seconds": float("inf")}, r"a number >= 0.*; got inf\."),
        ({"trial_seconds": -1.0}, r"a number >= 0.*; got -1\."),
        ({"request": replace(REQUEST, tasks="")}, "exactly one task"),
        ({"request": replace(REQUEST, tasks="recall,offset")}, "exactly one task"),
        ({"request": replace(REQUEST, first_seed=FRESH_SEED)}, "kept for the winners"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused(changed, complaint):
    with pytest.raises(InvalidConfig, match=complaint):
        replace(ASKED, **changed)


def study_command(folder, *more):
    tuning = "--trials 3 --final-seeds 2 --jobs 2 --training adam[steps=6,evaluate_every=3]"
    asked = f"study --variants additive,dot --tasks after_marker --preset smoke {tuning}"
    return [sys.executable, "-m", "bench", *asked.split(), "--out", str(folder), *more]


def finish(command):
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


def trial_lines(folder):
    return len(LedgerReader(folder / "ledger").read().records)  # whole lines, while it is written


@pytest.mark.slow
def test_a_study_killed_in_the_middle_is_finished_reported_and_done_again(tmp_path):
    folder = tmp_path / "run"
    driver = subprocess.Popen(
        study_command(folder), cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    end = time.monotonic() + 120
    while trial_lines(folder) < 1 and time.monotonic() < end and driver.poll() is None:
        time.sleep(0.01)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    said = finish(study_command(folder, "--json"))
    assert said.returncode == 0, said.stderr
    records = Store(folder).ledger().records
    assert len({record.id for record in records}) == len(records) == 2 * 3 + 2 * 2
    for record in records:
        splits = {row.split for row in record.rows}
        assert ("test" in splits) == (record.cell["kind"] == "quality")
        assert (record.cell["seed"] >= FRESH_SEED) == (record.cell["kind"] == "quality")
    assert json.loads(said.stdout)["counts"].keys() == {"ok"}
    report = (folder / "details.md").read_text()
    section = report.partition("## Studies")[2].partition("\n## ")[0]
    assert "Best validation score so far" in section
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    named = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in lines}
    assert (named["additive"], named["dot"]) == ("3", "3")
    spec = json.loads((folder / "spec.json").read_text())
    assert (spec["command"], spec["tuning"]["trials"]) == ("study", 3)
    spec_path = str(folder / "spec.json")
    again = finish([sys.executable, "-m", "bench", "study", "--spec", spec_path, "--json"])
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["counts"] == {}


@pytest.mark.parametrize(
    "storage", ["foo", "mysql://nobody@localhost/x", "sqlite:////no/such/x.db"]
)
def test_a_storage_that_cannot_be_opened_is_refused_in_a_sentence(storage):
    with pytest.raises(InvalidConfig, match="cannot open the storage") as refused:
        opened_storage(storage)
    assert "\n" not in str(refused.value)


def test_a_variant_that_has_nothing_left_to_change_is_refused():
    variants = "additive,dot[normalizer=softmax[temperature=0.5]]"
    request = replace(REQUEST, variants=variants, training="adam[lr=0.02]")
    with pytest.raises(InvalidConfig, match=r"is given, and dot\[.*\] has no other option"):
        expected_seconds(replace(ASKED, request=request))
