"""A model evaluated on held-out rows: one encoding, and the numbers of a streamed evaluation."""

from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pyarrow
import pytest

from prepared_model import model, rows
from scattered import Scattered, assert_same
from transun import Features, LogMSE, LogSUN
from transun.data.seen_rows import SeenRows
from transun.data.spool import Spool
from transun.diagnosis import evaluation
from transun.diagnosis.evaluation import evaluate_held_out, evaluate_model, evaluate_rows
from transun.metrics import PGR, XAUC

pytest.importorskip("scipy")


@pytest.mark.parametrize("weight", [None, "weight"])
def test_rows_in_memory_get_the_numbers_of_a_streamed_evaluation(weight, tmp_path):
    table = rows()
    trained = model(LogMSE(), table, weight)
    held_out, streamed = evaluate_held_out(trained, table, ["shop"]), evaluate_model(trained, table, ["shop"])
    assert held_out == streamed.assessment
    counts = table["weight"].to_numpy() if weight else None
    for metric in (PGR, XAUC):
        expected = metric(trained.predict(table).double(), table["y"].to_numpy(), counts)
        assert held_out.metric(metric.name).value == pytest.approx(expected, rel=1e-6)
    assert streamed.dropped == 0


def test_rows_elsewhere_get_the_evaluation_of_a_table():
    table = rows()
    table = table.set_column(3, "y", pyarrow.array([None, *table["y"].to_pylist()[1:]]))
    trained = model(LogMSE(), table.slice(1), "weight")
    trained = replace(trained, seen=SeenRows.of(trained.dataset(table.slice(1, 100))))
    streamed = evaluate_model(trained, table, ["shop"], progress=False)
    elsewhere = evaluate_rows(trained, Scattered(table, seed=0), ["shop"])
    assert_same(asdict(streamed.assessment), asdict(elsewhere.assessment))
    assert (streamed.dropped, streamed.shift) == (elsewhere.dropped, elsewhere.shift) == (1, elsewhere.shift)
    assert streamed.seen == elsewhere.seen > 0.2
    np.testing.assert_array_equal(streamed.sample["pred"], elsewhere.sample["pred"])


def test_many_predictions_are_kept_in_a_file(monkeypatch):
    table = rows()
    trained = model(LogMSE(), table)
    expected = evaluate_model(trained, table, ["shop"])
    monkeypatch.setattr(evaluation, "Spool", partial(Spool, memory=100))
    assert_same(asdict(expected.assessment), asdict(evaluate_model(trained, table, ["shop"]).assessment))


def test_held_out_rows_are_encoded_once(monkeypatch):
    table = rows()
    trained = model(LogSUN(), table)
    encoded = []
    encode = Features._encode
    monkeypatch.setattr(Features, "_encode", lambda self, table: encoded.append(1) or encode(self, table))
    assessment = evaluate_held_out(trained, table, ["shop"])
    assert len(encoded) == 1
    # LogSUN's slope is κ = 1 / (T⁻¹(u) + 1), and untrained predictions are all alike.
    (level,) = assessment.levels
    assert 0.0 < level.kappa < 1.0


def test_a_head_without_a_slope_has_none():
    table = rows()
    assert {level.kappa for level in evaluate_held_out(model(LogMSE(), table), table).levels} == {None}


def test_numbers_that_are_written_as_text_are_judged_as_they_are_learned():
    table = rows()
    written = table.set_column(3, "y", pyarrow.array([f" {value!r} " for value in table["y"].to_pylist()]))
    trained = model(LogMSE(), table)
    assert evaluate_held_out(trained, written) == evaluate_held_out(trained, table)


def test_segments_by_the_target_are_refused():
    table = rows()
    for evaluate in (evaluate_held_out, evaluate_model):
        with pytest.raises(ValueError, match="columns known beforehand"):
            evaluate(model(LogMSE(), table), table, ["y"])


class TestClusters:
    """Rows of one user may be alike; a total is then known as well as so many users can tell."""

    def pairs(self):
        table = rows()
        twice = pyarrow.concat_tables([table, table])
        return table, twice.append_column("user", pyarrow.array([*range(400), *range(400)]))

    def test_rows_in_equal_pairs_say_as_much_as_one_of_each(self):
        table, pairs = self.pairs()
        trained = model(LogMSE(), table)
        single, double = evaluate_held_out(trained, table), evaluate_held_out(trained, pairs, cluster="user")
        assert double.rows == 2 * single.rows
        assert double.noise.units == single.noise.units
        assert double.noise.held_out == pytest.approx(single.noise.held_out)
        for name in ("PGR", "TRE"):
            found, expected = double.metric(name), single.metric(name)
            assert (found.low, found.value, found.high) == pytest.approx((expected.low, expected.value, expected.high))
        blind = evaluate_held_out(trained, pairs)
        assert blind.noise.held_out == pytest.approx(single.noise.held_out / np.sqrt(2), rel=0.01)

    def test_streamed_rows_get_the_same_numbers(self):
        table, pairs = self.pairs()
        trained = model(LogMSE(), table)
        streamed = evaluate_model(trained, pairs, ["shop"], cluster="user")
        assert streamed.assessment == evaluate_held_out(trained, pairs, ["shop"], "user")
        assert len(streamed.sample) == 800

    def test_a_row_without_a_cluster_is_named(self):
        table = rows().append_column("user", pyarrow.array([*range(399), None]))
        with pytest.raises(ValueError, match="column 'user' is empty in row 399"):
            evaluate_held_out(model(LogMSE(), table), table, cluster="user")
