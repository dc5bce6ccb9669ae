"""Training rows are recognised in any order and amount; new rows are not taken for them, however alike rows are."""

import json

import numpy as np
import pytest
import torch

from transun.data import Dataset
from transun.data.seen_rows import SeenRows, row_hashes


def table(rows, seed, *, values=1000, targets=None):
    generator = torch.Generator().manual_seed(seed)
    item = torch.randint(0, values, (rows,), generator=generator)
    bag = torch.randint(0, values, (rows, 3), generator=generator)
    price = torch.rand(rows, generator=generator)
    y = torch.rand(rows, generator=generator)
    if targets is not None:
        price, y, bag = price.mul(2).floor(), y.mul(targets).floor(), bag[:, :1]
    return Dataset({"item": item, "bag": bag, "price": price}, y)


def share(seen, data):
    return seen.share(row_hashes(data.x, data.y))


@pytest.mark.parametrize("rows", [1, 60, 3000, 30_000])  # the last is more than the hashes that are kept
def test_training_rows_are_recognised(rows):
    data = table(rows, seed=0)
    seen = SeenRows.of(data)
    shuffled = data.take(torch.randperm(rows, generator=torch.Generator().manual_seed(1)))
    if rows > 1:
        # Of the hashes kept, 4 standard errors are 4 %.
        assert share(seen, shuffled) > 0.96
    assert share(seen, table(rows, seed=1)) == 0.0


@pytest.mark.parametrize("known", [0.02, 0.2, 0.8])
def test_the_share_of_training_rows_is_estimated(known):
    """A count of about 5,000 · known rows is off by at most 4 of its standard errors."""
    old, new = table(20_000, seed=0), table(20_000, seed=1)
    part = int(20_000 * known)
    x = {name: torch.cat([old.x[name][:part], new.x[name][part:]]) for name in old.x}
    mixed = Dataset(x, torch.cat([old.y[:part], new.y[part:]]))
    estimate = share(SeenRows.of(old), mixed)
    assert estimate == pytest.approx(known, abs=4.0 * (known / (20_000 * SeenRows.of(old).reach)) ** 0.5)


@pytest.mark.parametrize("values", [2, 20, 200, 2000])
@pytest.mark.parametrize("targets", [2, 20])
def test_rows_that_are_alike_by_chance_are_no_evidence(values, targets):
    """Columns of few values: most new rows equal a training row, and Good and Turing know how many equal a rare one."""
    for seed in range(10):
        seen = SeenRows.of(table(3000, seed, values=values, targets=targets))
        assert share(seen, table(3000, 100 + seed, values=values, targets=targets)) == 0.0


def test_alike_rows_are_recognised_where_they_can_be():
    data = table(3000, 0, values=2000, targets=20)
    assert share(SeenRows.of(data), data) > 0.9


def test_lists_are_the_same_however_far_they_are_padded():
    short, long = torch.tensor([[3, 5], [7, -1]]), torch.tensor([[3, 5, -1, -1], [7, -1, -1, -1]])
    y = torch.tensor([1.0, 2.0])
    np.testing.assert_array_equal(row_hashes({"bag": short}, y), row_hashes({"bag": long}, y))
    assert row_hashes({"bag": short}, y)[0] != row_hashes({"bag": short.flip(1)}, y)[0]


@pytest.mark.parametrize("rows", [500, 20_000])
def test_two_trainings_are_remembered_together(rows):
    first, second = table(rows, seed=0), table(rows, seed=1)
    seen = SeenRows.of(first).joined(SeenRows.of(second))
    assert share(seen, first) > 0.9
    assert share(seen, second) > 0.9
    assert share(seen, table(rows, seed=2)) == 0.0


@pytest.mark.parametrize("rows", [500, 20_000])
def test_rows_that_both_trainings_saw_stay_known(rows):
    data = table(rows, seed=0)
    first, second = data.take(torch.arange(rows // 2)), data.take(torch.arange(rows // 4, rows))
    seen = SeenRows.of(first).joined(SeenRows.of(second))
    assert share(seen, data) > 0.9
    assert share(seen, table(rows, seed=2)) == 0.0


def test_rows_that_are_alike_by_chance_in_two_trainings_are_no_evidence():
    for seed in range(10):
        first, second, new = (table(3000, seed + start, values=200, targets=20) for start in (0, 100, 200))
        assert share(SeenRows.of(first).joined(SeenRows.of(second)), new) == 0.0


def test_it_comes_back_from_json():
    seen = SeenRows.of(table(300, seed=0))
    again = SeenRows.from_dict(json.loads(json.dumps(seen.to_dict())))
    np.testing.assert_array_equal(again.hashes, seen.hashes)
    assert (again.rows, again.once, again.twice, again.reach) == (seen.rows, seen.once, seen.twice, seen.reach)


@pytest.mark.parametrize(
    "damage",
    [{"rows": 0}, {"rows": "x"}, {"reach": 2.0}, {"reach": float("nan")}, {"hashes": "?"}, {"hashes": 3}, {"once": -1}],
)
def test_damage_is_one_sentence(damage):
    content = SeenRows.of(table(30, seed=0)).to_dict() | damage
    with pytest.raises(ValueError, match="remembers of its training rows is damaged"):
        SeenRows.from_dict(content)


def test_what_is_no_object_is_damage_too():
    for content in ([], 3, "x", {}):
        with pytest.raises(ValueError, match="is damaged"):
            SeenRows.from_dict(content)
