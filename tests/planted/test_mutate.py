"""The tool that draws mutants: what it changes, what it leaves alone, and what it reports."""

import ast
import json
import subprocess
import sys

import pytest

from tests.planted.mutate import KNOWN, draw
from tests.planted.mutations import files, mutants
from tests.planted.planting import ROOT

DOT = "variants/scores/dot.py"


def test_every_mutant_is_another_program():
    for mutant in draw(("variants/scores", "bench/api/chain.py"), 0, 40):
        before = (ROOT / mutant.file).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(mutant.changed)) != ast.dump(ast.parse(before)), mutant.name


def test_mutants_of_a_dot_product_are_those_of_its_fast_code():
    found = {f"{mutant.before} -> {mutant.after}" for mutant in mutants(DOT)}
    assert {"1.0 -> 2.0", "1 -> 2", "-1 -> 1"} <= found
    assert {mutant.function for mutant in mutants(DOT)} == {"DotScore.energy", "DotScore.dot_form"}


def test_a_seed_draws_the_same_mutants_again():
    one, two, other = (draw((DOT,), seed, 4) for seed in (1, 1, 2))
    assert one == two != other


def test_what_is_said_is_not_mutated():
    found = mutants("variants/scores/additive_fourier.py")
    assert not [mutant for mutant in found if "must be at least" in mutant.before]


def test_files_are_found_below_folders():
    assert files("variants/scores/dot.py") == [DOT]
    assert DOT in files("variants")
    assert "bench/api/chain.py" in files("bench/api")


def test_known_survivors_are_mutants_that_there_are_and_have_a_reason():
    known = json.loads(KNOWN.read_text(encoding="utf-8"))
    for name in known:
        assert name in {mutant.name for mutant in mutants(name.split()[0])}
    assert all(len(reason.split()) > 3 for reason in known.values())


@pytest.mark.slow
def test_a_sample_is_killed(tmp_path):
    words = ["--seed", "0", "--count", "5", "--path", DOT, "--variant", "dot"]
    words += ["--out", str(tmp_path / "found.json")]
    command = [sys.executable, "-m", "tests.planted.mutate", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert found
    assert {one["status"] for one in found} <= {"certificate", "equivalent"}, done.stdout
