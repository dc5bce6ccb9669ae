import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from transun import GTS, EmbeddingMLP, LogMSE, Model, fit
from transun.data import Dataset, ParquetStream, stream
from transun.data.features import Features
from transun.data.kinds import Bag, Id, Standardised
from transun.data.row_rules import FromMoment
from transun.data.stream import buffers
from transun.training.recipe import plain_recipe


class Plain:
    """Columns as they are: row i of `table` holds i everywhere, so that a column gathered by other rows shows."""

    sources = ("item", "history")

    def encode(self, table: pa.Table) -> dict[str, Tensor]:
        return {name: torch.tensor(table[name].to_pylist()) for name in self.sources}


def table(start: int, stop: int) -> pa.Table:
    rows = np.arange(start, stop)
    return pa.table(
        {
            "weight": rows + 1.0,
            "item": rows.astype(np.int32),
            "unused": [str(row) for row in rows],
            "history": pa.array([[row, -1] for row in rows.tolist()], pa.list_(pa.int64())),
            "gmv": rows.astype(np.float64),
        }
    )


def write(folder: Path, rows: list[int], group: int = 5) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    start = 0
    for number, count in enumerate(rows):
        pq.write_table(table(start, start + count), folder / f"part-{number}.parquet", row_group_size=group)
        start += count
    return folder


def opened(folder: Path, buffer: int = 1 << 20) -> ParquetStream:
    return ParquetStream(folder, Plain(), "gmv", "weight", shuffle_rows=buffer)


def seen(batches: Iterator[stream.Batch]) -> list[list[float]]:
    result = []
    for batch in batches:
        assert isinstance(batch.x, dict)
        assert batch.weight is not None
        y = batch.y
        assert list(batch.x) == ["item", "history"]
        assert torch.equal(batch.x["item"].float(), y)
        assert torch.equal(batch.x["history"], torch.stack([y.long(), torch.full_like(y, -1).long()], -1))
        assert torch.equal(batch.weight - 1, y)
        result.append(y.tolist())
    return result


def flat(batches: list[list[float]]) -> list[float]:
    return [row for batch in batches for row in batch]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.integers(0, 30), min_size=1, max_size=4).filter(any),
    group=st.integers(1, 12),
    buffer=st.integers(1, 70),
    size=st.integers(1, 40),
    seed=st.none() | st.integers(0, 9),
)
def test_batches_cover_every_row_once(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[int],
    group: int,
    buffer: int,
    size: int,
    seed: int | None,
) -> None:
    n = sum(rows)
    data = opened(write(tmp_path_factory.mktemp("rows"), rows, group), buffer)
    batches = seen(data.batches(size, seed=seed))
    all_rows = flat(batches)
    assert len(data) == n
    assert sorted(all_rows) == list(range(n))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    if seed is None:
        assert all_rows == list(range(n))


@pytest.mark.parametrize(("buffer", "same"), [(60, True), (59, False)])
def test_rows_that_fit_in_one_buffer_come_as_from_memory(tmp_path: Path, buffer: int, same: bool) -> None:
    whole = pa.concat_tables([table(0, 37), table(37, 60)])
    memory = Dataset(Plain().encode(whole), whole["gmv"].to_numpy(), whole["weight"].to_numpy())
    data = opened(write(tmp_path, [37, 23]), buffer)
    for seed in (0, 1, 2**40):
        assert (seen(data.batches(7, seed=seed)) == seen(memory.batches(7, seed=seed))) is same


def test_training_from_files_and_from_memory_gives_the_same_bits(tmp_path: Path) -> None:
    folder = write(tmp_path, [90, 110], group=32)
    source = pa.concat_tables([table(0, 90), table(90, 200)])
    features = Features({"item": Id(), "history": Bag(), "weight": Standardised()}).fit(source)
    weights = []
    for data in (features.to_dataset(source, "gmv"), ParquetStream(folder, features, "gmv")):
        torch.manual_seed(0)
        model = Model(EmbeddingMLP(features.ids, features.bags, features.numeric, hidden=(8,)), GTS(LogMSE()))
        fit(model, data, plain_recipe(epochs=2, batch_size=16, seed=3))
        weights.append(model.state_dict())
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.parametrize("buffer", [17, 1000])
def test_seed_decides_the_order(tmp_path: Path, buffer: int) -> None:
    data = opened(write(tmp_path, [40, 60]), buffer)
    orders = [flat(seen(data.batches(8, seed=seed))) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0])


def test_a_buffer_mixes_row_groups_from_everywhere(tmp_path: Path) -> None:
    data = opened(write(tmp_path, [500, 500], group=10), buffer=100)
    first = flat(seen(data.batches(100, seed=0)))[:100]
    groups = [int(row) // 10 for row in first]
    # Ten groups of a hundred, as drawn: not the first ten, and their rows not one group after the other.
    assert len(set(groups)) == 10
    assert max(groups) > 50
    assert sum(a != b for a, b in pairwise(groups)) > 50


@pytest.mark.parametrize("count", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("seed", [None, 5])
def test_shards_are_an_even_partition(tmp_path: Path, count: int, seed: int | None) -> None:
    data = opened(write(tmp_path, [11, 0, 14]), buffer=6)
    shards = [data.shard(index, count) for index in range(count)]
    rows = [flat(seen(shard.batches(4, seed=seed))) for shard in shards]
    assert [len(shard) for shard in shards] == [len(part) for part in rows]
    assert max(map(len, rows)) - min(map(len, rows)) <= 1
    assert sorted(flat(rows)) == list(range(25))
    if seed is None:
        assert flat(rows) == sorted(flat(rows))


def test_shards_change_with_the_epoch_and_nest(tmp_path: Path) -> None:
    data = opened(write(tmp_path, [100]), buffer=30)
    parts = [set(flat(seen(data.shard(0, 2).batches(9, seed=seed)))) for seed in (0, 1)]
    assert parts[0] != parts[1]
    halves = [flat(seen(data.shard(0, 2).shard(index, 2).batches(9, seed=0))) for index in range(2)]
    assert set(flat(halves)) == parts[0]
    assert repr(data.shard(1, 2).shard(0, 3)) == "ParquetStream(16 rows of item, history, shard 3 of 6)"


def test_shards_that_fit_in_a_buffer_change_with_the_epoch_too(tmp_path: Path) -> None:
    data = opened(write(tmp_path, [100]))
    assert set(flat(seen(data.shard(0, 2).batches(9, seed=0)))) != set(flat(seen(data.shard(0, 2).batches(9, seed=1))))


def test_targets_are_all_of_them_whoever_asks(tmp_path: Path) -> None:
    data = opened(write(tmp_path, [30, 12]))
    assert data.targets().tolist() == list(range(42))
    assert data.targets().dtype == torch.float32
    assert torch.equal(opened(tmp_path).shard(1, 2).targets(), data.targets())


def test_targets_are_read_once_for_the_same_rows(tmp_path: Path) -> None:
    data = opened(write(tmp_path, [30]))
    every = data.targets()
    assert data.where(FromMoment("gmv", 20.0), [0, 0, 0, 0, 5, 5]).targets().tolist() == list(range(20, 30))
    (tmp_path / "part-0.parquet").unlink()
    assert torch.equal(data.targets(), every)
    assert torch.equal(data.shard(0, 2).targets(), every)


def test_targets_of_very_many_rows_are_a_fixed_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_TARGETS", 1000)
    write(tmp_path, [4000, 6000], group=1000)
    assert len(opened(tmp_path, buffer=10_000).targets()) == 10_000
    data = opened(tmp_path, buffer=9999)
    sample = data.targets()
    # Four standard deviations of a binomial; the mean of 1000 of 0..9999 within four standard errors.
    assert abs(len(sample) - 1000) < 4 * 30
    assert float(sample.mean()) == pytest.approx(4999.5, abs=4 * 10_000 / (12 * 1000) ** 0.5)
    assert len(sample.unique()) == len(sample)
    assert torch.equal(sample, opened(tmp_path, buffer=9999).targets())


def test_only_needed_columns_and_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = opened(write(tmp_path, [20], group=5))
    read: list[tuple[object, object]] = []
    original = pq.ParquetFile.iter_batches

    def spy(self: object, *args: object, **options: object) -> object:
        read.append((options["row_groups"], options["columns"]))
        return original(self, *args, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    assert len(seen(data.shard(1, 2).batches(5))) == 2
    assert read == [([group], ["gmv", "weight", "item", "history"]) for group in (2, 3)]
    read.clear()
    data.targets()
    assert {tuple(columns) for _, columns in read} == {("gmv",)}  # type: ignore[call-overload]


def test_other_types_of_a_number_and_unused_columns_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path, [5])
    later = table(5, 9).drop_columns("unused").set_column(0, "gmv2", pa.array([1, 2, 3, 4]))
    later = later.append_column("weight", pa.array([6, 7, 8, 9], pa.decimal128(5, 1))).select([4, 3, 2, 1, 0])
    later = later.set_column(1, "gmv", pa.array([5, 6, 7, 8], pa.uint8()))
    pq.write_table(later, tmp_path / "z.parquet")
    (tmp_path / "_SUCCESS.parquet").write_bytes(b"")
    assert flat(seen(opened(tmp_path).batches(4))) == list(range(9))


@pytest.mark.parametrize("encode", [lambda column: column, lambda column: column.dictionary_encode()])
def test_targets_that_no_float64_tells_from_their_neighbours_are_rounded_as_in_memory(
    tmp_path: Path, encode: Callable[[pa.Array], pa.Array]
) -> None:
    rows = table(0, 2).drop_columns("gmv").append_column("gmv", encode(pa.array([2**60 + 1, 3])))
    pq.write_table(rows, tmp_path / "a.parquet")
    assert opened(tmp_path).targets().tolist() == [2.0**60, 3.0]


def test_one_file_a_list_and_subfolders(tmp_path: Path) -> None:
    write(tmp_path / "a", [3])
    pq.write_table(table(3, 5), write(tmp_path / "b", [0]) / "x.parquet")
    assert flat(seen(opened(tmp_path).batches(9))) == [0, 1, 2, 3, 4]
    assert flat(seen(opened(tmp_path / "b" / "x.parquet").batches(9))) == [3, 4]
    files = [tmp_path / "b" / "x.parquet", str(tmp_path / "a" / "part-0.parquet")]
    unweighted = ParquetStream(files, Plain(), "gmv")
    batch = next(unweighted.batches(9))
    assert batch.y.tolist() == [3, 4, 0, 1, 2]
    assert batch.weight is None


def test_to_moves_every_column(tmp_path: Path) -> None:
    data = opened(write(tmp_path, [5])).to("meta")
    batch = next(data.batches(2, seed=0))
    assert isinstance(batch.x, dict)
    assert batch.weight is not None
    assert {column.device.type for column in (batch.y, batch.weight, *batch.x.values())} == {"meta"}
    assert data.targets().device.type == "meta"


def test_batches_need_the_memory_of_two_buffers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = opened(write(tmp_path, [400], group=10), buffer=20)
    blocks: list[weakref.ref[np.ndarray]] = []
    alive: list[int] = []
    original = ParquetStream._blocks

    def spy(self: ParquetStream, seed: int | None) -> Iterator[stream.ColumnTensors]:
        for block in original(self, seed):
            memory = block.pop(0).numpy()
            blocks.append(weakref.ref(memory))
            block[0] = torch.from_numpy(memory)  # the array lives as long as any view of the tensor
            del memory
            alive.append(sum(ref() is not None for ref in blocks))
            yield block

    monkeypatch.setattr(ParquetStream, "_blocks", spy)
    for seed in (None, 0):
        batches = data.batches(7, seed=seed)
        while next(batches, None) is not None:  # a loop variable would keep a batch, and its block with it
            time.sleep(0.001)  # the thread is ahead
    assert len(blocks) == 40
    assert max(alive) == 2


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "transun.prefetch"]


def test_the_thread_ends_when_the_loop_is_left(tmp_path: Path) -> None:
    data = opened(write(tmp_path, [400]), buffer=10)
    for _ in data.batches(3, seed=0):
        assert len(threads()) == 1
        break
    gc.collect()
    assert not threads()
    batches = data.batches(3)
    next(batches)
    assert len(threads()) == 1
    batches.close()  # type: ignore[attr-defined]
    assert not threads()
    assert len(list(data.batches(3))) == 134
    assert not threads()


def test_the_thread_ends_when_training_fails(tmp_path: Path) -> None:
    def train() -> None:
        for batch in opened(write(tmp_path, [400]), buffer=10).batches(3):
            raise ArithmeticError(f"{len(batch.y)} rows")

    with pytest.raises(ArithmeticError, match="3 rows"):
        train()
    gc.collect()
    assert not threads()


def test_a_program_may_end_in_the_middle_of_a_pass(tmp_path: Path) -> None:
    write(tmp_path, [5000], group=100)
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from test_stream import Plain, ParquetStream\n"
        "class Slow(Plain):\n"
        "    begun = 0\n"
        "    def encode(self, table):\n"
        "        Slow.begun += 1\n"
        "        time.sleep(0.5)\n"
        "        print('encoded')\n"
        "        return super().encode(table)\n"
        "batches = ParquetStream(sys.argv[2], Slow(), 'gmv', shuffle_rows=100).batches(3)\n"
        "print(len(next(batches).y))\n"
        "while Slow.begun < 2: time.sleep(0.01)"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    # The thread is not killed within an item, nor does it go on to another.
    assert (done.returncode, done.stdout, done.stderr) == (0, "encoded\n3\nencoded\n", "")


@given(st.integers(0, 72))
def test_buffers_are_few_and_even(rows: int) -> None:
    filled = buffers(rows, 4)
    assert sum(filled) == rows
    assert all(2 <= count <= 4 for count in filled) or rows == 1
    assert len(filled) == -(-rows // 4)


def spoil(file: Path, name: str, values: pa.Array) -> None:
    whole = pq.read_table(file)
    pq.write_table(whole.set_column(whole.column_names.index(name), name, values), file, row_group_size=5)


def nan_target(folder: Path) -> None:
    spoil(folder / "part-1.parquet", "gmv", pa.array([1.0] * 6 + [float("nan"), 1.0]))


def missing_target(folder: Path) -> None:
    spoil(folder / "part-1.parquet", "gmv", pa.array([1, 2, 3, 4, 5, 6, 7, None]))


def huge_target(folder: Path) -> None:
    spoil(folder / "part-0.parquet", "gmv", pa.array([1.0, 1e39]))


def test_amounts_over_an_exposure_are_rates_that_count_by_it(tmp_path):
    write(tmp_path, [6, 3])
    rates = ParquetStream(tmp_path, Plain(), "gmv", "weight", "weight", shuffle_rows=4)
    rows = np.arange(9.0)
    batch = next(rates.batches(9))
    assert batch.weight is not None
    np.testing.assert_array_equal(batch.y.numpy(), (rows / (rows + 1)).astype(np.float32))
    np.testing.assert_array_equal(batch.weight.numpy(), (rows + 1) ** 2)
    assert torch.equal(rates.targets(), batch.y)
    unweighted = next(ParquetStream(tmp_path, Plain(), "gmv", exposure="weight").batches(9))
    assert unweighted.weight is not None
    np.testing.assert_array_equal(unweighted.weight.numpy(), rows + 1)
    with pytest.raises(ValueError, match=r"part-0\.parquet, column 'item', row 0: 0 is no exposure"):
        next(ParquetStream(tmp_path, Plain(), "gmv", exposure="item").batches(9))


def negative_weight(folder: Path) -> None:
    spoil(folder / "part-1.parquet", "weight", pa.array([1.0] * 7 + [-2.0]))


def truncate(folder: Path) -> None:
    file = folder / "part-1.parquet"
    file.write_bytes(file.read_bytes()[:-20])


def broken_page(folder: Path) -> None:
    file = folder / "part-1.parquet"
    content = bytearray(file.read_bytes())
    content[4:300] = bytes(296)
    file.write_bytes(content)


def text_target(folder: Path) -> None:
    for file in folder.iterdir():
        rows = pq.ParquetFile(file).metadata.num_rows
        spoil(file, "gmv", pa.array(["1"] * rows))


def rename(folder: Path) -> None:
    file = folder / "part-1.parquet"
    pq.write_table(pq.read_table(file).rename_columns({"item": "items"}), file)


def twice(folder: Path) -> None:
    file = folder / "part-0.parquet"
    whole = pq.read_table(file)
    pq.write_table(whole.append_column("item", whole["item"]), file)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (nan_target, r"part-1\.parquet, row 6: column 'gmv' is nan, expected a finite float32"),
        (missing_target, r"part-1\.parquet, row 7: column 'gmv' is missing"),
        (huge_target, r"part-0\.parquet, row 1: column 'gmv' is 1e\+39"),
        (negative_weight, r"part-1\.parquet, row 7: column 'weight' is -2, .* of at least 0"),
        (truncate, r"part-1\.parquet \([\d,]+ bytes\) is not a whole Parquet file"),
        (broken_page, r"part-1\.parquet \([\d,]+ bytes\) is not a whole Parquet file"),
        (lambda folder: (folder / "part-1.parquet").write_bytes(b""), r"part-1\.parquet \(0 bytes\) is not a whole"),
        (text_target, r"part-0\.parquet: column 'gmv' holds text; targets, weights and exposures are numbers"),
        (rename, r"part-1\.parquet: there is no column 'item': did you mean 'items'"),
        (twice, r"part-0\.parquet has 2 columns 'item'"),
        (
            lambda folder: spoil(folder / "part-1.parquet", "item", pa.array(["a"] * 8)),
            r"part-1\.parquet: column 'item' holds text, but numbers in .*part-0\.parquet",
        ),
        (
            lambda folder: spoil(folder / "part-1.parquet", "item", pa.array([None] * 8, pa.int64())),
            r"part-1\.parquet, rows 0\.\.4: .*item",
        ),
    ],
)
def test_errors_name_file_and_place(tmp_path: Path, harm: Callable[[Path], object], message: str) -> None:
    harm(write(tmp_path, [2, 8]))

    class Strict(Plain):
        def encode(self, table: pa.Table) -> dict[str, Tensor]:
            if table["item"].null_count:
                raise ValueError("column 'item', row 0 is missing")
            return super().encode(table)

    with pytest.raises(ValueError, match=message):
        list(ParquetStream(tmp_path, Strict(), "gmv", "weight").batches(3))


def test_a_file_that_shrank_or_went_is_named(tmp_path: Path) -> None:
    data = opened(write(tmp_path, [4, 9]))
    pq.write_table(table(0, 2), tmp_path / "part-1.parquet")
    with pytest.raises(ValueError, match=r"part-1\.parquet .*(lost rows|not a whole)"):
        list(data.batches(3))
    (tmp_path / "part-1.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"part-1\.parquet is gone"):
        list(data.batches(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda place: opened(place / "nowhere"), "there is no file or folder .*nowhere"),
        (lambda place: opened(write(place / "none", [])), "none holds no .*parquet file"),
        (lambda place: opened(write(place / "zero", [0, 0])), "zero: the data is empty"),
        (lambda place: ParquetStream([place / "x.parquet"], Plain(), "gmv"), r"there is no file .*x\.parquet"),
        (lambda place: ParquetStream([], Plain(), "gmv"), "the list of files is empty"),
        (lambda place: ParquetStream(write(place, [3]), Plain(), "gvm"), "no column 'gvm': did you mean 'gmv'"),
        (lambda place: ParquetStream(write(place, [3]), Plain(), "gmv", "wight"), "no column 'wight'"),
        (lambda place: opened(write(place, [3]), 0), "shuffle_rows=0"),
        (lambda place: opened(write(place, [3])).batches(0), "batch size 0"),
        (lambda place: opened(write(place, [3])).shard(2, 2), "shard 2 of 2"),
        (lambda place: opened(write(place, [3])).shard(-1, 2), "shard -1 of 2"),
    ],
)
def test_errors_before_reading(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        make(tmp_path)
