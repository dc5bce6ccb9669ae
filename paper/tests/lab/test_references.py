import numpy as np
import pytest

from transun.data import Dataset
from transun_paper.lab.encoded_dataset import EncodedDataset
from transun_paper.lab.pool import carry_out
from transun_paper.lab.progress import silent
from transun_paper.lab.references import reference
from transun_paper.lab.sources import DatasetSource, encode_dataset
from transun_paper.lab.store import Store


def rows(y: list[float]) -> Dataset:
    return Dataset({"item": np.zeros(len(y), np.int64)}, np.asarray(y, np.float32))


def test_constants_are_the_mean_and_the_median_of_the_training_rows(tmp_path):
    test = np.geomspace(1.0, 50.0, 40)
    parts = rows([1.0, 2.0, 9.0]), rows([1.0, 2.0]), rows(test.tolist())
    data = EncodedDataset("small", *parts, ids={"item": 1}, bags={})
    key = encode_dataset("small", DatasetSource(lambda: "small", lambda: data), tmp_path / "cache")
    store = Store(tmp_path / "runs")
    work = {name: reference(key, name) for name in ("mean", "median")}
    carry_out([], store, tmp_path / "cache", 1, computations=work.values(), write=silent)
    for name, value in {"mean": 4.0, "median": 2.0}.items():
        metrics = store.read(work[name].text)["metrics"]
        assert metrics["PGR"] == pytest.approx(value / test.mean(), rel=1e-5)
        assert metrics["NMAE"] == pytest.approx(np.abs(test - value).mean() / test.mean(), rel=1e-5)
        assert metrics["XAUC"] == pytest.approx(0.5, abs=1e-6)
