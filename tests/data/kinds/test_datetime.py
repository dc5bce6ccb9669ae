from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from sklearn.preprocessing import StandardScaler

from transun.data import Datetime, Features


def test_parts_of_a_time() -> None:
    moments = [datetime(2022, 4, 25, 0, 30), datetime(2024, 2, 29, 23, 59), datetime(2023, 12, 31, 12), None]
    tensors = Features({"t": Datetime()}).fit({"t": moments}).encode({"t": moments})
    known = [moment for moment in moments if moment is not None]
    assert tensors["t.hour"].tolist() == [1 + moment.hour for moment in known] + [0]
    assert tensors["t.weekday"].tolist() == [1 + moment.weekday() for moment in known] + [0]
    assert tensors["t.month"].tolist() == [moment.month for moment in known] + [0]
    assert tensors["t.age.missing"].tolist() == [0, 0, 0, 1]
    now = datetime(2025, 1, 1)  # any: it cancels
    days = np.array([(now - moment).total_seconds() / 86_400 for moment in known])
    expected = StandardScaler().fit_transform(days[:, None])[:, 0]
    np.testing.assert_allclose(tensors["t.age"].numpy()[:3], expected, atol=1e-5)


def test_sizes_of_times_cover_the_calendar() -> None:
    hours = pa.array(np.arange("2024-01-01", "2025-01-01", dtype="M8[h]").astype("M8[s]"))
    features = Features({"t": Datetime()}).fit({"t": hours})
    tensors = features.encode({"t": hours})
    assert {name: int(tensors[name].max()) + 1 for name in features.ids} == features.ids
    assert features.numeric == ("t.age",)


@pytest.mark.parametrize(("zone", "hour", "weekday"), [("UTC", 22, 5), ("Europe/Berlin", 0, 6)])
def test_hours_are_those_of_the_zone_of_training(zone: str, hour: int, weekday: int) -> None:
    moments = pa.array([datetime(2022, 7, 1, 22)]).cast(pa.timestamp("us", "UTC"))
    features = Features({"t": Datetime(("hour", "weekday"))}).fit({"t": moments.cast(pa.timestamp("us", zone))})
    expected = {"t.hour": [1 + hour], "t.weekday": [weekday]}  # Friday evening is Saturday in Berlin
    local = datetime(2022, 7, 1 + (hour == 0), hour)
    for same in (
        moments,
        moments.cast(pa.timestamp("s", "Asia/Tokyo")),
        ["2022-07-02T07:00:00+09:00"],
        [local],  # without a zone: the clock on the wall
        [local.isoformat(" ")],
    ):
        assert {name: tensor.tolist() for name, tensor in features.encode({"t": same}).items()} == expected


def test_instants_are_refused_where_training_had_local_times() -> None:
    features = Features({"t": Datetime(("hour",))}).fit({"t": ["2022-07-01 22:00:00"]})
    with pytest.raises(ValueError, match="column 't' has the time zone UTC and had none in training"):
        features.encode({"t": ["2022-07-01T22:00:00Z"]})
    assert features.encode({"t": [None]})["t.hour"].tolist() == [0]
