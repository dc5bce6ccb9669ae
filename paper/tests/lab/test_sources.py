import numpy as np
import polars as pl
import pytest

from transun_paper.lab.encoded_dataset import EncodedDataset, cache_path
from transun_paper.lab.sources import encode_user_datasets


def write_dtmart(folder, rows: int = 400, seed: int = 0) -> None:
    generator = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "gmv": generator.gamma(2.0, 50.0, rows).round(2) + 1,
            "units_sold": generator.integers(1, 4, rows),
            "SLA": generator.integers(0, 9, rows),
            "product_mrp": generator.integers(10, 500, rows),
            "product_procurement_sla": generator.integers(0, 5, rows),
            "product_category": generator.choice(["a", "b", "c"], rows),
        }
    ).rename({"product_mrp": "mrp", "product_procurement_sla": "procurement_sla"})
    frame.write_csv(folder / "Sales.csv", separator="\t")


def test_a_persons_files_are_frozen_once_and_anew_when_they_change(tmp_path):
    write_dtmart(tmp_path)
    cache = tmp_path / "cache"
    keys = encode_user_datasets(cache, {"dtmart": tmp_path})
    data = EncodedDataset.load(cache_path(cache, keys["dtmart"]))
    assert sum(data.sizes.values()) == 400
    assert data.sizes["train"] > 4 * data.sizes["valid"]
    assert encode_user_datasets(cache, {"dtmart": tmp_path}) == keys
    write_dtmart(tmp_path, seed=1)
    assert encode_user_datasets(cache, {"dtmart": tmp_path}) != keys


def test_other_names_and_missing_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="'globo' is not among the paper's data sets"):
        encode_user_datasets(tmp_path, {"globo": tmp_path})
    with pytest.raises(FileNotFoundError, match=r"train-item-views\.csv; the folder must hold it"):
        encode_user_datasets(tmp_path, {"cikm16": tmp_path})
