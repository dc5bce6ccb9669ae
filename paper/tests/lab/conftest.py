import pytest
import torch

from transun.data import Dataset
from transun_paper.lab.encoded_dataset import EncodedDataset
from transun_paper.lab.sources import DatasetSource, encode_dataset


def rows(count, seed):
    draw = torch.Generator().manual_seed(seed)
    item, user = torch.randint(0, 12, (count,), generator=draw), torch.randint(0, 7, (count,), generator=draw)
    history = torch.randint(-1, 12, (count, 3), generator=draw)
    price = torch.randn(count, generator=draw)
    y = torch.exp(0.2 * item + 0.5 * price + 0.8 * torch.randn(count, generator=draw))
    return Dataset({"item": item, "user": user, "history": history, "price": price}, y)


@pytest.fixture(scope="session")
def encoded():
    """A few skewed rows with every kind of column; the history uses the table of the items."""
    parts = rows(500, 0), rows(150, 1), rows(150, 2)
    return EncodedDataset(
        "tiny", *parts, {"user": 7, "item": 12}, {"history": "item"}, ("price",), "each row by itself"
    )


@pytest.fixture
def cache(encoded, tmp_path):
    folder = tmp_path / "cache"
    encode_dataset("tiny", DatasetSource(lambda: "first", lambda: encoded), folder)
    return folder


@pytest.fixture
def key(cache):
    return next(cache.glob("*.npz")).stem
