"""`run --until decided`: more seeds where something is undecided, and for nothing else."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from bench.api import registry
from bench.api.cell import Cell
from bench.api.selector import parse
from bench.api.task import TASKS
from bench.cli.main import cli
from bench.cli.run_options import RunOptions
from bench.cli.sentences import ended_with_a_sentence
from bench.running import session as sessions
from bench.running.job import JobResult, Outcome
from bench.running.looks import after_look
from bench.running.plan import plan
from reports.folder import read_folder
from reports.render import write_report
from results.catalog import RunCatalog
from results.frame import rows_of
from results.looks import Looks
from results.primary_tables import PrimaryTable, primary_tables
from results.row import Row
from results.store import Store
from tests.bench.cli.command_lines import with_others

LEVELS = {"scaled_dot": 0.5, "uniform": 0.2, "dot": 0.95, "general": 0.5, "additive": 0.56}
"""`dot` is soon decided, `additive` needs many seeds, `general` is equivalent after some."""
ASKED = (
    "run --variants uniform,dot,additive,general --tasks after_marker --preset quick --no-verify "
    "--no-speed --jobs 1 --seeds 3"
)


class Drawn:
    """Scores without training: the level of the variant, and noise of the cell."""

    stop_after = 10**9

    def __init__(self, settings):
        self.settings = settings

    def run(self, jobs, jobs_at_once, watch):
        for number, job in enumerate(filter(None, jobs)):
            if number >= Drawn.stop_after:
                raise KeyboardInterrupt
            (cell,) = job.cells
            value = LEVELS[cell.variant] + random.Random(cell.id).gauss(0, 0.02)
            ranks = registry.find(TASKS, parse(cell.task).name).target.ranking_metric().name
            row = Row(metric=ranks, value=value, split="test")
            yield job, JobResult((Outcome(cell, "ok", "", (row,), {}, 1.0),))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, fresh_registry):
    """`run(words, stop_after=)` -> exit code, what was said; the scores are drawn."""
    monkeypatch.setattr(sessions, "ProcessExecutor", Drawn)

    def call(*more, stop_after=10**9, folder="run"):
        monkeypatch.setattr(Drawn, "stop_after", stop_after)
        words = with_others([*ASKED.split(), "--out", str(tmp_path / folder)], *more)
        code = ended_with_a_sentence(lambda: cli(words, standalone_mode=False))
        return code, capsys.readouterr().err

    return call


def seeds_in(folder) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for record in Store(folder).records():
        found.setdefault(str(record.cell["variant"]), []).append(int(record.cell.get("seed", 0)))
    return {name: sorted(seeds) for name, seeds in found.items()}


def test_only_what_is_undecided_gets_seeds_and_the_report_decides_as_the_run_did(tmp_path, run):
    code, said = run("--until", "decided")
    assert code == 0
    found = seeds_in(tmp_path / "run")
    counts = {name: len(seeds) for name, seeds in found.items()}
    assert counts["dot"] == 3
    assert counts["scaled_dot"] == max(counts.values()) > 3
    assert set(counts.values()) <= {3, 5, 8, 13, 21}
    assert all(seeds == [*range(len(seeds))] for seeds in found.values())
    assert "look 2 of 5: " in said
    folder = read_folder(tmp_path / "run")
    (comparison,) = folder.comparisons
    catalog = RunCatalog.of(Store(folder.path))
    (table,) = primary_tables(rows_of([Store(folder.path)]), catalog, ())
    assert table.decisions(Looks(first=3), 5) == comparison.primary
    assert all(one.decided for one in comparison.primary.values())
    assert f"decided: all {len(comparison.primary)} hypotheses." in said
    planned = json.loads((tmp_path / "run" / "plan.json").read_text())["cells"]
    assert len(planned) == sum(counts.values())
    text = write_report(folder).markdown.read_text()
    assert "The run looked at its scores at 3, 5, 8 seeds and so on." in text
    marks = " ".join(folder.ranked_lines["marks"])
    assert " seeds" not in marks, "a decided variant lacks nothing"


def test_on_default_tasks_every_comparison_begins_with_the_seeds_of_the_first_look():
    options = RunOptions(preset="quick", until="decided", minutes=1e6)
    assert options.looks is not None
    assert options.looks.first == len(options.paired_seeds) == 3
    seeds: dict[Cell, int] = Counter(replace(one.cell, seed=0) for one in plan(options).quality)
    assert {"recall", "offset"} <= {parse(cell.task).name for cell in seeds}
    for cell, count in seeds.items():
        target = registry.find(TASKS, parse(cell.task).name).target
        check = target.pipeline_check_at("quick", parse(cell.backbone).name)
        assert count == (2 if check else 3), cell.label
    assert RunOptions(preset="quick", until="decided", seeds=5).looks == Looks(first=5)
    assert RunOptions(preset="quick", until="decided", tasks="recall").looks == Looks(first=4)


def test_a_run_that_was_stopped_goes_on_at_the_same_look_with_the_same_cells(tmp_path, run):
    assert run("--until", "decided", folder="whole")[0] == 0
    whole = seeds_in(tmp_path / "whole")
    for _ in range(9):
        code, _ = run("--until", "decided", stop_after=4)
        if code != 130:
            break
    assert code == 0
    assert seeds_in(tmp_path / "run") == whole
    assert {record.attempt for record in Store(tmp_path / "run").records()} == {1}
    before = (tmp_path / "run" / "catalog.json").read_text()
    assert run("--until", "decided")[0] == 0
    assert seeds_in(tmp_path / "run") == whole
    assert (tmp_path / "run" / "catalog.json").read_text() == before


def test_more_seeds_can_be_allowed_later_and_other_looks_cannot(tmp_path, run):
    code, said = run("--until", "decided", "--most-seeds", 4)
    assert code == 0
    assert "stay undecided: the next look has more than 4 seeds" in said
    assert {len(seeds) for seeds in seeds_in(tmp_path / "run").values()} == {3}
    assert run("--until", "decided")[0] == 0
    assert len(seeds_in(tmp_path / "run")["scaled_dot"]) > 3
    code, said = run("--until", "decided", "--seeds", 4)
    assert code == 2
    assert "was looked at from 3 seeds on" in said
    assert "give --seeds 3" in said


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (("--until", "decided", "--seeds", 4), "or another --reuse."),
        (("--retry", "faild"), "did you mean 'failed'"),
    ],
)
def test_a_refused_command_takes_no_cells_from_another_run(tmp_path, run, refused, sentence):
    assert run("--until", "decided", "--most-seeds", 3)[0] == 0
    code, said = run(*refused, "--reuse", tmp_path / "run", folder="new")
    assert code == 2
    assert sentence in said
    assert not (tmp_path / "new").exists()
    assert run("--until", "decided", "--reuse", tmp_path / "run", folder="new")[0] == 0


def test_scores_that_were_looked_at_otherwise_are_not_taken_without_looks_either(tmp_path, run):
    assert run("--until", "decided", "--most-seeds", 3)[0] == 0
    others = {"two": ("--seeds", 2, "--most-seeds", 2), "late": ("--first-seed", 9)}
    for folder, asked in others.items():
        assert run("--until", "decided", *asked, folder=folder)[0] == 0
    before = seeds_in(tmp_path / "run")
    for folder, seen in (("two", "from 2, the first of them 0"), ("late", "the first of them 9")):
        code, said = run("--reuse", tmp_path / folder)
        assert code == 2
        assert f"{seen}: one p value cannot pay for both; report the runs apart." in said
    assert seeds_in(tmp_path / "run") == before


def test_a_run_with_looks_takes_of_another_run_what_its_own_looks_may_ask_for(tmp_path, run):
    assert run("--until", "decided")[0] == 0
    whole = seeds_in(tmp_path / "run")
    assert max(map(len, whole.values())) > 3
    few = ("--variants", "general", "--until", "decided", "--reuse", tmp_path / "run")
    assert run(*few, folder="few")[0] == 0
    held = seeds_in(tmp_path / "few")
    assert {*held} == {"scaled_dot", "general"}
    assert held["general"] == whole["general"], "later looks find them"
    assert not read_folder(tmp_path / "few").unfinished


def test_a_later_run_without_looks_does_not_make_the_decisions_bolder(tmp_path, run):
    run("--until", "decided", "--most-seeds", 3)
    before = [*read_folder(tmp_path / "run").comparisons[0].primary.values()]
    run("--seeds", 3)
    assert [*read_folder(tmp_path / "run").comparisons[0].primary.values()] == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--until decide", "no ending of --until named 'decide'; did you mean 'decided'?"),
        ("--most-seeds 9", "--most-seeds is for --until decided"),
        ("--until decided --preset smoke", "preset smoke ranks nothing"),
        ("--until decided --seeds 1", "one seed decides nothing; give --seeds 2"),
        ("--until decided --most-seeds 2", "--most-seeds must be from 3"),
        ("--until decided --most-seeds 99999", "to 10000; it is 99999"),
        ("--until decided --no-quality --speed", "leave out --tasks, or --no-quality"),
    ],
)
def test_what_cannot_be_decided_is_refused_in_one_sentence(tmp_path, run, words, said):
    code, err = run(*words.split())
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_what_is_no_evidence_gets_no_seeds(tmp_path, run):
    run("--until", "decided", "--most-seeds", 3)
    store = Store(tmp_path / "run")
    catalog = RunCatalog.of(store)
    frame, (task,) = rows_of([store]), catalog.tasks
    (table,) = primary_tables(frame, catalog, {"dot"})
    assert {*table.scores} == {*LEVELS} - {"dot"}
    network = str(frame["backbone"].iloc[0]).partition("[")[0]
    for said in (
        {"pipeline_check": "For a reason."},
        {"pipeline_check_over": {network: "For a reason."}},
        {"whole": "another"},
        {"primary": "other"},
    ):
        known = replace(catalog, tasks={task: replace(catalog.tasks[task], **said)})
        assert primary_tables(frame, known, ()) == []


@pytest.fixture
def planned():
    """`planned(minutes)` -> a plan of five variants, and the table of their first three seeds."""

    def make(minutes=0.0):
        request = RunOptions(
            variants="uniform,dot,additive,general", tasks="after_marker", minutes=minutes, jobs=1,
            seeds=3, speed=False,
        )  # fmt: skip
        made = plan(request)
        noise = random.Random(1)
        scores = {
            name: {seed: level + noise.gauss(0, 0.02) for seed in range(3)}
            for name, level in LEVELS.items()
        }
        table = PrimaryTable(
            cells=frozenset(one.cell.id for one in made.quality),
            scores=scores,
            ended=scores,
            better="higher",
            margin=None,
            baseline="scaled_dot",
            uniform="uniform",
            controls=("uniform",),
        )
        return made, table

    return make


LOOKS = Looks(first=3)


def test_a_small_budget_goes_to_what_is_nearest_to_a_decision(planned):
    made, table = planned()
    open_ = {
        pair: one.seeds_to_decide or 999
        for pair, one in table.decisions(LOOKS, 1).items()
        if not one.decided
    }
    order = sorted(open_, key=open_.get)
    assert order[0] != next(iter(open_)), "else this shows nothing"
    planned_s = sum(one.seconds for one in made.quality)
    wanted = [one for one in made.quality if one.cell.seed < 2 and one.cell.variant in order[0]]
    made.room_s = planned_s + sum(one.seconds for one in wanted) + 0.1
    look = after_look(made, [table], LOOKS, 1)
    assert {one.cell.variant for one in look.cells} == {*order[0]}
    assert [one.cell.seed for one in look.cells] == [3, 3, 4, 4]
    assert (look.undecided, look.unaffordable) == (len(open_), len(open_) - 1)
    made.room_s = planned_s + 0.1
    assert after_look(made, [table], LOOKS, 1).cells == []


def test_seeds_of_a_later_look_are_as_if_they_were_not_there(planned):
    _, table = planned()
    more = {name: {**by_seed, 3: 0.0, 4: 9.0} for name, by_seed in table.scores.items()}
    later = replace(table, scores=more, ended=more)
    assert later.decisions(LOOKS, 1) == table.decisions(LOOKS, 1)
    assert later.decisions(LOOKS, 2) != table.decisions(LOOKS, 2)


def test_the_budget_of_a_plan_is_what_it_was(planned):
    made, _ = planned(minutes=1.0)
    assert made.room_s == pytest.approx(60 * 11 / 12)
    assert planned()[0].room_s == float("inf")


def test_a_comparison_of_another_run_into_the_folder_gets_no_seeds(planned):
    made, table = planned()
    made.quality = [one for one in made.quality if one.cell.variant != "scaled_dot"]
    look = after_look(made, [table], LOOKS, 1)
    tested = [pair for pair in table.decisions(LOOKS, 1) if "scaled_dot" not in pair]
    assert look.hypotheses == len(tested)
    assert "scaled_dot" not in {one.cell.variant for one in look.cells}
    made.quality = []
    assert after_look(made, [table], LOOKS, 1).hypotheses == 0
