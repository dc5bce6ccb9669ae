import json

from transun_paper.board.record import fill_store, recorded_files, write_record
from transun_paper.lab.store import Store


def text(method, seed=0, rows=None, data="file"):
    arguments = {"table": "x", "method": method, "seed": seed, "rows": rows, "data": data}
    return json.dumps({"computation": "board", **arguments})


def test_a_record_fills_an_empty_store(tmp_path):
    first, second = Store(tmp_path / "first"), Store(tmp_path / "second")
    for method, value in (("b", 1 / 3), ("a", 2.0)):
        first.keep(text(method), {"metrics": {"NRMSE": value}}, seconds=5.0)
        first.read(text(method))
    record = tmp_path / "results.jsonl"
    write_record(record, first, None)
    assert [json.loads(json.loads(line)["text"])["method"] for line in record.read_text().splitlines()] == ["a", "b"]
    assert (fill_store(record, second), fill_store(record, second)) == (2, 0)
    assert second.read(text("b")) == {"metrics": {"NRMSE": 1 / 3}}
    assert second.cost([text("a"), text("b")]).seconds == 10.0


def test_a_result_of_this_machine_is_kept(tmp_path):
    here, there, record = Store(tmp_path / "here"), Store(tmp_path / "there"), tmp_path / "results.jsonl"
    there.keep(text("a"), 1)
    there.read(text("a"))
    write_record(record, there, None)
    here.keep(text("a"), 2)
    assert fill_store(record, here) == 0
    assert here.read(text("a")) == 2


def test_old_versions_go_and_other_numbers_of_rows_stay(tmp_path):
    store, record = Store(tmp_path / "runs"), tmp_path / "results.jsonl"
    for name, rows in (("old", None), ("new", None), ("new", 2000)):
        store.keep(text(name, rows=rows), 1)
    store.read(text("old"))
    write_record(record, store, None)
    store.used.clear()
    store.read(text("new", rows=2000))
    write_record(record, store, 2000)
    store.used.clear()
    store.read(text("new"))
    write_record(record, store, None)
    kept = [json.loads(json.loads(line)["text"]) for line in record.read_text().splitlines()]
    assert [(entry["method"], entry["rows"]) for entry in kept] == [("new", None), ("new", 2000)]


def test_there_need_be_no_record(tmp_path):
    assert fill_store(tmp_path / "none.jsonl", Store(tmp_path)) == 0
    assert recorded_files(tmp_path / "none.jsonl") == {}


def test_the_recorded_file_of_a_table_is_that_of_most_results(tmp_path):
    store, record = Store(tmp_path / "runs"), tmp_path / "results.jsonl"
    for seed, data in enumerate(("old", "new", "new")):
        store.keep(text("a", seed, data=data), 1)
        store.read(text("a", seed, data=data))
    write_record(record, store, None)
    assert recorded_files(record) == {"x": "new"}
