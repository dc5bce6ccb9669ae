"""A folder with orders, two trained models and scored rows, made once by the commands themselves."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from transun.cli import main


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command line through the entry point, as a shell would, in this process."""

    def invoke(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["transun", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        found = Outcome(stop.value.code or 0, told.out, told.err)
        assert found.code == code, found
        return found

    return invoke


def orders(rows: int, seed: int):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(seed)
    country = rng.choice(["IT", "FR", "DE"], rows)
    item = rng.integers(0, 12, rows)
    typical = np.exp(1.5 + 0.15 * item + np.where(country == "IT", 0.5, 0.0))
    gmv = typical * rng.lognormal(0.0, 0.9, rows)
    return pl.DataFrame(
        {
            "gmv": gmv,
            "item_id": item,
            "country": country,
            "price": np.round(typical * rng.uniform(0.8, 1.2, rows), 2),
            "refunded": gmv * 0.1,
            "weight": rng.integers(1, 4, rows),
            "balance": rng.normal(0.0, 5.0, rows),
            "predicted": typical,
            "order": [f"o{index}" for index in range(rows)],
            "same": np.full(rows, 7.0),
            "minus": np.full(rows, -1.0),
        }
    )


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """orders.csv, many.parquet, scored.csv, and the models `model` (LogSUN), `other` and `low` (LogMSE)."""
    folder = tmp_path_factory.mktemp("shop")
    frame = orders(1500, 0)
    frame.write_csv(folder / "orders.csv")
    frame.write_parquet(folder / "orders.parquet")
    frame.write_csv(folder / "scored.csv")
    orders(8000, 1).write_parquet(folder / "many.parquet")
    for data, head, out in (
        ("orders", "LogSUN()", "model"),
        ("orders", "LogMSE()", "other"),
        ("many", "LogMSE()", "low"),
    ):
        train(folder / f"{data}.parquet", head, folder / out)
    return folder


def train(data: Path, head: str, out: Path):
    from typer.testing import CliRunner

    from transun.cli import app

    line = [str(data), "--target", "gmv", "--head", head, "--epochs", "3", "--batch-size", "64"]
    excluded = ["refunded", "predicted", "order", "balance", "weight"]
    call = [
        "fit",
        *line,
        "--rate",
        "0.01",
        "--out",
        str(out),
        *[part for name in excluded for part in ("--exclude", name)],
    ]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, (result.output, result.exception)


@pytest.fixture
def here(shop, monkeypatch, tmp_path):
    """A working folder of its own, with links to what the shop has."""
    for path in shop.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
