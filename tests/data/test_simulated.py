import math
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy import integrate, stats
from torch import Tensor

from transun.data import OrderLog

INDUSTRIAL = OrderLog(orders=132_657_136, users=67_729_869, items=14_538_759)


@pytest.fixture(scope="module")
def log() -> OrderLog:
    return OrderLog(orders=400_000, history=5)


@pytest.fixture(scope="module")
def rows(log: OrderLog) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    return log.chunk(0, len(log))


def same(a: tuple[dict[str, Tensor], Tensor, Tensor], b: tuple[dict[str, Tensor], Tensor, Tensor]) -> bool:
    return (
        a[0].keys() == b[0].keys()
        and all(torch.equal(a[0][name], b[0][name]) for name in a[0])
        and torch.equal(a[1], b[1])
        and torch.equal(a[2], b[2])
    )


def cut(chunk: tuple[dict[str, Tensor], Tensor, Tensor], start: int, stop: int) -> tuple:
    x, y, truth = chunk
    return {name: column[start:stop] for name, column in x.items()}, y[start:stop], truth[start:stop]


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (16_383, 16_386), (5, 40_000), (399_999, 400_000)])
def test_chunks_agree(log: OrderLog, rows: tuple, start: int, stop: int) -> None:
    assert same(log.chunk(start, stop), cut(rows, start, stop))


def test_a_longer_log_continues_a_shorter_one(log: OrderLog, rows: tuple) -> None:
    assert same(OrderLog(orders=500_000, history=5).chunk(0, 1000), cut(rows, 0, 1000))


def test_seed_changes_every_random_column(rows: tuple) -> None:
    other = OrderLog(orders=1000, history=5, seed=1).chunk(0, 1000)
    x, y, _ = cut(rows, 0, 1000)
    assert all(not torch.equal(x[name], other[0][name]) for name in x)
    assert not torch.equal(y, other[1])


def test_truth_is_a_function_of_the_features(log: OrderLog, rows: tuple) -> None:
    x, _, truth = rows
    assert torch.equal(log.expected(x), truth)
    assert torch.equal(log.truth(), truth)
    assert torch.equal(log.truth(10, 20), truth[10:20])
    later = log.expected(x | {"hour": torch.full_like(x["hour"], 20)})
    assert bool((later >= truth * 0.999999).all())  # 20 h is the best hour


def unbiased(y: Tensor, truth: Tensor) -> bool:
    gap = (y - truth).double()
    return abs(float(gap.mean())) < 4 * float(gap.std()) / math.sqrt(len(gap))


def test_truth_is_the_mean(rows: tuple) -> None:
    x, y, truth = rows
    assert unbiased(y, truth)
    assert all(unbiased(y[part], truth[part]) for part in truth.argsort().chunk(10))
    assert all(unbiased(y[x["weekday"] == day], truth[x["weekday"] == day]) for day in range(7))
    assert all(unbiased(y[x["hour"] == hour], truth[x["hour"] == hour]) for hour in range(24))
    length = (x["history"] >= 0).sum(-1)
    assert all(unbiased(y[length == n], truth[length == n]) for n in range(6))
    # The test has power: a bias of 2 % is seen.
    assert not unbiased(y, truth * 1.02)


def test_noise_is_normal_with_the_spread_that_truth_implies(log: OrderLog, rows: tuple) -> None:
    x, y, truth = rows
    center = log.geometric(x).double().log()
    spread = (2 * (truth.double().log() - center)).sqrt()
    assert 0.399 < float(spread.min()) < 0.45
    assert 1.15 < float(spread.max()) < 1.201
    noise = (y.double().log() - center) / spread
    assert stats.kstest(noise.numpy(), "norm").pvalue > 1e-3
    assert all(stats.kstest(noise[part].numpy(), "norm").pvalue > 1e-3 for part in spread.argsort().chunk(4))


def test_effects_are_the_documented_ones() -> None:
    log = OrderLog(orders=2000, history=2)
    x, _, _ = log.chunk(0, 2000)
    center = log.geometric(x).double().log()

    def shift(**columns: Tensor) -> Tensor:
        return log.geometric(x | columns).double().log() - center

    assert shift(log_price=x["log_price"] + 1).numpy() == pytest.approx(1, abs=1e-5)
    hours = 0.2 * torch.cos((x["hour"] - 20) * math.pi / 12)
    assert (shift(hour=(x["hour"] + 12) % 24) + 2 * hours).numpy() == pytest.approx(0, abs=1e-5)
    weekend = (x["weekday"] >= 5).double()
    assert shift(weekday=torch.full_like(x["weekday"], 6)).numpy() == pytest.approx(
        (0.15 * (1 - weekend)).numpy(), abs=1e-5
    )
    empty, own = torch.full_like(x["history"], -1), x["item"][:, None].repeat(1, 2)
    gain = shift(history=own) - shift(history=empty)  # the item itself is in its own segment
    assert gain.numpy() == pytest.approx(0.6, abs=1e-5)


def test_log_trained_models_predict_too_little(log: OrderLog, rows: tuple) -> None:
    x, _, truth = rows
    bias = float(log.geometric(x).double().sum() / truth.double().sum()) - 1
    # If noise were independent of everything else: 1 / E[exp(σ²/2)] with σ = 0.4 + 0.4(U₁ + U₂).
    factor, _ = integrate.dblquad(lambda a, b: math.exp((0.4 + 0.4 * (a + b)) ** 2 / 2), 0, 1, 0, 1)
    assert bias == pytest.approx(1 / factor - 1, abs=0.02)
    assert -0.35 < bias < -0.25


def test_users_and_items_have_skewed_popularity(log: OrderLog, rows: tuple) -> None:
    x = rows[0]
    items = torch.bincount(x["item"], minlength=log.items).sort(descending=True).values
    users = torch.bincount(x["user"], minlength=log.users).sort(descending=True).values
    # The top share s of the ranks gets s^(1/3) of the items' orders and s^(1/2) of the users'.
    assert float(items[:200].sum()) / len(log) == pytest.approx(0.1 ** (1 / 3), abs=0.02)
    assert float(users[:500].sum()) / len(log) == pytest.approx(0.1**0.5, abs=0.01)
    assert int((items > 0).sum()) == log.items
    assert int((users > 0).sum()) == log.users


def test_hours_peak_at_eight_in_the_evening(rows: tuple) -> None:
    hours, days = torch.bincount(rows[0]["hour"], minlength=24), torch.bincount(rows[0]["weekday"], minlength=7)
    assert int(hours.argmax()) in (19, 20)
    assert len(hours) == 24
    assert stats.chisquare(days.numpy()).pvalue > 1e-3


def test_history_tells_the_segment(log: OrderLog, rows: tuple) -> None:
    x = rows[0]
    item, past = x["item"], x["history"][:, 0]
    known = past >= 0

    def coincidences(other: Tensor) -> float:
        return float((other[known] == past[known]).double().mean())

    # Both in the user's segment: 0.8² + 7·(0.2/7)²; of strangers 1/8. The items agree that much more often.
    assert coincidences(item) / coincidences(item.roll(1000)) == pytest.approx(8 * (0.64 + 0.04 / 7), rel=0.1)


def test_past_items_are_drawn_anew_in_every_row_and_slot(rows: tuple) -> None:
    past = rows[0]["history"]
    here, below = past[:-1], past[1:]
    for slot, other in [(0, 0), (0, 1), (1, 0), (3, 4), (4, 3)]:
        known = (here[:, slot] >= 0) & (below[:, other] >= 0)
        alike = (here[:, slot] == below[:, other])[known].double().mean()
        # Strangers agree on an item in about 1 of 200 cases, because some items are popular.
        assert float(alike) < 0.01


def test_segments_survive_a_number_of_items_that_is_no_multiple_of_them() -> None:
    n = 40_000
    log = OrderLog(orders=n, items=12, history=1)
    x, _, _ = log.chunk(0, n)
    empty = torch.full_like(x["history"], -1)
    gain = log.geometric(x).log() - log.geometric(x | {"history": empty}).log()
    share = float((gain > 0.3)[x["history"][:, 0] >= 0].double().mean())
    # With 12 items in 8 segments, every even segment loses its second, straddling item to the odd one after it:
    # it is drawn when U³ > 2/3. Alike are two choices, each first of a segment, then of an item.
    choice = torch.full((8, 8), 0.2 / 7, dtype=torch.float64).fill_diagonal_(0.8)
    lost = 1 - (2 / 3) ** (1 / 3)
    moved = torch.eye(8, dtype=torch.float64)
    for even in range(0, 8, 2):
        moved[even, even], moved[even, even + 1] = 1 - lost, lost
    expected = float((choice @ moved).square().sum(-1).mean())
    assert share == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("modulus", [2, 7, 8, 64])
def test_ids_carry_no_trace_of_the_segment(modulus: int) -> None:
    x, _, _ = OrderLog(orders=100_000, items=100_000, history=1).chunk(0, 100_000)
    item, past = x["item"], x["history"][:, 0]
    pair = (past >= 0) & (item != past)
    alike = float((item[pair] % modulus == past[pair] % modulus).double().mean())
    assert alike == pytest.approx(1 / modulus, abs=0.01)


def test_history_is_padded_at_the_end_with_every_length(rows: tuple) -> None:
    past = rows[0]["history"]
    known = past >= 0
    assert int(past.min()) == -1
    assert bool((known[:, :-1] | ~known[:, 1:]).all())
    lengths = torch.bincount(known.sum(-1), minlength=6)
    assert stats.chisquare(lengths.numpy()).pvalue > 1e-3


def valid(log: OrderLog, x: dict[str, Tensor]) -> bool:
    single = all(int(x[name].min()) >= 0 and int(x[name].max()) < size for name, size in log.sizes.items())
    return single and int(x["history"].min()) >= -1 and int(x["history"].max()) < log.items


def test_industrial_sizes_need_no_tables() -> None:
    start = 66_000_000
    x, y, truth = INDUSTRIAL.chunk(start, start + 50_000)
    assert valid(INDUSTRIAL, x)
    assert x["history"].shape == (50_000, 20)
    assert unbiased(y, truth)
    assert len(x["user"].unique()) > 45_000
    # Ids reach the whole vocabulary, not its beginning only.
    assert int(x["item"].max()) > 0.99 * INDUSTRIAL.items
    assert stats.kstest(x["user"].unique().double().numpy() / INDUSTRIAL.users, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(("users", "items"), [(1, 8), (2, 9), (7, 15), (1000, 99)])
def test_small_vocabularies_are_used_fully(users: int, items: int) -> None:
    log = OrderLog(orders=20_000, users=users, items=items, history=2)
    x, _, _ = log.chunk(0, 20_000)
    assert valid(log, x)
    assert len(x["user"].unique()) == users
    # With one user, four orders in five are of one segment; all segments occur nonetheless.
    assert len(x["item"].unique()) == items


def test_returns_are_zero_and_scale_the_truth() -> None:
    n = 100_000
    kept, some = OrderLog(orders=n, history=0), OrderLog(orders=n, history=0, zero_share=0.1)
    (_, y, truth), (_, y0, truth0) = kept.chunk(0, n), some.chunk(0, n)
    assert float((y0 == 0).double().mean()) == pytest.approx(0.1, abs=4 * (0.09 / n) ** 0.5)
    assert bool((y > 0).all())
    assert torch.equal(y0[y0 > 0], y[y0 > 0])
    torch.testing.assert_close(truth0, truth * 0.9)
    assert unbiased(y0, truth0)


def test_dataset_holds_the_rows(log: OrderLog, rows: tuple) -> None:
    x, y, _ = rows
    data = log.dataset(100, 200)
    assert isinstance(data.x, dict)
    assert all(torch.equal(data.x[name], x[name][100:200]) for name in x)
    assert torch.equal(data.y, y[100:200])
    assert len(OrderLog(orders=50).dataset()) == 50


def test_types_and_sizes(log: OrderLog, rows: tuple) -> None:
    x, y, truth = rows
    floats = {name for name, column in x.items() if column.dtype == torch.float32}
    assert floats == {"log_price"}
    assert {column.dtype for name, column in x.items() if name not in floats} == {torch.int64}
    assert y.dtype == truth.dtype == torch.float32
    assert log.sizes == {"user": 5000, "item": 2000, "hour": 24, "weekday": 7}
    assert "history" not in OrderLog(orders=10, history=0).chunk(0, 10)[0]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_makes_the_same_log() -> None:
    here, there = INDUSTRIAL.chunk(0, 200_000), INDUSTRIAL.chunk(0, 200_000, device="cuda")
    for name, column in here[0].items():
        torch.testing.assert_close(there[0][name].cpu(), column)
    torch.testing.assert_close(there[1].cpu(), here[1], rtol=1e-5, atol=0)
    torch.testing.assert_close(there[2].cpu(), here[2], rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OrderLog(orders=0), "orders=0: a log has"),
        (lambda: OrderLog(users=0), "users=0 must lie in 1"),
        (lambda: OrderLog(users=2**31), "users=2147483648 must lie"),
        (lambda: OrderLog(items=7), "items=7 must lie in 8"),
        (lambda: OrderLog(items=2**31), "items=2147483648 must lie"),
        (lambda: OrderLog(history=-1), "history=-1 must not be negative"),
        (lambda: OrderLog(zero_share=1.0), r"zero_share=1.0 must lie in \[0, 1\)"),
        (lambda: OrderLog(orders=10).chunk(0, 11), r"rows 0\.\.11 are not a part of the 10 orders"),
        (lambda: OrderLog(orders=10).chunk(5, 5), r"rows 5\.\.5 are not"),
        (lambda: OrderLog(orders=10).dataset(-1, 5), r"rows -1\.\.5 are not"),
    ],
)
def test_errors(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("history", [0, 3])
def test_a_written_log_is_the_log(tmp_path: Path, history: int) -> None:
    log = OrderLog(orders=150_000, history=history, seed=2, zero_share=0.1)
    folder = log.to_parquet(tmp_path / "a" / "log", rows_per_file=70_000, progress=False)
    files = sorted(folder.iterdir())
    assert [pq.ParquetFile(file).metadata.num_rows for file in files] == [70_000, 70_000, 10_000]
    assert pq.ParquetFile(files[0]).metadata.row_group(0).num_rows == 65_536
    x, y, _ = log.chunk(0, len(log))
    written = pa.concat_tables([pq.read_table(file) for file in files])
    assert written.column_names == [*x, "y"]  # and no truth
    assert torch.equal(torch.tensor(written["y"].to_numpy()), y)
    for name in set(x) - {"history"}:
        assert torch.equal(torch.tensor(written[name].to_numpy()).to(x[name].dtype), x[name])
    if history:
        lists = written["history"].slice(60_000, 20_000).to_pylist()
        assert lists == [[item for item in row if item >= 0] for row in x["history"][60_000:80_000].tolist()]


def test_a_log_is_written_a_row_group_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    chunk = OrderLog.chunk

    def spy(self: OrderLog, start: int, stop: int) -> tuple:
        asked.append(stop - start)
        return chunk(self, start, stop)

    monkeypatch.setattr(OrderLog, "chunk", spy)
    OrderLog(orders=200_000, history=0).to_parquet(tmp_path)
    assert max(asked) <= 65_536


def test_two_logs_do_not_mix(tmp_path: Path) -> None:
    OrderLog(orders=10).to_parquet(tmp_path)
    with pytest.raises(FileExistsError, match="holds Parquet files already"):
        OrderLog(orders=10, seed=1).to_parquet(tmp_path)
    with pytest.raises(ValueError, match="rows_per_file=0"):
        OrderLog(orders=10).to_parquet(tmp_path / "b", rows_per_file=0)
