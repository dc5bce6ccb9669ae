"""A repaired column adds up, no row's own target is in its correction, and rows without a target get one too."""

import numpy as np
import pytest

from transun.diagnosis.reading import ColumnNames
from transun.diagnosis.repair import repair

pytest.importorskip("scipy")
pytest.importorskip("pyarrow")

SIGMA = 0.8
# Actual to predicted amounts, by shop.
FACTOR = {"a": 0.5, "b": 2.0, "c": 1.0}


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    typical = np.exp(2.0 + rng.normal(0.0, 0.7, rows))
    return {"y": typical * rng.lognormal(0.0, SIGMA, rows), "p": typical}


def test_the_corrected_column_follows_the_true_mean():
    """E[y|p] = p·e^(σ²/2); the standard error of a ratio of totals here is about 2 %."""
    data = table()
    found = repair(data, ColumnNames("y", "p"), progress=False)
    expected = data["p"] * np.exp(SIGMA**2 / 2)
    assert found.corrected(data).sum() / expected.sum() == pytest.approx(1.0, abs=0.08)
    middle = (data["p"] > np.quantile(data["p"], 0.2)) & (data["p"] < np.quantile(data["p"], 0.8))
    assert (found.corrected(data) / expected)[middle].mean() == pytest.approx(1.0, abs=0.08)
    assert found.outcomes[0].pgr.high < 1.0
    chosen = next(one for one in found.outcomes if one.name == found.chosen)
    assert chosen.pgr.low < 1.0 < chosen.pgr.high
    pgr = found.corrected(data).sum() / data["y"].sum()
    assert chosen.pgr.value == pytest.approx(pgr)  # the results are those of the column that is written


@pytest.mark.parametrize("method", ["smearing", "isotonic"])
def test_no_row_sees_its_own_target(method):
    data = table(1000)
    before = repair(data, ColumnNames("y", "p"), method=method, progress=False).corrected(data)
    row = int(np.argsort(data["p"])[500])
    data["y"] = data["y"].copy()
    data["y"][row] *= 3.0
    after = repair(data, ColumnNames("y", "p"), method=method, progress=False).corrected(data)
    assert after[row] == pytest.approx(before[row], rel=1e-12)
    assert not np.allclose(after, before, rtol=1e-12)


def test_rows_without_a_target_are_corrected():
    data = table()
    data["y"] = np.where(np.arange(3000) % 10 == 0, np.nan, data["y"])
    found = repair(data, ColumnNames("y", "p"), progress=False)
    assert (found.learned, found.applied) == (2700, 300)
    gone = np.isnan(data["y"])
    ratio = found.corrected(data)[gone].sum() / data["p"][gone].sum()
    assert ratio == pytest.approx(np.exp(SIGMA**2 / 2), rel=0.1)


def test_weights_count():
    data = table()
    half = data["p"] > np.median(data["p"])
    data["y"] = np.where(half, data["y"], 10.0 * data["y"])
    data["w"] = half.astype(float)
    found = repair(data, ColumnNames("y", "p", "w"), method="smearing", progress=False)
    assert found.learned == int(half.sum())
    ratio = found.corrected(data)[half].sum() / data["p"][half].sum()
    assert ratio == pytest.approx(np.exp(SIGMA**2 / 2), rel=0.1)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"p": np.full(3000, np.nan)}, "row 0 has no prediction"),
        ({"y": np.full(3000, np.nan)}, "0 rows have a target 'y'"),
        ({"w": np.full(3000, -1.0)}, "a weight is a number, not below 0"),
        ({"p": np.full(3000, -1.0)}, "transformed back"),
    ],
)
def test_mistakes(change, told):
    data = table() | {"w": np.ones(3000)} | change
    with pytest.raises(ValueError, match=told):
        repair(data, ColumnNames("y", "p", "w"), progress=False)


def test_many_rows_are_corrected_by_what_a_sample_teaches(monkeypatch):
    monkeypatch.setattr("transun.diagnosis.repair._SAMPLE", 2000)
    data = table(9000)
    found = repair(data, ColumnNames("y", "p"), progress=False)
    assert 900 < found.sampled <= 2000 < found.learned == 9000
    total = found.corrected(data).sum() / data["y"].sum()
    # The error of the total of the sample, σ of y over its mean by the root of its rows, three times.
    assert total == pytest.approx(1.0, abs=3 * data["y"].std() / data["y"].mean() / found.sampled**0.5)


class TestSegments:
    """Predictions that are twice the truth in one shop, half of it in another and right in a third."""

    @pytest.fixture(scope="class")
    @staticmethod
    def data():
        rng = np.random.default_rng(0)
        shop = rng.choice(["a", "b", "c"], 2000)
        p = rng.uniform(5.0, 15.0, 2000)
        # Gamma of shape 4: the standard deviation of an amount is half of its mean.
        y = p * np.vectorize(FACTOR.get)(shop) * rng.gamma(4.0, 0.25, 2000)
        return {"y": np.where(np.arange(2000) % 10 == 0, np.nan, y), "truth": y, "p": p, "shop": shop}

    @pytest.fixture(scope="class")
    @staticmethod
    def repaired(data):
        return repair(data, ColumnNames("y", "p", by=("shop",)), progress=False)

    def test_segments_are_put_right_for_rows_with_and_without_a_target(self, data, repaired):
        assert repaired.chosen == "multicalibration"
        corrected, known = repaired.corrected(data), np.isfinite(data["y"])
        for shop in FACTOR:
            for rows in (known, ~known):
                inside = rows & (data["shop"] == shop)
                noise = 0.5 / np.sqrt(inside.sum())
                # The rows learned from have their own noise, at most as large.
                assert corrected[inside].sum() / data["truth"][inside].sum() == pytest.approx(1.0, abs=5 * noise)

    @pytest.mark.parametrize(
        ("change", "by", "message"),
        [
            ({}, ("p",), "column 'p' holds numbers to be corrected"),
            ({"shop": ["a"] * 2000}, ("shop",), "shop: one value in every row"),
            ({"y": np.where(np.arange(2000) == 3, -2.0, 9.0)}, ("shop",), "column 'y' is -2 in row 3"),
        ],
    )
    def test_mistakes(self, data, change, by, message):
        with pytest.raises(ValueError, match=message):
            repair(data | change, ColumnNames("y", "p", by=by), progress=False)
