"""`transun fit` by several ranks: one model, one certificate, one report, also when torchrun has to start anew."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rank_jobs import certify, run_command
from shop import orders
from transun.models.description import describe_model
from transun.tables import load

OPTIONS = ["--target", "gmv", "--exclude", "refunded", "--head", "LogSUN()", "--epochs", "2", "--no-progress"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    table = orders(600, seed=3)
    table.write_csv(folder / "orders.csv")
    return folder


def fit(pool, ranks, data, out, *options):
    return pool.run(ranks, run_command, ["fit", str(data), "--out", str(out), *options])


def certificate(folder):
    return json.loads((folder / "certificate.json").read_text())


def test_two_ranks_make_the_model_of_one(pool, folder):
    data = folder / "orders.csv"
    for ranks in (1, 2):
        answers = fit(pool, ranks, data, folder / f"by{ranks}", *OPTIONS)
        assert [code for code, _ in answers] == [0] * ranks
        assert "certificate.json" in answers[0][1]
        assert not any(printed for _, printed in answers[1:])
    one, two = (certificate(folder / f"by{ranks}") for ranks in (1, 2))
    assert one["fingerprint"] == two["fingerprint"]
    for name, measured in one["whole"]["metrics"].items():
        assert two["whole"]["metrics"][name]["value"] == pytest.approx(measured["value"], rel=1e-3, abs=1e-3)
    names = {describe_model(folder / f"by{ranks}").file: "weights" for ranks in (1, 2)}
    files = [{names.get(path.name, path.name) for path in (folder / f"by{ranks}").iterdir()} for ranks in (1, 2)]
    assert files[0] == files[1]  # nobody but rank 0 has written anything


@pytest.mark.parametrize("rows", [101, 3])
def test_any_number_of_ranks_finds_the_numbers_of_a_certificate(pool, folder, rows):
    """Also of three rows, of which one of four ranks has none."""
    model = str(folder / "by1")
    if not Path(model).exists():
        fit(pool, 1, folder / "orders.csv", model, *OPTIONS)
    alone = certify(model, rows)
    assert len(alone) > 5
    for ranks in (2, 4):
        for metrics in pool.run(ranks, certify, model, rows):
            assert metrics == pytest.approx(alone, rel=1e-9, abs=1e-12, nan_ok=True)


def test_trees_and_a_network_by_two_ranks(pool, folder):
    (code, printed), (other, _) = fit(
        pool, 2, folder / "orders.csv", folder / "mixed", "--target", "gmv", "--epochs", "1", "--no-progress"
    )
    assert (code, other) == (0, 0)
    assert "trees" in printed
    assert len(load(folder / "mixed").predict(orders(5, seed=4))) == 5


def test_a_folder_is_streamed_by_two_ranks(pool, folder):
    """Files that every rank reads again in every epoch: the batches, and so the totals, are those of one rank."""
    table = orders(600, seed=3)
    (folder / "files").mkdir()
    for number in range(2):
        table[number * 300 : number * 300 + 300].write_parquet(folder / "files" / f"{number}.parquet")
    for ranks in (1, 2):
        answers = fit(pool, ranks, folder / "files", folder / f"streamed{ranks}", *OPTIONS, "--stream")
        assert [code for code, _ in answers] == [0] * ranks
    one, two = (certificate(folder / f"streamed{ranks}")["whole"]["metrics"]["PGR"]["value"] for ranks in (1, 2))
    assert two == pytest.approx(one, rel=1e-3)


def test_a_mistake_is_the_same_on_every_rank(pool, folder):
    (folder / "old").mkdir()
    (folder / "old" / "training.pt").touch()
    answers = fit(pool, 2, folder / "orders.csv", folder / "old", *OPTIONS)
    assert [code for code, _ in answers] == [2, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_rank_is_started_anew_and_the_end_is_the_same(pool, folder):
    """torchrun, as in the guide; rank 1 kills itself after twelve steps, and all ranks resume from the last state."""
    data, out = folder / "orders.csv", folder / "killed"
    script = Path(__file__).parents[1] / "killed_rank.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    command += [str(script), "fit", str(data), "--out", str(out), *OPTIONS]
    ended = subprocess.run(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=500, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "Signal 9 (SIGKILL)" in ended.stderr or "exitcode: -9" in ended.stderr
    fit(pool, 2, data, folder / "whole", *OPTIONS)
    assert describe_model(out).weights == describe_model(folder / "whole").weights  # a checksum: to the last bit
    assert not (out / "training.pt").exists()
