from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from transun import PGR, EmbeddingMLP, LogSUN, Model, Recipe, train
from transun_paper.datasets import public
from transun_paper.datasets.paper import cikm16, dtmart
from transun_paper.datasets.public import PUBLIC, load_public_dataset

FOLDER = public.data_folder()
needs_data = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"needs the public data sets in {FOLDER}; set TRANSUN_DATA to their folder"
)

# Rows, mean, variance over squared mean, skewness and share of zeros, as the README of the data states them, each to
# the digits given there.
STATED = {
    "globo": (1_009_819, 674, 2.7, 2.9, 0.00),
    "kuairand": (222_869, 21.9, 3.8, 4.1, 0.10),
    "online_retail": (19_959, 534, 11.1, 51, 0.00),
    "lastfm": (92_834, 745, 25.3, 43, 0.00),
    "eu_health": (176_032, 49.5, 17.5, 40, 0.76),
    "movietweetings": (100_000, 7.3, 0.07, -0.84, 0.00),
}
NEVER = {
    "globo": set(),
    "kuairand": {"is_click", "long_view", "part"},
    "online_retail": {"InvoiceNo"},
    "lastfm": set(),
    "eu_health": {"id_anon", "group"},
    "movietweetings": {"ts"},
}


@pytest.fixture(scope="module", params=PUBLIC)
def data(request: pytest.FixtureRequest) -> public.PublicDataset:
    return load_public_dataset(request.param)


@needs_data
def test_targets_are_the_stated_ones(data: public.PublicDataset) -> None:
    rows, mean, spread, skew, zeros = STATED[data.name]
    y = data.table[data.target].to_numpy().astype(np.float64)
    assert len(data) == len(y) == rows
    assert y.mean() == pytest.approx(mean, rel=0.01)
    assert y.var() / y.mean() ** 2 == pytest.approx(spread, rel=0.08)
    assert ((y - y.mean()) ** 3).mean() / y.std() ** 3 == pytest.approx(skew, rel=0.04)
    assert (y == 0).mean() == pytest.approx(zeros, abs=0.006)


@needs_data
def test_forbidden_columns_are_not_in_the_table(data: public.PublicDataset) -> None:
    names = set(data.table.column_names)
    assert not names & NEVER[data.name]
    assert not any(name.startswith(("num_", "amt_")) and name != data.target for name in names)
    assert data.target not in data.features.sources
    assert names == {data.target, *data.features.sources}
    # Every column of the file is either used or left out on purpose.
    file = pq.read_schema(FOLDER / public._DECLARATIONS[data.name].file).names
    assert sorted([*names, *data.excluded]) == sorted(file)


@needs_data
def test_features_fit_and_feed_a_network(data: public.PublicDataset) -> None:
    some = data.table.slice(0, 3000)
    features = data.features.fit(some)
    backbone = EmbeddingMLP(features.ids, features.bags, features.numeric, dim=2, hidden=(4,))
    model = Model(backbone, LogSUN())
    pred = model(features.encode(data.table.slice(3000, 50)))
    assert pred.shape == (50,)
    assert bool(pred.isfinite().all())


@needs_data
def test_many_valued_columns_are_split() -> None:
    films = load_public_dataset("movietweetings")
    tensor = films.features.fit(films.table).encode(films.table.slice(0, 1))["genres"]
    assert films.table["genres"][0].as_py() == "Action|Adventure|Crime|Thriller"
    assert int((tensor >= 0).sum()) == 4
    videos = load_public_dataset("kuairand")
    tags = pc.count_substring(videos.table["tag"], ",").to_numpy() + 1
    encoded = videos.features.fit(videos.table).encode(videos.table)["tag"]
    assert tags.max() > 1
    assert ((encoded >= 0).sum(-1).numpy() == tags).all()
    news = load_public_dataset("globo")
    some = news.table.slice(0, 1000)
    clicks = news.features.fit(some).encode(some)["item"]
    columns = np.stack([some[f"item_{slot}"].to_numpy() for slot in range(10)], 1)
    assert ((clicks >= 0).numpy() == (columns >= 0)).all()


@needs_data
def test_the_cut_of_globo_keeps_its_edge() -> None:
    longest = pc.max(load_public_dataset("globo").table["dwell_s"]).as_py()
    whole = pq.read_table(FOLDER / "globo_sessions.parquet", columns=["dwell_s"])["dwell_s"].to_numpy()
    assert longest == whole[whole <= 7200].max()


def test_unknown_names_and_missing_files_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no public data set 'globos': did you mean 'globo'"):
        load_public_dataset("globos")
    with pytest.raises(ValueError, match="no public data set 'zzz': There are kuairand, globo"):
        load_public_dataset("zzz")
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=rf"{tmp_path}/kuairand_pure\.parquet; set TRANSUN_DATA .*kuairand\.com"
    ):
        load_public_dataset("kuairand")


def test_the_folder_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"userID": [1, 2], "artistID": [3, 4], "weight": [5, 6], "extra": [0, 0]})
    pq.write_table(rows, tmp_path / "lastfm2k_plays.parquet")
    assert load_public_dataset("lastfm", tmp_path).table.column_names == ["weight", "userID", "artistID"]
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path))
    assert len(load_public_dataset("lastfm")) == 2
    monkeypatch.delenv("TRANSUN_DATA")
    assert public.data_folder() == Path("data")


VIEWS = """sessionId;userId;itemId;timeframe;eventdate
2;NA;20;500;2016-05-09
1;NA;12;900;2016-05-09
1;NA;11;100;2016-05-09
3;7;30;1;2016-05-10
9;NA;90;1;2016-05-10
"""
QUERIES = """queryId;sessionId;userId;timeframe;duration;eventdate;searchstring.tokens;categoryId;items;is.test
1;1;NA;200;300;2016-05-09;5,6;0;1,2,3;FALSE
2;1;NA;50;100;2016-05-09;4;0;7;FALSE
3;2;NA;50;600;2016-05-09;;12;7;TRUE
4;3;7;50;NA;2016-05-09;8;0;7;FALSE
5;4;NA;50;600;2016-05-09;9;0;7;FALSE
"""


def cikm_files(folder: Path, views: str = VIEWS, queries: str = QUERIES) -> Path:
    (folder / "train-item-views.csv").write_text(views)
    (folder / "train-queries.csv").write_text(queries)
    return folder


def test_cikm16_joins_sessions_of_both_files(tmp_path: Path) -> None:
    data = cikm16(cikm_files(tmp_path), mean=None)
    # Session 3 has no duration, session 4 no view, session 9 no query.
    assert data.table.to_pylist() == [
        {"duration": 200.0, "tokens": ["4", "5", "6"], "items": ["11", "12"]},
        {"duration": 600.0, "tokens": [], "items": ["20"]},
    ]
    scaled = cikm16(tmp_path).table["duration"].to_pylist()
    assert scaled == pytest.approx([100.0, 300.0])  # mean 200, as in the paper


def test_cikm16_features_have_tables_of_the_ids_that_occur(tmp_path: Path) -> None:
    data = cikm16(cikm_files(tmp_path, VIEWS + "".join(f"1;NA;{100 + i};{2000 + i};2016-05-09\n" for i in range(30))))
    features = data.features.fit(data.table)
    # One row more than there are ids, for those that training has not seen: 4, 5, 6; 11, 12, 20 and 8 of the thirty.
    assert features.bags == {"tokens": 4, "items": 12}
    encoded = features.encode(data.table)
    assert encoded["tokens"].shape == encoded["items"].shape == (2, 10)
    assert (encoded["items"] >= 0).sum(-1).tolist() == [10, 1]
    assert (encoded["tokens"] >= 0).sum(-1).tolist() == [3, 0]


@needs_data
def test_cikm16_reads_the_public_sample_of_views(tmp_path: Path) -> None:
    views = pl.read_parquet(FOLDER / "cikm16_sample_views.parquet")
    cikm_files(tmp_path)
    views.write_csv(tmp_path / "train-item-views.csv", separator=";")
    sessions = sorted(set(views["session_id"].to_list()))[:500]
    rows = "".join(f"{s};{s};NA;1;{s + 1};2016-05-09;{s};0;1;FALSE\n" for s in sessions)
    (tmp_path / "train-queries.csv").write_text(QUERIES.splitlines()[0] + "\n" + rows)
    data = cikm16(tmp_path, mean=None)
    assert data.table["duration"].to_pylist() == [s + 1.0 for s in sessions]
    first = views.filter(pl.col("session_id") == sessions[0]).sort("timeframe")["item_id"].to_list()[:10]
    assert data.table["items"][0].as_py() == [str(item) for item in first]


SALES = (
    "\tID\tItem\tGMV\tUnits_sold\tSLA\tProduct_Category\tAnalytic_Category\tSub_category\t"
    "Product_vertical\tMRP\tProcurement_SLA\n"
    "0\t7\tx\t100\t1\t5\tA\tB\tC\tD\t120\t2\n"
    "1\t7\tx\t 300 \t3\t5\tA\tB\tC\tE\t120\t\n"
    "2\t8\tx\t0\t1\t5\tA\tB\tC\tD\t120\t2\n"
    "3\t8\tx\t \t1\t5\tA\tB\tC\tD\t120\t2\n"
    "4\t8\tx\t200\t2\t4\tA\tB\tC\tD\t110\t1\n"
    "5\t8\tx\t200\t2\t4\tA\tB\tC\tD\t110\t1\n"
)


def test_dtmart_keeps_orders_of_some_value(tmp_path: Path) -> None:
    (tmp_path / "Sales.csv").write_text(SALES)
    data = dtmart(tmp_path, mean=None)
    assert data.table["gmv"].to_pylist() == [100.0, 300.0, 200.0, 200.0]
    assert data.table["procurementsla"].to_pylist() == [2.0, None, 1.0, 1.0]
    assert set(data.features.columns) == {
        *("sla", "procurementsla", "id"),
        *("productcategory", "analyticcategory", "subcategory", "productvertical"),
    }
    assert not {"unitssold", "mrp"} & set(data.table.column_names)  # their product is nearly the target
    assert dtmart(tmp_path).table["gmv"].to_pylist() == pytest.approx([45.0, 135.0, 90.0, 90.0])
    assert data.features.fit(data.table).encode(data.table)["productvertical"].tolist() == [1, 2, 1, 1]


def test_dtmart_leaves_out_an_id_of_every_row(tmp_path: Path) -> None:
    lines = SALES.splitlines()
    unique = [
        lines[0],
        *(line.replace("\t7\t", f"\t1{i}\t").replace("\t8\t", f"\t1{i}\t") for i, line in enumerate(lines[1:])),
    ]
    (tmp_path / "Sales.csv").write_text("\n".join(unique))
    data = dtmart(tmp_path)
    assert data.excluded == ("id",)
    assert "id" not in data.table.column_names


def test_raw_files_that_are_missing_or_of_another_format_say_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"train-item-views\.csv; it comes from CIKM Cup 2016"):
        cikm16(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"Sales\.csv; it comes from Kaggle"):
        dtmart(tmp_path)
    (tmp_path / "Sales.csv").write_text(SALES.replace("\t", ","))
    with pytest.raises(ValueError, match=r"Sales\.csv: no column 'gmv' in its first line cut at"):
        dtmart(tmp_path)
    (tmp_path / "Sales.csv").write_text(SALES.splitlines()[0] + "\n")
    with pytest.raises(ValueError, match=r"no row of Sales\.csv has a GMV above 0"):
        dtmart(tmp_path)
    cikm_files(tmp_path, queries=QUERIES.splitlines()[0] + "\n" + QUERIES.splitlines()[4] + "\n")
    with pytest.raises(ValueError, match=r"no session of train-item-views\.csv occurs in train-queries\.csv"):
        cikm16(tmp_path)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_data_set_trains_by_one_call(name):
    try:
        data = load_public_dataset(name)
    except FileNotFoundError as error:
        pytest.skip(f"the data are not here: {error}")
    table = data.table.slice(0, 4000)
    trained = train(table, data.target, features=data.features, recipe=Recipe(epochs=2))
    assert abs(trained.evaluate(table, [PGR])["PGR"] - 1) < 0.3
