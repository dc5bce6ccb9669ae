from datetime import datetime

import numpy as np
import pyarrow as pa
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


def test_hours_are_those_of_the_time_zone() -> None:
    moments = pa.array([datetime(2022, 7, 1, 22)]).cast(pa.timestamp("us", "UTC"))
    local = moments.cast(pa.timestamp("us", "Europe/Berlin"))
    features = Features({"t": Datetime(("hour", "weekday"))}).fit({"t": moments})
    assert features.encode({"t": moments})["t.hour"].tolist() == [23]
    assert {name: tensor.tolist() for name, tensor in features.encode({"t": local}).items()} == {
        "t.hour": [1],
        "t.weekday": [6],  # Saturday
    }
