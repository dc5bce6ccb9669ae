"""The arithmetic of docs/capacity.md: laws are recovered, and bytes are those of real tensors and messages."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from transun import DIN, Adam, EmbeddingMLP, LogMSE, LogSUN, Model, OrderLog, RowWise
from transun.support.group import Group
from transun.training import Eager

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"


@pytest.fixture
def capacity(monkeypatch):
    monkeypatch.syspath_prepend(RESULTS.parent)
    yield importlib.import_module("capacity")
    for name in ("capacity", "page_tables"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def results():
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in RESULTS.glob("*.json")}


def test_a_law_is_recovered_from_points_on_it(capacity):
    law = capacity.Law(2e-3, 3e-6, 4e-7)
    points = [(rows, lookups, law.seconds(rows, lookups)) for rows in (100, 1000, 10_000) for lookups in (2, 12)]
    fitted = capacity.fit_law(points)
    assert (fitted.fixed, fitted.row, fitted.lookup) == pytest.approx((2e-3, 3e-6, 4e-7))
    two = capacity.fit_law([(1000, 12, 0.1), (500, 27, 0.1)])
    assert two.fixed == 0.0
    assert [two.seconds(1000, 12), two.seconds(500, 27)] == pytest.approx([0.1, 0.1])


def test_bytes_of_an_id_are_those_of_the_tensors(capacity):
    """A table of 1,000 ids: its rows, and every tensor that its optimiser keeps or makes for them."""
    ids = 1000
    sharded, copied, _, adam, _ = capacity.KEEPING
    model = Model(EmbeddingMLP({"item": ids}, dim=capacity.DIM), LogMSE())
    (table,) = [weight for weight in model.parameters() if len(weight) == ids]
    (readers,) = RowWise(0.1).on(model, Eager(), Group()).tables.readers
    kept = [table, readers.tables[0].squares, readers.row_of_id]
    assert _bytes(kept) == ids * copied.bytes_an_id
    assert _bytes(kept[:2]) == ids * sharded.bytes_an_id

    dense = Adam().on(model, Eager(), Group()).dense
    model.loss({"item": torch.tensor([1, 2])}, torch.tensor([1.0, 2.0]))["point"].sum().backward()
    dense.step()
    moments = [value for value in dense.state[table].values() if value.numel() > 1]
    assert _bytes([table, table.grad, *moments]) == ids * adam.bytes_an_id


def test_the_dense_part_is_that_of_the_industrial_network(capacity):
    log = OrderLog(users=100, items=80)
    network = DIN(log.sizes, numeric=("log_price",), history={"history": "item"}, hidden=(1024, 512, 256))
    model = Model(network, LogSUN(shared=1))
    dense = sum(weight.numel() for name, weight in model.named_parameters() if ".tables." not in name)
    assert dense == capacity.DENSE


def test_bytes_of_a_step_are_those_that_were_sent(capacity, results):
    """Within what the small tables, padding and the terms of the loss add."""
    compared = 0
    for line in capacity.lines(results, "ranks"):
        if line["ranks"] > 1 and capacity._exchanges_rows(line):
            distinct, sharded = line["distinct ids of a rank in a step"], line["tables"] == "sharded"
            computed = capacity.bytes_sent(line["dense parameters"], distinct, sharded)
            assert computed == pytest.approx(line["bytes a rank sends in a step"], rel=0.05)
            compared += 1
    assert compared >= 2


def test_what_a_change_of_the_inputs_changes(capacity, results):
    one, _, many, *_ = capacity.MACHINES
    cost = capacity.epoch(results, one)
    dearer = capacity.epoch(results, replace(one, price=2 * one.price))
    assert (dearer.seconds, dearer.dollars) == (cost.seconds, 2 * cost.dollars)
    assert capacity.epoch(results, replace(one, gib=cost.gib - 1)).fits is False
    # The same work on more ranks: computing is divided, and every machine reads its share.
    spread = capacity.epoch(results, many)
    assert spread.computing == pytest.approx(cost.computing / many.all_ranks)
    assert spread.reading == pytest.approx(cost.reading / many.count)
    slower = capacity.epoch(results, replace(many, bandwidth=many.bandwidth / 2))
    latency = capacity.ROWS / (65536 * many.all_ranks) * capacity.MESSAGES * capacity.LATENCY
    assert slower.sending - latency == pytest.approx(2 * (spread.sending - latency))


def _bytes(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
