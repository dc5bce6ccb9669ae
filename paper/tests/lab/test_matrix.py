import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transun_paper.lab.matrix import folds, matrix


@pytest.fixture
def films(tmp_path, monkeypatch):
    """100 ratings by 40 users of 10 films, in the file that `load_public_dataset` reads."""
    rows = np.arange(100)
    table = pa.table(
        {
            "user_id": rows % 40,
            "movie_id": [f"film {row % 10}" for row in rows],
            "genres": ["Drama"] * 100,
            "year": 1990 + rows % 7,
            "rating": (rows % 11).astype(float),
            "ts": rows,
        }
    )
    pq.write_table(table, tmp_path / "movietweetings100k.parquet")
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path))
    return table


def test_columns_are_numbers_and_codes(films):
    data = matrix("movietweetings")
    user, film, genre, year = data.X.T
    assert np.array_equal(data.y, films["rating"].to_numpy())
    # Codes number the distinct texts in their order; users are compared as texts: "0", "1", "10", "11", ...
    assert user[:3].tolist() == [0, 1, 12]
    assert film.tolist() == [row % 10 for row in range(100)]
    assert genre.tolist() == [0] * 100
    assert year.tolist() == films["year"].to_pylist()
    assert data.ids == (0,)  # only the users have more than 32 values


def test_a_cap_keeps_whole_rows_in_their_order(films):
    whole, some = matrix("movietweetings"), matrix("movietweetings", rows=30)
    assert some.X.shape == (30, 4)
    # Year and rating give the row number modulo 77, the first 77 rows are hence known by them.
    key = {(x[3], y): row for row, (x, y) in enumerate(zip(whole.X[:77], whole.y[:77], strict=True))}
    numbers = [key[x[3], y] for x, y in zip(some.X, some.y, strict=True)]
    assert len(numbers) == 30
    first = [number for number in numbers if number >= 23]  # rows from 77 on share a key with the rows before 23
    assert first == sorted(first)
    assert np.array_equal(matrix("movietweetings", rows=30).X, some.X)


def test_folds_are_of_equal_size_and_fixed():
    fold = folds(50_000)
    assert np.array_equal(fold, folds(50_000))
    assert np.array_equal(fold[:100], folds(100))  # the fold of a row does not depend on the others
    shares = np.bincount(fold) / 50_000
    assert len(shares) == 5
    assert shares == pytest.approx(np.full(5, 0.2), abs=4 * np.sqrt(0.2 * 0.8 / 50_000))
