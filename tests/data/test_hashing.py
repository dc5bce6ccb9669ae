import pytest
import torch
from scipy import stats

from transun.data import hashing


def test_bits_are_splitmix64(monkeypatch: pytest.MonkeyPatch) -> None:
    # The published test vector of SplitMix64: the first outputs of the generator seeded with 1234567.
    monkeypatch.setattr(hashing, "_key", lambda seed, stream: 1234567)
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    ours = [value % 2**64 for value in hashing.bits(torch.arange(1, 6), 0, "any").tolist()]
    assert ours == published


def test_ids_are_left_alone() -> None:
    ids = torch.arange(5)
    hashing.uniform(ids, 0, "a")
    assert ids.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("start", [0, 10**12])
@pytest.mark.parametrize("step", [1, 8, 4096])
def test_uniform_is_uniform_on_regular_ids(start: int, step: int) -> None:
    values = hashing.uniform(start + step * torch.arange(100_000), 3, "a")
    assert stats.kstest(values.numpy(), "uniform").pvalue > 1e-3
    # Neighbouring ids, as a chi-square of the pairs on a 16 x 16 grid: 255 degrees of freedom.
    cells = (values * 16).long()
    counts = torch.bincount(cells[0::2] * 16 + cells[1::2], minlength=256)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_uniform_is_open_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    # No bit set and every bit set, which no test of feasible size would meet by chance.
    monkeypatch.setattr(hashing, "bits", lambda ids, seed, stream: ids)
    assert hashing.uniform(torch.tensor([0, -1]), 0, "a").tolist() == [2.0**-53, 1 - 2.0**-53]


def test_low_bits_are_uniform() -> None:
    counts = torch.bincount(hashing.bits(torch.arange(100_000), 0, "a") & 63, minlength=64)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


@pytest.mark.parametrize("other", [(0, "b"), (1, "a"), (1, "b")])
def test_streams_and_seeds_are_unrelated(other: tuple[int, str]) -> None:
    ids = torch.arange(100_000)
    pair = torch.stack([hashing.uniform(ids, 0, "a"), hashing.uniform(ids, *other)])
    assert abs(float(torch.corrcoef(pair)[0, 1])) < 4 / 100_000**0.5


def test_one_input_bit_changes_half_of_the_output_bits() -> None:
    ids = torch.arange(1000)
    for place in (0, 1, 20, 40, 62):
        changed = hashing.bits(ids, 0, "a") ^ hashing.bits(ids ^ (1 << place), 0, "a")
        ones = sum(value.bit_count() for value in (item % 2**64 for item in changed.tolist()))
        assert ones / 64_000 == pytest.approx(0.5, abs=0.02)
