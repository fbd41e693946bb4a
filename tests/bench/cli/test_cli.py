"""The command line: names, exit codes, and what stands on standard output."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bench.cli import main as command_line
from bench.running.presets import PRESETS
from bench.timing.asked_shapes import LETTERS
from bench.timing.shape import AttendShape
from tests.bench.cli.command_lines import SMOKE

ROOT = Path(__file__).parents[3]
TUNED = (
    "--tasks --backbone --preset --device --dtype --jobs --plugin --first-seed --slot --training "
    "--impl"
)
SELECTION = f"{TUNED} --minutes --seeds"
PLACE = "--out --data-dir --keep-models --retry --inline --json --spec --fail-on --trust --keep-old"
OPTIONS = {
    "run": (
        f"--variants {SELECTION} {PLACE} --quality --speed --verify --cell --probes --shape "
        "--baseline --match --until --most-seeds --reuse"
    ),
    "plan": (
        f"--variants --base --axis {SELECTION} --baseline --quality --speed --shape --data-dir "
        "--json"
    ),
    "ablate": f"--base --axis {SELECTION} {PLACE} --probes --reuse",
    "study": (
        f"--variants {TUNED} {PLACE} --trials --trial-seconds --sampler --storage --final-seeds"
    ),
    "calibrate": (
        "task --minutes --preset --keep --retime --jobs --out --data-dir --plugin --inline"
    ),
    "analyze": "folder --probes --examples --jobs --data-dir --plugin --retry --inline",
    "list": "kind --plugin --matrix --json",
    "show": "name --plugin --json",
    "verify": "names --impl --device --dtype --shape --plugin --jobs --json --check",
    "report": "folder --out --publish --export --figures --merge --tasks --pack",
    "reproduce": "run --cells --draw --tolerance --jobs --out --data-dir --plugin --inline",
    "data list": "--data-dir --json",
    "data fetch": "name",
    "env": "--json",
    "new variant": "name --axis --out",
    "new task": "name --use --out",
    "claims list": "folder --plugin --json",
    "claims run": (
        "keys --out --minutes --seeds --device --jobs --plugin --data-dir --retry --inline"
    ),
    "claims report": "folder --out --pack --plugin",
    "gpu": "--variants --minutes --out --plugin --rehearse",
    "demo": "--seeds --training --jobs --out --inline --json",
}
"""Every option that a script may rely on; add here, take nothing away."""


def commands(group=command_line.cli, above=""):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{above}{name} ")
        else:
            yield above + name, command


def test_the_options_are_frozen():
    found = {
        name: {option for p in command.params for option in p.opts[-1:]}
        for name, command in commands()
    }
    assert found == {name: set(options.split()) for name, options in OPTIONS.items()}


@pytest.mark.parametrize("name", ["", "data", *OPTIONS])
def test_every_command_explains_itself(call, name):
    code, out, err = call(*name.split(), "--help")
    assert (code, err) == (0, "")
    assert out.startswith("Usage: python -m bench")
    for option in OPTIONS.get(name, "").split():
        assert option.upper().strip("-") in out.upper()


def test_every_option_has_a_word_of_help_or_speaks_for_itself():
    silent = {
        option.opts[0]
        for _, command in commands()
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    }
    assert silent <= {"--baseline", "--dtype"}


LIGHT = """
import sys
from dataclasses import replace
import bench.cli.main
heavy = {"torch", "pandas", "optuna", "matplotlib", "numpy", "scipy", "datasets", "jinja2", "rich"}
print(sorted(heavy & set(sys.modules)))
"""

COLD = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    names = {"optuna", "matplotlib", "pandas", "datasets", "sklearn", "scipy", "tokenizers",
             "sacrebleu", "click", "rich", "jinja2", "psutil", "tabulate", "safetensors", "pyarrow",
             "tasks", "results", "reports", "beartype"}
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
import torch
import variants
variants.load_all()
slot = variants.build("shaw_rpr", dim=16, heads=2, regime="causal")
x = torch.randn(2, 5, 16)
output, _ = slot.attend(x, None, slot.start(None, x), own=(x, None, None))
assert output.shape == x.shape
"""


def python(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def test_help_loads_nothing_heavy():
    said = python(LIGHT)
    assert said.stdout.strip() == "[]", said.stderr


def test_variants_need_torch_and_jaxtyping_alone():
    said = python(COLD)
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("group", ["", "claims", "data", "new"])
def test_no_help_of_a_command_is_cut(call, group):
    said = call(*group.split(), "--help")[1].partition("Commands:")[2]
    assert len(said.splitlines()) > 2
    assert "..." not in said


def test_the_help_names_every_preset(call):
    assert set(PRESETS) <= set(re.split(r"[^a-z]+", call("run", "--help")[1]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "Usage: python -m bench"),
        ("rum", "did you mean 'run'"),
        ("run --varaints dot", "--variants"),
        ("run --seeds many", "'many' is not a valid integer"),
        ("run --seeds -3", "seeds must be >= 0"),
        ("run --seeds -3", "got -3."),
        ("ablate --base dot --axis score --baseline dot", "No such option '--baseline'"),
        ("ablate --base dot --axis score --impl compiled", "with `bench run --no-quality`"),
        ("run --variants dot --no-speed --impl sdpa", "--impl sdpa is timed, not trained"),
        ("plan --variants dot --impl sdpa", "leave --impl out"),
        ("plan --jobs=-1", "jobs must be >= 0, and 0 is one a core; got -1."),
        ("verify dot --jobs=-1", "jobs must be >= 0"),
        ("run --data-dir nowhere --tasks after_marker", "--data-dir names nowhere, which is not a"),
        ("plan --data-dir nowhere", "--data-dir names nowhere, which is not a"),
        ("ablate --base dot --axis score --data-dir nowhere", "--data-dir names nowhere"),
        ("study --variants dot --tasks recall --data-dir nowhere", "--data-dir names nowhere"),
        ("plan --tasks sst2[train=-5]", "sst2: train must be >= 0, and 0 is all; got -5."),
        ("show after_marker[lenght=3]", "no option of after_marker named 'lenght'; did you mean"),
        ("show transduction[rule=revrese]", "did you mean 'reverse'"),
        ("run --variants dto", "did you mean 'dot'"),
        ("run --variants dot[", "expected a name"),
        ("run --tasks transductoin", "did you mean 'transduction'"),
        ("run --backbone rnn_seq2sec", "did you mean 'rnn_seq2seq'"),
        ("run --preset quik", "did you mean 'quick'"),
        ("run --device gpu", "no device named 'gpu'"),
        ("run --retry faild --tasks after_marker", "did you mean 'failed'"),
        ("run --training adam[stpes=3]", "did you mean 'steps'"),
        ("run --training adam[lr=1e999]", "a number that a float can hold"),
        ("run --cell nonsense", "copy a whole label from `bench plan --json` or from details.md"),
        ("run --spec nowhere.json", "there is no file nowhere.json; give the spec.json of a run"),
        ("run --spec /", "cannot read the spec / (Is a directory); give the spec.json of a run"),
        ("run --no-quality --no-speed", "--no-quality and --no-speed leave nothing to do"),
        ("plan --no-quality --no-speed", "--no-quality and --no-speed leave nothing to do"),
        ("run --shape L=8 --no-speed", "--shape says what is timed; leave out --shape, or --no-s"),
        ("plan --shape L=8 --no-speed", "--shape says what is timed"),
        ("plan --seeds 3 --no-quality", "--seeds says how often variants are trained; leave out"),
        (
            "plan --no-quality --tasks nosuch",
            "--tasks is about training; leave out --tasks, or --n",
        ),
        ("plan --no-quality --backbone nosuch", "leave out --backbone, or --no-quality."),
        ("run --no-quality --slot zz", "leave out --slot, or --no-quality."),
        ("run --no-quality --training foo[x=1]", "leave out --training, or --no-quality."),
        ("run --no-quality --match params", "leave out --match, or --no-quality."),
        ("run --no-quality --probes blur", "leave out --probes, or --no-quality."),
        ("run --no-quality --keep-models", "leave out --keep-models, or --no-quality."),
        ("demo --seeds -1", "seeds must be >= 0, and 0 is the default; got -1."),
        ("claims run C01 --seeds -1", "seeds must be >= 0, and 0 is the default; got -1."),
        ("plan --baseline dot,additive", "because one name stands here, found ',additive'"),
        ("run --variants gqa[heads=0]", "gqa: heads must be at least 1, got 0."),
        ("plan --backbone rnn_seq2seq[hidden=0]", "rnn_seq2seq: hidden must be at least 1, got"),
        ("plan --training adam[steps=1000.0]", "adam: steps must be a whole number, got 1000.0"),
        ("plan --variants additive[width=99999999999]", "width must be at most 2147483647"),
        ("run --fail-on red,none", "--fail-on red,none: none stands alone"),
        ("run --fail-on none,rde", "no ending named 'rde'; did you mean 'red'"),
        ("run --plugin nowhere.py", "no plug-in file nowhere.py"),
        ("run --out /proc/nothing --tasks after_marker", "give another --out"),
        ("ablate", "give --base and --axis"),
        ("ablate --base dot --axis scores", "did you mean 'score'"),
        ("ablate --base dto --axis score", "did you mean 'dot'"),
        ("ablate --base max_pooling --axis score", "; it has head, output and loss."),
        ("study", "give --variants"),
        ("study --variants dot", "name exactly one task"),
        ("study --variants dot --tasks recall,offset", "name exactly one task"),
        ("study --variants dot --tasks recall --sampler rnadom", "did you mean 'random'"),
        ("study --variants dot --tasks recall --minutes 1", "No such option '--minutes'"),
        ("study --variants dot --tasks recall --seeds 1", "No such option '--seeds'"),
        ("study --variants dot --tasks recall --baseline dot", "No such option '--baseline'"),
        ("study --variants dot --tasks recall --trials 0", "trials must be at least 1, got 0."),
        ("study --variants dot --tasks recall --final-seeds=-2", "must be at least 1, got -2."),
        ("study --variants dot --tasks recall --trial-seconds nan", "a number >= 0, and 0 is"),
        ("study --variants dot --tasks recall --trial-seconds=-1", "got -1."),
        ("study --variants dot --tasks recall --trial-seconds inf", "got inf."),
        ("study --variants dot --tasks recall --first-seed 1000", "kept for the winners"),
        ("calibrate", "Missing argument 'TASK'"),
        ("calibrate recal", "did you mean 'recall'"),
        ("calibrate recall --preset quik", "did you mean 'quick'"),
        ("list variantz", "did you mean 'variants'"),
        ("show bahdanaw", "did you mean 'bahdanau'"),
        ("show", "Missing argument 'NAME'"),
        ("verify bahdanaw", "did you mean 'bahdanau'"),
        ("verify dot --dtype float8", "no dtype named 'float8'"),
        ("verify dot --shape L=none", "a size is a whole number above 0, got 'none'"),
        ("run --variants dot --shape modle", "did you mean 'model'"),
        ("report /nowhere/at/all", "no run folder at /nowhere/at/all"),
        ("data fetch multi30", "did you mean 'multi30k'"),
        ("data fetc", "fetc"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_two(
    call, tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments.split())
    assert code == 2
    assert said in err
    assert out == ""
    assert "Traceback" not in err
    if arguments:
        assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.glob("runs/*/ledger/*.jsonl"))
    assert not list(tmp_path.glob("runs/study*")), "a refused study leaves no folder"


@pytest.mark.parametrize(
    ("option", "otherwise"), [("--backbone", "else the task's own."), ("--slot", "else the first.")]
)
def test_the_help_of_a_place_says_that_a_default_task_names_it_first(call, option, otherwise):
    text = " ".join(call("run", "--help")[1].split())
    first = text.partition(f" {option} TEXT ")[2].partition(otherwise)[0]
    assert "the variant's default task;" in first[-40:]


@pytest.mark.parametrize(
    ("cores", "jobs", "said"),
    [
        (2, 33, "--jobs 33 is more than 16 for each of 2 cores"),
        (1, 17, "--jobs 17 is more than 16 for the one core"),
    ],
)
def test_more_processes_than_the_cores_can_serve_are_refused(call, monkeypatch, cores, jobs, said):
    """The plan divided its time by them."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    code, out, err = call("plan", "--preset", "smoke", "--variants", "dot", "--jobs", jobs)
    assert (code, out) == (2, "")
    assert said in err
    assert call("plan", "--preset", "smoke", "--variants", "dot", "--jobs", jobs - 1)[0] == 0


def test_the_help_of_a_study_says_that_it_needs_one_task(call):
    said = " ".join(call("study", "--help")[1].split())
    assert "The one task to tune on, as a selector. Needed." in said
    assert "Default: each variant's default task." not in said


@pytest.mark.parametrize("option", ["read=first", "shuffle=true", "beyond=12,read=second"])
def test_a_task_with_less_of_its_input_is_not_calibrated(call, option):
    """Plans take what was chosen for the whole, so nothing would ever use the choice."""
    code, out, err = call("calibrate", f"two_source[{option}]")
    assert (code, out) == (2, "")
    assert f"calibrate: two_source[{option}] has less of its input, and plans take" in err
    assert err.rstrip().endswith(f"calibrate two_source{'[beyond=12]' * ('12' in option)}.")


def test_a_preset_that_ranks_nothing_is_not_calibrated(call):
    """Its choice would change later runs, and say nothing."""
    code, _, err = call("calibrate", "recall", "--preset", "smoke")
    assert code == 2
    assert "the preset smoke ranks nothing" in err


@pytest.mark.slow
def test_the_command_line_in_a_process_of_its_own(bench, tmp_path):
    said = bench("run", "--variants", "dot", *SMOKE[:-1], "--out", tmp_path / "run", "--json")
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["counts"] == {"ok": 2}
    assert "[2/2] ok" in said.stderr
    wrong = bench("rum")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("no command named 'rum'; did you mean 'run'?")
    assert len(wrong.stderr.splitlines()) == 1


def test_the_help_of_shapes_says_what_letters_that_are_left_out_are(call):
    shape = AttendShape()
    sizes = ",".join(f"{letter}={getattr(shape, name)}" for letter, name in LETTERS.items())
    _, out, _ = call("run", "--help")
    assert f"Defaults of single letters: {sizes}." in " ".join(out.split())
