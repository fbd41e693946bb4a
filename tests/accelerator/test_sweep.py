"""Code that meets a GPU once in months: run on one that is not there, where mistakes are errors.

Left out of the slow sweep as the same code: variants that differ in what stands around attention
(their outputs, losses, heads and decoders are trained), batches without padding, and tasks whose
batches and networks are alike. `python tests/accelerator/sweep.py --long --variants all --tasks all
--parts --data FOLDER` leaves nothing out.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def sweep(tmp_path, *words):
    """What a sweep found: sentences about what is wrong, waits, and the number of calls."""
    environment = {**os.environ, "BENCH_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(HERE / "sweep.py"), *words, "--data", str(tmp_path / "data")]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def run_in(script, *folders):
    """What a script prints as JSON, with these folders to import from."""
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def undeclared(found):
    sys.path.insert(0, str(HERE))
    try:
        from declared import DECLARED
    finally:
        sys.path.remove(str(HERE))
    places = {(kind, place) for kind, place, _ in found["waits"]}
    return places - set(DECLARED), set(DECLARED) - places


@pytest.mark.slow
def test_a_few_variants_and_a_task_run_on_a_device_and_wait_nowhere_unasked(tmp_path):
    names = "scaled_dot,additive_fourier,raffel_monotonic"
    found = sweep(tmp_path, "--variants", names, "--tasks", "transduction")
    assert found["wrong"] == []
    assert found["calls"] > 20
    assert undeclared(found)[0] == set()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_everything_runs_on_a_device_and_every_wait_is_declared_and_happens(tmp_path):
    found = sweep(tmp_path, "--variants", "all", "--tasks", "all", "--parts")
    assert found["wrong"] == []
    unknown, unused = undeclared(found)
    assert unknown == set(), "remove them, or declare them with the reason"
    assert unused == set(), "nothing waits there any more: take the line away"


OWN_WAYS = """
import json
import torch
from device import NAME, Pretended, install

install()
from bench.api.fused import fused_softmax
from variants.mechanisms.chunked_state import Steps, run

rng = torch.Generator().manual_seed(0)
found = {}


def drawn(*shape):
    return torch.randn(*shape, generator=rng)


def compare(name, work, *tensors):
    wanted = work(*tensors)
    with Pretended():
        mine = work(*(x.to(NAME) for x in tensors))
    pairs = zip(*((x if isinstance(x, tuple) else (x,)) for x in (mine, wanted)))
    near = 1e-4 if tensors[0].dtype == torch.float32 else 2e-2
    found[name] = all(torch.allclose(one.host, two, atol=near) for one, two in pairs)


def reads(query, key, value, *mask):
    return fused_softmax(query, key, value, mask=mask[0] if mask else None, causal=False, scale=0.5)


for width in (8, 288):
    vectors = drawn(2, 4, 1, width), drawn(2, 2, 9, width), drawn(2, 2, 9, width)
    compare(f"one query of {width}", reads, *vectors)
    narrow = *vectors[:2], vectors[2][..., :-2]
    compare(f"narrower values, {width}", reads, *narrow)
    compare(f"one masked query of {width}", reads, *vectors, drawn(2, 1, 1, 9) > -1)
alone = drawn(2, 4, 1, 8), drawn(2, 4, 9, 8), drawn(2, 4, 9, 8)
compare("one query with keys of its own", reads, *alone)
compare("one masked query with keys of its own", reads, *alone, drawn(2, 4, 1, 9) > -1)
half = [x.bfloat16() for x in alone]
compare("one query in half precision", reads, *half)
compare("one masked query in half precision", reads, *half, drawn(2, 1, 1, 9) > -1)
length = 200
key = torch.nn.functional.normalize(drawn(2, 3, length, 5), dim=-1)
steps = drawn(2, 3, length, 5), key, drawn(2, 3, length, 6)
for units in (1, 5):
    log_decay = -drawn(2, 3, length, units).exp()
    more = log_decay, 0.5 * log_decay.exp() * key, drawn(2, 3, 5, 6)
    compare(f"chunks, {units}", lambda *x: run(Steps(*x[:-1]), x[-1]), *steps, *more)
print(json.dumps(found))
"""
"""What a GPU does in another way than a processor."""


def test_what_a_gpu_does_in_its_own_way_gives_the_same(tmp_path):
    script = tmp_path / "own_ways.py"
    script.write_text(OWN_WAYS)
    found = run_in(script, str(HERE), str(HERE.parents[1]))
    assert len(found) == 12
    assert all(found.values()), found


PLANTED = """
import torch
from device import NAME, Pretended, install, waits

install()
found = {}


def attempt(name, work):
    waits.clear()
    try:
        with Pretended():
            work()
    except (RuntimeError, TypeError) as error:
        found[name] = type(error).__name__
        return
    found[name] = sorted({kind for kind, _ in waits})


def there(*values):
    return torch.full((len(values),), 2.0, device=NAME)


attempt("mixed", lambda: there(1, 2) + torch.ones(2))
attempt("scalar of the host", lambda: there(1, 2) * torch.tensor(3.0))
attempt("item", lambda: there(1).item())
attempt("truth", lambda: bool(there(1) > 0))
attempt("tolist", lambda: there(1, 2).tolist())
attempt("nonzero", lambda: there(1, 2).nonzero())
attempt("boolean", lambda: there(1, 2)[there(1, 2) > 0])
attempt("list", lambda: there(1, 2).new_tensor([1.0, 2.0]))
attempt("constant", lambda: torch.tensor([1.0], device=NAME))
attempt("move", lambda: there(1, 2).cpu())
attempt("numpy", lambda: there(1, 2).numpy())
attempt("generator", lambda: torch.rand(2, device=NAME, generator=torch.Generator()))
attempt("nothing", lambda: (there(1, 2) @ there(1, 2), there(1, 2).cumsum(0), there(1).long() >> 1))
import json
print(json.dumps(found))
"""
"""Written into the tree of the project, because only its own lines are places."""


def test_planted_mistakes_are_found(tmp_path):
    tree = tmp_path / "tests"
    (tree / "accelerator").mkdir(parents=True)
    for name in ("device.py", "recurrent.py"):
        (tree / "accelerator" / name).write_text((HERE / name).read_text())
    (tmp_path / "planted.py").write_text(PLANTED)
    assert run_in(tmp_path / "planted.py", str(tree / "accelerator")) == {
        "mixed": "RuntimeError",
        "scalar of the host": [],
        "item": ["item"],
        "truth": ["item"],
        "tolist": ["tolist"],
        "nonzero": ["nonzero"],
        "boolean": ["boolean index"],
        "list": ["list to device"],
        "constant": ["list to device"],
        "move": ["copy to host"],
        "numpy": "TypeError",
        "generator": "RuntimeError",
        "nothing": [],
    }
