"""Tables in an object store, a local server of moto's; skipped where the packages are not installed."""

from urllib.request import Request, urlopen

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from transun.cli import app
from transun.data import Features, Id, ParquetStream, read_table
from transun.data.formats import find_files
from transun.data.holdout import Split
from transun.data.writing import writing
from transun.diagnosis import diagnose_table
from transun.support.paths import as_path
from transun.tables.folder import survey_folder

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def bucket(monkeypatch):
    for package in ("moto.server", "boto3", "s3fs", "upath"):
        pytest.importorskip(package, reason="the extra `s3`, and moto to test it, are not installed")
    import boto3
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    settings = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in (settings | {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}).items():
        monkeypatch.setenv(name, value)
    urlopen(Request(f"{settings['AWS_ENDPOINT_URL']}/moto-api/reset", method="POST"))  # moto keeps what others stored
    s3fs.S3FileSystem.clear_instance_cache()
    boto3.client("s3").create_bucket(Bucket="shop")
    yield "s3://shop"
    server.stop()


def orders(rows=2000):
    rng = np.random.default_rng(0)
    return pa.table({"item": rng.integers(0, 9, rows), "gmv": rng.lognormal(0.0, 1.0, rows), "p": np.full(rows, 1.5)})


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_table_is_written_and_read(bucket, ending):
    table = orders()
    with writing(as_path(f"{bucket}/a/orders.{ending}")) as write:
        write(table.slice(0, 500))
        write(table.slice(500))
    for source in (f"{bucket}/a/orders.{ending}", f"{bucket}/a"):
        assert read_table(source).equals(table)
        assert diagnose_table(source, "gmv", "p", progress=False).rows == 2000
    with pytest.raises(FileNotFoundError, match="there is no file"):
        find_files(as_path(f"{bucket}/a/order.parquet"))


def test_a_file_that_is_not_finished_does_not_appear(bucket):
    path = as_path(f"{bucket}/half.parquet")

    def tables_that_differ():
        with writing(path) as write:
            write(orders().select(["item", "gmv"]))
            write(orders().select(["p"]))

    with pytest.raises(ValueError, match="schema"):
        tables_that_differ()
    assert not path.exists()


def test_commands_take_its_paths(bucket, tmp_path):
    with writing(as_path(f"{bucket}/scored/a.parquet")) as write:
        write(orders())
    data, target = f"{bucket}/scored", ["--target", "gmv", "--pred", "p", "--no-progress"]
    for line in (
        ["diagnose", data, *target, "--out", str(tmp_path / "diagnosis")],
        ["debias", data, *target, "--out", f"{bucket}/corrected.parquet"],
    ):
        result = CliRunner().invoke(app, line)
        assert result.exit_code == 0, result.output
    corrected = read_table(f"{bucket}/corrected.parquet")
    assert corrected["corrected"].to_numpy().sum() == pytest.approx(corrected["gmv"].to_numpy().sum(), rel=0.1)


def test_a_folder_is_streamed_for_training(bucket):
    table = orders()
    for number in range(2):
        with writing(as_path(f"{bucket}/many/{number}.parquet")) as write:
            write(table.slice(1000 * number, 1000))
    features = Features({"item": Id()}).fit(table)
    stream = ParquetStream(f"{bucket}/many", features, "gmv")
    y = np.concatenate([batch.y.numpy() for batch in stream.batches(300)])
    np.testing.assert_array_equal(y, table["gmv"].to_numpy().astype(np.float32))
    surveyed = survey_folder(as_path(f"{bucket}/many"), "gmv", Split(test_share=0.2), progress=False)
    assert len(surveyed.train) + len(surveyed.valid) + len(surveyed.test) == 2000


def test_the_folder_of_a_delta_table_is_refused(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "a.parquet").touch()
    with pytest.raises(ValueError, match=r"is a table of Delta, .* delta_scan"):
        find_files(tmp_path)


def test_the_folder_of_an_iceberg_table_is_refused(tmp_path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").touch()
    with pytest.raises(ValueError, match=r"is a table of Iceberg, .* iceberg_scan"):
        read_table(tmp_path)


def test_a_store_without_its_package_names_the_extra():
    try:
        import upath  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(ModuleNotFoundError, match=r"transun\[s3\]"):
            read_table("s3://shop/orders")
