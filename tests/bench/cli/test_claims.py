"""`bench claims`: names, plug-ins, and verdicts that are never stored."""

import json
import re
from pathlib import Path

import pytest

from bench.api import registry
from bench.api.claim import FIRST_SEED, SEEDS
from bench.claims.cells import asked_claims, cells_of
from bench.cli import execution
from bench.cli.claims import PUBLISHED
from bench.cli.registered import load_registry
from bench.running.request import Request
from results.row import Record, Row
from results.store import Store

ROOT = Path(__file__).parents[3]
PLUGIN = Path(__file__).parents[1] / "claims" / "plugin_claim.py"


def test_a_plug_in_brings_a_claim_of_its_own(call, tmp_path):
    folder = tmp_path / "claims"
    code, out, _ = call("claims", "run", "own1", "--plugin", PLUGIN, "--out", folder)
    assert code == 0
    assert "own1 supported: Two halves make one." in out
    assert "C08" not in out
    code, out, _ = call("claims", "list", folder, "--plugin", PLUGIN, "--json")
    listed = {one["claim"]: one for one in json.loads(out)}
    assert code == 0
    assert len(listed) == 54
    assert (listed["own1"]["kind"], listed["own1"]["verdict"]) == ("exact", "supported")
    assert listed["C11"]["verdict"] == "not run"
    code, out, _ = call("claims", "report", folder, "--out", tmp_path / "page", "--plugin", PLUGIN)
    assert code == 0
    assert "My notes" in (tmp_path / "page" / "claims.md").read_text()


def test_rows_of_a_plug_in_are_not_denied_and_its_commands_load_it(call, tmp_path):
    folder = tmp_path / "claims"
    assert call("claims", "run", "own1", "--plugin", PLUGIN, "--out", folder)[0] == 0
    assert f"claims run own1 --plugin {PLUGIN}" in (folder / "claims.md").read_text()
    del registry._ENTRIES["claim"]["own1"]  # as in a process of its own
    for typed in (("list", folder), ("report", folder)):
        code, out, err = call("claims", *typed)
        assert (code, out) == (2, "")
        assert "holds own1 of a plug-in; give --plugin" in err


FAILING = """
from bench.api.claim import Bound, Claim, Exact, register_claim
from bench.api.metric import Scored

def fails():
    return [Scored(metric="a_count", value=1 / 0)]

def misnamed():
    return [Scored(metric="b_count", value=1.0)]

for key, compute in (("bad1", fails), ("bad2", misnamed)):
    exact = Exact(compute=compute, bounds=(Bound(metric="a_count", low=1.0),))
    made = Claim(key=key, title="T.", source="My notes", quote="q", exact=exact)
    register_claim(made, module=__name__)
"""


def test_a_claim_that_cannot_be_computed_is_a_sentence_and_stops_no_other(call, tmp_path):
    plugin = tmp_path / "failing.py"
    plugin.write_text(FAILING)
    words = ("--plugin", plugin, "--plugin", PLUGIN, "--out", tmp_path / "claims")
    code, out, err = call("claims", "run", "bad1", "bad2", "own1", *words)
    assert code == 1
    assert "claim bad1: its computation failed: ZeroDivisionError" in err
    assert "claim bad2: its bounds are on a_count, and what it computes is b_count" in err
    assert "own1 supported" in out
    assert "Traceback" not in err


@pytest.fixture
def trained_on_cuda(tmp_path):
    """A run folder with every cell of C24, all trained on a GPU."""
    load_registry(())
    (claim,) = asked_claims(["C24"])
    with Store.create(tmp_path / "cuda") as store:
        for side in claim.sides:
            for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
                cell = cells_of(side, Request(device="cuda"), seed).read
                value = Row(
                    metric=side.metric, value=0.5, split=side.split, axis=side.axis, x=side.x
                )
                store.append(
                    Record(
                        cell=dict(vars(cell)),
                        id=cell.id,
                        status="ok",
                        environment="0123456789ab",
                        rows=(value,),
                    )
                )
    return store.folder


def test_cells_of_a_gpu_decide_the_claims_that_were_run_there(
    call, trained_on_cuda, monkeypatch, tmp_path
):
    _, out, _ = call("claims", "list", trained_on_cuda, "--json")
    listed = {one["claim"]: one["verdict"] for one in json.loads(out)}
    assert listed["C24"] not in ("not run", "in part run")
    assert listed["C11"] == "not run"
    code, _, _ = call("claims", "report", trained_on_cuda, "--out", tmp_path / "page")
    assert code == 0
    page = (tmp_path / "page" / "claims.md").read_text()
    # nothing is left to train, and there may be no GPU here
    monkeypatch.setattr(execution, "execute", lambda *_, **__: 0)
    monkeypatch.setattr(execution, "refuse_missing_devices", lambda _: None)
    code, out, _ = call("claims", "run", "C24", "--device", "cuda", "--out", trained_on_cuda)
    assert code == 0
    assert out.startswith(f"C24 {listed['C24']}: ")
    assert (trained_on_cuda / "claims.md").read_text() == page


def test_no_file_of_a_run_holds_a_verdict(call, tmp_path):
    call("claims", "run", "own1", "--plugin", PLUGIN, "--out", tmp_path / "claims")
    ledger = "".join(p.read_text() for p in (tmp_path / "claims" / "ledger").glob("*.jsonl"))
    assert "halves_count" in ledger
    assert "supported" not in ledger


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (("run", "C8"), "no claim named 'C8'; did you mean 'C08'?"),
        (("run", "c1"), "no claim named 'c1'; did you mean 'C01'?"),
        (("run", "C99"), "no claim named 'C99'"),
        (("report", __file__), "is a file, and no pack; give the folder"),
        (("run", "all", "C08"), "all stands alone"),
        (("rnu",), "no command named 'rnu'; did you mean 'run'?"),
        (("report", "nowhere"), "no run folder at nowhere"),
        (("list", "nowhere"), "no run folder at nowhere"),
        (("list", "C01"), "C01 is a claim; `bench show C01` shows it"),
        (("run", "C08", "--seeds", "-1"), "seeds must be >= 0"),
        (("run", "C40", "--seeds", "99"), "got --seeds 99. Give at most"),
        (("run", "C08", "--data-dir", "/nosuch"), "--data-dir names /nosuch, which is not a"),
    ],
)
def test_what_is_wrong_is_one_sentence(call, typed, sentence, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, out, err = call("claims", *typed)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_claims_that_are_refused_are_not_computed_before(call, monkeypatch, tmp_path):
    """C40 has numbers that are computed, and networks that are trained."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    folder = tmp_path / "run"
    code, _, err = call("claims", "run", "C40", "--device", "cuda", "--out", folder)
    assert (code, err) == (2, "this machine has no CUDA device; choose --device cpu.\n")
    assert not folder.exists()
    with Store.create(folder) as store:
        store.write_json("catalog.json", {"preset": "smoke", "ranks": False})
    code, _, err = call("claims", "run", "C40", "--out", folder)
    assert code == 2
    assert "is a run of the preset smoke" in err
    assert "computed" not in err
    assert not Store(folder).records()


def test_a_pack_without_the_name_of_one_is_refused_before_the_page_is_written(
    call, trained_on_cuda, tmp_path
):
    before = sorted(trained_on_cuda.iterdir())
    code, out, err = call("claims", "report", trained_on_cuda, "--pack", tmp_path / "x.txt")
    assert (code, out) == (2, "")
    assert "a pack ends in .parquet" in err
    assert sorted(trained_on_cuda.iterdir()) == before


def test_a_run_without_claims_gets_no_page_of_claims(call, tmp_path):
    with Store.create(tmp_path / "run"):
        pass
    before = sorted(tmp_path.rglob("*"))
    for more in ((), ("--out", tmp_path / "page", "--pack", tmp_path / "claims.parquet")):
        code, out, err = call("claims", "report", tmp_path / "run", *more)
        assert (code, out) == (2, "")
        assert err == f"{tmp_path / 'run'} has no rows of claims; `bench claims run` makes them.\n"
        assert sorted(tmp_path.rglob("*")) == before


def test_without_a_run_the_published_verdicts_are_listed(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, out, _ = call("claims", "list")
    assert code == 0
    assert re.search(r"^C08 .* F\d +exact .* supported$", out, re.MULTILINE)
    assert "published/claims.parquet" in out.splitlines()[-1]
    assert "F0: Attention mechanism" in out


@pytest.mark.slow
def test_the_published_page_and_its_figures_are_those_of_the_published_rows(call, tmp_path):
    code, _, _ = call("claims", "report", PUBLISHED, "--out", tmp_path)
    assert code == 0
    page = ROOT / "reports" / "published" / "claims"
    files = {one.relative_to(page) for one in page.rglob("*") if one.is_file()}
    written = {one.relative_to(tmp_path) for one in tmp_path.rglob("*") if one.is_file()}
    assert files == written - {Path("claims.html")}
    for name in files:
        assert (page / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_a_run_folder_of_claims_is_listed_before_the_published_rows(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    call("claims", "run", "own1", "--plugin", PLUGIN)
    code, out, _ = call("claims", "list", "--plugin", PLUGIN)
    assert code == 0
    assert "runs/claims" in out.splitlines()[-1]
    assert re.search(r"^C08 .* not run$", out, re.MULTILINE)
