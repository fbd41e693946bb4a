import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from bench.api.cell import Cell
from bench.api.errors import DataDamaged
from results.environment import collect
from results.ledger import LedgerWriter, OtherSchema
from results.row import Record, Row, Unmeasured, record_from_json
from results.run_path import NotARunFolder
from results.store import Store


def record(seed: int = 0, *, loss: float = 1.0, **changed: object) -> Record:
    cell = Cell(
        kind="quality",
        task="copying",
        backbone="seq2seq",
        variant="bahdanau",
        slot="cross",
        protocol="adam",
        seed=seed,
    )
    fields: dict[str, object] = {
        "cell": asdict(cell),
        "id": cell.id,
        "status": "ok",
        "environment": "e",
        "finished": "2026-11-20T12:00:00Z",
        "rows": (Row(metric="loss_nats", value=loss, split="test"),),
    }
    return Record(**(fields | changed))


@pytest.fixture
def store(tmp_path):
    with Store.create(tmp_path / "run") as opened:
        yield opened


def the_file(store: Store) -> Path:
    [path] = (store.folder / "ledger").glob("*.jsonl")
    return path


def test_a_record_comes_back_as_it_was_appended(store):
    refused = record(
        2,
        status="refused",
        detail="no \u2028 causal\nform \ud800.",
        rows=(),
        attempt=3,
        seconds=1.5,
    )
    store.append(record(1))
    store.append(refused)
    assert Store(store.folder).records() == [record(1), refused]
    assert store.finished() == {record(1).id: "ok", refused.id: "refused"}


def test_every_line_is_on_disk_when_append_returns(store):
    store.append(record(1))
    assert the_file(store).read_bytes().endswith(b"\n")
    store.append(record(2))
    assert len(the_file(store).read_bytes().splitlines()) == 2


def test_the_newest_attempt_of_a_cell_wins_wherever_it_stands(store):
    store.append(record(1, loss=2.0, attempt=2))
    store.append(record(1, loss=1.0, attempt=1, finished="2026-12-24T00:00:00Z"))
    store.append(record(2, loss=4.0, finished="2026-11-20T13:00:00Z"))
    store.append(record(2, loss=3.0, finished="2026-11-20T12:00:00Z"))
    assert [found.rows[0].value for found in store.records()] == [2.0, 4.0]
    assert len(store.ledger().records) == 4


def test_one_cell_is_asked_for_while_others_append(store):
    mine = Store(store.folder)
    assert mine.newest_of(record(1).id) is None
    store.append(record(1, loss=2.0, attempt=2))
    store.append(record(1, loss=1.0, attempt=1))
    assert mine.newest_of(record(1).id) == record(1, loss=2.0, attempt=2)
    mine.append(record(1, loss=3.0, attempt=3))
    store.append(record(2))
    assert mine.newest_of(record(1).id) == record(1, loss=3.0, attempt=3)
    assert mine.newest_of(record(2).id) == record(2)
    assert mine.newest_of("0" * 12) is None


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_equal_attempts_are_decided_by_their_places_and_not_by_who_read_first(store, order):
    for name in order:
        line = json.dumps(record(1, loss=float(ord(name))).to_json())
        (store.folder / "ledger" / f"{name}.jsonl").write_text(line + "\n")
        store.newest_of(record(1).id)
    assert store.newest_of(record(1).id) == store.ledger().newest()[record(1).id]
    assert store.newest_of(record(1).id) == record(1, loss=float(ord("b")))


def test_what_stood_in_a_file_that_has_gone_counts_no_more(store):
    store.append(record(1))
    assert store.newest_of(record(1).id) == record(1)
    the_file(store).unlink()
    assert store.newest_of(record(1).id) is None
    assert store.records() == []


def test_a_torn_tail_is_dropped_and_counted(store):
    store.append(record(1))
    with the_file(store).open("ab") as file:
        file.write(b'{"id": "abc", "rows": [{"met')
    assert store.finished().keys() == {record(1).id}
    assert store.ledger().torn_tails == 1


def test_a_tail_that_another_writer_completes_later_is_read_then(store):
    line = json.dumps(record(1).to_json()).encode()
    path = store.folder / "ledger" / "other.jsonl"
    path.write_bytes(line[:40])
    assert store.ledger().torn_tails == 1
    path.write_bytes(line + b"\n" + line[:7])
    assert store.finished().keys() == {record(1).id}
    assert store.ledger().torn_tails == 1


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"id": 3',
        b'{"id": "a", "status": "ok", "cell": {}, "environment": "e", "colour": "red"}',
        b'{"id": "a", "status": "ok", "cell": {}, "environment": "e", "rows": '
        b'[{"metric": "loss", "value": NaN}]}',
        b'{"id": "a", "schema": "new"}',
    ],
    ids=["empty", "binary", "list", "cut", "unknown field", "not a number", "odd schema"],
)
def test_a_corrupt_line_costs_only_itself_and_is_named(store, damage):
    store.append(record(1))
    with the_file(store).open("ab") as file:
        file.write(damage + b"\n")
    store.append(record(2))
    ledger = store.ledger()
    assert ledger.newest().keys() == {record(1).id, record(2).id}
    [place] = ledger.corrupt_lines
    assert place.startswith(f"{the_file(store)}:2: ")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (b"", "empty"),
        (b"\xb5\xb5", "no text"),
        (b'{"id": 3', "no JSON: column 9"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "not a JSON object"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_without_words_of_a_codec(store, damage, why):
    store.append(record(1))
    with the_file(store).open("ab") as file:
        file.write(damage + b"\n")
    assert store.ledger().corrupt_lines == (f"{the_file(store)}:2: {why}",)


def test_a_newer_schema_is_an_error_with_file_and_line(store):
    store.append(record(1))
    with the_file(store).open("ab") as file:
        file.write(json.dumps(record(2).to_json() | {"schema": 99}).encode() + b"\n")
    with pytest.raises(OtherSchema, match=r"jsonl:2: .*schema 99.*update"):
        store.records()


def test_a_folder_that_is_not_a_run_folder_is_refused_with_its_name(tmp_path):
    with pytest.raises(NotARunFolder, match="missing: it does not exist"):
        Store(tmp_path / "missing")
    with pytest.raises(NotARunFolder, match="has no ledger/"):
        Store(tmp_path)
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(NotARunFolder, match="holds something else"):
        Store.create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_creating_twice_opens_the_same_run_folder(store):
    store.append(record(1))
    assert Store.create(store.folder).finished() == store.finished()


def append_one(store: Store, seed: int) -> None:
    store.append(record(seed))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_writes_to_a_file_of_its_own(store):
    store.append(record(1))
    child = multiprocessing.get_context("fork").Process(target=append_one, args=(store, 2))
    child.start()
    child.join()
    store.append(record(3))
    files = [path.read_bytes().count(b"\n") for path in (store.folder / "ledger").glob("*.jsonl")]
    assert sorted(files) == [1, 2]
    assert len(store.finished()) == 3


def test_threads_share_a_store(store):
    threads = [threading.Thread(target=append_one, args=(store, seed)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.finished()) == 8
    assert len(the_file(store).read_bytes().splitlines()) == 8


def test_a_pickled_store_opens_its_own_file(store):
    store.append(record(1))
    pickle.loads(pickle.dumps(store)).append(record(2))
    assert len(list((store.folder / "ledger").glob("*.jsonl"))) == 2
    assert len(store.finished()) == 2


def test_a_line_that_was_cut_by_a_full_disk_never_touches_the_next(store, monkeypatch):
    store.append(record(1))
    whole = os.write
    monkeypatch.setattr(os, "write", lambda file, line: whole(file, line[:50]))
    with pytest.raises(OSError, match="disk full"):
        store.append(record(2))
    monkeypatch.setattr(os, "write", whole)
    store.append(record(2))
    ledger = store.ledger()
    assert ledger.newest().keys() == {record(1).id, record(2).id}
    assert (ledger.torn_tails, ledger.corrupt_lines) == (1, ())


CLAIM = """
import sys
from results.store import Store
store = Store(sys.argv[1])
print(store.reserve(sys.argv[2]), flush=True)
sys.stdin.read()
"""


def test_a_claim_holds_against_other_processes_until_its_process_is_killed(store):
    command = [sys.executable, "-c", CLAIM, str(store.folder), "ffffffffffff"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout.readline() == "True\n"
        assert not store.reserve("ffffffffffff")
        assert store.reserve("fffffffffffe")
        other.kill()
        other.wait()
        assert store.reserve("ffffffffffff")
    with subprocess.Popen(command, **pipes) as third:
        assert third.communicate()[0] == "False\n"
    store.release("ffffffffffff")
    with subprocess.Popen(command, **pipes) as fourth:
        assert fourth.communicate()[0] == "True\n"


def test_a_json_file_is_replaced_as_a_whole_and_leaves_no_draft(store):
    store.write_json("catalog.json", {"title": "Übung"})
    with pytest.raises(ValueError, match="Out of range float"):
        store.write_json("catalog.json", {"value": float("nan")})
    with pytest.raises(TypeError):
        store.write_json("catalog.json", {"value": object()})
    assert store.read_json("catalog.json") == {"title": "Übung"}
    assert {path.name for path in store.folder.iterdir()} == {"ledger", "catalog.json"}


def test_an_absent_json_file_is_none_and_a_damaged_one_is_named(store):
    assert store.read_json("plan.json") is None
    assert store.read_artifact(record().id) is None
    (store.folder / "plan.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataDamaged, match=r"plan\.json"):
        store.read_json("plan.json")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (b"", "empty"),
        (b"\xb5", "no text"),
        (b'{"a": 1,\n"b"', "no JSON: line 2, column 4"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b"[]", "it holds no JSON object"),
        (b'"green"', "it holds no JSON object"),
    ],
)
def test_a_damaged_json_file_says_why_and_what_to_do(store, damage, why):
    path = store.folder / "plan.json"
    path.write_bytes(damage)
    with pytest.raises(DataDamaged) as error:
        store.read_json("plan.json")
    assert str(error.value) == f"{path} is damaged ({why}); delete it and run again."


@pytest.mark.parametrize("name", ["../catalog.json", "/tmp/catalog.json"])
def test_a_json_file_outside_of_the_run_folder_is_refused(store, name):
    with pytest.raises(ValueError, match="inside the run folder"):
        store.write_json(name, {})


def test_an_environment_is_stored_once_under_its_id(store):
    environment = collect(threads=1)
    id_ = store.write_environment(environment)
    busy = replace(environment, load_average=environment.load_average + 9)
    assert store.write_environment(busy) == id_
    assert store.environments()[id_]["load_average"] == environment.load_average


def test_a_line_of_a_refusal_says_whether_data_are_missing_and_others_are_as_before():
    plain = record(1).to_json()
    assert "environmental" not in plain
    lacking = record(1, status="refused", detail="not here.", rows=(), environmental=True)
    assert record_from_json(json.loads(json.dumps(lacking.to_json()))).environmental
    assert not record_from_json(json.loads(json.dumps(plain))).environmental


ADD = """
import sys
from results.store import Store
store, mine = Store(sys.argv[1]), sys.argv[2]
for number in range(20):
    store.update_json("catalog.json", lambda held: {**(held or {}), f"{mine} {number}": 1})
"""


def test_several_processes_add_to_one_file_and_lose_nothing(store):
    asked = [[sys.executable, "-c", ADD, str(store.folder), str(n)] for n in range(4)]
    for process in [subprocess.Popen(one) for one in asked]:
        assert process.wait() == 0
    wanted = {f"{process} {number}" for process in range(4) for number in range(20)}
    assert set(store.read_json("catalog.json")) == wanted


def test_a_writer_may_be_closed_twice(tmp_path):
    writer = LedgerWriter(tmp_path)
    writer.append(record(1))
    writer.close()
    writer.close()
    (path,) = tmp_path.glob("*.jsonl")
    assert path.read_text().count("\n") == 1


def test_the_store_needs_neither_pandas_nor_torch():
    code = (
        "import sys; import results.store, results.environment as e; e.collect(1);"
        "sys.exit(bool({'pandas', 'torch', 'scipy', 'numpy'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_line_says_which_metrics_have_no_value_only_where_there_are_any():
    assert "unmeasured" not in record(1).to_json()
    spent = Unmeasured(metric="peak_memory_bytes", status="out_of_memory", detail="64 GiB more.")
    partly = record(1, unmeasured=(spent,))
    assert record_from_json(json.loads(json.dumps(partly.to_json()))) == partly


def test_a_metric_without_a_value_says_why_beside_other_values_or_not_at_all():
    with pytest.raises(ValueError, match="say why"):
        Unmeasured(metric="peak_memory_bytes", status="out_of_memory", detail="")
    spent = Unmeasured(metric="peak_memory_bytes", status="out_of_memory", detail="64 GiB more.")
    with pytest.raises(ValueError, match="its own status says why"):
        record(1, rows=(), unmeasured=(spent,))
    with pytest.raises(ValueError, match="its own status says why"):
        record(1, status="failed", detail="for a reason.", unmeasured=(spent,))
    kept = record(1, status="other_code", detail="its code has changed.", unmeasured=(spent,))
    assert record_from_json(json.loads(json.dumps(kept.to_json()))) == kept
