"""Commands that only read declarations run without torch, and say the same as with it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cli import light_start

ROOT = Path(__file__).parents[3]

LIGHT = """
import sys
sys.argv = ["bench", *sys.argv[1:]]
from bench.cli import light_start
def refuse():
    print("STARTED OVER", file=sys.stderr)
    sys.exit(99)
light_start.start_over = refuse
from bench.__main__ import program
try:
    program()
finally:
    real = [n for n in ("torch", "numpy", "pandas", "sklearn", "matplotlib", "datasets", "optuna")
            if getattr(sys.modules.get(n), "__file__", None)]
    print("real:", *real, file=sys.stderr)
"""
"""A command in a process of its own that may not start over."""

NAMES = (
    "list",
    "list tasks",
    "list probes",
    "list presets",
    "list metrics",
    "list score",
    "list --matrix",
    "show bahdanau",
    "show additive[width=9]",
    "show translation",
    "show C01",
    "plan",
    "plan --json",
    "plan --preset smoke --no-speed",
    "plan --preset families",
    "data list",
)
WRONG = (
    "rum",
    "list variantz",
    "show quick",
    "show sequence_accuracy",
    "reproduce nowhere",
    "reproduce tests/conftest.parquet",
    "analyze /nowhere",
    "calibrate transduction --preset smok",
    "demo --out tests",
    "show bahdanaw",
    "plan --variants dto",
    "run --variants dto",
    "run --preset quik",
    "run --tasks transductoin",
    "ablate --base dto --axis score",
    "ablate --base dot --axis scores",
    "study --variants dot --tasks recal",
    "study --variants dot --tasks recall --sampler rnadom",
    "verify bahdanaw",
    "analyze nowhere --probes blurr",
    "data fetch multi30",
)


def in_a_process(code, *arguments, **settings):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    return subprocess.run(
        [sys.executable, *code, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("asked", ["list", "show bahdanau", "show C01", "plan", *WRONG])
def test_a_light_command_imports_no_torch(asked):
    said = in_a_process(["-c", LIGHT], *asked.split())
    assert said.returncode == (2 if asked in WRONG else 0), said.stderr
    assert "real:\n" in said.stderr


@pytest.mark.slow
@pytest.mark.parametrize("asked", NAMES)
def test_a_light_command_says_what_it_says_with_torch(asked):
    light = in_a_process(["-c", LIGHT], *asked.split())
    real = in_a_process(["-m", "bench"], *asked.split(), **{light_start.STARTED_OVER: "yes"})
    assert light.stdout == real.stdout
    assert (light.returncode, real.returncode) == (0, 0)


ALL = """
import json, sys
from bench.cli import light_start
if sys.argv[1] == "light":
    sys.meta_path.insert(0, light_start.StandIns())
from bench.api import registry
from bench.api.axes import AXES
from bench.cli.registered import load_registry
from bench.cli.show import showing
load_registry(())
names = sorted({name for axis in AXES for name in registry.registrations(axis)})
print(json.dumps({name: showing(name, (), as_json=True) for name in names}))
"""


@pytest.mark.slow
def test_every_name_is_shown_alike_with_and_without_torch():
    light, real = (in_a_process(["-c", ALL], kind) for kind in ("light", "real"))
    assert light.returncode == 0, light.stderr
    assert json.loads(light.stdout) == json.loads(real.stdout)
    assert len(json.loads(light.stdout)) > 200


def test_a_command_that_computes_starts_over_with_the_real_torch():
    said = in_a_process(["-m", "bench"], "plan", "--variants", "dot", "--device", "cuda")
    import torch

    if torch.cuda.is_available():
        assert said.returncode == 0
    else:
        assert (said.returncode, said.stdout) == (2, "")
        assert said.stderr.endswith("this machine has no CUDA device; choose --device cpu.\n")


def test_a_plug_in_never_sees_a_stand_in(tmp_path):
    plugin = tmp_path / "looks.py"
    plugin.write_text("import torch\nassert torch.zeros(2).sum() == 0\n")
    said = in_a_process(["-m", "bench"], "list", "presets", "--plugin", str(plugin))
    assert said.returncode == 0, said.stderr


def in_a_function(do):
    """Call it from code in a function: there a stand-in may not be used as a value."""
    return do()


@pytest.mark.parametrize(
    "use",
    [
        lambda torch: torch.zeros(2),
        lambda torch: torch.nn.Linear(2, 2),
        lambda torch: bool(torch.float32),
        lambda torch: f"{torch.float32}",
        lambda torch: 2 * torch.pi,
        lambda torch: [*torch.ops],
    ],
)
def test_using_a_stand_in_as_a_value_is_never_silent(use):
    torch = light_start.StandIn("torch")
    with pytest.raises(light_start.NeedsRealPackages):
        in_a_function(lambda: use(torch))


def test_a_stand_in_is_inherited_from_named_and_compared_by_identity():
    torch = light_start.StandIn("torch")

    class Layer(torch.nn.Module):
        size: torch.Tensor | None = None

    assert issubclass(Layer, torch.nn.Module)
    assert torch.float32 == torch.float32
    assert torch.float32 != torch.float64
    assert {torch.float32: 4}[torch.float32] == 4
    with pytest.raises(AttributeError):
        torch.__version__  # noqa: B018


def test_a_package_that_is_not_installed_gets_no_stand_in():
    finder = light_start.StandIns()
    assert finder.find_spec("no_such_package_anywhere", None) is None
    assert finder.find_spec("json", None) is None
    assert finder.find_spec("variants", None) is None
    assert finder.find_spec("torch", None) is not None
