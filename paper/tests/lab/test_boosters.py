import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.dummy import DummyRegressor

from transun_paper.lab.boosters import AUTOMATIC, booster_claims, boosters_table, entry_of, out_of_fold
from transun_paper.lab.matrix import Matrix, folds
from transun_paper.lab.progress import silent
from transun_paper.lab.store import Store


def test_a_row_is_predicted_from_the_other_folds():
    y = np.random.default_rng(0).lognormal(size=200)
    pred = out_of_fold(Matrix(np.zeros((200, 1)), y, ()), lambda base: DummyRegressor())
    fold = folds(200)
    assert pred == pytest.approx([y[fold != fold[row]].mean() for row in range(200)])


def test_an_entry_has_metrics_errors_and_jackknife_values():
    y = np.array([1.0, 2.0, 3.0, 6.0] * 10)
    pred = np.full(40, 4.0)
    entry = entry_of(pred, y, 2.5)
    assert (entry["rows"], entry["seconds"]) == (40, 2.5)
    assert entry["metrics"]["STRE"] == pytest.approx(0.25)  # (4 - 3) / 4
    assert entry["metrics"]["NRMSE"] == pytest.approx(np.sqrt(np.mean((pred - y) ** 2)) / 3, rel=1e-6)
    assert entry["metrics"]["NMAE"] == pytest.approx(2.0 / 3.0)
    # 1 - mean(y) / 4 has the standard error of mean(y), over 4.
    assert entry["errors"]["STRE"] == pytest.approx(y.std(ddof=1) / np.sqrt(40) / 4, rel=1e-6)
    kept = np.arange(40) % 20 != 3
    assert entry["left_out"]["STRE"][3] == pytest.approx(1 - y[kept].mean() / 4, rel=1e-6)


def entry(method, stre=0.0, nrmse=1.0):
    metrics = {"STRE": stre, "NRMSE": nrmse}
    blocks = {name: [value + 1e-3 * (block % 2) for block in range(20)] for name, value in metrics.items()}
    return {
        "dataset": "d",
        "method": method,
        "metrics": metrics,
        "errors": {"STRE": 0.01, "NRMSE": 0.1},
        "left_out": blocks,
    }


def test_claims_compare_the_automatic_choice_with_the_best_row():
    rows = [entry(AUTOMATIC, 0.015, 1.05), entry("MSE", nrmse=1.0), {"dataset": "d", "method": "Gamma", "failed": "x"}]
    unbiased, near = booster_claims(rows)
    assert unbiased.holds
    assert near.holds
    assert near.evidence == "1.0500; +0.0500 ± 0.0000 (paired) to MSE"
    unbiased, near = booster_claims([entry(AUTOMATIC, 0.03, 1.2), entry("MSE", nrmse=1.0)])
    assert not unbiased.holds
    assert not near.holds
    assert booster_claims([entry(AUTOMATIC), entry("MSE", nrmse=1.1)])[1].evidence == "1.0000; it is the best row"


def test_a_table_is_computed_once_and_a_refusal_is_an_entry(tmp_path, monkeypatch):
    draw = np.random.default_rng(0)
    plays = pa.table(
        {
            "userID": draw.integers(0, 50, 300),
            "artistID": draw.integers(0, 20, 300),
            "weight": draw.integers(0, 9, 300).astype(float),
        }
    )
    pq.write_table(plays, tmp_path / "lastfm2k_plays.parquet")
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path))
    store = Store(tmp_path / "runs")
    mse, gamma = boosters_table(store, ["lastfm"], ["MSE", "Gamma"], write=silent)
    assert (mse["dataset"], mse["method"], mse["rows"]) == ("lastfm", "MSE", 300)
    # Every fold is predicted by a mean of the others, up to what the trees learned from noise.
    assert abs(mse["metrics"]["STRE"]) < 0.1
    assert "failed" in gamma  # its deviance has no value at zero
    monkeypatch.delenv("TRANSUN_DATA")  # the second table comes from the store
    assert boosters_table(store, ["lastfm"], ["MSE", "Gamma"], write=silent) == [mse, gamma]
