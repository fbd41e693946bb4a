"""Certificates of one variant that several commands leave in one run folder."""

import pytest

from bench.conformance import RunsOn
from bench.timing.shape import AttendShape
from results.certificate import (
    certificate_entry,
    is_red,
    of_code,
    of_impl,
    with_checks,
    without_other_code,
)

HERE = RunsOn("cpu", "float32")
SHORT, LONG = (HERE.at(AttendShape(length=length), "auto") for length in (16, 64))


def entry(passed=(), failed=()):
    found = {"passed": [*passed], "failed": dict.fromkeys(failed, "off."), "skipped": {}}
    return certificate_entry({**found, "expected": [*passed, *failed], "told": {}})


@pytest.mark.parametrize(("first", "second"), [("auto", "eager"), ("eager", "auto")])
def test_a_red_suite_of_one_code_stays_beside_a_green_one_of_another(first, second):
    red, green = of_impl(entry(failed=["oracle"]), first), of_impl(entry(["oracle"]), second)
    both = with_checks(red, green)
    assert is_red(both)
    mended = with_checks(both, of_impl(entry(["oracle"]), first))
    assert not is_red(mended)
    assert sorted(mended["passed"]) == ["oracle", "oracle_on_eager"]


def test_the_hash_of_the_code_goes_with_the_checks():
    both = with_checks(
        of_code(entry(["oracle"]), "old"), of_impl(of_code(entry(["oracle"]), "new"), "eager")
    )
    assert both["code"] == {"": "old", "eager": "new"}
    left = without_other_code(both, "new")
    assert (left["passed"], left["code"]) == (["oracle_on_eager"], {"eager": "new"})


def test_a_shape_that_failed_stays_until_it_passes():
    everywhere = ["answers_on_cpu_float32"]
    red = entry(everywhere, [LONG])
    other = with_checks(red, entry([*everywhere, SHORT]))
    assert is_red(other)
    assert other["passed"] == [*everywhere, SHORT]
    assert not is_red(with_checks(other, entry([*everywhere, LONG])))


def test_what_earlier_versions_named_after_no_shape_is_read_and_replaced():
    earlier = entry(["timed_shape_on_cpu_float32"], ["gradients_on_cpu_float32"])
    assert is_red(earlier)
    assert with_checks(earlier, entry(["gradients_on_cpu_float32", SHORT])) == entry(
        ["gradients_on_cpu_float32", SHORT]
    )
