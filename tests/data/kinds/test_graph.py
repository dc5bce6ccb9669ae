"""The graph of a kind makes the tensors that its `encode` makes, of known, unseen, missing and extreme values."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import torch

from transun.data import Bag, Buckets, Datetime, Features, HashedId, Id, Lists, Number, Numbered, Split, Standardised
from transun.data.kinds.datetime import zone_offsets
from transun.data.kinds.graph import MISSING, EncodedColumn

pa = pytest.importorskip("pyarrow")


def graph_of(kind, values, name="x"):
    columns = values if isinstance(values, dict) else {name: values}
    features = Features({name: kind}).fit(columns)
    (graph,) = features.graphs()
    return features, graph


def coded(each, values):
    """The values as the module of a graph takes them: after the lookup, which a runtime does."""
    if each.lookup is None:
        return torch.from_numpy(values)
    codes = dict(zip(each.lookup.keys, each.lookup.codes, strict=True))
    if each.separator is not None:
        lists = [[part.strip(" ") for part in text.split(each.separator)] if text else [] for text in values]
        width = max(map(len, lists), default=0)
        values = np.array([ids + [""] * (width - len(ids)) for ids in lists], object).reshape(len(lists), width)
    return torch.from_numpy(np.vectorize(lambda value: codes.get(value, 0), otypes=[np.int64])(values))


def same(graph, values):
    """Compare the module with `encode`, exactly; returns the tensors."""
    made = graph({each.name: coded(each, values[each.name]) for each in graph.inputs})
    expected = graph.expected(values)
    assert list(made) == list(expected)
    for name, tensor in expected.items():
        assert made[name].dtype == tensor.dtype
        assert torch.equal(made[name], tensor), name
    return made


NUMBERS = np.array([np.nan, 0.0, -0.0, 0.5, 1.0, 2.0, 3.7, -4.0, 1e-30, 1e12, -1e12, 1e300, 5e-324])


@pytest.mark.parametrize(
    "train",
    [[0.0, 1.0, 2.0, 3.0], [1.0, None, 1.0], [2.0], np.random.default_rng(0).lognormal(0, 3, 1000), [-1e300, 1e300]],
    ids=["few", "constant", "one", "many", "huge"],
)
@pytest.mark.parametrize("kind", [Number(), Buckets(7), Buckets(1), Standardised()], ids=str)
def test_numbers(kind, train):
    # Standardised numbers have no defence against the largest ones.
    largest = 1e20 if kind == Standardised() else np.inf
    known = np.array([value for value in train if value is not None], float).clip(-largest, largest)
    _, graph = graph_of(kind, [None, *known])
    values = np.concatenate([NUMBERS, known, known * (1 + 1e-15), (known[:-1] + known[1:]) / 2])
    same(graph, {"x": values.clip(-largest, largest)})


def test_periods_of_numbers():
    _, graph = graph_of(Number(periods=True), [2020.0] * 10 + [2021.0] * 9 + [2022.5] * 11 + [None])
    made = same(graph, {"x": np.array([2022.5, 2021.0, np.nan, 2020.0, 2020.1, 1e300])})
    assert made["x.period"].tolist() == [2, 0, 0, 1, 0, 0]


def test_infinite_numbers_are_those_of_the_table():
    _, graph = graph_of(Number(), [1.0, 2.0])
    same(graph, {"x": np.array([np.inf, -np.inf])})


def test_ids_as_text_and_as_numbers():
    _, text = graph_of(Id(), ["a", "É", "7", None, "b "])
    assert same(text, {"x": np.array(["É", "b", "b ", "", "7", "a", "new"], object)})["x"].tolist() == [
        4, 0, 3, 5, 1, 2, 0,
    ]  # fmt: skip
    _, whole = graph_of(Id(), [7, -3, 2**62])
    assert same(whole, {"x": np.array([2**62, MISSING, -3, 0])})["x"].tolist() == [3, 0, 1, 0]


def test_empty_text_is_a_missing_id():
    _, graph = graph_of(Id(), ["", "a"])
    assert same(graph, {"x": np.array(["", "a", "b"], object)})["x"].tolist() == [2, 1, 0]


def test_numbers_in_a_vocabulary_of_text():
    features = Features({"home": Id(), "away": Id(shares_table_with="home")})
    features = features.fit({"home": ["a", "12", "012"], "away": [12, 7, 7]})
    _, away = features.graphs()
    assert same(away, {"away": np.array([12, 7, 3, MISSING])})["away"].tolist()[2:] == [0, 0]


def test_hashes_of_whole_numbers():
    _, graph = graph_of(HashedId(1000), [1, 2])
    values = np.array([0, 1, -1, 9, 10, 99_999_999, 100_000_000, 2**63 - 1, -(2**63) + 1, MISSING])
    same(graph, {"x": np.concatenate([values, np.random.default_rng(0).integers(-(2**62), 2**62, 200)])})


def test_hashes_of_text_are_encoded_before():
    _, graph = graph_of(HashedId(1000), ["a", "b"])
    assert isinstance(graph, EncodedColumn)
    assert graph.encoded
    assert [(each.name, each.dtype) for each in graph.inputs] == [("x", "int64")]


@pytest.mark.parametrize("length", [None, 2, -2, 1, -1, 9])
@pytest.mark.parametrize("of", [Id(), HashedId(50)], ids=["Id", "HashedId"])
def test_lists(length, of):
    _, graph = graph_of(Bag(Lists(), of=of, length=length), pa.array([[7, 3, 5], [], None, [3]]))
    rows = [[7, 3, 5, 9], [-1, 7, MISSING, 3], [MISSING] * 4, [3, -1, -1, 5], [5, 5, 5, 5]]
    same(graph, {"x": np.array(rows)})
    same(graph, {"x": np.zeros((3, 0), np.int64)})


def test_lists_of_text_and_numbered_columns():
    _, lists = graph_of(Bag(), pa.array([["a", "b"], ["c"]]))
    same(lists, {"x": np.array([["a", "", "new"], ["", "", ""], ["-1", "c", "b"]], object)})
    _, numbered = graph_of(Bag(Numbered(2)), {"x_0": [1, 2, 3], "x_1": ["a", None, "b"]})
    assert [each.dtype for each in numbered.inputs] == ["int64", "string"]
    same(numbered, {"x_0": np.array([1, MISSING, -1, 9]), "x_1": np.array(["a", "b", "", "-1"], object)})


def test_text_with_a_separator():
    _, graph = graph_of(Bag(Split("|")), ["x|y z", " x ", None, "w"])
    same(graph, {"x": np.array(["x| y z |new", "", "w", " |x||", "  "], object)})


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"])
def test_times(zone):
    rng = np.random.default_rng(0)
    train = pa.array(rng.integers(10**15, 2 * 10**15, 50)).cast(pa.timestamp("us", zone))
    _, graph = graph_of(Datetime(), train)
    values = rng.integers(-2 * 10**15, 21 * 10**14, 3000)  # to 2036; from 2038 on databases of zones disagree
    values[:4] = MISSING, -1, 0, 951_782_400_000_000  # a leap day
    made = same(graph, {"x": values})
    for index in range(4, 300):
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(values[index]))
        clock = time if zone is None else time.astimezone(ZoneInfo(zone))
        parts = [made[f"x.{part}"][index].item() for part in ("hour", "weekday", "month")]
        assert parts == [clock.hour + 1, clock.isoweekday(), clock.month]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"])
def test_days_that_rows_share(zone):
    hour = 3_600_000_000
    moments = np.arange(-20 * 24, 20 * 24) * hour  # around 1970
    _, graph = graph_of(Datetime(("day",)), pa.array(moments).cast(pa.timestamp("us", zone)))
    values = np.concatenate([moments, moments + hour - 1, [MISSING, 10**15, -(10**15)]])
    made = same(graph, {"x": values})["x.day"]
    assert made[-3:].tolist() == [0, 0, 0]
    for index in range(0, len(moments), 7):
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(moments[index]))
        clock = time if zone is None else time.astimezone(ZoneInfo(zone))
        days = graph.kind.days
        day = (clock.date() - date(1970, 1, 1)).days
        assert made[index] == (days.index(day) + 1 if day in days else 0)


def test_the_clocks_of_a_zone_change_when_they_do():
    starts, offsets = zone_offsets("Europe/Berlin")
    summer = np.datetime64("2024-03-31T01:00:00", "us").astype(np.int64)
    at = np.searchsorted(starts, summer)
    assert starts[at] == summer
    assert (offsets[at : at + 2] / 3.6e9).tolist() == [1.0, 2.0]


def test_a_kind_of_ones_own_is_encoded_before():
    features = Features({"x": Number()}).fit({"x": [1.0, None]})
    (graph,) = features.graphs(encoded=True)
    assert {each.name: each.dtype for each in graph.inputs} == {
        "x": "float32",
        "x.rank": "float32",
        "x.missing": "float32",
    }
    values = {each.name: each.draw(5, np.random.default_rng(0)) for each in graph.inputs}
    made = graph({name: torch.from_numpy(value) for name, value in values.items()})
    assert all(torch.equal(made[name], torch.from_numpy(values[name])) for name in values)


def test_without_text_columns_of_text_are_encoded_before():
    features = Features({"a": Id(), "b": Id()}).fit({"a": ["x"], "b": [1]})
    assert [graph.encoded for graph in features.graphs(text=False)] == [True, False]
