import json
import re
import subprocess
import sys
from dataclasses import fields, replace

import pytest
import torch

from results.environment import Environment, _cpu_model, collect

KNOWN = Environment(
    cpu="Xeon",
    physical_cores=1,
    logical_cores=2,
    memory_bytes=8,
    platform="Linux",
    python="3.11.9",
    packages={"torch": "2.13.0"},
    threads=1,
)


def test_a_machine_keeps_its_id():
    first, second = collect(threads=1), collect(threads=1)
    assert first.id == second.id
    assert re.fullmatch("[0-9a-f]{12}", first.id)


def test_this_machine_tells_its_facts():
    found = collect(threads=3)
    assert found.threads == 3
    assert found.cpu
    assert found.logical_cores >= 1
    assert found.memory_bytes > 2**28
    assert found.packages["pandas"].startswith("3.")
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["id"] == found.id


def test_two_generations_of_one_name_are_two_processors(tmp_path):
    facts = tmp_path / "cpuinfo"
    told = (
        "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n"
    )
    facts.write_text(2 * told)
    assert _cpu_model(facts) == "AMD EPYC (cpu family 25, model 17, stepping 1)"
    facts.write_text("Processor : ARM\n")
    assert _cpu_model(facts)
    assert _cpu_model(tmp_path / "absent")


def test_the_load_of_the_machine_is_no_part_of_its_id():
    assert replace(KNOWN, load_average=7.5).id == KNOWN.id
    assert replace(KNOWN, load_average=7.5) == KNOWN


@pytest.mark.parametrize(
    "name", [entry.name for entry in fields(Environment) if entry.name != "load_average"]
)
def test_every_other_fact_changes_the_id(name):
    other = {"packages": {}, "git_dirty": True, "torch_settings": {"cudnn_tf32": "False"}}.get(
        name, "other"
    )
    assert replace(KNOWN, **{name: other}).id != KNOWN.id


def test_what_torch_may_compute_with_is_told_where_torch_is_loaded(monkeypatch):
    settings = collect(threads=1).torch_settings
    assert settings["float32_matmul_precision"] == torch.get_float32_matmul_precision()
    assert settings["deterministic_algorithms"] == "False"
    assert "math" in settings["sdpa_back_ends"]
    assert {"cudnn_tf32", "cudnn_benchmark", "bfloat16_training"} <= set(settings)
    monkeypatch.delitem(sys.modules, "torch")
    assert collect(threads=1).torch_settings == {}


def test_outside_a_checkout_there_is_no_revision(tmp_path, monkeypatch):
    monkeypatch.setattr("results.environment.PROJECT", tmp_path)
    found = collect(threads=1)
    assert (found.git_revision, found.git_dirty) == ("", None)


def test_a_checkout_is_dirty_from_its_first_new_file(tmp_path, monkeypatch):
    monkeypatch.setattr("results.environment.PROJECT", tmp_path)
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    clean = collect(threads=1)
    assert re.fullmatch("[0-9a-f]{40}", clean.git_revision)
    assert clean.git_dirty is False
    (tmp_path / "variant.py").write_text("")
    assert collect(threads=1).git_dirty is True


def test_torch_facts_come_only_from_a_process_that_loaded_torch(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert collect(threads=1).aten_cpu_capability == ""

    class Torch:
        class backends:  # noqa: N801
            class cpu:  # noqa: N801
                get_cpu_capability = staticmethod(lambda: "AVX512")

        class cuda:  # noqa: N801
            is_available = staticmethod(lambda: True)
            get_device_capability = staticmethod(lambda: (9, 0))
            get_device_name = staticmethod(lambda: "NVIDIA H200")

    monkeypatch.setitem(sys.modules, "torch", Torch)
    monkeypatch.setattr("results.environment._torch_settings", lambda torch: {})
    found = collect(threads=1)
    assert found.aten_cpu_capability == "AVX512"
    assert (found.gpu, found.gpu_capability) == ("NVIDIA H200", "9.0")


def test_a_foreign_repository_around_the_project_is_none_of_ours(tmp_path, monkeypatch):
    inside = tmp_path / "site-packages"
    inside.mkdir()
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    monkeypatch.setattr("results.environment.PROJECT", inside)
    found = collect(threads=1)
    assert (found.git_revision, found.git_dirty) == ("", None)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(inside))
    assert collect(threads=1).git_revision == ""
