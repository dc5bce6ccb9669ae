"""Multicalibration: segments that are wrong are found and put right, and where none is wrong nothing changes."""

import pytest
import torch

from transun.backbones import Trees
from transun.corrections import Multicalibration
from transun.corrections.multicalibration import Change, fit_ratio
from transun.models.spec import dumps, loads
from transun.transforms import Identity, Log1p

INPUTS = Trees(ids={"a": 2, "b": 2}, numeric=("c",))
# Gamma noise of shape 4: the standard deviation of an amount is half of its mean.
SHAPE = 4.0


def world(rows, seed, factor):
    """Columns, and amounts around 10·factor(a, b) where the predictions are 10 everywhere."""
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randint(0, 2, (rows,), generator=generator) for _ in range(2))
    torch.manual_seed(seed)
    noise = torch.distributions.Gamma(SHAPE, SHAPE).sample((rows,))
    return {"a": a, "b": b, "c": torch.rand(rows, generator=generator)}, 10.0 * factor(a, b) * noise


def crossed(a, b):
    """Too high by 40 % for a = 0, right or too low by 60 % for a = 1, as b says."""
    return torch.where(a == 0, 0.6, torch.where(b == 0, 1.0, 1.6))


def even(a, b):
    return torch.ones(len(a))


def ratios(pred, x, y):
    """Predicted / actual total of every pair of values."""
    inside = [(x["a"] == a) & (x["b"] == b) for a in (0, 1) for b in (0, 1)]
    return [float(pred[rows].sum() / y[rows].sum()) for rows in inside]


@pytest.fixture(scope="module")
def fitted():
    x, y = world(2_000, 0, crossed)
    return Multicalibration(INPUTS).fit(torch.full((2_000,), 10.0), y, Identity(), x=x)


def test_pairs_of_columns_that_are_wrong_are_put_right(fitted):
    assert "multicalibrated by 2,000 rows" in str(fitted.measured)
    x, y = world(8_000, 1, crossed)
    # 500 rows of a segment are known to 0.5/√500 = 2.2 %, the 2,000 fresh ones to 1.1 %; four segments, three errors.
    assert ratios(fitted(torch.full((8_000,), 10.0), x), x, y) == pytest.approx([1.0] * 4, abs=0.1)


def test_points_may_be_in_the_space_of_a_transform():
    x, y = world(2_000, 0, crossed)
    u = torch.full((2_000,), 11.0, dtype=torch.float64).log()  # a prediction of 10
    fitted = Multicalibration(INPUTS).fit(u, y, Log1p(), x=x)
    # The rows that taught it, whose 500 a segment are shrunk a little.
    assert ratios(fitted(u, x), x, y) == pytest.approx([1.0] * 4, abs=0.1)


def test_what_was_learned_travels_with_its_columns(fitted):
    x, _ = world(50, 3, crossed)
    again = loads(dumps(fitted))
    assert dumps(again) == dumps(fitted)
    assert again.columns == ("a", "b", "c")
    pred = torch.full((50,), 10.0)
    assert torch.equal(again(pred, x), pred)  # text alone does not carry what was learned
    again.load_state_dict(fitted.state_dict())
    assert torch.equal(again(pred, x), fitted(pred, x))


def test_columns_that_are_missing_are_named(fitted):
    with pytest.raises(ValueError, match="Multicalibration reads column 'a', and got no columns"):
        fitted(torch.ones(2))
    with pytest.raises(ValueError, match="reads column 'c', and got a, b"):
        Multicalibration(INPUTS).fit(
            torch.ones(2), torch.ones(2), Identity(), x={"a": torch.zeros(2, dtype=torch.int64), "b": torch.zeros(2)}
        )


def test_without_columns_it_corrects_by_level():
    """Predictions 1 and 4 of amounts around 2 and 4: the lower half is doubled, the upper one stays."""
    generator = torch.Generator().manual_seed(0)
    pred = 1.0 + 3.0 * torch.randint(0, 2, (3_000,), generator=generator)
    y = torch.where(pred < 2.0, 2.0, 4.0) * (0.5 + torch.rand(3_000, generator=generator))
    corrected = Multicalibration().fit(pred, y, Identity())(torch.tensor([1.0, 4.0]))
    # Uniform noise of ±½ has a standard deviation of 0.29; 1,500 rows know the mean to 0.75 %.
    assert corrected.tolist() == pytest.approx([2.0, 4.0], rel=0.04)


def test_nothing_changes_where_nothing_is_wrong():
    """A ratio by chance is not kept, or hardly differs from 1; one in three plain means of 500 rows is off by 2 %."""
    changes = []
    for seed in range(3):
        x, y = world(1_500, seed, even)
        pred = torch.full((1_500,), 10.0)
        corrected = Multicalibration(INPUTS).fit(pred, y, Identity(), x=x)(pred, x)
        changes.append(float((corrected / pred - 1.0).square().mean().sqrt()))
    assert max(changes) < 0.02


@pytest.mark.parametrize("factor", [0.01, 1.0, 50.0])
def test_a_wrong_total_hides_no_segment(factor):
    """Credibility is about amounts whose total is right, so that a factor of all predictions changes nothing.

    Except that predictions below a thousandth of the mean are raised, and that trees see numbers of single precision.
    """
    x, y = world(2_000, 0, crossed)
    pred = torch.full((2_000,), 10.0 * factor, dtype=torch.float64)
    corrected = Multicalibration(INPUTS).fit(pred, y, Identity(), x=x)(pred, x)
    assert ratios(corrected, x, y) == pytest.approx([1.0] * 4, abs=0.1)


def test_rows_of_a_group_are_left_out_together():
    """Amounts that belong to a group and not to a segment are no reason for a factor by the group's number."""
    torch.manual_seed(0)
    group = torch.arange(2_000) // 20
    y = 10.0 * torch.distributions.Gamma(SHAPE, SHAPE).sample((100,))[group]
    pred, x = torch.full((2_000,), 10.0), {"place": group.float()}
    inputs = Trees(numeric=("place",))
    alone, together = (Multicalibration(inputs).fit(pred, y, Identity(), x=x, group=by) for by in (None, group))
    assert alone.measured.deviance.value < -0.5  # the other rows of a group say what a row is
    assert together.measured.deviance.value > -0.1


def test_few_rows_and_no_amounts_change_nothing():
    def fit(rows, y=None, **options):
        x, drawn = world(rows, 0, crossed)
        return fit_ratio(x, drawn if y is None else y, torch.full((rows,), 10.0), INPUTS, **options)

    assert "it takes 1,000 rows in many groups, and there are 300" in str(fit(300))
    assert not fit(1_200, group=torch.arange(1_200) % 3).kept  # three groups cannot be in ten parts
    assert not fit(1_200, torch.zeros(1_200)).kept


def test_segments_of_small_amounts_are_put_right_beside_large_ones():
    """A tenth of the rows has 1,000 times the amount, and is right; the others are half of what is predicted.

    The large rows carry 99 % of the total, and their noise is as large as they are, so that the error of the small ones
    is nothing beside it. 3,600 rows of noise ½ know a mean to 0.8 %, and what the trees shrink is a few per cent.
    """
    generator = torch.Generator().manual_seed(0)
    large = torch.rand(4_000, generator=generator) < 0.1
    torch.manual_seed(0)
    many, few = (torch.distributions.Gamma(shape, shape).sample((4_000,)) for shape in (SHAPE, 1.0))
    pred, y = torch.where(large, 1_000.0, 1.0), torch.where(large, 1_000.0 * few, 0.5 * many)
    x = {"a": (~large).long(), "b": torch.zeros(4_000, dtype=torch.int64), "c": torch.zeros(4_000)}
    corrected = Multicalibration(INPUTS).fit(pred, y, Identity(), x=x)(pred, x)
    assert float(corrected[~large].mean()) == pytest.approx(0.5, abs=0.1)


def test_targets_below_zero_are_refused():
    with pytest.raises(ValueError, match="the target of row 1 is -2, below 0"):
        Multicalibration().fit(torch.ones(3), torch.tensor([1.0, -2.0, 3.0]), Identity())


def test_a_change_falls_beyond_its_standard_errors():
    assert Change(-0.02, 0.01).falls(1.0)
    assert not Change(-0.02, 0.01).falls(3.0)
    assert not Change(-0.01, 0.02).falls(1.0)
    assert not Change(0.02, 0.01).falls(0.0)
