"""Jobs in processes: the same numbers as inline, and every way of dying is a row."""

import io
import multiprocessing
import os
import signal
import time
from dataclasses import replace
from multiprocessing import popen_forkserver

import pytest

from bench.api.loading import load_plugin
from bench.conformance import RunsOn
from bench.running import processes, progress
from bench.running.code_of_cells import CodeOfCells
from bench.running.inline import InlineExecutor
from bench.running.job import Job
from bench.running.plan import plan
from bench.running.processes import ProcessExecutor
from bench.running.request import Request
from bench.running.runner import failed_result
from bench.running.source_code import plugins_digest
from bench.running.worker import WorkerSettings, tell
from bench.running.worker_pool import WorkerPool
from bench.timing.reason import Reason
from bench.timing.shape import AttendShape

SMALL = Request(tasks="after_marker", preset="smoke", speed=False)


def cells(variants, **changed):
    made = plan(Request(**{**SMALL.__dict__, "variants": variants, **changed}))
    return {cell.variant.partition("[")[0]: cell for cell in made.cells}


def job(cell, **changed):
    return Job(kind="quality", label=cell.variant, cells=(cell,), **changed)


def pool(plugin=None):
    settings = WorkerSettings(plugins=(str(plugin),) if plugin else ())
    return WorkerPool(ProcessExecutor(settings).context, settings)


def do(executor, jobs, at_once=2, watch=lambda job, share: None):
    return {
        job.label.partition("[")[0]: result for job, result in executor.run(jobs, at_once, watch)
    }


def timeless(result):
    (outcome,) = result.outcomes
    return [
        (row.metric, row.axis, None if row.axis == "cpu_s" else row.x, row.split, row.value)
        for row in outcome.rows
        if not row.metric.endswith(("_ms", "_s"))
    ]


def test_inline_and_processes_give_the_same_rows():
    jobs = [job(cell) for cell in cells("additive,hard_gumbel_st").values()]
    heard = []
    inline = do(
        InlineExecutor(WorkerSettings()), jobs, watch=lambda job, share: heard.append(share)
    )
    apart = do(ProcessExecutor(WorkerSettings()), jobs)
    assert set(inline) == set(apart) == {"additive", "hard_gumbel_st", "scaled_dot"}
    for name, result in inline.items():
        assert result.outcomes[0].status == "ok"
        assert timeless(result) == timeless(apart[name])
        assert result.outcomes[0].artifact == apart[name].outcomes[0].artifact
    assert heard
    assert max(heard) == 1.0


def test_a_machine_that_sleeps_makes_no_timeout(monkeypatch):
    wanted = cells("dot")
    real_wait, real_clock, asleep = processes.wait, processes.time.monotonic, [0.0]

    def wait_and_sleep(connections, timeout):
        asleep[0] = 10_000.0
        return real_wait(connections, timeout)

    monkeypatch.setattr(processes, "wait", wait_and_sleep)
    monkeypatch.setattr(processes.time, "monotonic", lambda: real_clock() + asleep[0])
    found = do(ProcessExecutor(WorkerSettings()), [job(wanted["dot"], timeout_s=300.0)])
    assert found["dot"].outcomes[0].status == "ok"


def test_every_way_of_dying_is_an_outcome_and_the_others_go_on(trouble_plugin):
    load_plugin(trouble_plugin)
    names = ["killer", "crasher", "leaver", "quitter", "raiser", "hanger", "dot"]
    wanted = cells(",".join(names))
    limits = {"hanger": 4.0}
    jobs = [job(wanted[name], timeout_s=limits.get(name, 300.0)) for name in names]
    found = do(ProcessExecutor(WorkerSettings(plugins=(str(trouble_plugin),))), jobs)
    said = {name: (r.outcomes[0].status, r.outcomes[0].detail) for name, r in found.items()}
    assert said.pop("dot") == ("ok", "")
    lines = trouble_plugin.read_text().splitlines()
    line = 1 + next(at for at, text in enumerate(lines) if "the score gave up" in text)
    assert said == {
        "killer": (
            "out_of_memory",
            "the process was killed (SIGKILL), most likely for memory.",
        ),
        "crasher": ("failed", "the process died of SIGSEGV."),
        "leaver": ("failed", "the process ended with exit code 7 and no result."),
        "quitter": ("failed", "the process ended with exit code 3 and no result."),
        "raiser": ("failed", f"RuntimeError: the score gave up (trouble.py:{line})"),
        "hanger": ("timeout", "took longer than 4 s; --retry timeout runs it again."),
    }
    assert "the score gave up" in found["raiser"].trace
    assert {name for name, result in found.items() if result.died} == {
        "killer",
        "crasher",
        "leaver",
        "quitter",
        "hanger",
    }


def test_a_plug_in_that_no_longer_loads_is_not_that_of_the_run(trouble_plugin):
    """What failed by an edit of it is asked again (ADR 17)."""
    load_plugin(trouble_plugin)
    trouble_plugin.write_text("def broken(:")
    executor = ProcessExecutor(WorkerSettings(plugins=(str(trouble_plugin),)))
    found = do(executor, [job(cells("raiser")["raiser"])])["raiser"]
    assert "failed to import" in found.outcomes[0].detail
    assert found.plugins not in ("", plugins_digest())


@pytest.mark.parametrize("edited", [False, True])
def test_a_worker_tells_the_hash_of_its_code_where_files_of_the_driver_were_others(edited):
    executor = ProcessExecutor(WorkerSettings())
    assert "variants.scores.dot" in executor.settings.files
    if edited:
        files = {**executor.settings.files, "variants.scores.dot": "edited"}
        executor.settings = replace(executor.settings, files=files)
    found = do(executor, [job(cells("dot")["dot"])])["dot"]
    (outcome,) = found.outcomes
    here = CodeOfCells().digest(outcome.cell, outcome.made)
    assert found.code == ({outcome.cell.id: here} if edited else {})


def test_jobs_are_taken_only_when_they_can_start():
    executor = ProcessExecutor(WorkerSettings())
    running, most, taken = set(), [], []
    everyone = list(cells("additive,dot,general").values())

    def coming():
        for number, cell in enumerate(everyone):
            if number == 1:
                yield None  # nothing now, ask again
            taken.append(cell.id)
            running.add(cell.id)
            most.append(len(running))
            yield job(cell)

    for done, _ in executor.run(coming(), 2, lambda job, share: None):
        running.discard(done.cells[0].id)
    assert len(taken) == len(everyone) == 4
    assert max(most) <= 2


def test_leaving_the_loop_ends_every_worker(trouble_plugin, new_workers):
    load_plugin(trouble_plugin)
    wanted = cells("hanger,dot")
    executor = ProcessExecutor(WorkerSettings(plugins=(str(trouble_plugin),)))
    doing = executor.run([job(wanted["hanger"]), job(wanted["dot"])], 2, lambda job, share: None)
    next(doing)
    started = [worker.process for worker in new_workers]
    assert len(started) == 2
    assert any(process.is_alive() for process in started)
    doing.close()
    assert not any(process.is_alive() for process in started)


def test_a_worker_whose_driver_is_gone_ends_itself(trouble_plugin):
    """What a killed driver leaves is a closed connection and nothing else."""
    load_plugin(trouble_plugin)
    worker = pool(trouble_plugin).give(job(cells("hanger")["hanger"]))
    time.sleep(1.0)
    assert worker.process.is_alive()
    worker.connection.close()
    worker.process.join(20)
    assert worker.process.exitcode == 1


def test_a_worker_has_nothing_to_say_to_a_driver_that_is_gone():
    """An interrupt may close the connection between the last step and the answer."""
    ours, theirs = multiprocessing.Pipe()
    tell(theirs, ("progress", 0.5))
    assert ours.recv() == ("progress", 0.5)
    ours.close()
    tell(theirs, ("done", None))
    theirs.close()


def test_an_interrupt_waits_until_a_worker_has_all_that_it_was_sent(monkeypatch):
    """Halfway, the worker would end with a traceback on the user's screen."""
    launch, launched = popen_forkserver.Popen._launch, []

    def interrupted(self, process):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)  # whichever thread receives it
        launch(self, process)
        launched.append(process)

    monkeypatch.setattr(popen_forkserver.Popen, "_launch", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            pool().give(job(cells("dot")["dot"]))
    finally:
        signal.signal(signal.SIGINT, before)
    (process,) = launched
    process.kill()
    process.join()


def test_a_worker_leaves_the_keyboard_to_its_driver(trouble_plugin):
    load_plugin(trouble_plugin)
    workers = pool(trouble_plugin)
    worker = workers.give(job(cells("hanger")["hanger"]))
    time.sleep(2.0)  # the signal is ignored once the worker runs its own code
    os.kill(worker.process.pid, signal.SIGINT)
    worker.process.join(1.0)
    assert worker.process.is_alive()
    workers.end(worker)
    assert not worker.process.is_alive()


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    cell = cells("dot", device="cuda")["dot"]
    result = do(InlineExecutor(WorkerSettings()), [job(cell)])["dot"]
    assert result.outcomes[0].status == "refused"
    assert "choose --device cpu" in result.outcomes[0].detail


def test_a_certificate_that_dies_is_red(trouble_plugin):
    load_plugin(trouble_plugin)
    todo = Job(kind="certificate", label="killer", variant="killer")
    executor = ProcessExecutor(WorkerSettings(plugins=(str(trouble_plugin),)))
    found = do(executor, [todo])["killer"]
    assert found.died
    assert "SIGKILL" in found.certificate["failed"]["suite"]


def test_a_certificate_that_came_to_nothing_says_so_of_every_shape():
    shape = AttendShape(length=16)
    on = RunsOn("cpu", "bfloat16", (shape,))
    todo = Job(kind="certificate", label="dot", variant="dot", impl="eager", on=on)
    found = failed_result(todo, Reason("timeout", "too long."), 1.0).certificate
    assert found["failed"] == dict.fromkeys(
        ["suite_on_cpu_bfloat16_eager", on.at(shape, "eager")], "too long."
    )


def test_the_display_is_readable_in_a_plain_log(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    first = Job(kind="quality", label="first @ dot :smile: [red]", seconds=10)
    second = Job(kind="quality", label="second", seconds=30)
    log = io.StringIO()
    display = progress.Display([first, second], 2, log)
    display.watch(first, 0.0)
    now[0] = 5.0
    display.watch(first, 0.5)
    assert log.getvalue() == ""
    now[0] = 40.0
    display.watch(first, 1.0)
    display.finish(first, "ok")
    display.finish(second, "refused")
    display.close()
    lines = log.getvalue().splitlines()
    # 30 s are left, and 42 s went for 10 s and the 4 s that count beforehand
    assert lines[0].strip() == "25% done, 1 min 30 s left"
    assert lines[1] == "[1/2] ok            first @ dot :smile: [red] | 1 min 30 s left"
    assert lines[2] == "[2/2] refused       second | 0 s left"
    assert "\r" not in log.getvalue()
    assert "\x1b" not in log.getvalue()


def test_what_an_earlier_run_had_trained_says_nothing_of_the_speed_of_this_one():
    now = [100.0]
    first, second = (Job(kind="quality", label=name, seconds=1000) for name in ("a", "b"))
    estimate = progress.Estimate([first, second], 2, lambda: now[0])
    estimate.watch(first, 0.5)
    assert (estimate.share, estimate.left_s) == (0.25, 750)
    now[0] += 300
    estimate.watch(first, 0.75)
    estimate.watch(second, 0.0)
    assert estimate.left_s == 400 * 1250 / 450
    estimate.finish(first)
    now[0] += 300
    assert estimate.left_s == 700 * 1000 / 700


def test_the_start_of_processes_promises_no_hours():
    now = [0.0]
    only = Job(kind="quality", label="a", seconds=10)
    estimate = progress.Estimate([only], 1, lambda: now[0])
    estimate.watch(only, 0.0)
    now[0] = 20.0
    estimate.watch(only, 0.03)
    assert estimate.left_s < 170, "of 20 s for 3% alone, 11 minutes would be left"


class Sending:
    """A worker that has sent some messages, and is at work."""

    def __init__(self, *messages):
        self.messages = [*messages]
        self.connection = self.process = self
        self.exitcode = None

    def poll(self):
        return bool(self.messages)

    def recv(self):
        return self.messages.pop(0)

    def join(self, seconds):
        pass


def running(wanted, *messages, **changed):
    now = processes.time.monotonic()
    return processes.Running(job(wanted, **changed), Sending(*messages), now, now)


def test_what_the_display_raises_is_no_death_of_a_worker():
    one = running(cells("dot")["dot"], ("progress", 0.25), ("progress", 0.5))
    heard = []

    def watch(job, share):
        heard.append(share)
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        processes._listen(one, watch)
    assert heard == [0.5]
    assert one.result is None


@pytest.mark.parametrize("patient", [True, False])
def test_a_training_that_makes_progress_does_not_hang(monkeypatch, patient):
    now = [0.0]
    monkeypatch.setattr(processes.time, "monotonic", lambda: now[0])
    one = running(cells("dot")["dot"], timeout_s=25.0, patient=patient)
    for share in (0.1, 0.2, 0.3, 0.4):
        now[0] += 9.0
        one.worker.messages.append(("progress", share))
        processes._listen(one, lambda job, share: None)
    assert (one.result is None) == patient
    if not patient:
        return
    for _ in range(3):
        now[0] += 9.0
        one.worker.messages.append(("progress", 0.4))  # the same as before is no progress
        processes._listen(one, lambda job, share: None)
    (outcome,) = one.result.outcomes
    assert outcome.status == "timeout"
    assert outcome.detail == "made no progress for 25 s; --retry timeout runs it again."


def test_a_share_that_is_no_number_is_an_answer_that_cannot_be_read():
    one = running(cells("dot")["dot"], ("progress", "half"))
    processes._listen(one, lambda job, share: None)
    (outcome,) = one.result.outcomes
    assert outcome.detail.startswith("its answer cannot be read")


class Full(io.StringIO):
    """A stream on a disk without room."""

    def write(self, text):
        raise OSError("no space left on device")


@pytest.mark.parametrize("terminal", [False, True])
def test_where_nothing_can_be_printed_the_work_goes_on(monkeypatch, terminal):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    work = Job(kind="quality", label="first", seconds=10)
    display = progress.Display([work], 1, stream)
    display.console.file = Full()
    display.spoke -= 2 * progress.HEARTBEAT_S
    display.watch(work, 0.5)
    display.finish(work, "ok")
    display.close()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (2280, "38 min"),
        (3590, "1 h"),
        (7300, "2 h 2 min"),
    ],
)
def test_durations_are_spoken(seconds, words):
    from bench.running.durations import spoken

    assert spoken(seconds) == words
