"""Every claim names cells that exist, can run, and give the number that is read."""

from dataclasses import replace

import pytest

from bench.api import registry
from bench.api.answer import Answer
from bench.api.backbone import BACKBONES
from bench.api.claim import (
    CLAIMS,
    FIRST_SEED,
    REWRITTEN_SEED,
    SECOND_REWRITTEN_SEED,
    SECOND_SEED,
    SEEDS,
)
from bench.api.command import EXAMPLES
from bench.api.config import build_config
from bench.api.errors import InvalidConfig, UnknownName
from bench.api.options import complete
from bench.api.probe import PROBES
from bench.api.selector import parse
from bench.api.task import TASKS
from bench.claims.cells import PROBE_S, asked_claims, cells_of, expected_minutes, plan_of
from bench.cli.registered import load_registry
from bench.running.catalog import known_metrics
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.protocol import read_protocol
from bench.training.refusals import cell_refusal
from tasks.metrics.source_lengths import source_lengths

load_registry(())
KEYS = list(registry.registrations(CLAIMS))
SIDES = [(key, side) for key in KEYS for side in registry.find(CLAIMS, key).target.sides]


def test_all_claims_of_the_ledger_are_here():
    assert [f"C{number:02}" for number in range(1, 54)] == KEYS


def test_no_side_is_refused_and_each_metric_is_given():
    wrong = []
    for key, side in SIDES:
        trained = cells_of(side, Request(), FIRST_SEED).trained
        task = registry.find(TASKS, parse(trained.cell.task).name).target
        backbone = parse(trained.cell.backbone)
        reason = cell_refusal(trained.spec, task, backbone, trained.cell.slot)
        if reason:
            wrong.append(f"{key}: {reason}")
        if side.probe:
            probe = registry.find(PROBES, parse(side.probe).name).target
            given = {one.name for one in probe.metrics}
        else:
            given = set(known_metrics([task])) - {
                one.name
                for entry in registry.registrations(PROBES).values()
                for one in entry.target.metrics
            }
        if side.metric not in given:
            wrong.append(f"{key}: nothing gives {side.metric}")
        if (side.split == "") != side.metric.startswith(("train_", "parameters")):
            wrong.append(f"{key}: {side.metric} is not of split {side.split!r}")
    assert wrong == []


def lengths_of(side):
    """Lengths that the test of a side scores, and how many examples have each, in their order."""
    task = registry.make(TASKS, parse(cells_of(side, Request(), FIRST_SEED).read.task), 0)
    return [(source_lengths(Answer(one))[0], len(one.targets)) for one in task.evaluation("test")]


def test_a_place_is_one_that_the_task_scores():
    """Lengths are those of the task's own test; another place would never be found."""
    for key, side in SIDES:
        if side.axis == "length":
            assert side.x in dict(lengths_of(side)), key


def test_a_probe_is_shown_the_examples_of_the_length_that_is_read():
    """Tests of strings have a batch for each length, the shortest first."""
    probed = [(key, side) for key, side in SIDES if side.probe and side.axis == "length"]
    assert {key for key, _ in probed} == {"C21", "C30"}
    for key, side in probed:
        before = sum(count for length, count in lengths_of(side) if length < side.x)
        assert side.examples > before, key


def test_a_claim_has_as_many_seeds_as_it_asks_for():
    spread, short = asked_claims(["C07", "C02"])
    request = Request(first_seed=FIRST_SEED)
    seeds = {cell.seed for cell in plan_of([spread], request).cells}
    assert seeds == set(range(FIRST_SEED, FIRST_SEED + spread.seeds))
    both = plan_of([spread, short], request)
    assert len(both.quality) == 4 * spread.seeds + 2 * SEEDS
    fewer = plan_of([spread], Request(first_seed=FIRST_SEED, seeds=2))
    assert {cell.seed for cell in fewer.cells} == {FIRST_SEED, FIRST_SEED + 1}
    more = Request(first_seed=FIRST_SEED, seeds=spread.seeds + 1)
    with pytest.raises(InvalidConfig, match=f"is decided on {spread.seeds} seeds"):
        plan_of([spread], more)
    each = expected_minutes(spread, request) / spread.seeds
    assert 0 < each < 1


def test_a_probe_is_shown_as_many_examples_as_its_side_says():
    side = next(side for key, side in SIDES if key == "C21")
    assert "examples=1536" in cells_of(side, Request(), FIRST_SEED).read.protocol
    usual = next(side for key, side in SIDES if key == "C51" and side.probe)
    assert "examples" not in cells_of(usual, Request(), FIRST_SEED).read.protocol


def test_a_distance_is_one_of_the_task_and_a_layer_one_of_the_network():
    for key, side in SIDES:
        trained = cells_of(side, Request(), FIRST_SEED).trained
        if side.axis == "difficulty":
            task = parse(trained.cell.task)
            config = build_config(registry.find(TASKS, task.name).config, task.options, task.name)
            assert side.x in config.distances, key
        elif side.axis == "layer":
            assert (
                0 <= side.x <= complete(BACKBONES, parse(trained.cell.backbone)).options["layers"]
            )


def test_every_network_of_a_claim_can_be_built():
    built = set()
    for key, side in SIDES:
        cell = cells_of(side, Request(), FIRST_SEED).trained.cell
        if cell.id not in built:
            assert assemble(cell, None).system, key
            built.add(cell.id)


def test_words_that_a_probe_counts_are_decoded():
    """Shares of words are rows of tasks that decode, and of none that scores by teacher forcing."""
    for key, side in SIDES:
        if side.probe == "coverage" and side.metric in (
            "repeated_bigram_share",
            "dropped_word_share",
        ):
            trained = cells_of(side, Request(), FIRST_SEED).trained.cell
            assert assemble(trained, None).task.decodes, key


def test_a_learning_rate_that_a_side_names_is_not_that_of_its_task():
    """The page says so of the claims that name one; all others have that of their task."""
    own = {}
    for key, side in SIDES:
        mine, of_task = (
            read_protocol(cells_of(one, Request(), FIRST_SEED).trained.cell.protocol).lr
            for one in (side, replace(side, training=""))
        )
        if mine != of_task or "lr=" in side.training:
            own[key] = (mine, of_task)
    assert own == {"C11": (0.001, 0.005)}
    assert "the learning rate 0.001, where the task has 0.005" in asked_claims(["C11"])[0].note


def test_backbones_hold_the_slot_of_every_side():
    for _, side in SIDES:
        cell = cells_of(side, Request(), FIRST_SEED).read
        assert cell.slot in registry.find(BACKBONES, parse(cell.backbone).name).target.slots


def test_a_plan_has_each_cell_once_on_the_seeds_of_claims():
    claims = asked_claims(["C38", "C33"])
    made = plan_of(claims, Request(first_seed=FIRST_SEED))
    ids = [one.cell.id for one in made.quality]
    assert len(ids) == len(set(ids)) == SEEDS * (3 + 4)
    assert len(made.analysis) == SEEDS * 3
    assert {cell.seed for cell in made.cells} == set(range(FIRST_SEED, FIRST_SEED + SEEDS))


def test_a_second_sample_has_seeds_of_its_own():
    (second,) = (replace(one, again=20) for one in asked_claims(["C33"]))
    made = plan_of([second], Request(first_seed=FIRST_SEED))
    assert {cell.seed for cell in made.cells} == set(range(SECOND_SEED, SECOND_SEED + 20))
    fewer = plan_of([second], Request(first_seed=FIRST_SEED, seeds=2))
    assert {cell.seed for cell in fewer.cells} == {SECOND_SEED, SECOND_SEED + 1}
    with pytest.raises(InvalidConfig, match="need at least 6 seeds, got 5"):
        replace(second, again=5)


def test_a_claim_that_was_written_anew_has_seeds_that_nobody_has_seen():
    anew = [claim for claim in asked_claims(["all"]) if claim.rewritten and claim.contrasts]
    assert anew
    for claim in anew:
        for one, first, count in (
            (replace(claim, again=0), REWRITTEN_SEED, claim.seeds),
            (replace(claim, again=20), SECOND_REWRITTEN_SEED, 20),
        ):
            made = plan_of([one], Request(first_seed=FIRST_SEED))
            assert {cell.seed for cell in made.cells} == set(range(first, first + count))


FRESH_SEED = 700
"""First seed of the published run `fresh_seeds`."""


def test_samples_of_claims_and_other_published_runs_share_no_seed():
    starts = (FIRST_SEED, SECOND_SEED, REWRITTEN_SEED, FRESH_SEED, SECOND_REWRITTEN_SEED)
    assert starts == tuple(sorted(starts))
    for claim in asked_claims(["all"]):
        first = replace(claim, again=0).sample
        for sample in (first, claim.sample):
            end = min((start for start in starts if start > sample.start), default=10_000)
            assert sample.start in starts
            assert sample.start != FRESH_SEED
            assert sample.stop <= end


def test_what_must_be_learned_is_trained_with_the_claim():
    (claim,) = asked_claims(["C51"])
    wanted = [one.side for contrast in claim.contrasts for one in contrast.learned]
    ids = {cell.id for cell in plan_of([claim], Request(first_seed=FIRST_SEED)).cells}
    assert wanted
    for side in wanted:
        assert cells_of(side, Request(), REWRITTEN_SEED).read.id in ids


def test_probes_of_strings_are_shown_every_length_of_training():
    """Tests of strings have a batch for each length, the shortest first."""
    for key, side in SIDES:
        if side.probe and side.axis != "length" and side.task.startswith("transduction"):
            lengths = lengths_of(side)
            shown = side.examples or EXAMPLES
            reached, seen = 0, 0
            for length, count in lengths:
                if seen < shown:
                    reached, seen = length, seen + count
            assert reached >= 8, key


def test_a_budget_takes_whole_claims_in_order_of_priority():
    claims = asked_claims(["all"])
    request = Request(first_seed=FIRST_SEED, minutes=2.0, jobs=1)
    made = plan_of(claims, request)
    assert 0 < made.seconds <= 120
    whole = plan_of(claims, Request(first_seed=FIRST_SEED))
    assert whole.seconds * Request().jobs >= 60 * max(
        expected_minutes(one, Request()) for one in claims
    )
    first = {cell.id for cell in made.cells}
    complete = [
        claim.key
        for claim in claims
        if claim.sides
        and all(cells_of(s, request, FIRST_SEED).read.id in first for s in claim.sides)
    ]
    assert complete
    assert {registry.find(CLAIMS, key).target.priority for key in complete} <= {2, 3}


def test_a_network_that_several_sides_read_counts_once_for_the_budget():
    claims = asked_claims(["C17"])
    sides = [cells_of(side, Request(), FIRST_SEED) for side in claims[0].sides]
    assert len({one.trained.cell.id for one in sides}) < len(sides)
    needed = expected_minutes(claims[0], Request())
    fits = plan_of(claims, Request(first_seed=FIRST_SEED, minutes=needed + 0.1, jobs=1))
    trained = sum(one.seconds for one in fits.quality)
    assert trained + PROBE_S * len(fits.analysis) == pytest.approx(60 * needed)
    without = plan_of(claims, Request(first_seed=FIRST_SEED, minutes=needed - 0.1, jobs=1))
    assert not without.quality


def test_wrong_keys_are_one_sentence():
    with pytest.raises(UnknownName, match="no claim named 'C99'"):
        asked_claims(["C99"])
    with pytest.raises(InvalidConfig, match="all stands alone"):
        asked_claims(["all", "C08"])
