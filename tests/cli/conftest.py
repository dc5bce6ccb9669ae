"""A folder with orders, two trained models and scored rows, made once by the commands themselves."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from shop import orders
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
