"""A run into a folder: finished cells stay finished, and every cell is run by one process."""

import errno
import fcntl
import importlib
import io
import json
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bench.api.loading import load_plugin
from bench.api.resolve import resolve
from bench.conformance import RunsOn
from bench.conformance.certificate import Certificate
from bench.running import machine_lock as locks
from bench.running import runner, shared_queue, source_code
from bench.running.job import Job, JobResult, Outcome
from bench.running.machine_lock import lock_file
from bench.running.plan import plan
from bench.running.request import Request
from bench.running.runner import run_job
from bench.running.session import Session
from bench.running.worker import WorkerSettings
from bench.timing.block import group_blocks
from bench.training.analysis import analysis_cells, asked_probes, model_path
from bench.training.kept_weights import Origin, save_weights
from results.certificate import with_checks
from results.environment import collect
from results.row import Row, Unmeasured
from results.store import Store


def test_finished_cells_are_never_run_again(start, made):
    first = start()
    outcomes = first.train(made.quality)
    assert len(outcomes) == len(made.quality) == 4
    assert first.tally.counts == {"ok": 4}
    again = start()
    assert again.train(made.quality) == []
    assert again.executor.done == []
    assert (again.tally.already, again.tally.failed) == (4, 0)
    assert len(Store(first.store.folder).ledger().records) == 4


def left(path):
    """What an earlier training left."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"half a training")
    return path


def refusing(job, *, environmental):
    return JobResult(
        tuple(
            Outcome(c, "refused", "for a reason.", environmental=environmental) for c in job.cells
        )
    )


def test_cells_refused_for_want_of_data_are_asked_again_and_other_refusals_are_not(start, made):
    lacking = {made.quality[0].cell.id, made.quality[1].cell.id}
    first = start(lambda job: refusing(job, environmental=job.cells[0].id in lacking))
    first.train(made.quality)
    first.train(made.quality)
    assert len(first.executor.done) == 4, "once in a session, however often they are asked"
    assert first.tally.reasons == {("refused", "for a reason."): 4 + 4}
    again = start()
    again.train(made.quality)
    assert {job.cells[0].id for job in again.executor.done} == lacking
    assert again.tally.before == {"refused": 2}
    assert again.tally.reasons == {("refused", "for a reason."): 2}
    newest = Store(first.store.folder).ledger().newest()
    assert {newest[id_].status for id_ in lacking} == {"ok"}


def test_a_look_at_a_model_is_named_by_probe_task_and_variant(start, made):
    looks = analysis_cells([made.quality[1].cell], asked_probes("erasure"))
    session = start(lambda job: "failed")
    session.analyze(looks)
    (job,) = session.executor.done
    assert job.label == "erasure on after_marker @ additive seed 0"


def test_what_stands_nowhere_is_refused_by_its_cells_and_not_certified(start):
    green = {"passed": ["shapes"], "skipped": {}, "told": {}, "failed": {}, "expected": []}
    session = start(lambda job: JobResult(certificate=green))
    nowhere = resolve("additive[normalizer=hard_reinforce]").canonical.show()
    somewhere = [resolve(name).canonical.show() for name in ("additive", "none_state")]
    found = session.certify(map(resolve, [nowhere, *somewhere]), "auto")
    assert [*found] == somewhere


def test_a_cell_asked_twice_in_one_call_or_session_runs_once(start, made):
    session = start()
    session.train([made.quality[0], made.quality[0]])
    session.train([made.quality[0]])
    assert len(session.executor.done) == 1


def test_only_the_statuses_asked_for_are_retried_and_only_once(start, made):
    answers = dict(
        zip((p.cell.id for p in made.quality), ("failed", "refused", "ok", "timeout"), strict=True)
    )
    first = start(lambda job: answers[job.cells[0].id])
    first.train(made.quality)
    assert first.tally.failed == 2
    plain = start()
    plain.train(made.quality)
    assert plain.executor.done == []
    assert plain.tally.failed == 2, "what failed before is still a failure of what was asked"
    again = start(lambda job: "failed", retry=frozenset({"failed"}))
    again.train(made.quality)
    again.train(made.quality)
    assert [job.cells[0].id for job in again.executor.done] == [made.quality[0].cell.id]
    newest = Store(first.store.folder).ledger().newest()
    assert newest[made.quality[0].cell.id].attempt == 2


def test_the_record_is_stored_before_the_next_job_is_taken(start, made):
    session = start()
    seen = []
    session.executor.answer = lambda job: seen.append(len(session.store.records())) or "ok"
    session.train(made.quality)
    assert seen == [0, 1, 2, 3]
    artifacts = list((session.store.folder / "artifacts").glob("*.json"))
    assert len(artifacts) == 4


def test_an_unexpected_error_leaves_its_trace_in_the_log(start, made):
    cell = made.quality[0].cell
    session = start(
        lambda job: JobResult((Outcome(cell, "failed", "KeyError: 3"),), trace="Traceback: 3\n")
    )
    session.train(made.quality[:1])
    assert "Traceback: 3" in (session.store.folder / "log.txt").read_text()


HOLDER = """
import sys
from results.store import Store
store = Store(sys.argv[1])
assert all(store.reserve(id_) for id_ in sys.argv[2:])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hold():
    """`hold(folder, ids)`: another process claims cells until `.communicate()`."""
    started = []

    def begin(folder, ids):
        command = [sys.executable, "-c", HOLDER, str(folder), *ids]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
        )
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_a_cell_that_another_process_holds_waits_and_is_run_once_it_is_free(start, made, hold):
    session = start()
    held = made.quality[0].cell.id
    other = hold(session.store.folder, [held])
    order = []

    def answer(job):
        order.append(job.cells[0].id)
        if len(order) == 3:
            other.communicate()  # the other process ends without having finished it
        return "ok"

    session.executor.answer = answer
    session.train(made.quality)
    assert order[-1] == held
    assert sorted(order) == sorted(p.cell.id for p in made.quality)


def test_a_cell_that_another_process_finishes_meanwhile_is_not_run(start, made, hold):
    session, rival = start(), start()
    held = made.quality[0].cell
    other = hold(session.store.folder, [held.id])

    def answer(job):
        if len(session.executor.done) == 3:
            rival.store.append(
                rival._results.record_of(Outcome(held, "refused", "no."), JobResult())
            )
            other.communicate()
        return "ok"

    session.executor.answer = answer
    session.train(made.quality)
    assert held.id not in [job.cells[0].id for job in session.executor.done]
    assert session.tally.counts == {"ok": 3}
    assert session.tally.before == {"refused": 1}
    assert "[4/4] done elsewhere" in session.stream.getvalue()


def test_what_must_end_waits_no_longer_for_the_machine(start, made):
    session = start(lambda job: "ok")
    with lock_file().open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        session.train(made.quality, end_s=time.monotonic() + 0.05)
    assert not session.executor.done
    assert "held this machine until the time was over" in session.stream.getvalue()
    session.train(made.quality)
    assert len(session.executor.done) == len(made.quality), "nothing was kept back"


def test_what_must_end_has_the_time_that_is_left_once_the_machine_is_free(start, made, monkeypatch):
    """A piece of `bench gpu` waited for the lock, and had all of its time after that."""
    now = [0.0]

    @contextmanager
    def machine_lock(**_):
        now[0] += 50.0
        yield

    def answer(job):
        now[0] += 6.0
        return "ok"

    monkeypatch.setattr(shared_queue, "machine_lock", machine_lock)
    monkeypatch.setattr(shared_queue, "time", SimpleNamespace(monotonic=lambda: now[0]))
    session = start(answer)
    session.train(made.quality, end_s=60.0)
    assert [job.timeout_s for job in session.executor.done] == [10.0, 4.0]
    assert session.stream.getvalue().count("no time left") == 2
    again = start(answer)
    again.train(made.quality)
    assert len(again.executor.done) == 2, "what had no time is free for the next run"
    timed = start(answer)
    timed.measure(made.speed, end_s=now[0] + 51.0)
    assert [job.timeout_s for job in timed.executor.done] == [1.0]


def test_a_block_of_timed_cells_leaves_out_what_another_process_holds(start, made, hold):
    session = start()
    block = group_blocks([p.cell for p in made.speed])[0]
    other = hold(session.store.folder, [block[1].id])

    def answer(job):
        if len(session.executor.done) == 3:
            other.communicate()
        return "ok"

    session.executor.answer = answer
    session.measure(made.speed)
    sizes = [len(job.cells) for job in session.executor.done]
    assert sizes == [3, 4, 4, 1]
    assert session.executor.done[-1].cells == (block[1],)
    assert session.executor.done[-1].reference.variant == made.baseline.canonical.show()
    assert session.tally.counts == {"ok": 12}
    said = [line for line in session.stream.getvalue().splitlines() if line.startswith("[")]
    assert [line.split()[0] for line in said] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert "(3 variants)" in said[0]
    expected = sum(job.seconds for job in session.executor.done)
    assert expected == pytest.approx(sum(planned.seconds for planned in made.speed))


def test_a_block_is_ok_in_part_only_where_one_of_its_cells_is(start, made):
    lost = {p.cell.id for p in made.speed if "length=32" in p.cell.task}
    lost.add(next(p.cell.id for p in made.speed if "length=64" in p.cell.task))

    def answer(job):
        rows = (Row(metric="forward_time_ms", value=1.0),)
        outcomes = (
            Outcome(cell, "out_of_memory", "too big.")
            if cell.id in lost
            else Outcome(cell, "ok", rows=rows)
            for cell in job.cells
        )
        return JobResult(tuple(outcomes))

    session = start(answer)
    session.measure(made.speed)
    said = re.findall(r"\] (.*?) +speed", session.stream.getvalue())
    assert sorted(said) == ["ok", "ok but out_of_memory", "out_of_memory"]


def test_claims_are_given_back(start, made, hold):
    session = start()
    session.train(made.quality)
    assert hold(session.store.folder, [p.cell.id for p in made.quality])


def locked_against(kind):
    """Whether another run of this machine would have to wait for the lock."""
    with lock_file().open("a") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_training_shares_the_machine_and_timing_owns_it(start, made):
    seen = {}

    def answer(job):
        seen[job.kind] = (locked_against(fcntl.LOCK_SH), locked_against(fcntl.LOCK_EX))
        return "ok"

    session = start(answer)
    session.train(made.quality)
    session.measure(made.speed)
    assert seen == {"quality": (False, True), "speed": (True, True)}
    assert not locked_against(fcntl.LOCK_EX)


def test_a_run_that_waits_for_the_machine_says_so(start, made, monkeypatch):
    session = start()
    waits = []

    def flock(file, kind):
        if kind & fcntl.LOCK_NB:
            raise BlockingIOError
        waits.append(kind)

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    session.measure(made.speed)
    assert waits == [fcntl.LOCK_EX]
    assert "waiting for another run on this machine" in session.stream.getvalue()


def test_timed_blocks_run_one_at_a_time_beside_the_baseline(start, made):
    session = start()
    at_once = []
    run = session.executor.run
    session.executor.run = lambda jobs, n, watch: at_once.append(n) or run(jobs, n, watch)
    session.measure(made.speed)
    assert at_once == [1]
    assert [len(job.cells) for job in session.executor.done] == [4, 4, 4]
    assert {job.reference.variant for job in session.executor.done} == {
        made.baseline.canonical.show()
    }


def test_times_beside_another_baseline_are_cells_of_their_own(start, made):
    other = plan(replace(made.request, baseline="dot"))
    alike = {p.cell.variant for p in made.speed} & {p.cell.variant for p in other.speed}
    assert alike
    assert {p.cell.id for p in made.speed}.isdisjoint(p.cell.id for p in other.speed)
    start().measure(made.speed)
    session = start()
    session.measure(other.speed)
    assert [len(job.cells) for job in session.executor.done] == [3, 3, 3], "none had been timed"
    baseline = other.baseline.canonical.show()
    for job in session.executor.done:
        assert job.reference.variant == baseline != made.baseline.canonical.show()
        assert job.reference in job.cells
        assert f"beside={baseline}" in job.reference.protocol


def test_a_training_may_take_some_times_the_seconds_that_it_is_given(start, made):
    wanted = made.quality[0]
    given = replace(wanted.cell, protocol="adam[cpu_seconds=600,steps=100000]")
    session = start()
    session.train([wanted, replace(wanted, cell=given)])
    session.patient = False
    session.train(made.quality[1:2])
    usual, longer, strict = session.executor.done
    assert (usual.timeout_s, longer.timeout_s) == (120.0, 3000.0)
    assert (usual.patient, longer.patient, strict.patient) == (True, True, False)


def test_a_resumed_block_still_has_its_baseline(start, made):
    first = start()
    first.measure([p for p in made.speed if p.spec == made.baseline])
    session = start()
    session.measure(made.speed)
    assert session.executor.done
    for job in session.executor.done:
        assert made.baseline.canonical.show() not in {cell.variant for cell in job.cells}
        assert job.reference.variant == made.baseline.canonical.show()


def test_a_timed_cell_alone_is_compared_with_the_baseline_and_not_with_itself(start, made):
    session = start()
    alone = next(p for p in made.speed if p.spec != made.baseline)
    session.measure([alone])
    (job,) = session.executor.done
    assert job.cells == (alone.cell,)
    planned = {p.cell.id for p in made.speed}
    assert job.reference.variant == made.baseline.canonical.show()
    assert job.reference.id in planned, "the very cell that a plan has"


def test_a_variant_that_kills_its_block_does_not_take_the_others_along(start, made):
    bad = next(p.cell.variant for p in made.speed if "general" in p.cell.variant)

    def answer(job):
        if bad not in {cell.variant for cell in job.cells}:
            return "ok"
        dead = tuple(Outcome(c, "out_of_memory", "killed.") for c in job.cells)
        return JobResult(dead, died=True)

    session = start(answer)
    session.measure(made.speed)
    assert session.tally.counts == {"ok": 9, "out_of_memory": 3}
    newest = session.store.ledger().newest()
    for planned in made.speed:
        wanted = "out_of_memory" if planned.cell.variant == bad else "ok"
        assert newest[planned.cell.id].status == wanted
    assert len(session.store.ledger().records) == 12


@pytest.mark.slow
def test_a_killed_timing_process_costs_one_variant(start, trouble_plugin):
    load_plugin(trouble_plugin)
    request = Request(variants="dot,killer", tasks="after_marker", preset="smoke")
    made = plan(request)
    folder = start().store.folder
    session = Session(
        Store(folder), WorkerSettings(plugins=(str(trouble_plugin),)), stream=io.StringIO()
    )
    shortest = [p for p in made.speed if "length=32" in p.cell.task]
    session.measure(shortest)
    newest = session.store.ledger().newest()
    said = {p.cell.variant.partition("[")[0]: newest[p.cell.id] for p in shortest}
    assert said["killer"].status == "out_of_memory"
    assert said["dot"].status == said["scaled_dot"].status == "ok"
    timed = [row for row in said["dot"].rows if row.metric == "forward_time_ms"]
    assert {row.baseline for row in timed} == {"", "reference", "aa_control"}


def bare(certificates):
    """Certificates as the jobs gave them, without the hashes of their code."""
    return {
        variant: {key: value for key, value in entry.items() if key != "code"}
        for variant, entry in certificates.items()
    }


def test_certificates_are_cached_by_the_code_and_deaths_are_not(start, monkeypatch, tmp_path):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    green = {"passed": ["config"], "skipped": {}, "told": {}, "failed": {}, "expected": ["config"]}
    red = {"passed": [], "skipped": {}, "told": {}, "failed": {"suite": "killed."}, "expected": []}

    def answer(job):
        died = job.variant.startswith("general")
        return JobResult(certificate=red if died else green, died=died)

    session = start(answer)
    found = session.certify(map(resolve, ["dot", "general", "dot"]), "auto")
    assert bare(found) == {"dot": green, "general": red}
    assert json.loads((session.store.folder / "certificates.json").read_text()) == found
    again = start(lambda job: JobResult(certificate=green), folder="other")
    assert bare(again.certify(map(resolve, ["dot", "general"]), "auto"))["general"] == green
    assert [job.variant for job in again.executor.done] == ["general"]
    again.certify([resolve("dot")], "eager")
    assert again.executor.done[-1].impl == "eager"


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("suite.build_subject", OSError(errno.ENOSPC, "No space left on device")),
        ("suite.resolve", MemoryError()),
    ],
)
def test_a_certificate_that_the_machine_ended_is_asked_again(
    start, monkeypatch, tmp_path, place, error
):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))

    def end(job):
        return run_job(replace(job, checks=("runs_somewhere", "shapes")), None, lambda _: None)

    def ends(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(f"bench.conformance.{place}", ends)
        session = start(end)
        assert session.certify([resolve("dot")], "auto")["dot"]["failed"], "this time it is red"
    again = start(end)
    found = again.certify([resolve("dot")], "auto")["dot"]
    assert (found["passed"], found["failed"]) == (["runs_somewhere", "shapes"], {})
    later = start(end)
    assert later.certify([resolve("dot")], "auto")["dot"] == found
    assert later.executor.done == [], "what the code decided is kept"


@pytest.mark.parametrize("of_what", ["plug-in", "ours"])
def test_a_certificate_of_code_that_was_edited_meanwhile_is_not_cached(
    start, monkeypatch, tmp_path, of_what
):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    red = {"passed": [], "skipped": {}, "told": {}, "failed": {"oracle": "off."}, "expected": []}
    green = {"passed": ["config"], "skipped": {}, "told": {}, "failed": {}, "expected": ["config"]}

    def edited(job):
        if of_what == "plug-in":
            return JobResult(certificate=red, plugins="another one")
        return JobResult(certificate=red, code={job.variant: "another one"})

    session = start(edited)
    assert bare(session.certify([resolve("dot")], "auto")) == {"dot": red}
    assert session.store.read_json("certificates.json")["dot"]["code"] == {"": ""}
    assert "code was edited" in session.stream.getvalue()
    again = start(lambda job: JobResult(certificate=green))
    assert bare(again.certify([resolve("dot")], "auto")) == {"dot": green}
    assert "edited" not in again.stream.getvalue()
    later = start()
    assert bare(later.certify([resolve("dot")], "auto")) == {"dot": green}
    assert later.executor.done == []


def test_code_that_is_refused_has_no_certificate_and_leaves_that_of_other_code(
    start, tmp_path, monkeypatch
):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    green = {"passed": ["config"], "skipped": {}, "told": {}, "failed": {}, "expected": ["config"]}
    lacks = Certificate.of_refused_code("dot", ["config"], "no such code.").to_json()
    session = start(lambda job: JobResult(certificate=lacks if job.impl == "sdpa" else green))
    assert bare(session.certify([resolve("dot")], "auto")) == {"dot": green}
    there = RunsOn("cpu", "bfloat16")
    assert bare(session.certify(map(resolve, ["dot", "general"]), "sdpa", there)) == {"dot": green}
    assert [job.on for job in session.executor.done] == [None] * 3, "it is not asked twice"
    assert "refused" in session.stream.getvalue()


def test_a_certificate_on_a_device_adds_its_checks_and_outlives_one_of_the_processor(
    start, tmp_path, monkeypatch
):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    there = RunsOn("cpu", "bfloat16")

    def answer(job):
        name = "oracle" if job.on is None else "answers_on_cpu_bfloat16"
        failed = {} if job.on is None else {name: "off by 3."}
        passed = [name] if job.on is None else []
        entry = {"passed": passed, "skipped": {}, "told": {}, "failed": failed, "expected": [name]}
        return JobResult(certificate=entry)

    session = start(answer)
    found = session.certify([resolve("dot")], "auto", there)["dot"]
    assert found["passed"] == ["oracle"]
    assert found["failed"] == {"answers_on_cpu_bfloat16": "off by 3."}
    assert found["expected"] == ["oracle", "answers_on_cpu_bfloat16"]
    assert [job.on for job in session.executor.done] == [None, there]
    again = start(answer)
    assert again.certify([resolve("dot")], "auto")["dot"]["failed"] == found["failed"]
    assert again.certify([resolve("dot")], "auto", there)["dot"] == found
    assert again.executor.done == []


def test_checks_on_a_device_do_not_outlive_their_code(start, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))

    def answer(job):
        name = "oracle" if job.on is None else "answers_on_cpu_bfloat16"
        failed = {} if job.on is None else {name: "off by 3."}
        passed = [name] if job.on is None else []
        entry = {"passed": passed, "skipped": {}, "told": {}, "failed": failed, "expected": [name]}
        return JobResult(certificate=entry)

    session = start(answer)
    path = session.store.folder / "certificates.json"
    session.certify([resolve("dot")], "auto", RunsOn("cpu", "bfloat16"))
    told = path.read_text()
    code = session._code.of_certificate("dot")
    assert json.loads(told)["dot"]["code"] == {"": code, "cpu_bfloat16": code}

    def certified_after_an_edit():
        edited = start(answer)
        edited._code.of_certificate = lambda variant: "edited"
        return edited.certify([resolve("dot")], "auto")["dot"]

    found = certified_after_an_edit()
    assert (found["passed"], found["failed"], found["expected"]) == (["oracle"], {}, ["oracle"])
    assert found["code"] == {"": "edited"}
    path.write_text(json.dumps(bare(json.loads(told))))
    earlier = certified_after_an_edit()
    assert [*earlier["failed"]] == ["answers_on_cpu_bfloat16"], "an earlier file tells no code"
    assert earlier["code"] == {"": "edited"}


def test_a_run_that_verifies_nothing_keeps_no_certificate_of_other_code(
    start, made, tmp_path, monkeypatch
):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    green = {"passed": ["config"], "skipped": {}, "told": {}, "failed": {}, "expected": ["config"]}
    first = start(lambda job: JobResult(certificate=green))
    first.certify(map(resolve, ["dot", "additive"]), "auto")
    dot, additive = (resolve(name).canonical.show() for name in ("dot", "additive"))
    same = start()
    same.train(made.quality)
    assert {*same.store.read_json("certificates.json")} == {dot, additive}
    edited = start()
    usual = edited._code.of_certificate
    edited._code.of_certificate = lambda one: "edited" if one == dot else usual(one)
    edited.train([one for one in made.quality if one.cell.variant != dot])
    assert {*same.store.read_json("certificates.json")} == {dot, additive}, "dot was not asked"
    edited.train(made.quality)
    assert {*edited.store.read_json("certificates.json")} == {additive}


def test_what_was_certified_in_this_run_stays(start, made, tmp_path, monkeypatch):
    """A red certificate of code that was edited meanwhile is more than none."""
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    red = {"passed": [], "skipped": {}, "told": {}, "failed": {"oracle": "off."}, "expected": []}
    session = start(lambda job: JobResult(certificate=red, plugins="another one"))
    found = session.certify([resolve("dot")], "auto")
    session.executor.answer = lambda job: "ok"
    session.train(made.quality)
    assert session.store.read_json("certificates.json") == found


@pytest.fixture
def edited_dot(monkeypatch):
    """This process has imported another `dot` than a worker will."""
    module = importlib.import_module("variants.scores.dot")
    text = Path(module.__file__).read_bytes()
    other = text.replace(b"return call.query @ key", b"return -call.query @ key")
    assert other != text
    with monkeypatch.context() as patched:
        patched.setitem(source_code._SEEN, module.__name__, (module, other))
        source_code._made.cache_clear()
        yield
    source_code._made.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("edited_dot")
def test_workers_that_import_edited_code_leave_results_without_a_hash(made, tmp_path, monkeypatch):
    """As when a file is edited while the run waits for the lock of the machine."""
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    stream = io.StringIO()
    with Store.create(tmp_path / "run") as store:
        session = Session(store, WorkerSettings(), stream=stream)
        wanted = [one for one in made.quality if one.cell.variant in ("dot", "general")]
        assert len(wanted) == 2
        found = session.certify([resolve("dot")], "auto")["dot"]
        session.train(wanted)
        codes = {one.cell["variant"]: one.code for one in store.ledger().newest().values()}
        general = next(one.cell for one in wanted if one.cell.variant == "general")
        made_by = store.newest_of(general.id).made
        again = Session(store, WorkerSettings(), stream=stream)
        assert [again.wants(one.cell) for one in wanted] == [
            one.cell.variant == "dot" for one in wanted
        ]
    assert codes == {"dot": "", "general": session._code.digest(general, made_by)}
    assert found["code"] == {"": ""}
    assert not [*(tmp_path / "cache").glob("certificates/*")]
    assert "so the certificate of dot is of other code than the run" in stream.getvalue()
    assert "so some results (1) are of other code than the run" in stream.getvalue()


def test_checks_of_a_place_are_replaced_together():
    def entry(passed=(), failed=()):
        wrong = dict.fromkeys(failed, "wrong.")
        every = [*passed, *failed]
        return {
            "passed": list(passed),
            "skipped": {},
            "told": {},
            "failed": wrong,
            "expected": every,
        }

    held = entry(["oracle_on_cuda_bfloat16"], ["suite", "suite_on_cuda_float32"])
    assert with_checks(held, entry(["oracle"])) == entry(
        ["oracle_on_cuda_bfloat16", "oracle"], ["suite_on_cuda_float32"]
    ) | {"expected": ["oracle_on_cuda_bfloat16", "suite_on_cuda_float32", "oracle"]}


def test_models_are_kept_only_where_asked(start, made, tmp_path):
    session = Session(
        Store.create(tmp_path / "kept"),
        WorkerSettings(),
        inline=True,
        keep_models=True,
        stream=io.StringIO(),
    )
    session.train(made.quality[:1])
    (path,) = (tmp_path / "kept" / "models").iterdir()
    assert path.name == f"{made.quality[0].cell.id}.safetensors"
    plain = Session(
        Store.create(tmp_path / "plain"), WorkerSettings(), inline=True, stream=io.StringIO()
    )
    plain.train(made.quality[:1])
    assert not (tmp_path / "plain" / "models").exists()


def test_weights_of_an_earlier_training_do_not_outlive_it(start, made):
    cell, other = (one.cell for one in made.quality[:2])
    session = start()
    old, beside = (left(model_path(session.models, one)) for one in (cell, other))
    session.train(made.quality[:1])
    assert not old.exists()
    assert beside.exists(), "that of another cell stays"
    keeping = start(keep_models=True, retry=frozenset({"ok"}))
    kept = left(model_path(session.models, cell))
    keeping.train(made.quality[:1])
    assert kept.exists()


def test_a_probe_reads_the_weights_of_the_stored_result_and_of_no_other_code(start, made):
    cell = made.quality[1].cell
    looks = analysis_cells([cell], asked_probes("blur"))
    session = start()
    session.analyze(looks)
    session.train(made.quality[:2])
    record = session.store.newest_of(cell.id)
    again = start(retry=frozenset({"ok"}))
    again.analyze(looks)
    edited = start(retry=frozenset({"ok"}))
    edited._code.digest = lambda cell, made=(): "edited"
    edited.analyze(looks)
    found = [one.executor.done[-1].origin for one in (again, edited)]
    assert found == [Origin(code=record.code, data=record.data), Origin()]
    assert session.executor.done[0].origin == Origin(), "nothing was trained"


def test_weights_of_other_code_are_refused_by_a_run_until_it_may_look_again(made, tmp_path):
    def probed():
        session = Session(
            Store.create(tmp_path / "run"),
            WorkerSettings(),
            inline=True,
            keep_models=True,
            stream=io.StringIO(),
        )
        with session.store:
            session.train(made.quality[1:2])
            session.analyze(looks)
            return session.store.newest_of(looks[0].id), session.models

    looks = analysis_cells([made.quality[1].cell], asked_probes("blur"))
    usual, models = probed()
    assert usual.status == "ok"
    path = model_path(models, made.quality[1].cell)
    ours = path.read_bytes()
    save_weights(torch.nn.Linear(2, 2), path, Origin(code="edited"))
    with Store(tmp_path / "run") as store:
        store.append(replace(usual, code="", attempt=2))
    refused, _ = probed()
    assert (refused.status, refused.environmental) == ("refused", True)
    assert "were not made by the code" in refused.detail
    path.write_bytes(ours)
    assert probed()[0].status == "ok"


def partly(job):
    spent = Unmeasured(metric="forward_time_ms", status="out_of_memory", detail="64 GiB more.")
    never = Unmeasured(metric="decode_step_time_ms", status="refused", detail="no step here.")
    rows = (Row(metric="parameters_count", value=1.0),)
    return JobResult(
        tuple(Outcome(c, "ok", "", rows, unmeasured=(spent, never)) for c in job.cells)
    )


def test_a_lost_call_is_stored_told_counted_as_a_failure_and_asked_again(start, made):
    first = start(partly)
    first.train(made.quality[:2])
    assert first.tally.counts == {"ok": 2}
    assert first.tally.failed == 2
    assert first.tally.reasons == {("out_of_memory", "forward_time_ms: 64 GiB more."): 2}
    (one, _) = Store(first.store.folder).ledger().records
    assert [lost.metric for lost in one.unmeasured] == ["forward_time_ms", "decode_step_time_ms"]
    later = start(retry=frozenset({"failed"}))
    later.train(made.quality[:2])
    assert later.executor.done == []
    assert later.tally.failed == 2
    again = start(retry=frozenset({"out_of_memory"}))
    again.train(made.quality[:2])
    assert len(again.executor.done) == 2


def test_a_finished_training_leaves_no_checkpoint(start, made):
    session = start(lambda job: left(Path(job.checkpoint)) and "ok")
    session.train(made.quality[:2])
    one, two = (Path(job.checkpoint) for job in session.executor.done)
    assert one.parent == two.parent == session.store.folder / "checkpoints"
    assert one != two
    assert not any(one.parent.iterdir())


def test_a_finished_training_leaves_nothing_that_a_killed_worker_had_begun_to_write(start, made):
    folder = start().store.folder
    mine, other = (one.cell for one in made.quality[:2])
    drafts = [
        left(folder / "checkpoints" / f".{name}.pt.17-0123abcd.tmp")
        for name in (mine.id, f"{mine.id}-0123456789ab", other.id)
    ]
    drafts += [
        left(folder / "models" / f".{model_path(folder, cell).name}.17-0123abcd.tmp")
        for cell in (mine, other)
    ]
    start(keep_models=True).train(made.quality[:1])
    assert [draft.exists() for draft in drafts] == [False, False, True, False, True]


def test_a_training_whose_process_died_keeps_its_checkpoint_for_the_next_time(start, made):
    def die(job):
        left(Path(job.checkpoint))
        return JobResult(tuple(Outcome(c, "failed", "killed.") for c in job.cells), died=True)

    first = start(die)
    first.train(made.quality[:1])
    (job,) = first.executor.done
    assert Path(job.checkpoint).is_file()
    again = start(retry=frozenset({"failed"}))
    again.train(made.quality[:1])
    assert [one.checkpoint for one in again.executor.done] == [job.checkpoint]
    assert not Path(job.checkpoint).exists()


def test_a_training_that_a_full_disk_ended_keeps_its_checkpoint_for_the_next_time(
    start, made, monkeypatch
):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    def end(job):
        left(Path(job.checkpoint))
        return run_job(job, None, lambda _: None)

    monkeypatch.setattr(runner, "train_cell", full)
    first = start(end)
    first.train(made.quality[:1])
    (job,) = first.executor.done
    assert first.tally.counts == {"failed": 1}
    assert Path(job.checkpoint).is_file()
    again = start()
    again.train(made.quality[:1])
    assert [one.checkpoint for one in again.executor.done] == [job.checkpoint]
    assert not Path(job.checkpoint).exists()


def test_no_checkpoint_is_removed_before_its_cell_has_ended(start, made):
    """Until it is reserved, another process may be going on from it."""
    session = start()
    folder = session.store.folder / "checkpoints"
    mine, other = (left(folder / f"{one.cell.id}.pt") for one in made.quality[:2])
    old = left(folder / f"{made.quality[0].cell.id}-0123456789ab.pt")
    seen = []
    session.executor.answer = lambda job: seen.append(mine.exists() and old.exists()) or "ok"
    session.train(made.quality[:1])
    assert seen == [True]
    assert [job.checkpoint for job in session.executor.done] == [str(mine)]
    assert not mine.exists()
    assert not old.exists(), "a name of an earlier version, which nothing goes on from"
    assert other.is_file(), "that of another cell stays"


def test_a_training_goes_on_under_another_commit_but_not_on_another_machine():
    facts = collect(1)
    commit = replace(facts, git_revision="0" * 40, git_dirty=True)
    assert commit.id != facts.id
    assert commit.machine == facts.machine
    assert replace(facts, packages={"torch": "0.1"}).machine != facts.machine


def test_a_training_that_failed_begins_anew(made, tmp_path, monkeypatch):
    path = left(tmp_path / "one" / "cell.pt")
    job = Job(kind="quality", label="", cells=(made.quality[0].cell,), checkpoint=str(path))

    def fail(*_, **__):
        raise ValueError("whatever")

    monkeypatch.setattr(runner, "train_cell", fail)
    assert run_job(job, None, lambda _: None).outcomes[0].status == "failed"
    assert not path.exists()


@pytest.mark.parametrize("second", ["eager", "compiled"])
def test_a_green_certificate_of_other_code_leaves_a_red_one_red(
    start, tmp_path, monkeypatch, second
):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    green = {"passed": ["oracle"], "skipped": {}, "told": {}, "failed": {}, "expected": ["oracle"]}
    red = {**green, "passed": [], "failed": {"oracle": "off by 3."}}
    session = start(lambda job: JobResult(certificate=red if job.impl == "auto" else green))
    session.certify([resolve("dot")], "auto")
    found = session.certify([resolve("dot")], second)["dot"]
    assert (found["failed"], found["passed"]) == (red["failed"], ["oracle_on_eager"])
