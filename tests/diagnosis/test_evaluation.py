"""A model evaluated on held-out rows: one encoding, the numbers of a streamed evaluation, and a true certificate."""

from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pyarrow
import pytest

from scattered import Scattered, assert_same
from transun import Features, Id, LogMSE, LogSUN, Model, TableModel, embedding_mlp, load
from transun.data import read_table
from transun.data.fingerprint import fingerprint
from transun.data.seen_rows import SeenRows
from transun.data.spool import Spool
from transun.diagnosis import evaluation
from transun.diagnosis.evaluation import certify_folder, evaluate_held_out, evaluate_model, evaluate_rows
from transun.metrics import PGR, XAUC

pytest.importorskip("scipy")


def rows(count=400, seed=0):
    rng = np.random.default_rng(seed)
    item = rng.integers(0, 5, count)
    return read_table(
        {
            "item": item,
            "shop": rng.choice(["a", "b"], count),
            "weight": rng.integers(1, 4, count),
            "y": (1.0 + item) * rng.lognormal(0.0, 0.5, count),
        }
    )


def model(head, table, weight=None):
    features = Features({"item": Id()}).fit(table)
    network = Model(embedding_mlp(features, hidden=(8,)), head)
    trained = TableModel(features, network, "y", weight)
    network.prepare(trained.dataset(table).targets())
    return trained


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


def test_segments_by_the_target_are_refused():
    table = rows()
    for evaluate in (evaluate_held_out, evaluate_model):
        with pytest.raises(ValueError, match="columns known beforehand"):
            evaluate(model(LogMSE(), table), table, ["y"])


def test_rows_of_the_training_are_no_proof(tmp_path):
    table = rows()
    trained = model(LogMSE(), table)
    trained = replace(trained, seen=SeenRows.of(trained.dataset(table)))
    trained.save(tmp_path)
    assert load(tmp_path).seen_share(table) == 1.0
    assert load(tmp_path).seen_share(rows(seed=1)) == 0.0
    evaluation = evaluate_model(load(tmp_path), table)
    assert evaluation.seen == 1.0
    with pytest.raises(ValueError, match=r"about 100% of these rows .* that it has not seen"):
        certify_folder(tmp_path, trained, table, evaluation.assessment, "all rows", evaluation.seen)
    assert not (tmp_path / "certificate.json").exists()


def test_a_certificate_is_of_exactly_its_rows(tmp_path):
    table = rows()
    trained = model(LogMSE(), table)
    trained.save(tmp_path)
    assessment = evaluate_held_out(trained, table, ["shop"])
    certificate = certify_folder(tmp_path, trained, table, assessment, "all rows")
    assert certificate.fingerprint == fingerprint(table, ["item", "y"])
    assert certificate.fingerprint != fingerprint(table.slice(1), ["item", "y"])
    assert certificate.whole.metrics["PGR"].value == assessment.metric("PGR").value
    assert {part.value: part.rows for part in certificate.segments} == {
        segment.value: segment.rows for segment in assessment.segments[0].segments
    }
    assert set(certificate.segments[0].metrics) == {estimate.name for estimate in assessment.metrics}


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


def test_intervals_of_rows_are_judged_by_level_and_segment():
    table = rows(4000)
    covered = evaluate_held_out(model(LogMSE(), table), table, ["shop"]).covered
    assert {each.group for each in covered[-2:]} == {"shop a", "shop b"}
    assert sum(each.rows for each in covered if each.group.startswith("shop")) == 4000
    for each in covered:
        # Half of the rows teach, and the others are judged: twice the variance of a share.
        assert each.share == pytest.approx(0.9, abs=4 * np.sqrt(2 * 0.09 / each.rows))
