"""From stored rows to verdicts: rows of claims are written, and what they say is read back."""

import random
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from bench.api.claim import (
    FIRST_SEED,
    REWRITTEN_SEED,
    SECOND_SEED,
    SEEDS,
    Bound,
    Claim,
    Contrast,
    Exact,
    Learned,
    Side,
)
from bench.api.errors import BenchError, InvalidConfig
from bench.api.metric import Scored
from bench.claims.cells import cells_of, expected_minutes
from bench.claims.computed import compute
from bench.claims.verdicts import outcomes_of
from bench.cli.registered import load_registry
from bench.running.request import Request
from reports.blocks import Figure, Paragraph, TableBlock
from reports.claims_document import claims_document, headline
from reports.claims_page import write_claims
from results.frame import rows_of
from results.row import Record, Row
from results.store import Store
from tasks.claims import computed_masks, computed_scores

load_registry(())
DOT = Side(variant="dot", task="recall", metric="token_accuracy")
PLAIN = Side(variant="scaled_dot", task="recall", metric="token_accuracy")
LONG = Side(variant="dot", task="recall", metric="token_accuracy", axis="length", x=32.0)
CONTRAST = Contrast(title="dot minus scaled", left=(DOT,), right=(PLAIN,), expect="higher")


def one_number():
    return [Scored(metric="a_count", value=0.7 + 0.2 * random.random())]


def claim(*contrasts, **more):
    return Claim(
        key="X1", title="T.", source="F9, a test", quote="<b>q</b>", contrasts=contrasts, **more
    )


EXACT = claim(exact=Exact(compute=one_number, bounds=(Bound(metric="a_count", high=1.0),)))


@pytest.fixture
def store(tmp_path):
    with Store.create(tmp_path / "run") as found:
        yield found


def put(store, side, values, status="ok", first=FIRST_SEED, environment="0123456789ab", took=None):
    """Store one value a seed, and another value of the same metric at another place."""
    for at, value in enumerate(values):
        cell = cells_of(side, Request(), first + at).read
        rows = (
            Row(metric=side.metric, value=value, split=side.split, axis=side.axis, x=side.x),
            Row(metric=side.metric, value=0.5, split="validation"),
            Row(metric=side.metric, value=0.25, split=side.split, baseline="majority"),
            *([] if took is None else [Row(metric="train_cpu_s", value=took)]),
        )
        store.append(
            Record(
                cell=dict(vars(cell)),
                id=cell.id,
                status=status,
                environment=environment,
                detail="" if status == "ok" else "why.",
                rows=rows,
            )
        )


def paragraphs(found):
    """Texts of the section of one claim."""
    blocks = claims_document([found]).sections[-1].blocks
    return [block.text for block in blocks if isinstance(block, Paragraph)]


def verdict_texts(found):
    """Texts of the section of all verdicts."""
    (section,) = (one for one in claims_document(found).sections if one.key == "verdicts")
    return [block.text for block in section.blocks if isinstance(block, Paragraph)]


def outcome(store, asked):
    (found,) = outcomes_of([asked], rows_of([store]), Request())
    return found


def test_a_claim_names_the_commits_of_the_cells_that_it_reads(store):
    put(store, DOT, [0.9] * 3, environment="one")
    put(store, PLAIN, [0.5] * 2, environment="one")
    put(store, PLAIN, [0.5], first=FIRST_SEED + 2, environment="two")
    put(store, replace(DOT, variant="cosine"), [0.9] * 3, environment="three")
    facts = {
        "one": {"git_revision": "a" * 40, "git_dirty": False},
        "two": {"git_revision": "b" * 40, "git_dirty": True},
        "three": {"git_revision": "c" * 40, "git_dirty": False},
    }
    rows, asked = rows_of([store]), [claim(CONTRAST), EXACT]
    mixed, exact = outcomes_of(asked, rows, Request(), facts)
    assert mixed.commits == ("a" * 10, "b" * 10 + " with uncommitted changes")
    assert exact.commits == ()
    told = f"The numbers of this claim are of 2 commits: {'a' * 10} and {'b' * 10} with"
    assert any(told in text for text in paragraphs(mixed))
    (alone,) = outcomes_of(asked[:1], rows[rows["seed"] < FIRST_SEED + 2], Request(), facts)
    assert f"All numbers of this claim are of commit {'a' * 10}." in paragraphs(alone)
    (unknown,) = outcomes_of(asked[:1], rows, Request(), {})
    assert unknown.commits == ()


def test_the_cost_of_a_claim_is_what_its_trainings_took_once_all_have_run(store):
    seeds = len(claim(CONTRAST).sample)
    put(store, DOT, [0.9] * seeds, took=100.0)
    put(store, PLAIN, [0.5] * (seeds - 1), took=200.0)
    before = outcome(store, claim(CONTRAST))
    assert (before.timed, before.minutes) == (False, expected_minutes(before.claim, Request()))
    assert any(text.startswith("To run it again takes") for text in paragraphs(before))
    put(store, PLAIN, [0.5], first=FIRST_SEED + seeds - 1, took=200.0)
    after = outcome(store, claim(CONTRAST))
    assert (after.timed, after.minutes) == (True, pytest.approx(seeds * 300.0 / 60))
    told = f"Its trainings took about {seeds * 5} CPU minutes. To run it again:"
    assert told in paragraphs(after)


def test_a_difference_on_the_seeds_of_claims_is_found(store):
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90])
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52])
    found = outcome(store, claim(CONTRAST))
    assert (found.verdict, found.contrasts[0].finding.difference.count) == ("supported", SEEDS)
    assert found.contrasts[0].finding.difference.estimate == pytest.approx(0.393, abs=1e-3)


def test_a_second_sample_decides_alone_and_the_page_shows_both(store):
    put(store, DOT, [0.1, 0.9, 0.2, 0.8, 0.3, 0.7])
    put(store, PLAIN, [0.5] * 6)
    assert outcome(store, claim(CONTRAST)).verdict == "undecided"
    assert outcome(store, claim(CONTRAST, again=6)).standing == "not run"
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90], first=SECOND_SEED)
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52], first=SECOND_SEED)
    assert outcome(store, claim(CONTRAST)).verdict == "undecided"
    found = outcome(store, claim(CONTRAST, again=6))
    assert (found.verdict, found.contrasts[0].finding.difference.count) == ("supported", 6)
    said = paragraphs(found)
    told = "The first one, which decides nothing, with its 95% interval: dot minus scaled: +0 "
    assert any(told in one for one in said)
    assert captions(found) == ["Seen, with its 97.5% interval", "97.5% interval"]
    assert captions(outcome(store, claim(CONTRAST))) == [
        "Seen, with its 95% interval",
        "95% interval",
    ]


def captions(found):
    """What table and figure of a claim call their interval."""
    blocks = [block for section in claims_document([found]).sections for block in section.blocks]
    table = next(one for one in blocks if isinstance(one, TableBlock) and "numbers" in one.key)
    drawn = next(one for one in blocks if isinstance(one, Figure))
    return [table.columns[3].title, " ".join(drawn.caption.split(" its ")[1].split()[:2])[:-1]]


def test_half_of_a_second_sample_decides_nothing(store):
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90], first=SECOND_SEED)
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52], first=SECOND_SEED)
    found = outcome(store, claim(CONTRAST, again=12))
    assert (found.verdict, found.standing) == ("undecided", "in part run")
    assert found.reason() == f"It has 6 of 12 seeds; `{found.command}` runs the others."


@pytest.mark.parametrize("asked_with", [Request(), Request(seeds=3)])
def test_an_interrupted_first_sample_decides_nothing(store, asked_with):
    """Fewer seeds that were asked for are no sample either: nobody could tell them from a look."""
    put(store, DOT, [0.91, 0.92, 0.90])
    put(store, PLAIN, [0.51, 0.54, 0.50])
    (found,) = outcomes_of([claim(CONTRAST, seeds=12)], rows_of([store]), asked_with)
    assert found.contrasts[0].finding.verdict == "supported"
    assert (found.verdict, found.standing, found.grounds()) == ("undecided", "in part run", "")
    assert found.reason() == f"It has 3 of 12 seeds; `{found.command}` runs the others."
    put(store, DOT, [0.91, 0.92, 0.90] * 3, first=FIRST_SEED + 3)
    put(store, PLAIN, [0.51, 0.54, 0.50] * 2, first=FIRST_SEED + 3)
    assert "It has 9 of 12 seeds" in outcome(store, claim(CONTRAST, seeds=12)).reason()
    put(store, PLAIN, [0.51, 0.54, 0.50], first=FIRST_SEED + 9)
    assert outcome(store, claim(CONTRAST, seeds=12)).standing == "supported"


def fail(store, cell, status):
    """Store a cell that ended without a value."""
    store.append(
        Record(
            cell=dict(vars(cell)), id=cell.id, status=status, environment="e", detail="It did not."
        )
    )


def test_seeds_that_ended_without_a_score_are_told(store):
    """A run does not ask them again by itself, so that the claim would stay open unexplained."""
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90])
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51])
    fail(store, cells_of(PLAIN, Request(), FIRST_SEED + 5).read, "diverged")
    found = outcome(store, claim(CONTRAST))
    assert (found.verdict, found.standing) == ("undecided", "in part run")
    assert found.reason() == (
        "It has 5 of 6 seeds. 1 cell ended without the number that is read (1 diverged); "
        f"`{found.command} --retry diverged` runs it again."
    )
    fail(store, cells_of(DOT, Request(), FIRST_SEED + 6).read, "failed")
    more = outcome(store, claim(CONTRAST, seeds=12))
    assert more.reason() == (
        f"It has 5 of 12 seeds; `{more.command}` runs the others. 2 cells ended without the number "
        f"that is read (1 diverged and 1 failed); `{more.command} --retry diverged --retry failed` "
        "runs them again."
    )
    put(store, PLAIN, [0.52], first=FIRST_SEED + 5)
    assert outcome(store, claim(CONTRAST)).standing == "supported"


def test_a_claim_of_which_every_seed_ended_without_a_score_is_not_said_to_wait_for_a_run(store):
    for side in (DOT, PLAIN):
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
            fail(store, cells_of(side, Request(), seed).read, "out_of_memory")
    found = outcome(store, claim(CONTRAST))
    assert found.standing == "in part run"
    assert found.reason() == (
        "It has 0 of 6 seeds. 12 cells ended without the number that is read (12 out of memory); "
        f"`{found.command} --retry out_of_memory` runs them again."
    )


def test_a_probe_lacks_the_network_that_failed_and_waits_for_the_one_that_is_there(store):
    probed = replace(PLAIN, probe="alignment", metric="alignment_accuracy")
    asked = claim(replace(CONTRAST, left=(probed,), right=(), against=0.5))
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        fail(store, cells_of(probed, Request(), seed).trained.cell, "timeout")
    put(store, probed, [0.9], first=FIRST_SEED)
    lost = outcome(store, asked)
    assert (lost.waiting, dict(lost.lost)) == (False, {"timeout": 5})
    put(store, PLAIN, [0.5] * 6)
    waiting = outcome(store, asked)
    assert (waiting.waiting, dict(waiting.lost)) == (True, {})
    assert waiting.reason() == f"It has 1 of 6 seeds; `{waiting.command}` runs the others."


def test_results_of_other_code_are_waited_for_and_not_lost(store):
    put(store, DOT, [0.9] * 6)
    put(store, PLAIN, [0.1] * 5)
    put(store, PLAIN, [0.1], first=FIRST_SEED + 5, status="other_code")
    found = outcome(store, claim(CONTRAST))
    assert (found.standing, found.waiting, dict(found.lost)) == ("in part run", True, {})


def test_a_second_sample_is_whole_when_every_contrast_is(store):
    other = Side(variant="additive", task="recall", metric="token_accuracy")
    against = replace(CONTRAST, title="dot minus additive", right=(other,))
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90], first=SECOND_SEED)
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52], first=SECOND_SEED)
    put(store, other, [0.51, 0.54, 0.50], first=SECOND_SEED)
    found = outcome(store, claim(CONTRAST, against, again=6))
    assert (found.verdict, found.standing) == ("undecided", "in part run")


def test_a_second_sample_decides_at_half_the_level(store):
    gaps = [0.03, 0.1, -0.01, 0.09, 0.01, 0.08]  # p = 0.04
    for first in (FIRST_SEED, SECOND_SEED):
        put(store, DOT, [0.5 + gap for gap in gaps], first=first)
        put(store, PLAIN, [0.5] * 6, first=first)
    assert outcome(store, claim(CONTRAST)).verdict == "supported"
    assert outcome(store, claim(CONTRAST, again=6)).verdict == "undecided"


def test_seeds_beyond_those_that_were_planned_count_for_nothing(store):
    """Another claim may have trained more seeds of the same cells."""
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90] + [0.1] * 120)
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52] + [0.9] * 120)
    found = outcome(store, claim(CONTRAST))
    assert (found.verdict, found.contrasts[0].finding.difference.count) == ("supported", SEEDS)
    put(store, DOT, [0.1] * 20, first=SECOND_SEED)
    put(store, PLAIN, [0.9] * 20, first=SECOND_SEED)
    found = outcome(store, claim(CONTRAST, again=7))
    assert (found.verdict, found.contrasts[0].finding.difference.count) == ("contradicted", 7)


def test_a_network_whose_score_is_missing_is_not_said_to_have_learned_nothing(store):
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90])
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52])
    other = replace(DOT, variant="additive")
    put(store, other, [0.95] * 5)
    asked = claim(replace(CONTRAST, learned=(Learned(side=other, low=0.9),)))
    found = outcome(store, asked)
    assert found.standing == "in part run"
    assert found.reason() == f"Some of its cells were not run; `{found.command}` runs them."
    put(store, other, [0.95], first=FIRST_SEED + 5)
    assert outcome(store, asked).standing == "supported"


def test_seeds_that_decide_are_those_of_the_part_that_is_decided_first(store):
    """Where one part is enough, a part that nothing decides does not speak for the others."""
    put(store, DOT, [0.5] * 6)
    put(store, PLAIN, [0.5] * 6)
    other = replace(DOT, variant="additive")
    put(store, other, [0.6, 0.45, 0.58, 0.48, 0.59, 0.5])
    still = replace(CONTRAST, margin=0.1)
    near, far = (replace(still, title=f"at {m}", left=(other,), margin=m) for m in (0.04, 0.07))
    found = outcome(store, claim(still, near, far, needed="any"))
    assert {one.finding.verdict for one in found.contrasts} == {"undecided"}
    close, wide = (one.finding.seeds_to_decide for one in found.contrasts[1:])
    assert close > wide
    assert found.reason() == f"About {wide} seeds would decide (seen: 6)."
    alone = outcome(store, claim(still, still, needed="any")).reason()
    assert alone.startswith("No seed has any difference")


def test_what_lies_at_its_margin_needs_more_seeds_than_anyone_runs(store):
    put(store, DOT, [0.5 + gap for gap in (-0.1, 0.3, 0.0, 0.25, -0.05, 0.19)])
    put(store, PLAIN, [0.5] * 6)
    reason = outcome(store, claim(replace(CONTRAST, margin=0.1))).reason()
    assert reason.startswith("More than 200 seeds would decide (seen: 6), because “dot minus")


def test_the_row_of_its_own_place_is_read(store):
    put(store, LONG, [0.7, 0.71, 0.69, 0.7, 0.72, 0.7])
    at_length = Contrast(title="t", left=(LONG,), against=0.5, expect="higher")
    somewhere = Contrast(title="t", left=(DOT,), against=0.5, expect="higher")
    assert outcome(store, claim(at_length)).verdict == "supported"
    assert outcome(store, claim(somewhere)).verdict == "undecided"


def test_spreads_are_compared_on_the_rows_of_all_seeds(store):
    wide = [0.5 + 0.1 * gap for gap in (-3, 2, -1, 4, 0, 1, -2, 3, -4, 2, -1, 3)]
    put(store, DOT, wide)
    put(store, PLAIN, [0.9 + 0.01 * gap for gap in (1, -2, 0, 3, -1, 2, 0, -3, 1, -2, 2, 1)])
    spread = Contrast(title="t", left=(DOT,), right=(PLAIN,), expect="higher", of="spread")
    found = outcome(store, claim(spread, seeds=12))
    assert found.verdict == "supported"
    middle = sorted(wide)[5] / 2 + sorted(wide)[6] / 2
    distance = sum(abs(one - middle) for one in wide) / 12
    assert found.contrasts[0].finding.difference.estimate == pytest.approx(distance - 0.015)
    assert outcome(store, claim(CONTRAST)).verdict == "contradicted"


def test_results_of_other_code_decide_nothing(store):
    put(store, DOT, [0.9] * 6, status="other_code")
    put(store, PLAIN, [0.1] * 6)
    found = outcome(store, claim(CONTRAST))
    assert (found.verdict, found.ran) == ("undecided", False)


def test_an_interaction_is_the_difference_of_differences(store):
    put(store, DOT, [0.9, 0.91, 0.92, 0.9, 0.9, 0.91])
    put(store, PLAIN, [0.5, 0.51, 0.52, 0.5, 0.5, 0.51])
    other = Side(variant="general", task="recall", metric="token_accuracy")
    put(store, other, [0.8, 0.81, 0.8, 0.8, 0.82, 0.8])
    both = Contrast(title="t", left=(DOT, PLAIN), right=(other, other), expect="lower", margin=0.1)
    found = outcome(store, claim(both))
    assert found.verdict == "supported"
    assert found.contrasts[0].finding.difference.estimate == pytest.approx(-0.2, abs=0.02)


def test_what_is_missing_leaves_a_claim_open(store):
    put(store, DOT, [0.9] * 6)
    put(store, PLAIN, [0.1] * 6)
    found = outcome(store, claim(CONTRAST, missing="Needs a GPU."))
    assert (found.verdict, found.reason()) == ("undecided", "Needs a GPU.")


def test_a_computed_claim_holds_by_its_stored_numbers(store, monkeypatch):
    assert outcome(store, EXACT).verdict == "undecided"
    assert compute(EXACT, store)
    assert outcome(store, EXACT).verdict == "supported"
    # the same code is not computed again
    monkeypatch.setattr(random, "random", lambda: 2.0)
    assert not compute(EXACT, store)
    assert outcome(store, EXACT).verdict == "supported"


def of_numbers(*values, axes=("", ""), x=(None, None)):
    def compute():
        return (
            Scored(metric="a_count", value=value, axis=axis, x=place)
            for value, axis, place in zip(values, axes, x, strict=False)
        )

    return claim(exact=Exact(compute=compute, bounds=(Bound(metric="a_count", high=1.0),)))


def test_a_computation_may_be_a_generator_of_any_numbers(store):
    asked = of_numbers(np.float32(0.5))
    assert compute(asked, store)
    assert outcome(store, asked).bounds[0].values == {None: 0.5}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (of_numbers(5.0, 0.5), "computes a_count twice at one place"),
        (of_numbers(5.0, 0.5, axes=("width", "length"), x=(4.0, 4.0)), "along two axes"),
        (of_numbers(None), "mend its computation"),
        (of_numbers("much"), "mend its computation"),
    ],
)
def test_numbers_that_no_bound_could_read_are_refused(store, asked, told):
    with pytest.raises(BenchError, match=told):
        compute(asked, store)


def test_a_second_sample_needs_contrasts_and_no_sample_reaches_into_another():
    with pytest.raises(InvalidConfig, match="leave again out"):
        replace(EXACT, again=6)
    with pytest.raises(InvalidConfig, match="room for 100 seeds from 200 on, got 101"):
        claim(CONTRAST, seeds=101)


def test_a_computation_that_changed_runs_again(store):
    none = (Bound(metric="soft_change", high=0.0),)
    zero = (Bound(metric="dot_parameters_count", high=0.0),)
    before = claim(exact=Exact(compute=computed_scores.parameters_and_widths, bounds=zero))
    after = claim(exact=Exact(compute=computed_masks.repeated_reads, bounds=none))
    assert compute(before, store)
    assert outcome(store, after).verdict == "undecided"
    assert compute(after, store)
    assert outcome(store, after).verdict == "supported"


def test_other_numbers_contradict(store):
    assert compute(EXACT, store)
    tighter = claim(exact=Exact(compute=one_number, bounds=(Bound(metric="a_count", high=0.5),)))
    assert outcome(store, tighter).verdict == "contradicted"


def test_the_page_shows_quote_numbers_figure_and_command(store, tmp_path):
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90])
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52])
    html, markdown = write_claims([outcome(store, claim(CONTRAST))], tmp_path / "page")
    page, text = html.read_text(), markdown.read_text()
    assert "&lt;b&gt;q&lt;/b&gt;" in page
    assert "<b>q</b>" not in page
    for said in ("F9, a test", "supported", "claims run X1"):
        assert said in page
        assert said in text
    assert "+0.393" in text
    assert "](figures/claim-x1.svg)" in text
    assert (tmp_path / "page" / "figures" / "claim-x1.svg").read_text().startswith("<svg")


def numbers_over_width():
    places = ((2.0, 0.5), (32.0, 0.9), (512.0, 1.4))
    return [
        Scored(metric="a_count", value=0.5),
        *(Scored(metric="a_ratio", value=value, axis="width", x=x) for x, value in places),
    ]


RATIOS = claim(
    exact=Exact(
        compute=numbers_over_width,
        bounds=(
            Bound(metric="a_count", title="how many", low=0.1, high=1.0),
            Bound(metric="a_ratio", high=1.0),
        ),
    )
)


@pytest.mark.parametrize(
    ("expect", "margin", "words"),
    [
        ("lower", 0.3, "lower by 0.3 or more"),
        ("higher", 0.1, "higher by 0.1 or more"),
        ("higher", 0.0, "higher"),
        ("equal", 0.05, "equal within 0.05"),
    ],
)
def test_what_was_expected_is_said_with_its_direction(store, tmp_path, expect, margin, words):
    contrast = Contrast(title="t", left=(DOT,), right=(PLAIN,), expect=expect, margin=margin)
    _, markdown = write_claims([outcome(store, claim(contrast))], tmp_path / "page")
    assert f"| t | {words} |  | not run | not run |" in markdown.read_text()


def test_a_claim_says_whether_it_was_run_in_part_or_not_at_all_or_has_no_test(store):
    other = Side(variant="general", task="recall", metric="token_accuracy")
    second = Contrast(title="u", left=(other,), right=(PLAIN,), expect="higher")
    both = claim(CONTRAST, second)
    assert outcome(store, both).standing == "not run"
    put(store, DOT, [0.9, 0.1, 0.9, 0.1, 0.9, 0.1])
    put(store, PLAIN, [0.1, 0.9, 0.1, 0.9, 0.1, 0.9])
    assert outcome(store, both).standing == "in part run"
    assert outcome(store, claim(CONTRAST)).standing == "undecided"
    assert outcome(store, claim(CONTRAST, missing="m.")).standing == "cannot be tested here"


@pytest.mark.parametrize(("level", "short"), [(0.52, True), (0.50, False)])
def test_a_difference_of_the_claimed_sign_below_the_margin_is_marked(store, level, short):
    noise = [0.001, -0.001, 0.0, 0.002, -0.002, 0.0]
    put(store, DOT, [level + one for one in noise])
    put(store, PLAIN, [0.51 - one for one in noise])
    found = outcome(store, claim(replace(CONTRAST, margin=0.1)))
    assert (found.standing, found.falls_short) == ("contradicted", short)
    assert ("below the margin" in found.contrasts[0].result) == short
    told = "(1 by a difference of the claimed sign below the margin)"
    assert (told in headline([found])) == short


@pytest.mark.parametrize(
    ("expect", "above", "standing"),
    [
        ("higher", 0.11, "undecided"),
        ("higher", 0.4, "supported"),
        ("lower", 0.11, "contradicted"),
        ("equal", 0.11, "undecided"),
        ("equal", 0.4, "contradicted"),
        ("equal", 0.0, "equivalent"),
    ],
)
def test_a_mean_beyond_the_margin_decides_nothing_where_its_interval_includes_it(
    store, expect, above, standing
):
    noise = [0.03, -0.03, 0.0, 0.02, -0.02, 0.0]
    put(store, DOT, [0.5 + above + one / (10 if standing == "equivalent" else 1) for one in noise])
    put(store, PLAIN, [0.5] * 6)
    found = outcome(store, claim(replace(CONTRAST, expect=expect, margin=0.1)))
    assert found.standing == standing


def test_means_are_those_of_what_is_compared(store):
    put(store, DOT, [0.1, 0.9] * 6)
    put(store, PLAIN, [0.4, 0.6] * 6)
    spread = Contrast(title="t", left=(DOT,), right=(PLAIN,), expect="higher", of="spread")
    assert outcome(store, claim(spread, seeds=12)).contrasts[0].means() == "0.4 and 0.1"
    other = replace(DOT, variant="additive")
    put(store, other, [0.25] * 12)
    twice = replace(CONTRAST, left=(DOT, DOT), right=(PLAIN, other))
    assert outcome(store, claim(twice)).contrasts[0].means() == "1 and 0.75 (sums of 2)"
    assert outcome(store, claim(CONTRAST)).contrasts[0].means() == "0.5 and 0.5"


def test_a_number_without_bounds_is_shown_and_counts_for_nothing(store):
    shown = Bound(metric="a_ratio")
    exact = Exact(compute=numbers_over_width, bounds=(Bound(metric="a_count", high=1.0), shown))
    assert compute(claim(exact=exact), store)
    found = outcome(store, claim(exact=exact))
    assert (found.standing, found.grounds()) == ("supported", "a count: 0.5.")
    assert [one.result for one in found.bounds] == ["inside", ""]
    drawn = claims_document([found]).sections[-1].blocks[-3]
    assert isinstance(drawn, Figure)
    assert "0.5 to 1.4; shown only" in drawn.svg
    assert drawn.svg.count('class="s0 b"') == 1
    tight = Exact(compute=numbers_over_width, bounds=(Bound(metric="a_count", high=0.1), shown))
    failed = outcome(store, claim(exact=tight))
    assert failed.reason() == "a count: 0.5, expected at most 0.1."


@pytest.mark.parametrize(("level", "room"), [(0.97, "no"), (0.85, "little")])
def test_a_difference_that_had_little_room_is_not_called_impossible(store, level, room):
    noise = [0.001, -0.001, 0.0, 0.002, -0.002, 0.0]
    put(store, DOT, [level + 0.01 + one for one in noise])
    put(store, PLAIN, [level - one for one in noise])
    found = outcome(store, claim(replace(CONTRAST, margin=0.1)))
    assert found.standing == "undecided"
    assert f"leaves {room} room: the right side is {1 - level:.2g} from the end" in found.reason()


def test_a_claim_with_a_learning_rate_of_its_own_is_named(store):
    usual = outcome(store, claim(CONTRAST))
    longer = replace(DOT, training="adam[steps=900]")
    slower = replace(DOT, training="adam[lr=0.001,steps=900]")
    for side, more in ((longer, ""), (slower, " Those of X1 have another one, which their list")):
        found = outcome(store, claim(replace(CONTRAST, left=(side,))))
        (text,) = (one for one in verdict_texts([usual, found]) if "learning rate" in one)
        assert "Networks have the learning rate of their task, which was not tuned" in text
        assert text.endswith("not tuned for them.") == (not more)
        assert more in text


def test_the_networks_of_a_claim_are_told_with_what_is_not_usual(store, tmp_path):
    far = replace(DOT, backbone="tagger", probe="alignment")
    contrast = replace(CONTRAST, left=(far,))
    _, markdown = write_claims([outcome(store, claim(contrast))], tmp_path / "page")
    text = markdown.read_text().replace("\\", "")
    assert (
        f"- {far.task} at the size of quick before calibration, backbone tagger, "
        f"probe alignment: {far.variant}" in text
    )
    assert f"- {PLAIN.task} at the size of quick before calibration: {PLAIN.variant}" in text


def test_equality_without_any_difference_is_told(store, tmp_path):
    put(store, DOT, [1.0] * 6)
    put(store, PLAIN, [1.0] * 6)
    found = outcome(store, claim(replace(CONTRAST, expect="equal", margin=0.1)))
    _, markdown = write_claims([found], tmp_path / "page")
    assert "| equivalent, no seed differs |" in markdown.read_text()


def test_the_headline_counts_what_was_not_run_apart(store, tmp_path):
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90])
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52])
    asked = [claim(missing="m."), EXACT, claim(CONTRAST)]
    found = [outcome(store, one) for one in asked]
    assert headline(found) == (
        "3 claims: 1 supported, 0 contradicted, 1 not run, 1 cannot be tested here."
    )
    *_, table = claims_document(found).sections[1].blocks
    words = [row[2].text for row in table.rows]
    assert words == ["supported", "not run", "cannot be tested here"]


def test_a_contradicted_claim_says_which_part_failed_and_by_how_much(store):
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90])
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52])
    lower = Contrast(title="the gap", left=(DOT,), right=(PLAIN,), expect="lower", margin=0.2)
    found = outcome(store, claim(CONTRAST, lower))
    assert found.verdict == "contradicted"
    told = "the gap: +0.393, expected lower by 0.2 or more; 1 other part holds."
    assert found.reason() == told
    assert compute(RATIOS, store)
    computed = outcome(store, RATIOS)
    assert computed.verdict == "contradicted"
    told = "a ratio: 0.5 to 1.4 (3 values of width), expected at most 1; 1 other part holds."
    assert computed.reason() == told


def test_a_supported_claim_says_what_it_rests_on(store):
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90])
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52])
    again = replace(CONTRAST, title="the same once more")
    found = outcome(store, claim(CONTRAST, again))
    assert found.reason() == ""
    assert found.grounds().startswith(f"{CONTRAST.title}: +0.393 (")
    assert found.grounds().endswith("; 1 more part holds.")
    *_, table = claims_document([found]).sections[1].blocks
    ((key, *_, why),) = table.rows
    assert why.text == found.grounds()
    open_first = replace(CONTRAST, title="dot minus itself", right=(DOT,))
    either = outcome(store, claim(open_first, CONTRAST, needed="any"))
    assert (either.verdict, either.contrasts[0].finding.verdict) == ("supported", "undecided")
    assert either.grounds().startswith(f"{CONTRAST.title}: +0.393 (")
    places = {getattr(block, "key", "") for block in claims_document([found]).sections[2].blocks}
    assert key.href[1:] in places


def test_a_claim_rests_on_a_part_in_which_seeds_differ(store):
    put(store, DOT, [1.0] * 6)
    put(store, PLAIN, [1.0] * 6)
    worse = replace(PLAIN, variant="general")
    put(store, worse, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52])
    equal = replace(CONTRAST, title="at the ceiling", expect="equal", margin=0.05)
    other = Contrast(title="other", left=(DOT,), right=(worse,), expect="higher")
    found = outcome(store, claim(equal, other))
    assert found.verdict == "supported"
    assert [part.same for part in found.contrasts] == [True, False]
    assert found.grounds().startswith("other: +0.48")
    assert outcome(store, claim(equal)).grounds().startswith("at the ceiling: +0")


def test_the_page_counts_what_replaced_tests_said(store):
    put(store, DOT, [0.91, 0.92, 0.90, 0.93, 0.91, 0.90], first=REWRITTEN_SEED)
    put(store, PLAIN, [0.51, 0.54, 0.50, 0.53, 0.51, 0.52], first=REWRITTEN_SEED)
    anew = claim(CONTRAST, rewritten="It compared too little.", said_before="contradicted")
    lower = replace(CONTRAST, expect="lower")
    lost = replace(anew, contrasts=(lower,), said_before="supported")
    found = [outcome(store, one) for one in (anew, anew, lost)]
    text = verdict_texts(found)
    assert (
        "3 of these 3 claims were written anew. The tests that were replaced said: 1 supported "
        "and 2 contradicted. The present ones say: 2 supported and 1 contradicted. So 2 are "
        "supported by the present test alone, and 1 that an earlier test supported is not "
        "supported now."
    ) in text
    assert not any("were written anew" in one for one in verdict_texts([outcome(store, EXACT)]))
    for wrong in ({"rewritten": "It was."}, {"said_before": "supported"}):
        with pytest.raises(InvalidConfig, match="what its earlier test compared"):
            claim(CONTRAST, **wrong)


def test_computed_numbers_have_a_figure_that_needs_no_color(store, tmp_path):
    assert compute(RATIOS, store)
    write_claims([outcome(store, RATIOS)], tmp_path / "page")
    (file,) = (tmp_path / "page" / "figures").glob("*.svg")
    drawn = ElementTree.fromstring(file.read_text())
    markers = [
        (one.get("class"), one[0].text)
        for one in drawn.iter("{http://www.w3.org/2000/svg}path")
        if "transform" in one.attrib
    ]
    # hollow outside, filled inside
    assert markers == [("s0 p", "0.5"), ("s0 p", "0.5"), ("s0 p", "0.9"), ("s0 o", "1.4")]
    said = " ".join(drawn.itertext())
    assert "how many" in said
    assert "expected at most 1: 1 of 3 outside" in said
    assert "expected 0.1 to 1: inside" in said
    for one in drawn.iter("{http://www.w3.org/2000/svg}rect"):
        if one.get("class"):
            assert float(one.get("height")) > 0
            assert float(one.get("width")) > 0


def test_the_page_says_what_the_letters_of_sources_stand_for(store, tmp_path):
    _, markdown = write_claims([outcome(store, EXACT)], tmp_path / "page")
    assert "- **F9.** a test: 1 claim" in markdown.read_text()
