"""A certificate on a device: compared with float64, in its own format, at the timed shapes."""

import errno
import math
from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.config import NoOptions
from bench.api.registry import Registration
from bench.api.resolve import resolve
from bench.api.variant import Variant
from bench.conformance import RunsOn, certify_on, checks_timed_shape, compared_on, on_device
from bench.conformance.certificate import CheckFailed
from bench.conformance.runs_on import expect_as_near
from bench.timing.fitted_heads import fitted
from bench.timing.shape import AttendShape, parse_rounds

SHAPES = tuple(AttendShape(batch=2, length=70, width=8, regime=r) for r in ("cross", "causal"))
AT = [RunsOn("cpu", "bfloat16").at(shape, "auto") for shape in SHAPES]
"""Names of their checks."""


def certified(name, dtype="bfloat16", shapes=(), impl="auto"):
    return certify_on(name, RunsOn("cpu", dtype, tuple(shapes)), impl)


@pytest.mark.parametrize(
    "name", ["scaled_dot", "additive", "none_state", "hardmax", "tu_coverage", "raffel_monotonic"]
)
def test_right_code_is_green_in_bfloat16_and_at_the_timed_shapes(name):
    found = certified(name, shapes=SHAPES)
    assert found.green(), found.failed
    assert {"answers_on_cpu_bfloat16", AT[0]} <= set(found.passed)


def test_a_check_says_on_what_it_holds():
    assert certified("dot", "float32", impl="eager").passed == (
        "answers_on_cpu_float32_eager",
        "gradients_on_cpu_float32_eager",
    )


class Mean(Variant):
    """The mean of the values, or what a test makes of it."""

    there = False
    """Whether it stands on the device, as far as the test says so."""

    def __init__(self, config, dims, impl="auto"):
        super().__init__(dims, impl)

    def mix(self, call, carried, want_weights):
        value, real = call.memory.source.value, call.memory.source.key_mask()[:, None, None, :]
        weights = (real / real.sum(-1, keepdim=True).clamp(min=1)).to(value.dtype)
        weights = weights.expand(-1, value.shape[1], call.query.shape[2], -1)
        return self.spoilt(weights @ value), weights if want_weights else None, {}, {}

    def spoilt(self, output):
        return output

    def oracle(self, query, source, read, **call):
        raise NotImplementedError


class WrongThere(Mean):
    def spoilt(self, output):
        return output * 1.5 if self.there else output


class WrongInItsFormat(Mean):
    def spoilt(self, output):
        return output if output.dtype == torch.float64 else output * 1.5


class WrongGradientInItsFormat(Mean):
    def spoilt(self, output):
        wrong = output.detach()
        return output if output.dtype == torch.float64 else output + (output - wrong)


class WrongThereForTwoRows(Mean):
    def spoilt(self, output):
        return output + 1 if self.there and output.shape[0] == 2 else output


class OtherFormat(Mean):
    def spoilt(self, output):
        return output.double()


class NotFinite(Mean):
    def spoilt(self, output):
        return output if output.dtype == torch.float64 else output / 0


class WrongGradientThere(Mean):
    def spoilt(self, output):
        return output + (output - output.detach()) if self.there else output


class RunsOut(Mean):
    def spoilt(self, output):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 64 GiB")


class RunsOutOfRoomFor70(Mean):
    """Has memory for sources that are shorter or longer."""

    def mix(self, call, carried, want_weights):
        if call.memory.num_keys == 70:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 64 GiB")
        return super().mix(call, carried, want_weights)


class FindsNoFile(Mean):
    def spoilt(self, output):
        raise OSError(errno.EMFILE, "Too many open files")


class Breaks(Mean):
    def spoilt(self, output):
        raise RuntimeError("no kernel for this\nat all")


@pytest.fixture
def planted(monkeypatch):
    """`planted(class)` -> its name, registered for cross attention."""

    def plant(target):
        monkeypatch.setattr(target, "unsupported", {"causal": "it looks ahead"})
        entry = Registration(axis="mechanism", name="planted", target=target, config=NoOptions)
        monkeypatch.setitem(registry._ENTRIES["mechanism"], "planted", entry)
        return "planted"

    return plant


def test_the_plain_mean_is_green(planted):
    assert certified(planted(Mean), shapes=SHAPES).green()


@pytest.mark.parametrize(
    ("target", "check", "sentence"),
    [
        (OtherFormat, "answers", "bfloat16 in, torch.float64 out"),
        (NotFinite, "answers", "not finite"),
        (Breaks, "answers", "RuntimeError while certifying: no kernel for this at all"),
    ],
)
def test_what_a_planted_defect_breaks_is_said_in_one_sentence(planted, target, check, sentence):
    found = certified(planted(target))
    assert not found.green()
    why = found.failed[f"{check}_on_cpu_bfloat16"]
    assert sentence in why
    assert "\n" not in why


@pytest.mark.parametrize(
    ("target", "check"),
    [
        (WrongThere, "answers_on_cpu_bfloat16"),
        (WrongGradientThere, "gradients_on_cpu_bfloat16"),
        (WrongThereForTwoRows, AT[0]),
    ],
)
def test_a_device_that_errs_more_than_the_processor_is_red(planted, monkeypatch, target, check):
    to, there = on_device._to, checks_timed_shape._there

    def placed(subject, on, impl):
        found = to(subject, on, impl)
        found.variant.there = True
        return found

    def built(variant, on, impl):
        found = there(variant, on, impl)
        found.there = True
        return found

    monkeypatch.setattr(on_device, "_to", placed)
    monkeypatch.setattr(checks_timed_shape, "_there", built)
    name = planted(target)
    found = certified(name, shapes=SHAPES[:1])
    assert "off by" in found.failed[check]


@pytest.mark.parametrize(
    ("target", "check"),
    [(WrongInItsFormat, "answers"), (WrongGradientInItsFormat, "gradients")],
)
def test_what_is_wrong_in_a_format_wherever_it_runs_is_red(planted, target, check):
    found = certified(planted(target))
    assert "off by" in found.failed[f"{check}_on_cpu_bfloat16"]


def test_where_rounding_steps_over_a_kink_another_question_is_asked(monkeypatch):
    found = certified("softpick")
    assert found.green(), found.failed
    monkeypatch.setattr(on_device, "QUESTIONS", on_device.QUESTIONS[:1])
    assert "gradient 0: off by" in certified("softpick").failed["gradients_on_cpu_bfloat16"]


@pytest.mark.parametrize(
    ("name", "heads", "width"), [("gqa", 8, 64), ("mla", 8, 64), ("gqa", 6, 5)]
)
def test_a_slot_is_compared_with_the_heads_with_which_it_is_timed(monkeypatch, name, heads, width):
    built, usual = [], checks_timed_shape.build

    def build(spec, shape, impl, *, seed):
        built.append(spec.canonical)
        return usual(spec, shape, impl, seed=seed)

    monkeypatch.setattr(checks_timed_shape, "build", build)
    shape = AttendShape(batch=1, heads=heads, length=16, width=width, place="slot")
    found = certified(name, "float32", [shape])
    assert RunsOn("cpu", "float32").at(shape, "auto") in found.passed
    wanted = fitted(resolve(name), shape).canonical
    assert built == [wanted]
    assert wanted != resolve(name).canonical


def test_heads_that_a_slot_cannot_have_are_a_refusal():
    shape = AttendShape(batch=1, heads=1, length=4, width=8, place="slot")
    found = certified("mha_roles", "float32", [shape])
    assert not found.failed
    why = found.skipped[RunsOn("cpu", "float32").at(shape, "auto")]
    assert why.startswith("its heads cannot have this shape: ")


def test_what_timing_refuses_for_its_size_is_not_called():
    shape = AttendShape(batch=1, heads=1, length=1024, width=8, regime="cross")
    at = RunsOn("cpu", "float32").at(shape, "auto")

    def certified_under(rounds, name="uniform"):
        return certify_on(name, RunsOn("cpu", "float32", (shape,), parse_rounds(rounds)))

    assert "would hold about" in certified_under("rounds[most_mb=2]").skipped[at]
    assert at in certified_under("rounds").passed
    assert at in certified_under("rounds[most_mb=2,beside=uniform]").passed, "timed in any case"


def test_memory_that_runs_out_at_a_shape_leaves_the_others_compared(planted):
    shapes = [replace(SHAPES[0], length=length) for length in (40, 70, 50)]
    found = certified(planted(RunsOutOfRoomFor70), shapes=shapes)
    short, full, after = (RunsOn("cpu", "bfloat16").at(shape, "auto") for shape in shapes)
    assert {short, after} <= set(found.passed)
    assert found.skipped == {full: "certifying ran out of memory: 68.7 GB were asked for at once"}
    assert found.environmental


def test_a_decode_step_is_compared_with_float64(monkeypatch):
    usual = checks_timed_shape.decode_step

    def wrong_there(variant, inputs):
        step = usual(variant, inputs)
        if inputs.query.dtype != torch.float32 or not hasattr(variant, "there"):
            return step
        return lambda: step()._replace(output=0 * step().output)

    def built(variant, on, impl):
        found = there(variant, on, impl)
        found.there = True
        return found

    there = checks_timed_shape._there
    monkeypatch.setattr(checks_timed_shape, "_there", built)
    assert certified("scaled_dot", "float32", shapes=SHAPES[1:]).green()
    monkeypatch.setattr(checks_timed_shape, "decode_step", wrong_there)
    found = certified("scaled_dot", "float32", shapes=SHAPES[1:])
    at = RunsOn("cpu", "float32").at(SHAPES[1], "auto")
    assert "a decode step: off by" in found.failed[at]


def test_a_processor_that_has_no_answer_proves_nothing():
    one, none = torch.ones(3), torch.full((3,), math.nan)
    on, spec = RunsOn("cpu", "float32"), resolve("scaled_dot")
    expect_as_near(one, one.double(), one.double(), spec, on, "here")
    with pytest.raises(CheckFailed, match="the processor itself gives no finite output"):
        expect_as_near(one, one.double(), none.double(), spec, on, "here")


def test_memory_that_ran_out_proves_nothing_either_way(planted):
    found = certified(planted(RunsOut))
    assert "answers_on_cpu_bfloat16" in found.skipped
    assert "out of memory" in found.skipped["answers_on_cpu_bfloat16"]
    assert not found.failed


@pytest.mark.parametrize(
    ("target", "environmental"), [(RunsOut, True), (FindsNoFile, True), (Breaks, False)]
)
def test_it_knows_whether_the_machine_ended_a_check(planted, target, environmental):
    found = certified(planted(target))
    assert found.environmental is environmental


def test_the_suite_in_float64_says_it_all_of_the_processor_in_full_precision():
    assert compared_on("cpu", "float32", ()) is None
    assert compared_on("cpu", "bfloat16", ()) == RunsOn("cpu", "bfloat16")
    assert compared_on("cpu", "float32", SHAPES) == RunsOn("cpu", "float32", SHAPES)
    assert compared_on("cuda", "float32", ()) == RunsOn("cuda")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("name", ["scaled_dot", "additive", "raffel_monotonic"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_gpu_answers_as_float64_does(name, dtype):
    found = certify_on(name, RunsOn("cuda", dtype, SHAPES))
    assert found.green(), found.failed
