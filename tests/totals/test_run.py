"""Totals of tables and of arrays: the same numbers, segments of their own rows, mistakes in one sentence."""

import numpy as np
import pytest
from scipy import stats

from transun import MSE, Recipe, hold_out, total, total_of, train
from transun.totals import AmountTail, relative_amounts

pa = pytest.importorskip("pyarrow")


def make_table(rows, seed):
    rng = np.random.default_rng(seed)
    item = rng.integers(0, 5, rows)
    return pa.table(
        {
            "item": pa.array([f"i{i}" for i in item]),
            "shop": pa.array([("north", "south", None)[i] for i in rng.integers(0, 3, rows)]),
            "user": rng.integers(0, rows // 3, rows),
            "gmv": (1.0 + item) * rng.lognormal(0.0, 0.5, rows),
        }
    )


@pytest.fixture(scope="module")
def model():
    return train(make_table(500, 0), "gmv", MSE(), exclude=["user", "shop"], recipe=Recipe(epochs=3))


def ends(result):
    return pytest.approx((result.low, result.value, result.high))


NEW, LABELLED = make_table(900, 1), make_table(600, 2)


def test_a_table_and_its_predictions_have_one_total(model):
    by_table = total(model, NEW.drop_columns(["gmv"]), LABELLED)
    by_array = total_of(model.predict(NEW).double(), model.predict(LABELLED).double(), LABELLED["gmv"].to_numpy())
    result = by_table.whole
    assert (result.low, result.value, result.high) == ends(by_array.whole)
    assert by_table.whole.low < sum(NEW["gmv"].to_pylist()) < by_table.whole.high


def test_a_segment_has_the_total_of_its_rows(model):
    (by_shop,) = total(model, NEW, LABELLED, by=["shop"], cluster="user", finite_variance=True).segments
    assert set(by_shop.totals) == {"north", "south", "missing"}
    north = [table.filter(pa.compute.equal(table["shop"], "north")) for table in (NEW, LABELLED)]
    result, alone = by_shop.totals["north"], total(model, *north, cluster="user", finite_variance=True).whole
    assert (result.value, result.units) == (pytest.approx(alone.value), alone.units)
    # The tail of a segment is that of all labelled rows, which know it better.
    assert result.high - result.low == pytest.approx(alone.high - alone.low, rel=0.05)


def test_clusters_of_tables_are_those_of_arrays(model):
    result = total(model, NEW, LABELLED, cluster="user", finite_variance=True).whole
    units = {
        "finite_variance": True,
        "cluster": NEW["user"].to_pylist(),
        "labelled_cluster": LABELLED["user"].to_pylist(),
    }
    pred = [model.predict(table).double() for table in (NEW, LABELLED)]
    assert (result.low, result.value, result.high) == ends(total_of(*pred, LABELLED["gmv"].to_numpy(), **units).whole)
    assert result.units == len(set(LABELLED["user"].to_pylist())) < result.labelled


def test_rows_without_a_target_are_no_labels(model, tmp_path):
    from pyarrow import csv

    gaps = LABELLED.append_column("kept", LABELLED["gmv"]).set_column(
        3, "gmv", pa.array([None if i % 2 else value for i, value in enumerate(LABELLED["gmv"].to_pylist())])
    )
    csv.write_csv(gaps, tmp_path / "gaps.csv")
    result = total(model, NEW, tmp_path / "gaps.csv").whole
    assert result.labelled == 300
    assert result.value == pytest.approx(total(model, NEW, LABELLED.take(list(range(0, 600, 2)))).whole.value)


def test_training_rows_are_no_labels():
    rows, other = hold_out(make_table(600, 3), 0.5, seed=0)
    trained = train(rows, "gmv", MSE(), exclude=["user", "shop"])
    with pytest.raises(ValueError, match="labelled rows are training rows of the model"):
        total(trained, other, rows)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"by": ["gmv"]}, "segments by the target 'gmv'"),
        ({"cluster": "shop"}, "column 'shop' is empty in row"),
        ({"cluster": "person"}, "person"),
        ({"level": 95}, "such as 0.95, got 95"),
        ({"cap": 0.0}, "a cap is an amount above 0"),
        ({"weight": "item"}, "item"),
    ],
)
def test_mistakes_are_named(model, keywords, message):
    with pytest.raises(ValueError, match=message):
        total(model, NEW, LABELLED, **keywords)


def test_a_segment_without_labels_has_no_interval():
    result = total_of(np.ones(80), np.ones(60), np.arange(60.0), segment=["a", "b"] * 40, labelled_segment=["a"] * 60)
    a, b = result.segments[0].totals.values()
    assert a.answered
    assert "there are 0 labelled" in b.refusal
    assert b.predicted == 40.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: total_of([1.0], [1.0], [1.0], weight=[1.0]), "both weight and labelled_weight"),
        (lambda: total_of([1.0], [1.0, 2.0], [1.0]), r"2 predictions of labelled rows and targets of shape \(1,\)"),
        (lambda: total_of([1.0, np.inf], [1.0], [1.0]), "the prediction of new row 1 is inf"),
        (lambda: total_of([[1.0]], [1.0], [1.0]), "shape"),
        (lambda: total_of([], [1.0], [1.0]), "no new rows"),
        (lambda: total_of([1.0], [1.0], [1.0], weight=[1.0], labelled_weight=[-1.0]), "use 0 to leave a row out"),
        (lambda: total_of([1.0], [1.0], [1.0], segment=["a", "b"], labelled_segment=["a"]), "give one a row"),
    ],
)
def test_arrays_that_do_not_fit_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.fixture(scope="module")
def tables():
    days = np.random.default_rng(5).integers(1, 30, 1500).astype(float)
    table = make_table(1500, 6)
    table = table.set_column(3, "gmv", pa.array(table["gmv"].to_numpy() * days)).append_column("days", pa.array(days))
    return table.slice(0, 500), table.slice(500, 400), table.slice(900)


@pytest.fixture(scope="module")
def by_day(tables):
    return train(tables[0], "gmv", MSE(), exclude=["user", "shop"], exposure="days", recipe=Recipe(epochs=3))


def test_the_total_is_of_amounts(tables, by_day):
    _, new, labelled = tables
    result = total(by_day, new, labelled).whole
    pred = [by_day.predict(table).double() for table in (new, labelled)]
    assert (result.low, result.value, result.high) == ends(total_of(*pred, labelled["gmv"].to_numpy()).whole)


def test_training_rows_are_recognised_by_their_rates(tables, by_day):
    with pytest.raises(ValueError, match="labelled rows are training rows"):
        total(by_day, tables[1], tables[0])


def test_intervals_of_rows_in_chunks_are_those_of_the_model(tables, by_day):
    from transun.tables.prediction import predict_in_chunks

    model = by_day.with_intervals(tables[2])
    (chunk,) = predict_in_chunks(model, tables[1], interval=0.8)
    np.testing.assert_allclose(np.stack(chunk.interval, 1), model.predict_interval(tables[1], 0.8), rtol=1e-5)
    y = tables[1]["gmv"].to_numpy()
    covered = (chunk.interval[0].numpy() <= y) & (y <= chunk.interval[1].numpy())
    # 600 rows to learn from and 400 to be judged by: 80 % is known to 2.6 points.
    assert covered.mean() == pytest.approx(0.8, abs=4 * 0.026)


def test_labels_that_are_all_the_same_allow_no_interval():
    """600 rows without a sale say nothing about the one sale that may come."""
    result = total_of(np.ones(80), np.ones(600), np.zeros(600)).whole
    assert "are the same" in result.refusal
    assert result.remedy == "label rows whose amounts differ"


def test_an_infinite_amount_is_no_missing_one(model):
    amounts = LABELLED["gmv"].to_pylist()
    amounts[:8] = [None, *amounts[1:7], np.inf]
    with pytest.raises(ValueError, match="column 'gmv' of labelled row 7 is infinite"):
        total(model, NEW, LABELLED.set_column(3, "gmv", pa.array(amounts)))


def test_rows_that_count_nothing_have_no_total(model):
    nothing = [table.append_column("count", pa.array(np.zeros(len(table)))) for table in (NEW, LABELLED)]
    with pytest.raises(ValueError, match="the weight of every new row is 0"):
        total(model, *nothing, weight="count")


def test_a_segment_whose_labels_count_nothing_has_no_interval():
    weights = {"weight": np.ones(80), "labelled_weight": np.repeat([1.0, 0.0], 40)}
    segments = {"segment": ["a", "b"] * 40, "labelled_segment": ["a"] * 40 + ["b"] * 40}
    result = total_of(np.ones(80), np.ones(80), np.arange(80.0), **weights, **segments)
    assert "there are 0 labelled" in result.segments[0].totals["b"].refusal


def test_labelled_rows_of_another_kind_are_told(model):
    other = LABELLED.set_column(0, "item", pa.array(["x"] * len(LABELLED)))
    assert total(model, NEW, LABELLED).remarks == ()
    (remark,) = total(model, NEW, other).remarks
    assert remark.startswith("labelled rows, column 'item': 600 of 600 values (100.0 %) were not seen in training")


class TestTail:
    """Rows that have no part in the interval help to tell whether there can be one; see the guide on totals."""

    y = stats.lognorm(1.0).ppf((np.arange(300) + 0.5) / 300)
    rows = (np.ones(900), np.ones(300), y)

    def test_few_labelled_rows_of_a_long_tail_prove_nothing_and_make_it_likely(self):
        result = total_of(*self.rows)
        assert result.whole.answered
        assert not result.shown

    def test_few_labelled_rows_of_a_heavy_tail_make_a_variance_unlikely(self):
        """Student's t of 1.8 degrees of freedom has an infinite variance, ξ = 0.56, which 300 rows cannot prove."""
        y = stats.t(1.8).ppf(0.5 + (np.arange(300) + 0.5) / 600)
        refused = total_of(np.ones(900), np.ones(300), y)
        assert "likelier infinite than finite" in refused.whole.refusal
        assert not refused.tail.infinite_variance
        assert total_of(np.ones(900), np.ones(300), y, finite_variance=True).whole.answered

    def test_other_rows_prove_it(self):
        many = stats.lognorm(1.0).ppf((np.arange(5000) + 0.5) / 5000)
        result = total_of(*self.rows, tail=AmountTail.of(relative_amounts(many, np.ones(5000))))
        assert result.whole.answered
        assert result.shown

    def test_other_rows_disprove_it(self):
        heavy = AmountTail.of(stats.pareto(1.5).ppf((np.arange(5000) + 0.5) / 5000))
        assert "tail index" in total_of(*self.rows, tail=heavy, finite_variance=True).whole.refusal

    def test_amounts_that_a_cap_cuts_have_a_variance(self):
        heavy = AmountTail.of(stats.pareto(1.5).ppf((np.arange(5000) + 0.5) / 5000))
        assert total_of(*self.rows, tail=heavy, cap=5.0).whole.answered
        assert not total_of(*self.rows, tail=heavy, cap=1e9).whole.answered


def test_labelled_rows_that_were_given_twice_are_told(model):
    """The copies are no news and make the interval narrower by √2, and nothing else would say so."""
    twice = pa.concat_tables([LABELLED, LABELLED])
    once, doubled = total(model, NEW, LABELLED), total(model, NEW, twice)
    assert (once.repeated, doubled.repeated) == (0, len(LABELLED))
    assert once.warnings() == ()
    assert "600 of 1,200 labelled rows repeat another one" in doubled.warnings()[0]
    # Customers are counted as one, so that their rows may repeat.
    assert total(model, NEW, twice, cluster="user").repeated == 0
    y, pred = LABELLED["gmv"].to_pylist(), [2.0] * len(LABELLED)
    assert total_of([2.0] * 9, pred * 2, y * 2).repeated == len(LABELLED)


def test_rows_without_an_amount_may_be_alike():
    assert total_of([2.0] * 9, [2.0] * 100, [0.0] * 90 + [float(i) for i in range(1, 11)]).repeated == 0


def test_segments_and_clusters_may_be_missing_or_mix_types():
    y = [1.0 + i % 7 for i in range(200)]
    groups = [None, "north", 3, float("nan")] * 50
    mixed = total_of(y, y, y, segment=groups, labelled_segment=groups, cluster=groups, labelled_cluster=groups)
    assert set(mixed.segments[0].totals) == {"missing", "north", "3"}
    assert mixed.whole.units == 3
