"""Every planted defect is noticed, by what should notice it; `python -m tests.planted` says how."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from bench.api.registry import listed_variants
from bench.conformance import as_text, certify
from tests.planted import planting
from tests.planted.defect import FOLDER, Defect, Moved, defects
from tests.planted.finding import notice
from tests.planted.planting import ROOT, NothingPlanted, planted

DEFECTS = defects()
CERTIFIED = [defect for defect in DEFECTS if not defect.test]
AXES = sorted({defect.axis for defect in DEFECTS if defect.test})
"""Files with defects that unit tests must find; each is a test, so that CI asks some every time."""
WITHOUT = {
    "variants/scores/uniform.py": "softmax cancels whatever constant it returns",
    "variants/normalizers/raffel_monotonic.py": "its walk is that of monotonic_walk.py",
    "variants/heads/mla_sizes.py": "it declares the numbers of the paper, and its test has them",
}
"""Components without a defect of their own, and why."""


def _marked(defect: Defect):
    marks = () if defect.sample else pytest.mark.slow
    return pytest.param(defect, id=defect.name, marks=marks)


@pytest.mark.usefixtures("unchecked_annotations")  # `bench verify` has no annotations to help it
@pytest.mark.parametrize("defect", [_marked(defect) for defect in CERTIFIED])
def test_the_certificate_turns_red(defect):
    found = notice(defect)
    assert defect.check in found.red, f"{defect.name} survives {defect.check} of {defect.variant}"


@pytest.mark.slow
def test_without_a_defect_the_same_checks_are_green():
    # names without options are certified whole by tests/bench/conformance
    for variant in sorted({defect.variant for defect in CERTIFIED} - set(listed_variants())):
        checks = {defect.check for defect in CERTIFIED if defect.variant == variant}
        found = certify(variant, checks=checks)
        assert found.green(), as_text([found])


@pytest.mark.slow
@pytest.mark.parametrize("axis", AXES)
def test_unit_tests_fail_where_no_certificate_looks(axis):
    words = [sys.executable, "-m", "tests.planted", "--asked", "tests", "--axis", axis]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_defect_replaces_lines_that_are_there_once_by_lines_of_python():
    for defect in DEFECTS:
        compile(defect.changed, f"{defect.name} in {defect.file}", "exec", dont_inherit=True)
        assert defect.changed != (ROOT / defect.file).read_text(encoding="utf-8"), defect.name


def test_names_are_unique_and_there_are_at_least_120():
    names = {defect.name for defect in DEFECTS}
    assert len(names) == len(DEFECTS) >= 120


def test_every_component_has_a_defect():
    planted_in = {defect.file for defect in DEFECTS}
    files = {str(path.relative_to(ROOT)) for path in Path(ROOT / "variants").glob("*/*.py")}
    components = {f for f in files if "/recipes/" not in f and not f.endswith("__init__.py")}
    without = [unplanted(file) for file in sorted(components - planted_in - set(WITHOUT))]
    assert not without, "\n".join(without)
    assert set(WITHOUT) <= components


def unplanted(file: str) -> str:
    """What to do for a component that has no planted mistake."""
    folder = FOLDER / f"{Path(file).parent.name}.toml"
    return (
        f"{file} has no planted mistake; add a table to {folder.relative_to(ROOT)} "
        "(file, old, new, variant, check)"
    )


def test_the_sentence_of_a_component_without_a_mistake_names_a_file_that_is_there():
    folders = {path.parent.name for path in Path(ROOT / "variants").glob("*/__init__.py")}
    for folder in folders - {"recipes"}:
        assert (FOLDER / f"{folder}.toml").is_file(), unplanted(f"variants/{folder}/x.py")
    assert unplanted("variants/mechanisms/x.py") == (
        "variants/mechanisms/x.py has no planted mistake; add a table to "
        "tests/planted/defects/mechanisms.toml (file, old, new, variant, check)"
    )


def test_lines_that_have_gone_are_named():
    gone = Defect(name="gone", axis="none", file="variants/softplus.py", old="?", new="!", test="t")
    with pytest.raises(Moved, match="has 0 places"):
        _ = gone.changed


def test_a_defect_that_changes_nothing_is_refused():
    text = (ROOT / "variants/softplus.py").read_text(encoding="utf-8")
    with pytest.raises(NothingPlanted), planted("variants/softplus.py", text + "\n# a comment\n"):
        pass


def test_a_defect_names_one_that_must_notice_it():
    with pytest.raises(ValueError, match="a variant and a check, or a unit test"):
        Defect(name="nobody", axis="none", file="variants/softplus.py", old="x", new="y")


def test_what_was_planted_is_taken_out_again():
    from variants.softplus import inverse_softplus

    text = (ROOT / "variants/softplus.py").read_text(encoding="utf-8")
    before = inverse_softplus(2.0)
    with planted("variants/softplus.py", text.replace("return x + ", "return x - ")):
        assert inverse_softplus(2.0) != before
    assert inverse_softplus(2.0) == before


def test_a_defect_reaches_a_module_that_was_imported_after_the_first_one_was_planted(monkeypatch):
    file = "variants/softplus.py"
    text = (ROOT / file).read_text(encoding="utf-8")
    changed = text.replace("return x + ", "return x - ")
    with planted(file, changed):
        monkeypatch.delitem(planting._functions(), str(ROOT / file))  # as if it came later
    gc.freeze()  # as `isolated` does
    with planted(file, changed):
        pass


def test_constants_are_planted_wherever_they_are_known():
    from variants.scores import conv_attention, gated_convolution

    file = "variants/scores/gated_convolution.py"
    text = (ROOT / file).read_text(encoding="utf-8")
    with planted(file, text.replace("EPS = 1e-12", "EPS = 0.5")):
        assert gated_convolution.EPS == conv_attention.EPS == 0.5
    assert gated_convolution.EPS == conv_attention.EPS == 1e-12
