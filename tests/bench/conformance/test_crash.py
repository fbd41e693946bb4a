"""What a certificate says of code that crashes, and where it says that numbers differ."""

import errno
import logging
from pathlib import Path

import pytest
import torch

from bench.api.errors import InvalidConfig
from bench.api.normalizer import Normalized, Normalizer
from bench.conformance import as_text, certify, checks_numeric
from bench.conformance.certificate import CheckFailed
from bench.conformance.compare import expect_near, expect_same, first_in_parts, greatest_of
from variants.normalizers.masked_softmax import masked_softmax

HERE = "tests/bench/conformance/test_crash.py"


def line_of(word):
    """Number of the line of this file that ends in a comment."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return 1 + next(at for at, line in enumerate(lines) if line.endswith(f"# {word}"))


def test_a_crash_names_the_line_of_the_author_and_is_one_line_for_all_checks(plant):
    def normalize(self, energy, allowed, state, call):
        return Normalized(masked_softmax(energy.no_such_thing, allowed))  # the crash

    plant.normalizer(normalize)
    found = certify("planted", regimes=["cross"], checks=["shapes", "splits", "oracle"])
    assert len(set(found.failed.values())) == 1
    assert found.failed["shapes"].endswith(f"no_such_thing' ({HERE}:{line_of('the crash')})")
    assert "planted: failed in 3 checks (shapes, splits, oracle): " in as_text([found])


def test_an_error_of_the_bench_has_its_place_too(plant):
    def normalize(self, energy, allowed, state, call):
        raise InvalidConfig("not today.")  # the refusal

    plant.normalizer(normalize)
    found = certify("planted", regimes=["cross"], checks=["shapes"])
    end = f"InvalidConfig: not today. ({HERE}:{line_of('the refusal')})"
    assert found.failed["shapes"].endswith(end)


@pytest.mark.parametrize(
    ("error", "environmental"),
    [
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), False),
        (ValueError("not today"), False),
    ],
)
def test_a_certificate_knows_whether_the_machine_ended_a_check(plant, error, environmental):
    def normalize(self, energy, allowed, state, call):
        raise error

    plant.normalizer(normalize)
    found = certify("planted", regimes=["cross"], checks=["shapes"])
    assert found.failed
    assert found.environmental is environmental


def test_a_missing_method_is_called_one(plant):
    class HeadTemperature(Normalizer):
        gives = frozenset({"simplex"})

        def normalize(self, energy, allowed, state, call):
            return Normalized(masked_softmax(energy, allowed))

    plant("normalizer", HeadTemperature)
    found = certify("planted", regimes=["cross"], checks=["oracle"])
    sentence = "HeadTemperature has no method `oracle`; write it (see bench/api/normalizer.py)"
    assert found.failed["oracle"].endswith(sentence)


def test_splits_and_the_loops_say_which_query_differs(plant):
    def late(self, energy, allowed, state, call):
        weights = masked_softmax(energy, allowed)
        if energy.shape[2] == 1:
            weights = weights * 0.5
        return Normalized(weights)

    plant.normalizer(late)
    found = certify("planted", regimes=["self"], checks=["splits", "long"])
    assert "allowed 1e-10, first at query 2, in a part of 1 query" in found.failed["splits"]
    assert "first at query 64, in a part of 1 query" in found.failed["long"]

    def third(self, energy, allowed, state, call):
        weights = masked_softmax(energy, allowed)
        weights[-1, -1, 2:] *= 0.5
        return Normalized(weights)

    plant.normalizer(third)
    found = certify("planted", regimes=["cross"], checks=["oracle"])
    assert "row 4 differs from the loops" in found.failed["oracle"]
    assert "most at head 0, query 2" in found.failed["oracle"]


@pytest.mark.parametrize("wrong", [1.0, torch.nan, torch.inf])
def test_the_place_is_that_of_the_wrong_number(wrong):
    found, wanted = torch.zeros(2, 2, 4, 3), torch.zeros(2, 2, 4, 3)
    found[1, 1, 3, 0] = wrong
    with pytest.raises(CheckFailed, match="first at query 3, in a part of 2 queries"):
        expect_near(found, wanted, 1e-9, "they differ", first_in_parts([1, 1, 2]))
    with pytest.raises(CheckFailed, match="most at head 1, query 9"):
        expect_near(found[1], wanted[1], 1e-9, "they differ", greatest_of((0, 1, 5, 9)))
    with pytest.raises(CheckFailed, match="first at query 3"):
        expect_near(wanted, found, 1e-9, "they differ", first_in_parts([4]))


def test_what_is_no_number_is_named_and_is_not_called_a_difference():
    found = torch.tensor([0.5, float("nan"), 1.0])
    with pytest.raises(CheckFailed, match=r"^hard: NaN in 1 of 3 numbers$"):
        expect_same(found, found.clone(), "hard", "two equal calls differ")
    with pytest.raises(CheckFailed, match=r"^they differ: NaN in 1 of 3 numbers$"):
        expect_near(found, torch.zeros(3), 1e-9, "they differ")
    with pytest.raises(CheckFailed, match=r"^hard: two equal calls differ$"):
        expect_same(torch.zeros(3), torch.ones(3), "hard", "two equal calls differ")
    expect_same(torch.ones(3), torch.ones(3), "hard", "two equal calls differ")


def test_the_compiler_logs_no_traceback_of_what_the_certificate_says(monkeypatch, caplog):
    tracer = logging.getLogger("torch._subclasses.fake_tensor")

    def breaks(*_, **__):
        tracer.error("failed while attempting to run meta")
        raise RuntimeError("expected another size")

    monkeypatch.setattr(checks_numeric.torch, "compile", lambda attend, **_: breaks)
    found = certify("dot", checks=["compile"])
    assert "RuntimeError: expected another size" in found.failed["compile"]
    assert not caplog.records
    tracer.error("later")
    assert [one.message for one in caplog.records] == ["later"]
