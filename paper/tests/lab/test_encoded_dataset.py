from dataclasses import replace

import pyarrow as pa
import pytest
import torch

from transun.data import Features, Id
from transun_paper.datasets.public import PublicDataset
from transun_paper.lab.encoded_dataset import PARTS, EncodedDataset, cache_path, describe
from transun_paper.lab.sources import DatasetSource, encode_dataset, split_public


def test_rows_survive_the_file(encoded, tmp_path):
    path = tmp_path / "cache" / "tiny.npz"
    encoded.save(path)
    again = EncodedDataset.load(path)
    for part in PARTS:
        before, after = getattr(encoded, part), getattr(again, part)
        assert torch.equal(before.y, after.y)
        assert before.x.keys() == after.x.keys()
        assert all(torch.equal(before.x[name], after.x[name]) for name in before.x)
    columns = ("name", "ids", "bags", "numeric", "notes", "sizes")
    assert all(getattr(again, name) == getattr(encoded, name) for name in columns)
    assert describe(path)["sizes"] == {"train": 500, "valid": 150, "test": 150}


def test_missing_data_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="encode it first"):
        EncodedDataset.load(tmp_path / "nothing.npz")


def test_data_is_built_once_and_new_data_gets_a_new_key(encoded, tmp_path):
    calls = []
    source = DatasetSource(lambda: "one", lambda: calls.append(1) or encoded)
    first, second = encode_dataset("tiny", source, tmp_path), encode_dataset("tiny", source, tmp_path)
    assert first == second
    assert len(calls) == 1
    other = encode_dataset("tiny", replace(source, fingerprint=lambda: "another"), tmp_path)
    assert other != first
    assert cache_path(tmp_path, first).exists()
    assert cache_path(tmp_path, other).exists()


def played(rows):
    """A user's plays of an artist, every pair twice."""
    pair = [row // 2 for row in range(rows)]
    table = pa.table({"userID": [p % 50 for p in pair], "artistID": [p // 50 for p in pair], "plays": [1.0] * rows})
    return PublicDataset("lastfm", table, "plays", Features({"userID": Id(), "artistID": Id()}), (), "made up")


def test_equal_keys_stay_on_one_side():
    data = split_public(played(4000))
    assert sum(data.sizes.values()) == 4000
    # 2000 pairs: a share of 0.8 has a standard error of 0.009.
    assert data.sizes["train"] / 4000 == pytest.approx(0.8, abs=0.03)
    assert data.sizes["valid"] / 4000 == pytest.approx(0.1, abs=0.03)
    assert all(size % 2 == 0 for size in data.sizes.values())


def test_features_know_the_training_rows_alone():
    pairs = range(400)
    table = pa.table({"userID": [0] * 400, "artistID": list(pairs), "plays": [1.0] * 400})
    features = Features({"userID": Id(), "artistID": Id()})
    data = split_public(PublicDataset("lastfm", table, "plays", features, (), "made up"))
    # Every artist has one row, so those of the other sides are new, and new ids are 0.
    assert data.ids["artistID"] == data.sizes["train"] + 1
    assert int(data.train.x["artistID"].min()) == 1
    assert int(data.valid.x["artistID"].max()) == int(data.test.x["artistID"].max()) == 0


def test_a_cap_keeps_rows_by_hash():
    whole, some = split_public(played(4000)), split_public(played(4000), rows=1000)
    assert sum(some.sizes.values()) == 1000
    assert "1,000 of 4,000 rows" in some.notes
    assert "of 4,000" not in whole.notes
