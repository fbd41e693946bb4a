import json

import pytest

from bench.api.errors import InvalidConfig, UnknownName
from bench.api.resolve import resolve
from bench.conformance import CHECKS, Certificate, as_text, certify, expected_checks
from results.certificate import is_red

QUICK = ("shapes", "weight_law", "stream")


def test_a_certificate_survives_json():
    found = certify("scaled_dot", checks=QUICK)
    registered = json.loads(json.dumps(found.to_json()))
    assert sorted(registered) == ["expected", "failed", "passed", "skipped", "told"]
    assert Certificate.from_json(found.variant, registered) == found


def test_it_names_the_variant_as_cells_do():
    found = certify("additive", checks=["config"])
    assert found.variant == resolve("additive").canonical.show()
    assert found.variant == resolve("additive").canonical.show() == "additive"


def test_only_checks_that_were_asked_for_are_run_and_expected():
    found = certify("scaled_dot", checks=QUICK)
    assert found.passed == found.expected == ("shapes", "weight_law")
    assert found.skipped == {"stream": "has no streaming form"}


def test_a_skip_is_green_where_it_was_expected_and_red_where_not():
    found = certify("scaled_dot", checks=QUICK)
    assert found.green()
    assert not found.green(QUICK)


def test_a_failure_is_never_green_and_neither_is_nothing():
    assert not Certificate("x", passed=("oracle",), failed={"splits": "differ"}).green(())
    assert not Certificate("x").green()


def test_one_regime_can_be_asked_for():
    found = certify("scaled_dot", regimes=["cross"], checks=["causality", "shapes"])
    assert found.passed == ("shapes",)
    assert "causality" in found.missing()


def test_unknown_names_are_refused_with_the_closest_known_one():
    with pytest.raises(UnknownName, match="did you mean 'causality'"):
        certify("scaled_dot", checks=["casuality"])
    with pytest.raises(UnknownName, match="additive"):
        certify("aditive")
    with pytest.raises(InvalidConfig, match="width"):
        certify("additive[widht=3]")


@pytest.mark.parametrize("impl", ["eager", "sdpa"])
def test_code_that_is_chosen_by_hand_is_certified_too(impl):
    found = certify("scaled_dot", impl=impl)
    assert found.green(), as_text([found])
    assert ("weight_law" in found.passed) == (impl == "eager")


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        ("additive", "impl=sdpa needs a dot-product score"),
        ("linformer", "linformer has no impl=sdpa; use auto or eager."),  # not its widths
    ],
)
def test_code_that_a_variant_does_not_have_is_a_refusal_and_neither_red_nor_green(variant, reason):
    found = certify(variant, impl="sdpa")
    assert found.verdict == "refused"
    assert found.refused.startswith(reason)
    assert (found.green(), found.passed, found.failed, found.expected) == (False, (), {}, ())
    assert certify(variant, impl="sdpa", checks=["splits"]).refused == found.refused
    assert not is_red(found.to_json())


def test_a_refusal_is_a_line_for_each_reason_with_what_to_do():
    lacking = [
        Certificate.of_refused_code(name, CHECKS, "impl=sdpa needs a dot-product score.")
        for name in ("additive", "concat")
    ]
    green = Certificate("good", ("shapes",), {}, {}, ("shapes",))
    said = as_text([*lacking, green]).splitlines()
    assert [line.split()[1] for line in said[-5:-2]] == ["refused", "refused", "green"]
    assert said[-2:] == [
        "refused: impl=sdpa needs a dot-product score. (additive, concat)",
        "leave --impl out: every variant has code of its own.",
    ]


@pytest.mark.parametrize("selector", ["mha_roles", "scaled_dot[loss=coverage_loss]"])
def test_who_reads_weights_is_not_checked_by_code_that_gives_none(selector):
    checks = ["runs_somewhere", "output", "loss"]
    found = certify(selector, impl="sdpa", checks=checks)
    assert found.green(), as_text([found])
    assert "impl=sdpa cannot return the weights that" in " ".join(found.skipped.values())


def test_checks_without_a_meaning_prove_nothing_and_are_not_red():
    assert certify("scaled_dot", checks=["stream"]).verdict == "skipped"


def test_expectations_follow_from_facts():
    assert set(expected_checks(resolve("scaled_dot"))) == set(CHECKS) - {"stream", "loss"}
    assert "loss" in expected_checks(resolve("coverage_loss"))
    assert "stream" in expected_checks(resolve("raffel_monotonic"))
    assert "causality" not in expected_checks(resolve("raffel_monotonic"))
    assert "permutation_law" not in expected_checks(resolve("shaw_rpr"))


def test_certifying_leaves_the_global_generator_and_the_registry_alone():
    import torch

    from bench.api.registry import listed_variants

    before, names = torch.get_rng_state(), list(listed_variants())
    certify("dot", checks=QUICK)
    assert torch.equal(torch.get_rng_state(), before)
    assert list(listed_variants()) == names


def test_the_text_counts_and_gives_every_reason_once():
    bad = Certificate(
        "bad[width=3]",
        passed=("shapes",),
        skipped={"oracle": "not today", "stream": "has no streaming form"},
        failed={"splits": "cross: queries in parts differ"},
        expected=("shapes", "oracle", "splits"),
    )
    good = Certificate("good", ("shapes",), {"stream": "has no streaming form"}, {}, ("shapes",))
    text = as_text([bad, good])
    assert text.splitlines() == [
        "What each check holds:",
        "shapes: outputs, weights, terms and state have the shapes of the contract",
        "splits: all queries at once, one by one and in uneven parts give the same answers",
        "",
        "variant       certificate      passed    skipped    failed    expected",
        "------------  -------------  --------  ---------  --------  ----------",
        "bad[width=3]  red                   1          2         1           3",
        "good          green                 1          1         0           1",
        "bad[width=3]: splits failed: cross: queries in parts differ",
        "bad[width=3]: oracle was expected but skipped: not today",
        "stream skipped: has no streaming form (bad[width=3], good)",
    ]


def test_one_sentence_of_several_checks_is_one_line_and_causes_come_first():
    crash = "TypeError: no (variants/scores/mine.py:57)"
    failed = {
        "shapes": f"cross: {crash}",
        "splits": "differ",
        "determinism": "draws",
        "oracle": f"causal: {crash}",
    }
    text = as_text([Certificate("bad", failed=failed, expected=tuple(failed))])
    assert text.splitlines()[-4:] == [
        "bad: determinism failed: draws",
        "bad: other failures may follow from this",
        f"bad: failed in 2 checks (shapes, oracle): cross: {crash}",
        "bad: splits failed: differ",
    ]
    alone = as_text([Certificate("bad", failed={"determinism": "draws"})])
    assert "follow from this" not in alone
    same = Certificate("bad", failed=dict.fromkeys(("determinism", "shapes"), "x: " + crash))
    assert "follow from this" not in as_text([same]), "it crashed before it drew anything"
