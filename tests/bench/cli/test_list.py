"""Lists: what is registered, and where it can stand."""

import json

import pytest

from bench.api import registry
from bench.api.axes import AXES
from bench.cli.list import KINDS


@pytest.mark.parametrize("kind", ["variants", "tasks", "backbones", "presets", "metrics", *AXES])
def test_everything_can_be_listed(call, kind):
    code, out, err = call("list", kind)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) > 2
    code, out, _ = call("list", kind, "--json")
    rows = json.loads(out)
    assert rows
    assert all(set(row) == set(rows[0]) for row in rows)


def test_every_kind_is_listed_in_the_singular_too(call):
    for kind in KINDS:
        assert call("list", kind.removesuffix("s")) == call("list", kind)
    assert call("list", "variant", "--matrix")[0] == 0
    said = call("list", "--help")[1]
    assert all(kind in said for kind in KINDS)


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


def test_data_sets_are_listed_with_where_they_would_come_from(call, tmp_path):
    code, out, _ = call("data", "list")
    assert code == 0
    assert "multi30k" in out
    assert "not here; python -m bench data fetch multi30k" in out
    (tmp_path / "multi30k").mkdir()
    assert str(tmp_path / "multi30k") in call("data", "list", "--data-dir", tmp_path)[1]


def test_the_environment_is_json_alone(call):
    code, out, err = call("env", "--json")
    assert (code, err) == (0, "")
    assert {"cpu", "torch", "threads"} <= {*json.loads(out), *json.loads(out)["packages"]}
    assert "python" in call("env")[1]


def test_data_sets_are_listed_for_people_and_for_programs(call, tmp_path):
    (tmp_path / "imdb").mkdir()
    code, out, _ = call("data", "list", "--json", "--data-dir", tmp_path)
    assert code == 0
    found = {one["data_set"]: one for one in json.loads(out)}
    assert found["imdb"]["here"]
    assert found["imdb"]["where"] == str(tmp_path / "imdb")
    assert not found["django"]["here"]
    assert "bench data fetch django" in found["django"]["where"]
    assert {"translation", "word_alignment"} <= set(found["multi30k"]["tasks"])
    table = call("data", "list", "--data-dir", tmp_path)[1]
    assert all(name in table for name in found)


def test_files_of_data_that_no_command_fetches_are_listed_until_they_are_here(call, tmp_path):
    (tmp_path / "mimic3_demo").mkdir()
    table = call("data", "list", "--data-dir", tmp_path)[1]
    _, copied = table.split("Copied by hand into the data directory")
    assert "sigmorphon2017/{english,german,finnish,turkish}-dev.gz: all/task1/" in copied
    assert "of https://github.com/sigmorphon/conll2017" in copied
    assert "mimic3_demo" not in copied
    listed = json.loads(call("data", "list", "--json", "--data-dir", tmp_path)[1])
    files = {one["data_set"]: one["files"] for one in listed}
    assert "https://physionet.org/content/mimiciii-demo/1.4/" in files["mimic3_demo"][0]
    assert files["imdb"] == []
