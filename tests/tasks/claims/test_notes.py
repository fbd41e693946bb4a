"""Numbers that notes of claims quote, against the published rows."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.api import registry
from bench.api.claim import CLAIMS
from bench.claims.cells import cells_of
from bench.claims.verdicts import outcomes_of
from bench.cli.registered import load_registry
from bench.running.request import Request
from results.pack import Pack

PACK = Path(__file__).parents[3] / "results" / "published" / "claims.parquet"
load_registry(())


@pytest.fixture(scope="module")
def rows():
    frame = Pack(PACK).frame
    return frame[(frame["status"] == "ok") & (frame["baseline"] == "")]


def claim(key):
    return registry.find(CLAIMS, key).target


def index(one, **wanted):
    """The only side of a claim with these fields."""
    (found,) = (
        at
        for at, side in enumerate(one.sides)
        if all(getattr(side, name) == value for name, value in wanted.items())
    )
    return found


def values(rows, key, at, **changed):
    """The rows of a side over the seeds that decide.

    Args:
        rows: Published rows.
        key: Of the claim.
        at: Which of its sides.
        changed: What is read in the place of the side's own row.
    """
    side = replace(claim(key).sides[at], **changed)
    ids = {cells_of(side, Request(), seed).read.id for seed in claim(key).sample}
    mine = rows[rows["cell"].isin(ids) & (rows["metric"] == side.metric)]
    mine = mine[(mine["split"] == side.split) & (mine["axis"] == side.axis)]
    found = mine if side.x is None else mine[mine["x"] == side.x]
    assert len(found) == len(claim(key).sample)
    return found["value"]


def mean(rows, key, at, **changed):
    return values(rows, key, at, **changed).mean()


def test_c05_has_what_one_state_lacks_with_many_and_with_few_words(rows):
    one = claim("C05")
    many, few = "transduction[rule=dict,vocab=200]", "transduction[rule=dict]"
    for task in (many, few):
        assert mean(rows, "C05", index(one, variant="scaled_dot", task=task)) == 1
    lacks = [
        1 - mean(rows, "C05", index(one, variant="none_state", task=task)) for task in (many, few)
    ]
    assert f"{lacks[0]:.2f} with 200 words and {lacks[1]:.2f} with 10" in one.note


def test_c07_has_the_levels_of_both_tasks(rows):
    reversal, swapped = (
        [
            mean(rows, "C07", index(claim("C07"), variant=name, task=f"transduction[rule={rule}]"))
            for name in ("general", "additive")
        ]
        for rule in ("reverse", "swap")
    )
    assert f"{reversal[0]:.3f} and {reversal[1]:.3f}" in claim("C07").note
    assert f"{swapped[0]:.2f} and {swapped[1]:.2f}" in claim("C07").note


def test_c16_is_told_at_every_step_that_its_note_names(rows):
    one = claim("C16")
    both = ("hard_reinforce", "additive")
    hard, soft = (index(one, variant=name, split="validation") for name in both)
    gaps = [mean(rows, "C16", hard, x=x) - mean(rows, "C16", soft, x=x) for x in (100, 200, 300)]
    assert f"{gaps[0]:.2f} after 100 steps, {gaps[1]:.2f} after 200 and {gaps[2]:.3f}" in one.note
    at_end = {"split": "test", "axis": "length", "x": 8.0}
    ends = [mean(rows, "C16", at, **at_end) for at in (hard, soft)]
    told = f"it is {ends[0] - ends[1]:.3f} ({ends[0]:.2f} and {ends[1]:.2f})"
    assert told in one.note


def test_c20_has_no_row_of_the_second_derivatives(rows):
    assert "gap_correlation_share" in claim("C20").rewritten
    assert "gap_correlation_share" not in set(rows["metric"])


def test_c21_has_both_parts_of_its_sums(rows):
    one = claim("C21")

    def told(rule, metric, length, digits):
        at = index(one, task=f"transduction[rule={rule},vocab=30]", metric=metric, x=length)
        return f"{mean(rows, 'C21', at):.{digits}f}"

    dropped, repeated = "dropped_content_share", "repeated_content_share"
    copied = [told("copy", dropped, x, 3) for x in (8, 12, 16)]
    assert f"from {copied[0]} at 8 symbols to {copied[1]} at 12 and {copied[2]} at 16" in one.note
    visited = [told("fert", dropped, x, 3) for x in (8, 16)]
    assert f"from {visited[0]} at 8 to {visited[1]} at 16" in one.note
    again = [told("copy", repeated, x, 4) for x in (8, 12, 16)]
    assert f"from {again[0]} to {again[1]} and {again[2]}" in one.note
    seen = [told("fert", repeated, x, 3) for x in (8, 16)]
    assert f"from {seen[0]} to {seen[1]}." in one.note


def test_c22_has_what_is_translated_after_100_steps(rows):
    one = claim("C22")
    read = {"metric": "sequence_accuracy", "probe": "", "examples": 0}
    taught, plain = (
        mean(rows, "C22", index(one, variant=name, training="adam[steps=100]"), **read)
        for name in ("coverage_eq1", "additive")
    )
    assert f"{taught:.2f} with the penalty and {plain:.2f} without" in one.note


def test_c34_has_the_share_of_equal_keys(rows):
    at = index(claim("C34"), metric="head_js_nats")
    same = mean(rows, "C34", at, metric="head_same_key_share")
    assert f"same strongest key for {same:.2f} of" in claim("C34").note


def test_c44_has_how_far_its_networks_are_from_equal_sizes(rows):
    sizes = {"metric": "parameters_count", "split": "", "axis": "", "x": None}
    two, one = (mean(rows, "C44", side, **sizes) for side in (0, 1))
    assert two / one - 1 <= 0.024
    assert "as many parameters within 2.4%" in claim("C44").note


def test_c45_has_the_sizes_of_both_networks(rows):
    sizes = {"metric": "parameters_count", "split": "", "axis": "", "x": None}
    placed, recurrent = (mean(rows, "C45", side, **sizes) for side in (0, 1))
    assert f"has {placed:,.0f} parameters here" in claim("C45").note
    assert f"with a recurrent encoder {recurrent:,.0f}" in claim("C45").note


def test_c44_counts_the_networks_that_ended_at_the_limit(rows):
    read = {"metric": "train_steps_count", "split": "", "axis": "", "x": None}
    steps = [*values(rows, "C44", 0, **read), *values(rows, "C44", 1, **read)]
    assert (
        f"{steps.count(3000)} of the {len(steps)} networks ended at the limit" in claim("C44").note
    )


def test_c46_says_which_of_its_contrasts_decides(rows):
    (found,) = outcomes_of([claim("C46")], rows, Request())
    assert [one.finding.verdict for one in found.contrasts] == ["undecided", "contradicted"]
    assert claim("C46").note.startswith("“Contradicted” rests on the second contrast alone")


def test_c48_has_the_time_of_the_recurrent_network(rows):
    at = index(claim("C48"), variant="last_state")
    seconds = values(rows, "C48", at, metric="train_cpu_s", split="")
    assert f"for {seconds.min():.0f} to {seconds.max():.0f} CPU seconds" in claim("C48").note
    ids = {cells_of(claim("C48").sides[at], Request(), s).read.id for s in claim("C48").sample}
    whole = rows[rows["cell"].isin(ids)]["seconds"] / 60
    assert f"took {whole.min():.1f} to {whole.max():.1f} minutes" in claim("C48").note


def test_c50_has_the_curves_of_both_networks(rows):
    one = claim("C50")
    for at in (0, 1):
        read = {"split": "validation", "axis": "step"}
        curve = [mean(rows, "C50", at, x=x, **read) for x in (500, 1000, 1500, 2000)]
        told = [f"{value:.3f}" for value in curve]
        assert f"{', '.join(told[:3])} and {told[3]}" in one.note
        assert curve == sorted(curve), "both still learned"


def test_c53_has_the_accuracy_with_and_without_normalization(rows):
    one = claim("C53")
    whole = index(one, backbone="tagger[width=64,layers=6]", variant="sinusoid")
    bare = index(one, backbone="tagger[width=64,layers=6,norm=off]")
    told = f"{mean(rows, 'C53', bare):.3f}, and {mean(rows, 'C53', whole):.3f} with it"
    assert told in one.note
