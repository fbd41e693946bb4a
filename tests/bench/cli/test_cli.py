"""The command line: names, exit codes, and what stands on standard output."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
import torch

from bench.api import registry
from bench.api.axes import AXES
from bench.api.cell import cell_from_dict, parse_label
from bench.cli import main as command_line
from bench.conformance import certify
from bench.running.plan import plan
from bench.running.presets import PRESETS
from bench.running.request import Request
from reports.folder import read_folder
from results.pack import Pack
from results.store import Store

ROOT = Path(__file__).parents[3]
SELECTION = (
    "--tasks --backbone --preset --minutes --seeds --device --dtype --jobs --baseline --plugin "
    "--first-seed --slot --training --impl"
)
PLACE = "--out --data-dir --keep-models --retry --inline --json --spec --fail-on --trust --keep-old"
OPTIONS = {
    "run": (
        f"--variants {SELECTION} {PLACE} --quality --speed --verify --cell --probes --shape "
        "--match --until --most-seeds --reuse"
    ),
    "plan": f"--variants {SELECTION} --quality --speed --shape --data-dir --json",
    "ablate": f"--base --axis {SELECTION} {PLACE} --probes --reuse",
    "study": (
        f"--variants {SELECTION} {PLACE} --trials --trial-seconds --sampler --storage --final-seeds"
    ),
    "calibrate": "task --minutes --preset --keep --jobs --out --data-dir --plugin --inline",
    "analyze": "folder --probes --examples --jobs --data-dir --plugin --inline",
    "list": "kind --plugin --matrix --json",
    "show": "name --plugin --json",
    "verify": "names --impl --device --dtype --shape --plugin --jobs --json --check",
    "report": "folder --out --publish --export --figures --merge --tasks --pack",
    "reproduce": "run --cells --draw --tolerance --jobs --out --data-dir --plugin --inline",
    "data list": "--data-dir",
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


@pytest.fixture
def call(monkeypatch, capsys, fresh_registry):
    """`call(*arguments)` -> (exit code, standard output, standard error), in this process."""
    handler = signal.getsignal(signal.SIGTERM)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["bench", *map(str, arguments)])
        capsys.readouterr()
        try:
            command_line.main()
            code = 0
        except SystemExit as left:
            code = left.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    yield run
    signal.signal(signal.SIGTERM, handler)


SMOKE = ["--preset", "smoke", "--tasks", "after_marker", "--no-speed", "--no-verify", "--inline"]


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


@pytest.mark.parametrize("kind", ["variants", "tasks", "backbones", "presets", "metrics", *AXES])
def test_everything_can_be_listed(call, kind):
    code, out, err = call("list", kind)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) > 2
    code, out, _ = call("list", kind, "--json")
    rows = json.loads(out)
    assert rows
    assert all(set(row) == set(rows[0]) for row in rows)


def test_the_matrix_says_where_each_variant_stands_and_why_not_elsewhere(call):
    found = json.loads(call("list", "--matrix", "--json")[1])
    assert list(found) == list(registry.listed_variants())
    assert found["shaw_rpr"]["causal"] == ""
    assert "two" in found["shaw_rpr"]["cross"]
    assert "no attention" in found["none_state"]["pool"]
    code, out, _ = call("list", "--matrix")
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("shaw_rpr"))
    number = line.split("no (")[1].split(")")[0]
    assert f"\n{number}: {found['shaw_rpr']['cross']}\n" in out
    code, _, err = call("list", "tasks", "--matrix")
    assert code == 2
    assert "about variants" in err


def test_the_list_of_variants_has_every_paper_and_every_control_once(call):
    rows = json.loads(call("list", "--json")[1])
    assert [row["variant"] for row in rows] == list(registry.listed_variants())
    for row in rows:
        assert row["default_task"]
        control = registry.listed_variants()[row["variant"]].control
        assert row["what"].count("(control)") == (control is not None)


@pytest.mark.parametrize(
    "name", ["bahdanau", "additive", "linear_attention", "translation", "luong"]
)
def test_a_name_is_shown_with_paper_options_and_file(call, name):
    code, out, _ = call("show", name)
    assert code == 0
    for capability in json.loads(call("show", name, "--json")[1]):
        assert capability["name"] == name
        assert Path(capability["file"]).is_file()
        assert all(
            address in out for address in re.findall(r"https?://[^, ]+", capability["paper"])
        )
        for option in capability["options"]:
            assert f"{option['option']} = {option['default']}" in out


def test_a_search_range_is_shown(call):
    shown = call("show", "additive")[1]
    assert "a study tries 8 to 1024 on a log scale" in shown
    assert "Range(" not in shown
    assert "a study tries one of gru, subtract" in call("show", "mi_coverage")[1]


def test_title_and_citation_are_shown_once(call):
    shown = call("show", "additive")[1]
    assert shown.count("https://arxiv.org/abs/1409.0473") == 1
    assert shown.count("Additive score") == 1
    # a title that says more than the page stays
    assert "exp(e / t) / sum exp(e / t)" in call("show", "softmax")[1]


def test_a_name_that_is_like_no_other_gets_no_hint(call):
    assert "did you mean" not in call("show", "nothing")[2]
    assert "did you mean 'additive'?" in call("show", "adittive")[2]


def test_a_plan_begins_with_what_its_preset_is(call):
    first = call("plan", "--preset", "smoke", "--variants", "dot", "--no-speed")[1].splitlines()[0]
    assert first == f"preset smoke: {PRESETS['smoke'].summary}"


@pytest.mark.parametrize("group", ["", "claims", "data", "new"])
def test_no_help_of_a_command_is_cut(call, group):
    said = call(*group.split(), "--help")[1].partition("Commands:")[2]
    assert len(said.splitlines()) > 2
    assert "..." not in said


def test_an_option_is_shown_with_what_it_means_and_what_it_may_be(call):
    shown = call("show", "transduction")[1]
    assert "rule = reverse (copy | reverse | swap | dict | svo | fert)" in shown
    assert "Longest source in training (symbols)." in shown
    for option in json.loads(call("show", "transduction", "--json")[1])[0]["options"]:
        assert option["meaning"], option["option"]


def test_options_of_training_are_shown(call):
    assert "Steps of linear warm-up." in call("show", "adam")[1]
    (shown,) = json.loads(call("show", "adam[lr=0.01]", "--json")[1])
    assert "lr=0.01" in shown["selector"]
    assert call("show", "adam[warmpu=3]")[2].startswith("no option of adam")


def test_options_choose_among_parts_of_one_name(call):
    (shown,) = json.loads(call("show", "streaming[window=28]", "--json")[1])
    assert shown["axis"] == "mask"
    code, _, error = call("show", "streaming[windw=28]")
    assert code == 2
    assert "did you mean 'window'" in error


def test_a_plan_is_json_alone(call):
    code, out, err = call("plan", "--preset", "smoke", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["expected_s"] > 0
    wanted = plan(Request(preset="smoke", jobs=8))
    assert {cell["id"] for cell in found["cells"]} == {cell.id for cell in wanted.cells}
    for cell in found["cells"]:
        assert parse_label(cell["label"]).id == cell["id"]


def test_a_plan_says_what_it_leaves_out(call):
    code, out, _ = call("plan", "--jobs", 1)
    assert code == 0
    assert "left out: quality " in out
    assert "; python -m bench run --cell 'quality " in out
    *_, counted = said = [line for line in out.splitlines() if "left out" in line]
    assert counted.endswith("left out.")
    assert len(said) < 12, "what has one reason is told once"
    left = len(json.loads(call("plan", "--jobs", 1, "--json")[1])["left_out"])
    more = [line for line in said if line.endswith("more for this reason; --json lists them all")]
    assert more
    assert sum(int(line.split()[2]) for line in more) == left - (len(said) - len(more) - 1)


@pytest.mark.parametrize(
    ("words", "jobs"),
    [
        ([], 3),
        (["--device", "cuda"], 1),
        (["--jobs", "0", "--device", "cuda"], 1),
        (["--jobs", "2", "--device", "cuda"], 2),
    ],
)
def test_one_training_at_a_time_runs_on_a_gpu_unless_more_are_asked_for(
    call, monkeypatch, words, jobs
):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    code, out, _ = call("plan", "--preset", "smoke", "--variants", "dot", *words)
    assert code == 0
    assert f"with {jobs} jobs" in out


def test_a_plan_has_a_line_for_each_task_and_the_labels_are_json(call):
    asked = ["plan", "--variants", "dot,general", "--preset", "smoke", "--tasks", "recall,offset"]
    code, out, _ = call(*asked, "--no-speed", "--seeds", 2)
    assert code == 0
    lines = {line.split()[0]: line.split()[1:4] for line in out.splitlines() if line}
    # two variants and the baseline, on two seeds
    assert (lines["recall"], lines["offset"]) == (["3", "2", "6"], ["3", "2", "6"])
    assert "quality recall" not in out
    assert out.splitlines()[-1].startswith("12 training and 0 speed cells, about ")
    found = json.loads(call(*asked, "--no-speed", "--seeds", 2, "--json")[1])
    assert len(found["cells"]) == 12
    assert found["no_data"] == {}


def test_a_device_that_is_not_here_is_refused_before_anything_runs(call, tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for asked in (
        ["run", "--variants", "dot", *SMOKE],
        ["plan", "--variants", "dot", "--preset", "smoke"],
        ["study", "--variants", "dot", "--tasks", "recall"],
        ["ablate", "--base", "dot", "--axis", "score"],
    ):
        place = [] if asked[0] == "plan" else ["--out", tmp_path / "run"]
        code, out, err = call(*asked, "--device", "cuda", *place)
        assert (code, out) == (2, "")
        assert err.endswith("this machine has no CUDA device; choose --device cpu.\n")
    assert not (tmp_path / "run").exists()


def report_text(folder):
    """The short Markdown page and the details."""
    pages = (folder / "report.md", folder / "details.md")
    return "\n".join(page.read_text(encoding="utf-8") for page in pages if page.is_file())


def test_a_name_with_options_is_shown_written_out(call):
    (capability,) = json.loads(call("show", "additive[width=9]", "--json")[1])
    assert "score=additive[width=9]" in capability["selector"]
    assert call("show", "nosuch")[2].startswith("no variant, task or component named")
    assert "did you mean" not in call("show", "nosuch")[2]


def test_the_help_names_every_preset(call):
    assert set(PRESETS) <= set(re.split(r"[^a-z]+", call("run", "--help")[1]))


def test_the_environment_is_json_alone(call):
    code, out, err = call("env", "--json")
    assert (code, err) == (0, "")
    assert {"cpu", "torch", "threads"} <= {*json.loads(out), *json.loads(out)["packages"]}
    assert "python" in call("env")[1]


def test_a_certificate_is_printed_and_is_json_alone(call):
    code, out, err = call("verify", "uniform", "--json", "--jobs", 1)
    assert (code, err) == (0, "")
    (found,) = json.loads(out).values()
    assert found["green"]
    assert {"passed", "skipped", "failed", "expected"} <= set(found)
    code, out, _ = call("verify", "uniform", "--jobs", 1)
    assert code == 0
    counted = next(line for line in out.splitlines() if line.startswith("uniform"))
    assert ["uniform", "green", str(len(found["passed"]))] == counted.split()[:3]
    assert all(f"\n{check}: " in f"\n{out}" for check in found["passed"])
    for check, why in found["skipped"].items():
        assert f"{check} skipped: {why}" in out


def test_single_checks_are_run_and_a_misspelled_one_is_refused_before_any(call):
    asked = ["--check", "splits", "--check", "shapes", "--json", "--jobs", 1]
    code, out, err = call("verify", "uniform", *asked)
    assert (code, err) == (0, "")
    (found,) = json.loads(out).values()
    assert found["passed"] == found["expected"] == ["shapes", "splits"]
    code, out, err = call("verify", "uniform", "--check", "split")
    assert (code, out) == (2, "")
    assert "no check named 'split'; did you mean 'splits'?" in err
    code, _, err = call("verify", "uniform", "--check", "splits", "--dtype", "bfloat16")
    assert code == 2
    assert "leave out --device, --dtype and --shape" in err


def test_a_device_that_is_not_there_is_refused_before_anything_is_verified(call, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, out, err = call("verify", "uniform", "--device", "cuda")
    assert (code, out) == (2, "")
    assert err == ("this machine has no CUDA device; choose --device cpu.\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "this machine has no CUDA device; add --rehearse to do all of it on the processor."),
        (["--rehearse", "--minutes", "0"], "minutes must be above 0, got 0.0."),
        (["--rehearse", "--variants", "bahdanaw"], "did you mean 'bahdanau'"),
    ],
)
def test_what_cannot_be_measured_on_a_gpu_is_refused_in_one_sentence(
    call, monkeypatch, tmp_path, words, sentence
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.chdir(tmp_path)
    code, out, err = call("gpu", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_a_rehearsal_does_every_piece_and_goes_on_where_it_stopped(tmp_path):
    command = [sys.executable, "-m", "bench", "gpu", "--rehearse", "--variants", "scaled_dot"]
    command += ["--out", str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BENCH_CACHE_DIR": str(tmp_path)}

    def run(minutes):
        words = [*command, "--minutes", str(minutes)]
        return subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    first = run(0.05)
    assert first.returncode == 0, first.stderr
    assert "The same command goes on with the rest." in first.stdout
    whole = run(9)
    assert whole.returncode == 0, whole.stderr
    done = re.search(r"(\d+) of (\d+) pieces are done", whole.stdout)
    assert done[1] == done[2]
    text = (tmp_path / "run" / "gpu.md").read_text(encoding="utf-8")
    assert text.rstrip().endswith("Nothing yet.")  # under what is missing
    compiled = [line for line in text.splitlines() if "| compiled |" in line]
    assert len(compiled) == 2  # torch.compile ran, in a process without the hook of the tests
    assert "failed" not in text
    rows = Store(tmp_path / "run").records()
    assert {row.status for row in rows} == {"ok"}
    assert {row.cell["kind"] for row in rows} == {"speed", "quality"}
    layers = {(c["dtype"], c["impl"]) for c in (r.cell for r in rows) if "place=slot" in c["task"]}
    assert layers == {("bfloat16", "auto"), ("float32", "eager")}
    (entry,) = json.loads((tmp_path / "run" / "certificates.json").read_text()).values()
    assert "timed_shape_on_cpu_bfloat16" in entry["passed"]


@pytest.mark.slow
def test_a_certificate_in_another_format_and_at_a_shape_has_checks_of_its_own(call):
    asked = ["--dtype", "bfloat16", "--shape", "L=40", "--jobs", 1, "--json"]
    code, out, _ = call("verify", "uniform", *asked)
    assert code == 0
    (found,) = json.loads(out).values()
    assert {"answers_on_cpu_bfloat16", "timed_shape_on_cpu_bfloat16"} <= set(found["passed"])
    assert {"oracle", "causality"} <= set(found["passed"])


def test_data_sets_are_listed_with_where_they_would_come_from(call, tmp_path):
    code, out, _ = call("data", "list")
    assert code == 0
    assert "multi30k" in out
    assert "not here; python -m bench data fetch multi30k" in out
    (tmp_path / "multi30k").mkdir()
    assert str(tmp_path / "multi30k") in call("data", "list", "--data-dir", tmp_path)[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "Usage: python -m bench"),
        ("rum", "did you mean 'run'"),
        ("run --varaints dot", "--variants"),
        ("run --seeds many", "'many' is not a valid integer"),
        ("run --seeds -3", "seeds must be >= 0"),
        ("run --seeds -3", "got -3."),
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
        ("run --cell nonsense", "copy a whole label"),
        ("run --spec nowhere.json", "give the spec.json of a run folder"),
        ("run --plugin nowhere.py", "no plug-in file nowhere.py"),
        ("run --out /proc/nothing --tasks after_marker", "give another --out"),
        ("ablate", "give --base and --axis"),
        ("ablate --base dot --axis scores", "did you mean 'score'"),
        ("ablate --base dto --axis score", "did you mean 'dot'"),
        ("ablate --base linear_attention --axis score", "replaces the whole chain"),
        ("study", "give --variants"),
        ("study --variants dot", "name exactly one task"),
        ("study --variants dot --tasks recall,offset", "name exactly one task"),
        ("study --variants dot --tasks recall --sampler rnadom", "did you mean 'random'"),
        ("study --variants dot --tasks recall --trials 0", "must be at least 1"),
        ("study --variants dot --tasks recall --first-seed 1000", "kept for the winners"),
        ("calibrate", "Missing argument 'TASK'"),
        ("calibrate recal", "did you mean 'recall'"),
        ("calibrate sst2", "sst2 declares no settings to choose from"),
        ("calibrate recall --preset quik", "did you mean 'quick'"),
        ("list variant", "did you mean 'variants'"),
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


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small finished run that tests may copy."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    arguments = ["run", "--variants", "dot", *SMOKE, "--out", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["bench", *arguments])
        with pytest.raises(SystemExit) as left:
            command_line.main()
    assert left.value.code == 0
    return folder


def test_a_run_ends_with_the_table_and_the_path_of_the_report(call, finished):
    code, out, err = call("run", "--variants", "dot", *SMOKE, "--out", finished)
    assert code == 0
    assert "after_marker: along_training_token_accuracy" in out
    assert f"report: {finished / 'report.html'}" in out
    assert "2 were finished before" in out
    assert "2 training cells and 0 speed cells" in err


def test_a_run_with_json_prints_json_alone(call, finished):
    code, out, _ = call("run", "--variants", "dot", *SMOKE, "--out", finished, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["counts"], found["already_finished"]) == ({}, 2)
    assert len(found["table"]) == 2


def test_a_spec_file_finds_everything_finished(call, finished):
    code, out, _ = call("run", "--spec", finished / "spec.json", "--inline", "--json")
    found = json.loads(out)
    assert (code, found["counts"], found["already_finished"]) == (0, {}, 2)
    assert found["folder"] == str(finished)


def test_a_spec_file_reruns_everything_elsewhere(call, finished, tmp_path):
    there = tmp_path / "again"
    code, out, _ = call(
        "run", "--spec", finished / "spec.json", "--out", there, "--inline", "--json"
    )
    assert (code, json.loads(out)["counts"]) == (0, {"ok": 2})
    assert {r.id for r in Store(there).records()} == {r.id for r in Store(finished).records()}
    assert json.loads((there / "spec.json").read_text()) == json.loads(
        (finished / "spec.json").read_text()
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("run --spec {spec} --seeds 4", "leave out the option for 'seeds'"),
        ("study --spec {spec}", "run: python -m bench run --spec"),
        ("run --spec {odd}", "did you mean 'variants'"),
        ("run --spec {list}", "is no spec"),
        (
            "run --spec {words}",
            "seeds='three', and the default is 0; give a value of the same type",
        ),
    ],
)
def test_a_spec_that_does_not_fit_is_one_sentence(call, finished, tmp_path, arguments, said):
    (tmp_path / "odd.json").write_text('{"varaints": "dot"}')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "words.json").write_text('{"seeds": "three"}')
    paths = {
        "spec": finished / "spec.json",
        "odd": tmp_path / "odd.json",
        "list": tmp_path / "list.json",
        "words": tmp_path / "words.json",
    }
    code, out, err = call(*arguments.format(**paths).split())
    assert (code, out) == (2, "")
    assert said in err


def values(folder):
    return {
        record.id: [
            (row.metric, row.axis, row.x if row.axis != "cpu_s" else None, row.split, row.value)
            for row in record.rows
            if not row.metric.endswith(("_ms", "_s"))
        ]
        for record in Store(folder).records()
    }


def test_one_cell_is_reproduced_from_its_label(call, finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {r.id: r for r in Store(finished).records()}
    for id_, record in before.items():
        label = next(
            c
            for c in json.loads((finished / "plan.json").read_text())["cells"]
            if parse_label(c).id == id_
        )
        code, _, _ = call("run", "--cell", label, "--no-verify", "--inline")
        assert code == 0
        assert record.status == "ok"
    assert values(tmp_path / "runs" / "cells") == values(finished)


def test_a_label_of_other_code_is_refused(call, finished):
    label = json.loads((finished / "plan.json").read_text())["cells"][0]
    code, _, err = call("run", "--cell", replace(parse_label(label), revisions="dot:7").label)
    assert code == 2
    assert "this label is of another revision of the code" in err


def test_refused_cells_alone_are_no_failure(call, tmp_path):
    asked = ["run", "--variants", "bahdanau", *SMOKE, "--out", tmp_path / "run"]
    code, out, _ = call(*asked)
    assert code == 0
    assert "1 ok, 1 refused" in out
    (record,) = [r for r in Store(tmp_path / "run").records() if r.status == "refused"]
    assert out.count(record.detail) == 1
    assert f"refused, 1 cell: {record.detail}" in out
    code, out, _ = call(*asked)
    assert "2 were finished before; 1 refused before; --retry refused asks them again" in out
    assert f"refused, 1 cell: {record.detail}" in out
    (reason,) = json.loads(call(*asked, "--json")[1])["reasons"]
    assert reason == {"status": "refused", "reason": record.detail, "cells": 1}


def test_what_ends_with_exit_code_one_can_be_chosen(call, tmp_path, trouble_plugin):
    refused = ["run", "--variants", "bahdanau", *SMOKE, "--out", tmp_path / "refused"]
    code, _, err = call(*refused, "--fail-on", "red,refused")
    assert code == 1
    assert "1 cell refused; the reasons are above." in err
    failed = ["run", "--variants", "raiser", *SMOKE, "--plugin", trouble_plugin]
    failed += ["--out", tmp_path / "failed"]
    assert call(*failed, "--fail-on", "none")[0] == 0
    code, _, err = call(*failed)
    assert code == 1
    log = tmp_path / "failed" / "log.txt"
    assert f"1 cell failed; {log} has the tracebacks, and --retry failed runs" in err
    code, _, err = call(*failed, "--fail-on", "faild")
    assert code == 2
    assert "no ending named 'faild'; did you mean 'failed'?" in err


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (["--variants", "all[x=1]"], "all takes no options, got all[x=1]"),
        (["--minutes", "nan"], "minutes must be a number >= 0, got nan"),
        (["--minutes", "inf"], "minutes must be a number >= 0, got inf"),
        (["--first-seed", "-1"], "the first seed must be >= 0, got -1"),
        (["--training", "adam[warmup=-1]"], "adam: warmup must be >= 0, got -1"),
        (["--training", "adam[weight_decay=-0.1]"], "adam: weight_decay must be >= 0, got -0.1"),
        (["--training", "adam[cpu_seconds=-2.0]"], "adam: cpu_seconds must be >= 0, got -2.0"),
        (["--training", "adam[lr=1e999]"], "expected a number that a float can hold"),
    ],
)
def test_values_without_meaning_are_refused(call, typed, sentence):
    code, _, err = call("plan", *typed)
    assert code == 2
    assert sentence in err


def test_a_failed_cell_is_exit_code_one_also_when_it_failed_before(call, tmp_path, trouble_plugin):
    asked = ["run", "--variants", "raiser", *SMOKE, "--plugin", trouble_plugin]
    asked += ["--out", tmp_path / "run"]
    code, out, _ = call(*asked)
    assert code == 1
    assert "1 failed, 1 ok" in out
    assert "the score gave up" in (tmp_path / "run" / "log.txt").read_text()
    assert call(*asked)[0] == 1
    code, out, _ = call(*asked, "--retry", "failed")
    assert code == 1
    assert "1 failed, 1 were finished before" in out
    assert max(r.attempt for r in Store(tmp_path / "run").records()) == 2


def test_data_that_are_not_here_are_refused_rows_with_the_command_that_fetches_them(call, tmp_path):
    asked = ["run", "--variants", "luong_global,bahdanau", "--tasks", "translation"]
    asked += ["--preset", "smoke", "--no-speed", "--no-verify", "--inline"]
    code, out, err = call(*asked, "--out", tmp_path / "run")
    assert code == 1
    assert "3 cells refused; the reasons are above." in err
    assert "cells: 3 refused" in out
    for record in Store(tmp_path / "run").records():
        assert record.status == "refused"
        assert "python -m bench data fetch multi30k" in record.detail
    assert "python -m bench data fetch multi30k" in report_text(tmp_path / "run")


def test_a_report_is_published_and_exported(call, finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    code, out, _ = call("report", folder, "--publish", "--export")
    assert code == 0
    written = [Path(line.split(": ")[1]) for line in out.splitlines()]
    assert {path.suffix for path in written} == {".html", ".md", ".csv", ".tex"}
    assert all(path.is_file() for path in written)
    other = tmp_path / "elsewhere"
    assert call("report", folder, "--out", other)[0] == 0
    assert (other / "report.html").is_file()


def test_commands_into_one_folder_keep_what_the_others_wrote(call, tmp_path):
    folder = tmp_path / "run"
    for name in ("dot", "general"):
        assert call("run", "--variants", name, *SMOKE, "--out", folder)[0] == 0
    spec = json.loads((folder / "spec.json").read_text())
    assert spec["variants"] == "general"
    assert [one["variants"] for one in spec["earlier"]] == ["dot"]
    plan = json.loads((folder / "plan.json").read_text())
    planned = " ".join(plan["cells"])
    assert "dot" in planned
    assert "general" in planned
    assert call("run", "--spec", folder / "spec.json", "--inline", "--json")[0] == 0


def test_a_run_goes_on_from_a_pack_and_trains_what_is_missing_alone(call, finished, tmp_path):
    pack, folder = tmp_path / "published.parquet", tmp_path / "run"
    assert call("report", finished, "--out", tmp_path / "report", "--pack", pack)[0] == 0
    before = {record.id: record for record in Store(finished).records()}
    asked = ("run", "--variants", "dot,general", *SMOKE, "--out", folder, "--reuse")
    code, _, err = call(*asked, tmp_path / "nowhere.parquet")
    assert code == 2
    assert "no pack at" in err
    assert not folder.exists()
    code, _, err = call(*asked, pack)
    assert code == 0
    assert f"{len(before)} finished cells from {pack}." in err
    after = {record.id: record for record in Store(folder).records()}
    assert {id_: after[id_] for id_ in before} == before
    new = {
        record.cell["variant"].partition("[")[0]
        for id_, record in after.items()
        if id_ not in before
    }
    assert new == {"general"}


def test_a_preset_that_ranks_nothing_is_not_calibrated(call):
    """Its choice would change later runs, and say nothing."""
    code, _, err = call("calibrate", "recall", "--preset", "smoke")
    assert code == 2
    assert "the preset smoke ranks nothing" in err


def test_a_plan_says_what_will_be_refused(call):
    words = ["plan", "--variants", "mocha,dot", "--tasks", "recall", "--preset", "smoke"]
    code, out, _ = call(*words)
    assert code == 0
    assert "will be refused: mocha on recall: mocha: a monotonic walk needs the whole" in out
    assert "3 training (1 of them refused)" in out
    refused = json.loads(call(*words, "--json")[1])["refused"]
    assert [label.split(" @ ")[2].split()[0] for label in refused] == ["mocha"]


def test_runs_are_merged_into_a_report(call, finished, tmp_path):
    folder = tmp_path / "run"
    assert call("run", "--variants", "general", *SMOKE, "--out", folder)[0] == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, _, err = call("report", folder, "--merge", finished)
    assert code == 2
    assert "--merge writes a run folder of its own; give --out" in err
    assert call("report", folder, "--merge", finished, "--out", tmp_path / "both")[0] == 0
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    folder = tmp_path / "both"
    text = (folder / "report.md").read_text()
    assert "The commands below compute everything again, in this order." in text
    for name in ("general", "dot"):
        assert f"python -m bench run --variants {name} " in text
    names = {r.cell["variant"].partition("[")[0] for r in Store(folder).records()}
    assert names == {"general", "scaled_dot", "dot"}
    assert "dot" in (folder / "report.md").read_text()


def test_cells_that_may_be_ranked_do_not_go_beside_cells_that_may_not(call, finished):
    words = ["run", "--variants", "dot", "--tasks", "after_marker", "--preset", "demo"]
    before = (finished / "catalog.json").read_text()
    code, _, said = call(*words, "--no-speed", "--no-verify", "--inline", "--out", finished)
    assert code == 2
    assert "is a run of the preset smoke, and cells of smoke are too small to be ranked" in said
    assert (finished / "catalog.json").read_text() == before


def test_cells_of_a_run_are_trained_again_and_compared(call, finished, tmp_path):
    words = ["reproduce", finished, "--cells", 1, "--inline", "--out", tmp_path / "again"]
    code, out, _ = call(*words)
    assert code == 0
    assert "1 of 1 cells have the same test scores to the last bit." in out
    with Store(tmp_path / "again") as store:
        (record,) = store.ledger().newest().values()
        moved = [replace(row, value=row.value + 0.25) for row in record.rows]
        store.append(replace(record, rows=tuple(moved), attempt=2))
    code, out, _ = call(*words)
    assert code == 1
    assert "the greatest difference of the others is 0.25" in out
    assert call(*words, "--tolerance", 0.3)[0] == 0


def test_a_run_that_trained_nothing_cannot_be_trained_again(call):
    code, _, said = call("reproduce", "results/published/serving.parquet")
    assert code == 2
    assert "no trained cell" in said


def test_a_report_of_some_tasks_alone_goes_elsewhere_and_holds_nothing_else(call, tmp_path):
    folder, alone = tmp_path / "run", tmp_path / "alone"
    asked = ["run", "--variants", "dot", "--tasks", "recall,offset", "--preset", "smoke"]
    trained = ["--training", "adam[steps=2]", "--inline", "--no-verify", "--out", folder]
    assert call(*asked, *trained)[0] == 0
    whole = (folder / "report.md").read_bytes()
    pack = tmp_path / "alone.parquet"
    asked = ["report", folder, "--tasks", "recall", "--out", alone, "--export", "--pack", pack]
    assert call(*asked)[0] == 0
    assert {r.cell["task"].partition("[")[0] for r in Pack(pack).records()} == {"recall"}
    assert "offset" not in (alone / "tables" / "cells.csv").read_text()
    text = report_text(alone)
    assert "# recall" in text
    assert "offset" not in text.partition("\n## ")[2]
    assert (folder / "report.md").read_bytes() == whole
    code, _, err = call("report", folder, "--tasks", "recall")
    assert (code, "give --out" in err) == (2, True)
    code, _, err = call("report", folder, "--tasks", "recal", "--out", alone)
    assert code == 2
    assert "did you mean 'recall'" in err


def test_an_ablation_writes_a_row_for_each_value_and_refuses_what_has_no_meaning(
    call, tmp_path, monkeypatch
):
    # one check tells a refusal from a failed proof; the whole suite is tested elsewhere
    monkeypatch.setattr(
        "bench.running.runner.certify",
        lambda variant, checks, impl: certify(variant, checks=["runs_somewhere"], impl=impl),
    )
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "run"
    asked = ["ablate", "--base", "additive", "--axis", "normalizer", "--preset", "smoke"]
    asked += ["--tasks", "after_marker"]
    code, out, _ = call(*asked, "--inline", "--out", folder, "--training", "adam[steps=2]")
    assert code == 0
    records = {r.cell["variant"]: r.status for r in Store(folder).records()}
    assert len(records) == len(registry.registrations("normalizer"))
    assert set(records.values()) == {"ok", "refused"}
    text = report_text(folder)
    section = text.partition("## Ablations")[2].partition("\n## ")[0]
    assert "(base)" in section
    # what stands nowhere is refused, which is no proof that failed
    assert "red certificate" not in section + out
    assert out.count("hard_reinforce needs the reinforce loss") == 1
    for value in registry.registrations("normalizer"):
        if value != "softmax":
            assert f"| normalizer | {value} |" in section, value
    again = call("ablate", "--spec", folder / "spec.json", "--inline", "--json")
    assert again[0] == 0
    assert json.loads(again[1])["counts"] == {}


def test_an_ablation_stands_on_the_bases_default_task_with_its_backbone_and_slot(fresh_registry):
    from dataclasses import replace

    from bench.ablate import ablation, plan_ablation

    registered = registry.find("score", "dot")
    default_task = replace(
        registered.default_task, task="transduction", backbone="transformer_seq2seq", slot="causal"
    )
    registry._ENTRIES["score"]["dot"] = replace(registered, default_task=default_task)
    made = plan_ablation(Request(preset="smoke", speed=False), ablation("dot", "position"), "dot")
    places = {(c.task.partition("[")[0], c.backbone.partition("[")[0], c.slot) for c in made.cells}
    assert places == {("transduction", "transformer_seq2seq", "causal")}


def test_options_of_the_component_that_an_ablation_replaces_go_with_it():
    from bench.ablate import ablation

    changed = ablation("additive[width=16,position=sinusoid]", "score").changed
    assert {"dot", "general", "additive"} <= set(changed)
    for asked, _ in changed.values():
        assert "width" not in asked.options
        assert asked.options["position"]
    assert "none" in ablation("tu_coverage", "history").changed
    assert "tu_coverage" not in ablation("tu_coverage", "history").changed


def test_probes_look_at_the_models_of_a_run_and_their_rows_stand_in_the_report(call, tmp_path):
    folder = tmp_path / "run"
    asked = "--variants additive,none_state --tasks transduction --preset smoke --no-speed"
    asked += " --training adam[steps=2]"
    place = f"--no-verify --inline --out {folder}"
    code, _, err = call("run", *asked.split(), *place.split())
    assert code == 0, err
    code, _, err = call("analyze", folder, "--inline")
    assert code == 2
    assert "no models" in err
    again = f"{place}2 --probes blur"
    code, _, err = call("run", *asked.split(), *again.split())
    assert code == 0, err
    records = [r for r in Store(tmp_path / "run2").records() if r.cell["kind"] == "analysis"]
    assert sorted(r.status for r in records) == ["ok", "ok", "refused"]
    (refused,) = (r for r in records if r.status == "refused")
    assert "no attention weights" in refused.detail
    report = report_text(tmp_path / "run2")
    assert "## What the attention does" in report
    assert "Effective number of keys" in report
    code, _, err = call("analyze", f"{folder}2", "--inline", "--probes", "blur")
    assert code == 0, err
    assert len([*Store(tmp_path / "run2").records()]) == len(records) + 3  # nothing ran again
    code, _, err = call("analyze", f"{folder}2", "--probes", "blurr")
    assert code == 2
    assert "did you mean 'blur'" in err
    call("analyze", f"{folder}2", "--inline", "--probes", "blur")
    code, out, err = call("analyze", f"{folder}2", "--inline", "--probes", "erasure")
    assert code == 0, err
    assert "erasure on transduction @ additive seed 0" in err
    lines = [line.split() for line in out.splitlines()]
    assert any(line[:3] == ["transduction", "erasure", "additive"] for line in lines)
    assert "to baseline" not in out
    head = (tmp_path / "run2" / "report.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert head.count("python -m bench analyze") == 2
    assert head.index("python -m bench run") < head.index("python -m bench analyze")
    label = cell_from_dict(dict(refused.cell)).label
    code, out, err = call("run", "--cell", label, *place.split()[:2], "--out", tmp_path / "run3")
    assert code == 0, err
    assert "1 ok, 1 refused" in out


def test_a_plug_in_that_registers_nothing_says_so(call, window_plugin, tmp_path):
    idle = tmp_path / "idle.py"
    idle.write_text('"""Nothing yet."""\n')
    code, _, err = call("show", "sliding", "--plugin", idle)
    assert code == 2
    assert f"warning: {idle} registers nothing; decorate a class" in err
    for _ in range(2):  # the second time it is loaded already
        code, _, err = call("show", "sliding", "--plugin", window_plugin)
        assert (code, err) == (0, "")


def test_a_plug_in_is_listed_planned_verified_and_run(call, window_plugin, tmp_path):
    assert len(window_plugin.read_text().splitlines()) <= 60
    plug = ["--plugin", window_plugin]
    rows = json.loads(call("list", *plug, "--json")[1])
    assert "sliding" in {row["variant"] for row in rows}
    (capabilities,) = json.loads(call("show", "sliding", *plug, "--json")[1])
    assert capabilities["file"] == str(window_plugin)
    cells = json.loads(
        call("plan", "--variants", "sliding", "--preset", "smoke", *plug, "--json")[1]
    )
    assert any(" @ sliding / " in cell["label"] for cell in cells["cells"])
    code, out, _ = call("verify", "sliding", *plug, "--jobs", 1, "--json")
    (certificate,) = json.loads(out).values()
    assert code == 0, certificate["failed"]
    assert certificate["green"]
    asked = ["run", "--variants", "sliding[window=2]", "--preset", "smoke", "--no-verify", *plug]
    code, _, _ = call(*asked, "--out", tmp_path / "run", "--inline", "--training", "adam[steps=3]")
    assert code == 0
    found = {(r.cell["kind"], r.status) for r in Store(tmp_path / "run").records()}
    assert found == {("quality", "ok"), ("speed", "ok")}
    assert "Beltagy et al., 2020" in report_text(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "spec.json").read_text())["plugin"] == [
        str(window_plugin)
    ]
    spec = ["run", "--spec", tmp_path / "run" / "spec.json", "--inline"]
    code, _, err = call(*spec)
    assert code == 2
    assert f"opens {window_plugin}; look at it, and add --trust if you trust it." in err
    assert call(*spec, "--trust")[0] == 0
    again = read_folder(tmp_path / "run")
    trained, *_ = again.of_kind("quality")
    command = shlex.split(again.command(trained.cell.label))
    assert f"--plugin {window_plugin}" in (tmp_path / "run" / "report.md").read_text()
    elsewhere = ["--out", tmp_path / "again", "--inline", "--no-verify", "--no-speed"]
    code, _, err = call(*command[3:], *elsewhere)
    assert code == 0, err


@pytest.mark.parametrize("name", PRESETS)
def test_a_run_goes_where_its_preset_says_unless_told(name):
    from bench.cli.run_options import RunOptions

    assert RunOptions(preset=name).folder == Path("runs") / name
    assert RunOptions(preset=name, out="x").folder == Path("x")


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
