"""Several runs as one: the newest record of each cell, of run folders and of packs."""

from dataclasses import replace

import pytest

from results.environment import collect
from results.frame import rows_of
from results.merge import merge
from results.pack import write_pack
from results.run_path import NotARunFolder
from results.store import Store
from tests.results.test_store import record


def test_merging_takes_the_newest_record_of_each_cell_and_its_artifact(tmp_path):
    first, second = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    first.append(record(1, status="failed", detail="broke.", rows=()))
    first.append(record(2, loss=2.0))
    second.append(record(1, attempt=2))
    second.append(record(3))
    second.write_artifact(record(3).id, {"samples": []})
    second.write_environment(collect(threads=1))
    done = merge(tmp_path / "all", [tmp_path / "a", tmp_path / "b"])
    together = Store(tmp_path / "all")
    assert set(together.finished().values()) == {"ok"}
    assert len(together.finished()) == 3
    assert together.read_artifact(record(3).id) == {"samples": []}
    assert together.environments() == second.environments()
    assert (done.added, done.skipped) == (4, 0)


JANUARY, JUNE = "2026-01-02T00:00:00Z", "2026-06-01T00:00:00Z"


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("status", ["failed", "other_code"])
def test_attempts_of_one_folder_do_not_beat_a_newer_result_of_another(tmp_path, order, status):
    first, second = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    first.append(record(1, finished=JANUARY))
    first.append(record(1, attempt=2, status=status, detail="old.", finished=JANUARY))
    second.append(record(1, finished=JUNE))
    merge(tmp_path / "all", [tmp_path / name for name in order])
    assert Store(tmp_path / "all").finished() == {record(1).id: "ok"}
    rows = rows_of([Store(tmp_path / name) for name in order])
    assert set(rows["status"]) == {"ok"}
    again = merge(tmp_path / "all", [tmp_path / name for name in order])
    assert again.added == 0


def test_merging_again_changes_nothing(tmp_path):
    source = Store.create(tmp_path / "a")
    source.append(record(1))
    source.write_json("plan.json", {"cells": ["x"]})
    merge(tmp_path / "all", [source.folder])
    before = {path: path.read_bytes() for path in (tmp_path / "all").rglob("*.json*")}
    done = merge(tmp_path / "all", [source.folder])
    assert (done.added, done.skipped) == (0, 1)
    assert {path: path.read_bytes() for path in (tmp_path / "all").rglob("*.json*")} == before


MARKED = {"status": "other_code", "detail": "its code has changed."}


@pytest.mark.parametrize("alone", [True, False])
def test_a_result_that_is_marked_as_one_of_other_code_is_not_taken_again(tmp_path, alone):
    source, wanted = Store.create(tmp_path / "a"), {record(1).id} if alone else None
    source.append(record(1, finished=JANUARY, code="old"))
    merge(tmp_path / "run", [source.folder], wanted)
    with Store(tmp_path / "run") as run:
        run.append(record(1, finished=JANUARY, code="old", attempt=2, **MARKED))
    assert merge(tmp_path / "run", [source.folder], wanted).added == 0
    (found,) = Store(tmp_path / "run").records()
    assert (found.status, found.attempt) == ("other_code", 2)
    source.append(record(1, finished=JUNE, code="old", attempt=2))
    assert merge(tmp_path / "run", [source.folder], wanted).added == 1, "another result"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_result_that_one_run_alone_has_marked_counts_in_any_order(tmp_path, order):
    first, second = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    first.append(record(1, finished=JANUARY, code="old"))
    first.append(record(1, finished=JANUARY, code="old", attempt=2, **MARKED))
    second.append(record(1, finished=JANUARY, code="old"))
    for added in (None, 0):
        done = merge(tmp_path / "all", [tmp_path / name for name in order])
        assert added is None or done.added == added
        assert Store(tmp_path / "all").finished() == {record(1).id: "ok"}


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_what_has_no_baseline_takes_away_none(tmp_path, order):
    """A study has none, and a run beside it has."""
    for name, baseline in (("a", ""), ("b", "dot")):
        Store.create(tmp_path / name).write_json(
            "catalog.json", {"baseline": baseline, "preset": "quick"}
        )
    merge(tmp_path / "all", [tmp_path / name for name in order])
    catalog = Store(tmp_path / "all").read_json("catalog.json")
    assert catalog == {"baseline": "dot", "preset": "quick"}


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_winners_of_studies_of_both_runs_are_known(tmp_path, order):
    """The former winner of one is the present one of the other."""
    told = {"a": {"finals": ["1"], "former": ["2"]}, "b": {"finals": ["2"], "former": ["3"]}}
    for name, facts in told.items():
        catalog = {"study": {"dot": {"best_trial": name, **facts}}}
        Store.create(tmp_path / name).write_json("catalog.json", catalog)
    merge(tmp_path / "all", [tmp_path / name for name in order])
    study = Store(tmp_path / "all").read_json("catalog.json")["study"]["dot"]
    assert study == {"best_trial": order[0], "finals": ["1", "2"], "former": ["2", "3"]}


NO_DATA = {"status": "refused", "detail": "no data here.", "rows": (), "environmental": True}


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("held", [{}, {"status": "other_code", "detail": "its code has changed."}])
def test_a_machine_without_the_data_takes_no_values_away(tmp_path, order, held):
    first, second = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    first.write_artifact(record(1).id, {"samples": []})
    first.append(record(1, finished=JANUARY, **held))
    second.append(record(1, finished=JUNE, **NO_DATA))
    merge(tmp_path / "all", [tmp_path / name for name in order])
    (found,) = Store(tmp_path / "all").records()
    assert (found.status, found.rows) == (held.get("status", "ok"), record(1).rows)
    assert Store(tmp_path / "all").read_artifact(found.id) == {"samples": []}
    rows = rows_of([Store(tmp_path / name) for name in order])
    assert rows["metric"].tolist()[0] == "loss_nats"
    assert merge(tmp_path / "a", [tmp_path / "b"], {found.id}).added == 0


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_two_machines_without_data_the_last_one_says_why(tmp_path, order):
    for name, when in (("a", JANUARY), ("b", JUNE)):
        Store.create(tmp_path / name).append(record(1, finished=when, **NO_DATA))
    merge(tmp_path / "all", [tmp_path / name for name in order])
    (found,) = Store(tmp_path / "all").records()
    assert found.finished == JUNE


def test_a_newer_record_without_an_artifact_has_not_that_of_the_older_one(tmp_path):
    first, second = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    first.write_artifact(record(1).id, {"notes": ["old"]})
    first.append(record(1, finished=JANUARY))
    second.append(record(1, finished=JUNE))
    merge(tmp_path / "all", [tmp_path / "a", tmp_path / "b"])
    assert Store(tmp_path / "all").read_artifact(record(1).id) is None


def test_merged_catalogs_plans_and_certificates_hold_the_entries_of_both(tmp_path):
    first, second = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    first.write_json("catalog.json", {"baseline": "dot", "variants": {"dot": {"short": "dot"}}})
    second.write_json("catalog.json", {"baseline": "add", "variants": {"add": {"short": "add"}}})
    first.write_json("plan.json", {"cells": ["one", "two"]})
    second.write_json("plan.json", {"cells": ["two", "three"]})
    second.write_json("certificates.json", {"add": {"passed": ["causality"]}})
    merge(tmp_path / "all", [tmp_path / "a", tmp_path / "b"])
    together = Store(tmp_path / "all")
    catalog = {"baseline": "dot", "variants": {"dot": {"short": "dot"}, "add": {"short": "add"}}}
    assert together.read_json("catalog.json") == catalog
    plan = {"cells": {name: name for name in ("one", "two", "three")}, "left_out": []}
    assert together.read_json("plan.json") == plan
    assert together.read_json("certificates.json")["add"]["passed"] == ["causality"]


def together(tmp_path, name, first, second):
    """What two folders say of one thing, merged."""
    for folder, said in (("a", first), ("b", second)):
        Store.create(tmp_path / folder).write_json(name, said)
    merge(tmp_path / "all", [tmp_path / "a", tmp_path / "b"])
    return Store(tmp_path / "all").read_json(name)


@pytest.mark.parametrize("turned", [False, True])
def test_scores_of_which_one_run_looked_several_times_stay_so(tmp_path, turned):
    said = {"looks": None}, {"looks": {"first": 3, "first_seed": 0}}
    found = together(tmp_path, "catalog.json", *(said[::-1] if turned else said))
    assert found["looks"] == {"first": 3, "first_seed": 0}


@pytest.mark.parametrize("turned", [False, True])
def test_what_one_run_planned_is_not_left_out_by_the_other(tmp_path, turned):
    left = {"label": "two", "reason": "no time", "command": "run"}
    said = {"cells": ["one"], "left_out": [left]}, {"cells": ["two"], "left_out": []}
    found = together(tmp_path, "plan.json", *(said[::-1] if turned else said))
    assert (sorted(found["cells"]), found["left_out"]) == (["one", "two"], [])


def test_a_check_is_not_passed_in_one_run_and_failed_in_the_other(tmp_path):
    said = {"dot": {"passed": ["causality"]}}, {"dot": {"failed": {"causality": "sees on."}}}
    found = together(tmp_path, "certificates.json", *said)
    assert (found["dot"]["passed"], found["dot"]["failed"]) == (["causality"], {})


@pytest.mark.parametrize(("measured", "passed"), [((1, 2), ["later"]), ((1,), [])])
def test_a_variant_that_is_measured_anew_has_the_certificate_of_that_day(
    tmp_path, measured, passed
):
    first, second = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    name = record(1).cell["variant"]
    for seed in (1, 2):
        first.append(record(seed, finished=JANUARY))
    for seed in measured:
        second.append(record(seed, finished=JUNE))
    first.write_json("certificates.json", {name: {"failed": {"start": "narrow."}}})
    second.write_json("certificates.json", {name: {"passed": ["later"]}})
    for _ in range(2):
        merge(tmp_path / "all", [tmp_path / "a", tmp_path / "b"])
        found = Store(tmp_path / "all").read_json("certificates.json")[name]
        assert (found["passed"], sorted(found["failed"])) == (passed, [] if passed else ["start"])


def test_some_cells_of_a_run_bring_the_certificates_of_their_variants_and_no_plug_in(tmp_path):
    with Store.create(tmp_path / "a") as source:
        source.append(record(1))
        source.append(record(2))
    variant = record(1).cell["variant"]
    said = {variant: {"passed": ["causality"]}, "mocha": {"failed": {"causality": "sees on."}}}
    source.write_json("certificates.json", said)
    source.write_json("catalog.json", {"baseline": "dot", "plugins": ["mine.py"]})
    merge(tmp_path / "some", [tmp_path / "a"], {record(1).id})
    some = Store(tmp_path / "some")
    assert [*some.ledger().newest()] == [record(1).id]
    assert [*some.read_json("certificates.json")] == [variant]
    assert some.read_json("catalog.json") == {"baseline": "dot"}
    merge(tmp_path / "all", [tmp_path / "a"])
    whole = Store(tmp_path / "all")
    assert {*whole.read_json("certificates.json")} == {*said}
    assert whole.read_json("catalog.json")["plugins"] == ["mine.py"]


def test_merged_runs_keep_the_commands_of_both_and_of_what_was_written_before_there_were_lists(
    tmp_path,
):
    first, second = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    first.write_json("catalog.json", {"command": "run a"})
    second.write_json("catalog.json", {"commands": ["run b", "run a"]})
    merge(tmp_path / "all", [tmp_path / "a", tmp_path / "b"])
    assert Store(tmp_path / "all").read_json("catalog.json") == {"commands": ["run a", "run b"]}


def test_merging_counts_what_the_sources_had_lost(tmp_path):
    source = Store.create(tmp_path / "a")
    (source.folder / "ledger" / "x.jsonl").write_bytes(b"broken\n{")
    done = merge(tmp_path / "all", [tmp_path / "a"])
    assert done.torn_tails == 1
    assert len(done.corrupt_lines) == 1


def test_a_merge_names_trained_cells_with_different_test_values(tmp_path):
    for name, loss in (("a", 0.5), ("b", 0.5), ("c", 0.25)):
        with Store.create(tmp_path / name) as opened:
            opened.append(record(loss=loss))
    assert merge(tmp_path / "same", [tmp_path / "a", tmp_path / "b"]).differing == ()
    found = merge(tmp_path / "other", [tmp_path / "a", tmp_path / "c"]).differing
    assert found == (record().id,)
    assert merge(tmp_path / "b", [tmp_path / "c"]).differing == (record().id,)


def test_a_missing_source_stops_a_merge_before_anything_is_written(tmp_path):
    with pytest.raises(NotARunFolder):
        merge(tmp_path / "all", [tmp_path / "nowhere"])
    assert not (tmp_path / "all").exists()


def test_a_pack_becomes_a_run_folder_that_knows_what_made_each_cell(tmp_path):
    with Store.create(tmp_path / "run") as source:
        first = record(1, code="abc", made=("head:mqa", "score:dot"), data={"train.csv": "0f"})
        source.append(first)
        source.append(replace(record(2), made=first.made, data=first.data))
        source.append(record(3, status="refused", detail="no.", rows=(), environmental=True))
        source.write_environment(collect(threads=1))
        source.write_json("plan.json", {"cells": {"one": "one"}, "left_out": []})
        source.write_json("spec.json", {"preset": "modern"})
    pack = write_pack(source, tmp_path / "run.parquet")
    done = merge(tmp_path / "again", [pack])
    again = Store(tmp_path / "again")
    assert (done.added, done.differing) == (3, ())
    assert again.ledger().newest() == source.ledger().newest()
    assert again.environments() == source.environments()
    for name in ("plan.json", "spec.json"):
        assert again.read_json(name) == source.read_json(name)
    assert write_pack(again, tmp_path / "second.parquet").read_bytes() == pack.read_bytes()


@pytest.mark.parametrize("turned", [False, True])
def test_cells_that_are_too_small_to_be_ranked_stay_so_beside_others(tmp_path, turned):
    said = {"preset": "quick", "ranks": True}, {"preset": "smoke", "ranks": False}
    assert together(tmp_path, "catalog.json", *(said[::-1] if turned else said))["ranks"] is False
