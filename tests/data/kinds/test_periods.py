"""Periods that many rows share: their codes in memory and in graphs, and what a network makes of them."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from transun import Adam, Dataset, EmbeddingMLP, Model, Poisson, Recipe, Scaled, TabM, fit
from transun.data import Datetime, Features, Number
from transun.data.kinds.periods import period_codes, period_codes_in_graph, recurring_periods


def test_the_last_of_many_periods_are_kept() -> None:
    periods = np.repeat(np.arange(2_500.0), 10)
    known = recurring_periods(periods)
    assert len(known) == 2_000
    assert known[-1] == 2_499.0


@pytest.mark.parametrize("missing", [0, 3])
def test_codes_are_those_of_pandas(missing: int) -> None:
    rng = np.random.default_rng(0)
    years = rng.integers(1990, 2020, 200).astype(float)
    years[:missing] = np.nan
    counts = pd.Series(years).value_counts()
    known = sorted(counts[counts >= 10].index)
    assert recurring_periods(years) == tuple(known)
    expected = pd.Index(known).get_indexer(years) + 1
    np.testing.assert_array_equal(period_codes(years, known).numpy(), expected)
    present = torch.from_numpy(years[missing:])
    codes = period_codes_in_graph(present, torch.tensor(known, dtype=torch.float64))
    np.testing.assert_array_equal(codes.numpy(), expected[missing:])


def test_days_are_those_of_the_clock_of_training() -> None:
    evening = datetime(2022, 7, 1, 22, 30)  # in Berlin the next day
    moments = pa.array([evening + timedelta(minutes=k) for k in range(12)]).cast(pa.timestamp("us", "UTC"))
    for zone, day in (("UTC", "2022-07-01"), ("Europe/Berlin", "2022-07-02")):
        features = Features({"t": Datetime(("day",))}).fit({"t": moments.cast(pa.timestamp("us", zone))})
        kind = features.columns["t"]
        assert isinstance(kind, Datetime)
        assert kind.days == (float(np.datetime64(day).astype(int)),)
        assert features.periods == {"t.day": 2}
        assert features.encode({"t": moments})["t.day"].tolist() == [1] * 12


def test_times_before_1970_have_days() -> None:
    times = [datetime(1969, 12, 31, 23, 59, 59)] * 10 + [datetime(1970, 1, 1)] * 10
    features = Features({"t": Datetime()}).fit({"t": times})
    assert features.encode({"t": [*times[9:11], None]})["t.day"].tolist() == [1, 2, 0]


def test_there_is_no_tensor_of_periods_that_no_rows_share() -> None:
    rows = {"t": [datetime(2024, 1, 1) + timedelta(days=k) for k in range(30)], "year": list(range(1990, 2020))}
    features = Features({"t": Datetime(), "year": Number(periods=True)}).fit(rows)
    assert features.periods == {}
    assert not {"t.day", "year.period"} & set(features.encode(rows))
    assert Features.from_dict(features.to_dict()) == features


def test_forged_days_are_refused() -> None:
    with pytest.raises(ValueError, match="the days of Datetime must ascend"):
        Datetime(days=(3.0, 1.0))
    with pytest.raises(ValueError, match="the known_periods of Number must ascend"):
        Number(known_periods=(3.0, 3.0))


def test_a_network_learns_what_happened_on_a_day_and_the_mean_of_days_that_it_does_not_know() -> None:
    rng = np.random.default_rng(3)
    day = np.repeat(np.arange(40), 50)
    level = rng.permutation(np.linspace(-1.0, 1.0, 40))  # no trend, weekday or month tells it
    y = torch.from_numpy(rng.poisson(20.0 * np.exp(level[day])))
    model = Model(TabM(periods={"day": 41}, hidden=(32,), dropout=0.0), Scaled(Poisson()))
    fit(model, Dataset({"day": torch.from_numpy(day + 1)}, y), Recipe(Adam(1e-2), epochs=40, batch_size=100))
    unknown, *known = model({"day": torch.arange(41)}).tolist()
    # A Poisson mean of 20 in 50 rows tells the level of a day to 3 %, and the levels differ by 60 %.
    assert np.corrcoef(np.log(known), level)[0, 1] ** 2 > 0.9
    assert abs(unknown / float(y.double().mean()) - 1.0) < 0.2


def test_an_unknown_period_has_no_vector_and_training_hides_half_of_the_known() -> None:
    torch.manual_seed(0)
    embedding = EmbeddingMLP(numeric=("x",), periods={"day": 5}, dim=3).stages()[0]()
    batch = {"x": torch.zeros(4000), "day": torch.arange(4000) % 5}
    present = embedding.eval()(batch)[:, :3].abs().sum(1) > 0.0
    assert torch.equal(present, batch["day"] > 0)
    shown = (embedding.train()(batch)[:, :3].abs().sum(1) > 0.0)[batch["day"] > 0]
    assert abs(float(shown.float().mean()) - 0.5) < 4 * 0.5 / 3200**0.5


def test_a_period_beyond_the_table_is_named() -> None:
    model = Model(EmbeddingMLP(periods={"day": 3}, dim=2), Poisson()).eval()
    with pytest.raises(IndexError, match=r"column 'day' holds id 3, but its table has ids 0\.\.2"):
        model({"day": torch.tensor([1, 3])})
    with pytest.raises(ValueError, match="periods of 'day'"):
        EmbeddingMLP(periods={"day": 0})


def test_row_wise_training_leaves_periods_to_the_dense_optimiser() -> None:
    from transun import RowWise

    rows = Dataset({"item": torch.arange(64) % 9, "day": torch.arange(64) % 4}, torch.rand(64))
    model = Model(EmbeddingMLP({"item": 500}, periods={"day": 4}, dim=4, hidden=(8,)), Scaled(Poisson()))
    before = model.network.state_dict()["stacks.0.0.period_tables.0.weight"].clone()
    fit(model, rows, Recipe(RowWise(), epochs=2, batch_size=16))
    after = model.network.state_dict()["stacks.0.0.period_tables.0.weight"]
    assert torch.equal(after[0], torch.zeros(4))
    assert not torch.equal(after[1:], before[1:])
