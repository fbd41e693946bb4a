"""`--impl compiled`: plain torch behind torch.compile, timed and certified, not trained."""

import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode

from bench.api.cell import parse_label
from bench.conformance import RunsOn, certify_on
from bench.timing import workloads
from bench.timing.asked_shapes import asked_shapes
from bench.timing.shape import AttendShape, parse_rounds
from bench.timing.timed_inputs import draw_inputs
from bench.timing.timed_variant import HIDDEN, Setting, count, enter_all
from bench.timing.workloads import plain_code

ASKED = "slot,B=1,L=12,H=2,E=4"
(SHAPE,) = asked_shapes([ASKED])
CHECKS = ("gradients_on_cpu_float32_compiled", RunsOn().at(SHAPE, "compiled"))
TRACE = f"""
import sys
import torch
import variants
from bench.api.resolve import resolve
from bench.conformance import RunsOn, certify_on
from bench.timing import workloads
from bench.timing.asked_shapes import asked_shapes
from bench.timing.timed_inputs import draw_inputs
from bench.timing.workloads import build, forward, forward_backward

variants.load_all()
graphs, compiler = [], torch.compile

def keep(graph, inputs):
    graphs.append(graph)
    return graph

# what is traced is run as it is, for building code takes a minute
torch.compile = lambda *args, **kinds: compiler(*args, **{{**kinds, "backend": keep}})
(shape,) = asked_shapes(["{ASKED}"])
inputs = draw_inputs(shape, torch.device("cpu"), torch.float32, 0)
"""
ANSWERS = """
for name in sys.argv[1:]:
    plain, compiled = (build(resolve(name), shape, impl, seed=0) for impl in ("eager", "compiled"))
    found, wanted = (forward(one, inputs)().output for one in (compiled, plain))
    assert graphs, name
    torch.testing.assert_close(found, wanted)
    for one in (compiled, plain):
        forward_backward(one, inputs)()
    for a, b in zip(compiled.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    graphs.clear()
"""
BESIDE_EACH_OTHER = """
made = [build(resolve("mha"), shape, "compiled", seed=seed) for seed in range(12)]
for one in made:
    forward(one, inputs)()
# plain code behind a limit of compilations would be timed under the wrong name
assert len(graphs) == len(made), len(graphs)
"""
DECODES = """
from bench.timing.timed_inputs import with_inputs, query_extras
from bench.timing.workloads import DRAWS, answer, decode_step, without_gradients

for name in sys.argv[1:]:
    plain, compiled = (build(resolve(name), shape, impl, seed=0) for impl in ("eager", "compiled"))
    query, new = inputs.next_query, with_inputs(plain, inputs.next_source)

    def step(variant, state):
        named = {"new": new, "noise": DRAWS, "extras": query_extras(variant, query)}
        return without_gradients(lambda: variant.attend(query, None, state, **named))()

    # two steps, each behind what the one before wrote
    prompt = without_gradients(lambda: answer(plain, inputs.query, inputs.source))()
    first = step(plain, prompt.state)
    room = first.state.cache and first.state.cache.room
    before = room and room.taken
    found = step(compiled, first.state)
    assert graphs, name
    if room is not None:
        assert found.state.cache.room is room and room.taken == before + 1, name
        room.rewind(before)
    torch.testing.assert_close(found.output, step(plain, first.state).output)
    timed, wanted = (decode_step(one, inputs)().output for one in (compiled, plain))
    torch.testing.assert_close(timed, wanted)
    graphs.clear()
"""
CERTIFIED = """
found = certify_on("mha", RunsOn(shapes=(shape,)), "compiled")
assert found.green() and len(found.passed) == 2, found.failed
assert graphs
"""


@pytest.mark.slow
@pytest.mark.parametrize("script", [ANSWERS, BESIDE_EACH_OTHER, DECODES, CERTIFIED])
def test_what_is_compiled_is_traced_whole_and_answers_the_same(script):
    # the hook that checks shapes in tests cannot be traced
    names = ["mha", "gqa", "mla", "deltanet", "rope"]
    subprocess.run([sys.executable, "-c", TRACE + script, *names], check=True)


def test_a_compiler_that_is_wrong_turns_the_certificate_red(monkeypatch):
    def wrong(attend, **_):
        def answer(*args, **call):
            found = attend(*args, **call)
            return found._replace(output=found.output * 1.001)

        return answer

    monkeypatch.setattr(workloads.torch, "compile", wrong)
    found = certify_on("mha", RunsOn(shapes=(SHAPE,)), "compiled")
    assert set(found.failed) == set(CHECKS)


def test_operations_are_counted_and_memory_has_its_reason(monkeypatch):
    monkeypatch.setattr(workloads.torch, "compile", lambda attend, **_: attend)
    label = "speed attend[batch=1,place=slot] @ none @ mha / causal / rounds / impl=compiled"
    cell, device = parse_label(label), torch.device("cpu")
    inputs = draw_inputs(SHAPE, device, torch.float32, 0)
    setting = Setting(SHAPE, parse_rounds("rounds"), inputs, device, 0)
    (entry,) = enter_all([cell], setting, cell.id).values()
    assert entry.failed is None
    count(entry, setting)
    assert entry.counts["forward_flops_counted_count"] > 0
    assert entry.uncounted["forward_peak_memory_bytes"] == HIDDEN


def test_what_does_not_fit_is_counted_in_plain_code(monkeypatch):
    watched = []

    def compiled(attend, **_):
        def answer(*args, **call):
            # torch compiles nothing beneath a mode, and never again what it met there
            watched.extend([None] if _get_current_dispatch_mode() else [])
            if watched:
                raise RuntimeError("torch.compile found no compiled frames")
            return attend(*args, **call)

        return answer

    monkeypatch.setattr(workloads.torch, "compile", compiled)
    shape = AttendShape(batch=1, heads=1, length=1024, width=8, regime="cross")
    limits = "rounds[most_mb=2,workloads=forward]"
    cells = [
        parse_label(f"speed {shape.show()} @ none @ {name} / cross / {limits} / impl=compiled")
        for name in ("scaled_dot", "uniform")
    ]
    device = torch.device("cpu")
    inputs = draw_inputs(shape, device, torch.float32, 0)
    setting = Setting(shape, parse_rounds(limits), inputs, device, 0)
    plain, large = enter_all(cells, setting, cells[0].id).values()
    assert (plain.failed, [*plain.works]) == (None, ["forward"])
    assert large.lost["forward"].status == "refused"
    assert "would hold about" in large.lost["forward"].detail


def test_the_parts_of_compiled_code_are_plain_torch():
    found = [plain_code(impl) for impl in ("auto", "eager", "sdpa", "compiled")]
    assert found == ["auto", "eager", "sdpa", "eager"]
