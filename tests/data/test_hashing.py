import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from transun.data import hashing
from transun.data.hashing import HashIndex, hash_text


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


def reference_hash(text: str) -> int:
    """The formula of `hash_text` in Python's own integers."""
    mask, data = 2**64 - 1, text.encode()
    h = len(data)
    for start in range(0, len(data), 8):
        h = ((h ^ int.from_bytes(data[start : start + 8], "little")) + 0x9E3779B97F4A7C15) & mask
        h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & mask
        h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & mask
        h ^= h >> 31
    return h


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(max_size=40), max_size=30), skip=st.integers(0, 3))
def test_hash_text_is_its_formula(texts: list[str], skip: int) -> None:
    ours = hash_text(pa.array(texts, pa.large_string()).slice(skip)).view(np.uint64)
    assert ours.tolist() == [reference_hash(text) for text in texts[skip:]]


@settings(max_examples=60, deadline=None)
@given(
    known=st.lists(st.integers(-(2**62), 2**62) | st.integers(-50, 50), unique=True, max_size=80),
    asked=st.lists(st.integers(-(2**62), 2**62) | st.integers(-50, 50), max_size=80),
)
def test_hash_index_is_a_dict(known: list[int], asked: list[int]) -> None:
    reference = {key: index for index, key in enumerate(known)}
    asked += known
    index = HashIndex(np.array(known, np.int64))(np.array(asked, np.int64))
    assert index.tolist() == [reference.get(key, -1) for key in asked]
