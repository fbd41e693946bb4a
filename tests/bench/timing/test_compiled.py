import torch

from bench.timing import compiled
from bench.timing.compiled import CODES, time_codes
from bench.timing.shape import AttendShape

SHAPE = AttendShape(batch=1, heads=2, length=6, width=4, regime="cross")
ROUNDS = "rounds[count=2,visit_ms=0.1,samples=1,workloads=forward+forward_backward]"


def timed(*variants, rounds=ROUNDS):
    return time_codes(variants, SHAPE, torch.float32, torch.device("cpu"), rounds, backend="eager")


def test_every_code_of_a_variant_is_timed_and_compared_with_plain_torch(monkeypatch):
    asked_for = []

    def note(function, backend, **_):
        asked_for.append(backend)
        return function

    monkeypatch.setattr(torch, "compile", note)
    found = timed("additive", "scaled_dot")
    assert {(one.variant, one.code, one.workload) for one in found if one.status == "ok"} == {
        (variant, code, workload)
        for variant in ("additive", "scaled_dot")
        for code in CODES
        for workload in ("forward", "forward_backward")
    }
    assert asked_for == ["eager", "eager"]
    assert all(one.off < 1e-5 and one.rounds == 2 and one.median_ms > 0 for one in found)


def test_code_that_answers_otherwise_is_off(monkeypatch):
    def wrong(function, **_):
        def answer(*given, **more):
            found = function(*given, **more)
            return found._replace(output=found.output + 1)

        return answer

    monkeypatch.setattr(torch, "compile", wrong)
    for one in timed("additive"):
        assert (one.off > 0.01) == (one.code == "compiled")


def test_without_an_answer_of_plain_torch_no_difference_from_it_is_told(monkeypatch):
    usual = compiled._made

    def without_plain(name, code, *more):
        if code == "eager":
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return usual(name, code, *more)

    monkeypatch.setattr(compiled, "_made", without_plain)
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    found = timed("additive")
    assert {one.code for one in found if one.status == "ok"} == {"auto", "compiled"}
    assert all(one.off is None for one in found)


def test_a_code_that_fails_leaves_a_reason_and_the_others_their_times(monkeypatch):
    def no_compiler(function, backend, **_):
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", no_compiler)
    found = timed("additive")
    bad = [one for one in found if one.status != "ok"]
    assert [(one.code, one.status) for one in bad] == [("compiled", "failed")]
    assert "no C++ compiler" in bad[0].detail
    assert {one.code for one in found if one.status == "ok"} == {"eager", "auto"}
