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


def undeclared(found):
    sys.path.insert(0, str(HERE))
    try:
        from declared import DECLARED
    finally:
        sys.path.remove(str(HERE))
    places = {(kind, place) for kind, place, _ in found["waits"]}
    return places - set(DECLARED), set(DECLARED) - places


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
    done = subprocess.run(
        [sys.executable, str(tmp_path / "planted.py")],
        env={**os.environ, "PYTHONPATH": str(tree / "accelerator")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
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
