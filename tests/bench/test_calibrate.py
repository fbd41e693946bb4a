"""Calibration: validation alone, seeds of its own, equal trials, the cheapest size that tells."""

import io
import json
from dataclasses import replace

import pytest

from bench import calibrate
from bench.api import calibration as stored
from bench.api import registry
from bench.api.calibration import Choice, Setting, competitor
from bench.api.comparison import Entry
from bench.api.errors import InvalidConfig
from bench.api.options import canonical
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import Selector, parse
from bench.calibrate import Calibration
from bench.calibration_trials import JUDGED, RATES, TRIED, OutOfTime, Trials
from bench.cli.calibrate import LOST, TIME_IS_UP, TOO_LONG, _why_none, keep_trials
from bench.running.code_of_cells import CodeOfCells
from bench.running.job import JobResult, Outcome
from bench.running.plan import plan
from bench.running.presets import PRESETS
from bench.running.quality_cells import quality_cell, sized_task
from bench.running.request import Request
from bench.running.session import Session
from bench.running.worker import WorkerSettings
from bench.training.protocol import read_protocol
from results.row import Row
from results.store import Store

SMALL, LARGE = Setting(options="needle[length=16]"), Setting(options="needle[length=64]")
NEEDLE = parse("needle")


class Trained:
    """An executor that makes validation scores up, by the cell; it counts what it was asked."""

    def __init__(self, score, seconds=None):
        self.cells, self.score, self.seconds = [], score, seconds

    def run(self, jobs, jobs_at_once, watch):
        for job in jobs:
            (cell,) = job.cells
            self.cells.append(cell)
            value = self.score(cell)
            if value == "timeout":
                yield job, JobResult((Outcome(cell, "timeout", "took long."),))
                continue
            if value == "full disk":
                yield job, JobResult((Outcome(cell, "failed", "no space.", environmental=True),))
                continue
            metric = registry.find("task", "needle").target.ranking_metric().name
            rows = () if value is None else (Row(metric=metric, value=value, split="validation"),)
            if rows and self.seconds is not None:
                rows += (Row(metric="train_cpu_s", value=self.seconds(cell)),)
            outcome = Outcome(cell, "ok" if rows else "diverged", "" if rows else "no.", rows)
            yield job, JobResult((outcome,))


def length(cell):
    return parse(cell.task).options.get("length", 32)


def is_uniform(cell):
    return cell.variant == "uniform"


@pytest.fixture
def calibrated(tmp_path, monkeypatch):
    """`calibrated(score, **more)` -> (choice, cells that were trained)."""
    target = registry.find("task", "needle").target
    monkeypatch.setattr(target, "calibration", (SMALL, LARGE))

    def run(
        score,
        folder="run",
        until=float("inf"),
        clock=lambda: 0.0,
        seconds=None,
        kept=None,
        retime=False,
    ):
        store = Store.create(tmp_path / folder)
        executor = Trained(score, seconds)
        session = Session(
            store,
            WorkerSettings(),
            jobs=1,
            stream=io.StringIO(),
            retry=frozenset({"timeout", "ok"} if retime else {"timeout"}),
            executor=executor,
        )
        try:
            trials = Trials(NEEDLE, "quick", session, until, clock, kept=kept)
            made = Calibration(trials)
            return made.timed_again() if retime else made.choose(), executor.cells
        except OutOfTime:
            run.unfinished = made.unfinished()
            run.why = _why_none(trials)
            return None, executor.cells
        finally:
            store.close()

    return run


def near(cell, value):
    """A score with some spread over seeds, best at a rate that depends on the variant."""
    favorite = RATES[len(cell.variant) % len(RATES)]
    loss = 0.05 if read_protocol(cell.protocol).lr != favorite else 0.0
    return value - loss + 0.01 * (cell.seed % 3)


def good(cell):
    if is_uniform(cell):
        return near(cell, 0.2)
    return near(cell, 0.98 if length(cell) == 16 else 0.6)


def test_the_first_setting_whose_baseline_is_in_the_middle_is_chosen(calibrated):
    choice, _ = calibrated(good)
    assert choice.chosen == LARGE
    assert "needle[length=16] / adam: the baseline is at 0.9" in choice.why
    assert choice.rule == calibrate.RULE


def test_every_competitor_has_the_same_trials_and_gets_its_own_best_rate(calibrated):
    choice, cells = calibrated(good)
    mine = [cell for cell in cells if length(cell) == 64 and cell.seed == TRIED]
    tried = {}
    for cell in mine:
        name = competitor(cell.variant, cell.backbone, cell.slot)
        tried.setdefault(name, []).append(read_protocol(cell.protocol).lr)
    assert all(sorted(rates) == sorted(RATES) for rates in tried.values())
    assert choice.rates.keys() == tried.keys()
    for name, rate in choice.rates.items():
        assert rate == RATES[len(name.partition(" @ ")[0]) % len(RATES)]


def test_only_validation_is_read_and_no_published_seed_is_used(calibrated):
    _, cells = calibrated(good)
    assert {cell.kind for cell in cells} == {"trial"}, "a trial reads no test"
    published = range(max(preset.seeds for preset in PRESETS.values()))
    assert {cell.seed for cell in cells} == {TRIED, *JUDGED}
    assert not {TRIED, *JUDGED} & {*published}
    assert TRIED not in JUDGED, "what chooses a rate does not judge"


def test_a_setting_on_which_most_entries_are_saturated_is_not_chosen(calibrated):
    def solved(cell):
        base = cell.variant == "scaled_dot" or is_uniform(cell)
        return good(cell) if base or length(cell) == 16 else 1.0

    choice, _ = calibrated(solved)
    assert choice.chosen is None
    assert "entries are saturated" in choice.why
    assert choice.rates == {}


def test_where_nothing_is_apart_from_uniform_attention_nothing_is_chosen(calibrated):
    choice, _ = calibrated(lambda cell: 0.5 + 0.01 * (cell.seed % 3) * (-1) ** len(cell.variant))
    assert choice.chosen is None
    assert choice.why.count("nothing is apart from uniform attention") == 2


def test_a_size_that_is_given_is_not_judged_and_everyone_has_the_same_trials(
    calibrated, monkeypatch
):
    given = replace(LARGE, given="The baseline solves it.")
    monkeypatch.setattr(registry.find("task", "needle").target, "calibration", (given, SMALL))
    choice, cells = calibrated(lambda cell: 1.0)
    assert choice.chosen == given
    assert choice.why.startswith("The baseline solves it.")
    assert len(choice.rates) * len(RATES) == len(cells)
    assert {cell.seed for cell in cells} == {TRIED}


def test_a_size_that_is_given_takes_what_all_take_shared_out_by_their_costs(
    calibrated, monkeypatch
):
    """The baseline stops at once, everyone else takes 10 s times its cost: the mean is near 10."""
    given = replace(LARGE, given="The baseline solves it.")
    monkeypatch.setattr(registry.find("task", "needle").target, "calibration", (given,))

    def seconds(cell):
        return 0.0 if cell.variant == "scaled_dot" else 10.0 * resolve(cell.variant).registered.cost

    choice, _ = calibrated(lambda cell: 1.0, seconds=seconds)
    assert 1.3 * 7 < choice.seconds < 1.3 * 10


def test_what_a_cell_takes_is_measured_again_in_the_same_folder_and_the_choice_stays(calibrated):
    before, _ = calibrated(good, seconds=lambda cell: 20.0)
    again, cells = calibrated(good, seconds=lambda cell: 4.0, kept=before, retime=True)
    assert before.seconds == pytest.approx(1.3 * 20, abs=0.1)
    assert again == replace(before, seconds=pytest.approx(1.3 * 4, abs=0.1))
    assert [(cell.variant, cell.seed) for cell in cells] == [("scaled_dot", TRIED)] * len(RATES)


def test_of_a_given_size_all_are_timed_again_at_their_rates(calibrated, monkeypatch):
    given = replace(LARGE, given="The baseline solves it.")
    monkeypatch.setattr(registry.find("task", "needle").target, "calibration", (given,))
    before, _ = calibrated(lambda cell: 1.0, seconds=lambda cell: 20.0)
    again, cells = calibrated(
        lambda cell: 1.0, "quiet", seconds=lambda cell: 4.0, kept=before, retime=True
    )
    assert len(cells) == len(before.rates)
    assert again.rates == before.rates
    assert again.seconds < before.seconds / 4


def test_without_a_choice_there_is_no_time_to_measure_again(calibrated):
    nothing, _ = calibrated(lambda cell: near(cell, 0.5))
    assert nothing.chosen is None
    with pytest.raises(InvalidConfig, match="leave out --retime"):
        calibrated(good, "quiet", kept=nothing, retime=True)
    with pytest.raises(InvalidConfig, match="leave out --retime"):
        calibrated(good, "quiet", retime=True)


def test_an_entry_that_is_apart_is_enough_where_the_baseline_is_not(calibrated):
    def one(cell):
        return near(cell, 0.9 if "shaw" in cell.variant else 0.5)

    choice, _ = calibrated(one)
    assert choice.chosen == SMALL


def test_kept_trials_count_and_only_what_is_missing_is_trained(calibrated):
    before, cells = calibrated(good)
    again, trained = calibrated(good, "again", kept=before)
    assert cells
    assert not trained
    assert (again.rates, again.chosen, again.seconds) == (
        before.rates,
        before.chosen,
        before.seconds,
    )
    assert "were kept" in again.why
    lost = [one for one in before.trials if one["competitor"].startswith("uniform")]
    fewer = replace(before, trials=tuple(one for one in before.trials if one not in lost))
    more, trained = calibrated(good, "more", kept=fewer)
    assert {cell.variant for cell in trained} == {"uniform"}
    assert more.rates == before.rates


def test_both_references_are_tuned_in_every_network_where_an_entry_stands():
    task = canonical("task", parse("transduction[rule=reverse]"))
    entries = Trials(task, "quick", session=None).entries
    in_transformer = [one.name for one in entries if "transformer_seq2seq" in one.name]
    for name in ("nystrom", "scaled_dot", "uniform"):
        assert any(one.startswith((f"{name} @", f"{name}[")) for one in in_transformer), name


def test_the_roster_of_a_preset_competes_where_all_of_it_is_trained():
    one_layer = "transformer_decoder[layers=1,short_convolution=3,width=32] / causal"
    entries = Trials(canonical("task", parse("recall")), "quick", session=None).entries
    assert registry.find("position", "fox").default_task.task == "offset"
    assert f"fox @ {one_layer}" in [one.name for one in entries]
    elsewhere = Trials(canonical("task", parse("recall[gap=3]")), "quick", session=None).entries
    assert f"fox @ {one_layer}" not in [one.name for one in elsewhere]


def test_a_calibration_goes_on_where_it_stopped(calibrated):
    ticks = iter(range(10**6))
    stopped, first = calibrated(good, until=5, clock=lambda: next(ticks))
    assert stopped is None
    assert first
    choice, second = calibrated(good)
    assert choice.chosen == LARGE
    assert not {cell.id for cell in first} & {cell.id for cell in second}


def test_without_the_time_for_all_rates_none_is_tuned(calibrated):
    """Else some would have had more trials than others."""
    late = [0.0]

    def score(cell):
        if length(cell) == 64 and stop in cell.variant:
            late[0] = 10.0
        return good(cell)

    stop = "pointer_sentinel"
    choice, _ = calibrated(score, until=5, clock=lambda: late[0])
    assert choice.chosen == LARGE
    assert choice.rates == {}
    assert "; 6 of 7 entries" in choice.why
    late[0], stop = 0.0, "general"
    choice, _ = calibrated(score, folder="sooner", until=5, clock=lambda: late[0])
    assert choice is None, "fewer than half of the entries were looked at"
    assert calibrated.why == TIME_IS_UP


ENDED = [("timeout", TOO_LONG), ("full disk", LOST.format(why="no space"))]


@pytest.mark.parametrize(("why", "told"), ENDED)
def test_a_trial_that_the_machine_ended_is_no_trial(calibrated, why, told):
    slow = {"value": why}

    def score(cell):
        late = "additive" in cell.variant and length(cell) == 64
        return slow["value"] if late and read_protocol(cell.protocol).lr == RATES[1] else good(cell)

    choice, first = calibrated(score)
    assert choice is None, "one competitor had two trials, and the others three"
    assert calibrated.why == told, "the time was not up"
    assert calibrated.unfinished.rates == {}
    slow["value"] = 0.3
    choice, second = calibrated(score)
    assert choice.chosen == LARGE
    assert choice.rates
    (again,) = {cell.id for cell in first} & {cell.id for cell in second}
    assert "additive" in next(cell.variant for cell in second if cell.id == again)


@pytest.mark.parametrize(("why", "told"), ENDED)
def test_what_the_machine_ended_is_told_with_its_reason(calibrated, why, told):
    choice, _ = calibrated(lambda cell: why)
    assert choice is None
    assert calibrated.why == told


def test_a_setting_at_which_most_entries_have_no_value_is_not_chosen(calibrated):
    """As where they are refused or diverge: time is left, so that they will never have one."""

    def score(cell):
        base = cell.variant == "scaled_dot" or is_uniform(cell)
        return good(cell) if base else None

    choice, _ = calibrated(lambda cell: good(cell) if length(cell) == 16 else score(cell))
    assert choice.chosen is None
    assert "needle[length=64] / adam: 7 of 7 entries have no value (no)." in choice.why


OTHER_NETWORK = "transformer_decoder[layers=3]"


@pytest.fixture
def two_networks(calibrated, monkeypatch):
    """Entries of the comparison in two networks; references compete in both."""
    elsewhere = Entry(variant="additive", backbone=OTHER_NETWORK)
    target = registry.find("task", "needle").target
    monkeypatch.setattr(target, "comparison", (Entry(variant="general"), elsewhere))
    return calibrated


def test_an_entry_is_apart_from_uniform_attention_of_its_own_network(two_networks):
    """Another network may score more with any attention in it."""

    def score(cell):
        deep = "layers=3" in cell.backbone
        return (0.7 if deep else 0.5) + 0.01 * (cell.seed % 3) * (-1) ** len(cell.variant)

    choice, cells = two_networks(score)
    assert choice.chosen is None
    assert choice.why.count("nothing is apart from uniform attention") == 2
    assert any(is_uniform(cell) and "layers=3" in cell.backbone for cell in cells)

    def better(cell):
        return score(cell) + 0.15 * (cell.variant == "additive")

    choice, _ = two_networks(better, folder="better")
    assert choice.chosen == SMALL


def test_a_control_is_no_leader(two_networks):
    """Uniform attention that is ahead of all would be compared with itself."""

    def score(cell):
        value = 0.5 + 0.01 * (cell.seed % 3) * (-1) ** len(cell.variant)
        if "layers=3" in cell.backbone:
            value += 0.3 if is_uniform(cell) else 0.1
        return value

    choice, _ = two_networks(score)
    assert choice.chosen == SMALL, "additive is apart, whoever is ahead"


def test_a_baseline_that_cannot_be_trained_is_no_choice(calibrated):
    with pytest.raises(InvalidConfig, match=r"no trial of the baseline has a value \(no\.\)"):
        calibrated(lambda cell: None if cell.variant == "scaled_dot" else 0.5)


def test_a_task_without_a_range_is_refused_in_a_sentence(calibrated, monkeypatch):
    target = registry.find("task", "needle").target
    monkeypatch.setattr(target, "ceiling", None)
    endless = target.headline.metric.__class__(**{**vars(target.headline.metric), "high": None})
    monkeypatch.setattr(target, "ranking_metric", classmethod(lambda cls: endless))
    with pytest.raises(InvalidConfig, match="no range to be in the middle of"):
        calibrated(good)


def test_of_a_task_without_settings_rates_alone_are_chosen(calibrated, monkeypatch):
    monkeypatch.setattr(registry.find("task", "needle").target, "calibration", ())
    choice, cells = calibrated(lambda cell: near(cell, 0.999))
    assert choice.chosen == Setting(options="needle")
    assert choice.why.startswith(calibrate.NO_OTHERS)
    assert choice.rule == calibrate.RATES_RULE
    assert {cell.seed for cell in cells} == {TRIED}
    at_home = {cell.variant for cell in cells}
    assert len(at_home) > 2, "variants whose own task it is compete, too"
    assert choice.rates
    for name, rate in choice.rates.items():
        assert rate == RATES[len(name.partition(" @ ")[0]) % len(RATES)]


COMPARED = (Entry(variant="additive"), Entry(variant="linear_attention"), Entry(variant="general"))


@pytest.fixture
def fixed(calibrated, monkeypatch):
    """The same where the preset's size of the task has a comparison of its own."""
    target = registry.find("task", "needle").target
    quick = replace(target.presets["quick"], comparison=COMPARED)
    monkeypatch.setattr(target, "presets", {**target.presets, "quick": quick})
    monkeypatch.setattr(target, "calibration", ())
    return calibrated


def test_where_the_size_is_what_is_compared_rates_alone_are_chosen(fixed):
    choice, cells = fixed(lambda cell: near(cell, 0.999))
    assert choice.chosen == Setting(options="needle")
    assert choice.rule == calibrate.RATES_RULE
    assert choice.seconds == 0.0, "the baseline may stop long before the others"
    assert {cell.seed for cell in cells} == {TRIED}
    assert {cell.kind for cell in cells} == {"trial"}
    tried = {}
    for cell in cells:
        tried.setdefault(cell.variant, []).append(read_protocol(cell.protocol).lr)
    names = {"scaled_dot", "uniform", *(resolve(e.variant).canonical.show() for e in COMPARED)}
    assert tried.keys() == names, "variants that are at home here are not compared"
    assert all(sorted(rates) == sorted(RATES) for rates in tried.values())
    for name, rate in choice.rates.items():
        assert rate == RATES[len(name.partition(" @ ")[0]) % len(RATES)]


def test_long_trainings_are_compared_by_their_beginning(fixed, monkeypatch):
    target = registry.find("task", "needle").target
    quick = replace(target.presets["quick"], trial_steps=7)
    monkeypatch.setattr(target, "presets", {**target.presets, "quick": quick})
    choice, cells = fixed(lambda cell: near(cell, 0.9))
    assert {read_protocol(cell.protocol).steps for cell in cells} == {7}
    assert "A trial ends after 7 updates" in choice.why
    assert choice.chosen == Setting(options="needle"), "whole trainings keep their steps"
    monkeypatch.setattr(
        target, "presets", {**target.presets, "quick": replace(quick, trial_steps=9)}
    )
    _, again = fixed(lambda cell: near(cell, 0.9), folder="longer", kept=choice)
    assert len(again) == len(cells), "trials of another length are not counted"


def test_the_least_value_is_the_best_one_of_a_metric_that_should_be_low(fixed, monkeypatch):
    target = registry.find("task", "needle").target
    low = replace(target.headline.metric, better="lower", high=None)
    monkeypatch.setattr(target, "ranking_metric", classmethod(lambda cls: low))
    choice, _ = fixed(lambda cell: read_protocol(cell.protocol).lr)
    assert {*choice.rates.values()} == {min(RATES)}


def test_without_the_time_for_every_rate_nothing_is_chosen_and_the_trials_stay(fixed):
    ticks = iter(range(10**6))
    stopped, first = fixed(good, until=2, clock=lambda: next(ticks))
    assert stopped is None
    choice, second = fixed(good)
    assert len(choice.rates) == 5
    assert not {cell.id for cell in first} & {cell.id for cell in second}


def test_when_the_time_is_up_only_trials_of_the_code_of_today_count(fixed, monkeypatch):
    ticks = iter(range(10**6))
    _, first = fixed(good, until=2, clock=lambda: next(ticks))
    _, none = fixed(good, until=-1)
    assert none == []
    assert len(fixed.unfinished.trials) == len(first) > 0
    monkeypatch.setattr(CodeOfCells, "digest", lambda self, cell, made=(): "edited")
    _, none = fixed(good, until=-1)
    assert none == []
    assert fixed.unfinished.trials == ()


def test_another_checkout_goes_on_from_trials_that_led_to_no_choice_yet(fixed):
    ticks = iter(range(10**6))
    _, first = fixed(good, until=2, clock=lambda: next(ticks))
    unfinished = fixed.unfinished
    assert (unfinished.chosen, unfinished.rates) == (None, {})
    assert unfinished.why == calibrate.UNFINISHED
    assert len(unfinished.trials) == len(first) > 0
    choice, second = fixed(good, folder="elsewhere", kept=unfinished)
    assert len(choice.rates) == 5
    assert not {cell.id for cell in first} & {cell.id for cell in second}


CHOSEN = Choice(
    task="needle",
    preset="quick",
    chosen=Setting(options="needle[length=16]", protocol="adam[evaluate_every=20]"),
    why="It was seen.",
    rule="It must be seen.",
    rates={"additive @ x / causal": 0.01, "scaled_dot @ y / causal": 0.001},
    baseline="scaled_dot @ y / causal",
    seconds=7.5,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Choices of `needle` are kept in this test's own folder."""
    monkeypatch.setattr(stored, "choices_file", lambda name: tmp_path / "c" / f"{name}.json")
    monkeypatch.setattr(stored, "_CHOICES", {})
    return tmp_path / "c"


def cell_of(variant="additive", task="needle", **request):
    return quality_cell(Request(**request), resolve(variant), DefaultTask(task=task), 0).cell


def test_a_choice_is_read_back_as_it_was_kept(folder):
    path = stored.keep_choice("needle", CHOSEN)
    again = stored.keep_choice("needle", CHOSEN)
    assert path == again
    assert stored.stored_choices("needle") == (CHOSEN,)
    assert len(json.loads(path.read_text())["choices"]) == 1, "a new one takes the old one's place"


def test_trials_without_a_choice_are_kept_unless_a_choice_would_be_lost(folder):
    task = Selector("needle")
    unfinished = replace(CHOSEN, chosen=None, rates={}, trials=({"seed": TRIED},))
    assert keep_trials(task, "quick", replace(unfinished, trials=())) is None
    path = keep_trials(task, "quick", unfinished)
    assert stored.stored_choices("needle") == (unfinished,)
    more = replace(unfinished, trials=({"seed": TRIED}, {"seed": TRIED + 1}))
    assert keep_trials(task, "quick", more) == path, "more of them take their place"
    assert keep_trials(task, "quick", unfinished) is None, "one would be lost"
    assert stored.stored_choices("needle") == (more,)
    stored.keep_choice("needle", CHOSEN)
    assert keep_trials(task, "quick", unfinished) is None
    assert stored.stored_choices("needle") == (CHOSEN,)
    assert keep_trials(task, "modern", replace(unfinished, preset="modern")) == path


def test_a_damaged_file_says_what_to_do(folder):
    folder.mkdir()
    (folder / "needle.json").write_text("{")
    with pytest.raises(InvalidConfig, match="remove it and run `bench calibrate needle`"):
        stored.stored_choices("needle")


def test_cells_have_the_size_that_was_chosen_and_the_rate_of_their_variant(folder):
    plain = {name: cell_of(name) for name in ("additive", "scaled_dot", "general")}
    mine = plain["additive"]
    rates = {competitor(mine.variant, mine.backbone, mine.slot): 0.01, CHOSEN.baseline: 0.001}
    stored.keep_choice("needle", Choice(**{**vars(CHOSEN), "rates": rates}))
    for name, rate in {"additive": 0.01, "general": 0.001}.items():
        cell = cell_of(name)
        assert parse(cell.task).options["length"] == 16
        assert read_protocol(cell.protocol).evaluate_every == 20
        assert read_protocol(cell.protocol).lr == rate, "what was not tried has the baseline's"
    assert cell_of(calibrated=False) == mine
    assert sized_task("needle", "quick")[1].seconds == 7.5
    assert length(cell_of(preset="smoke")) != 16, "each preset has sizes of its own"
    assert length(cell_of(task="needle[length=8]")) == 8, "what was asked for comes first"
    assert read_protocol(cell_of(training="adam[lr=0.02]").protocol).lr == 0.02


def test_a_rate_holds_for_networks_that_round_products_in_another_way():
    plain = competitor("additive", "rnn_seq2seq[hidden=16]", "cross")
    rounded = "rnn_seq2seq[hidden=16,precision=bfloat16,projection=bfloat16]"
    assert competitor("additive", rounded, "cross") == plain
    assert competitor("additive", "rnn_seq2seq[hidden=32]", "cross") != plain


def test_a_choice_of_nothing_leaves_the_sizes_of_the_preset(folder):
    before = cell_of()
    stored.keep_choice("needle", Choice(**{**vars(CHOSEN), "chosen": None, "rates": {}}))
    assert cell_of() == before


def test_an_ablated_input_has_the_size_of_the_whole(folder):
    size = Setting(options="two_source[beyond=12]")
    choice = Choice(**{**vars(CHOSEN), "task": "two_source", "chosen": size, "rates": {}})
    stored.keep_choice("two_source", choice)
    found = {
        parse(cell_of("scaled_dot", task).task).options.get("beyond")
        for task in ("two_source", "two_source[read=first]", "two_source[shuffle=true]")
    }
    assert found == {12}
    other = cell_of("scaled_dot", "two_source[vocab=20]")
    assert parse(other.task).options.get("beyond") != 12, "another question has its own size"


BEFORE = calibrate.RULE.replace(" in its network", "")
"""The rule of choices that were made before entries had uniform attention of their own network."""


def test_every_stored_choice_is_of_a_known_rule_and_reaches_the_plan():
    reached = 0
    for name in registry.registrations("task"):
        for choice in stored.stored_choices(name):
            assert choice.trials
            assert choice.commit
            assert choice.task.partition("[")[0] == name
            assert choice.rule in {calibrate.RULE, calibrate.RATES_RULE, BEFORE}
            seeds = {trial["seed"] for trial in choice.trials}
            assert seeds <= {TRIED, *JUDGED}
            if choice.chosen:
                names = sorted({one.partition(" @ ")[0] for one in choice.rates})
                asked = Request(
                    variants=",".join(names), tasks=choice.task, preset=choice.preset, minutes=1e6
                )
                planned = [one.cell for one in plan(asked).quality]
                cell = planned[0]
                # a comparison also has other settings of the task, which have rates of their own
                cells = [one for one in planned if one.task == cell.task]
                told = parse(choice.chosen.options).options
                assert told.items() <= registry_complete(cell.task).items()
                rates = {
                    competitor(one.variant, one.backbone, one.slot): read_protocol(one.protocol).lr
                    for one in cells
                }
                tried = rates.keys() & choice.rates.keys()
                assert tried
                assert all(rates[one] == choice.rates[one] for one in tried)
                reached += len(tried)
                trained = {**choice.protocol.options, "lr": read_protocol(cell.protocol).lr}
                assert trained.items() <= vars(read_protocol(cell.protocol)).items()
    # some rates are of other networks than those of the plain task
    assert reached >= 350


def registry_complete(task):
    from bench.api.options import complete

    return complete("task", parse(task)).options
