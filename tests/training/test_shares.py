"""Shares of predictions in their mean are right where they can be computed by hand."""

import pytest
import torch

from transun.heads.blend import by_level
from transun.metrics import XAUC
from transun.training.shares import _best_shares, choose_shares, choose_small_weights


class TestShares:
    def test_independent_errors_share_by_their_precision(self) -> None:
        """w ∝ 1 / variance minimises the variance of a sum of independent errors."""
        shares = _best_shares(torch.diag(torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)))
        torch.testing.assert_close(shares, torch.tensor([4.0, 2.0, 1.0], dtype=torch.float64) / 7.0)

    def test_a_part_that_only_harms_gets_nothing(self) -> None:
        """Errors e and 3e: any share of the second makes it worse."""
        products = torch.tensor([[1.0, 3.0], [3.0, 9.0]], dtype=torch.float64)
        torch.testing.assert_close(_best_shares(products), torch.tensor([1.0, 0.0], dtype=torch.float64))

    def test_equal_parts_share_equally(self) -> None:
        y = torch.rand(500, generator=torch.Generator().manual_seed(0))
        pred = y + torch.randn(500, generator=torch.Generator().manual_seed(1))
        assert choose_shares(torch.stack([pred, pred], 1), y) == pytest.approx([0.5, 0.5])

    def test_a_part_that_counts_for_little_is_left_out(self) -> None:
        """Independent errors of variances 1 and 400 share as 400 : 1."""
        generator = torch.Generator().manual_seed(0)
        errors = torch.randn(20_000, 2, generator=generator) * torch.tensor([1.0, 20.0])
        assert choose_shares(errors, torch.zeros(20_000)) == [1.0, 0.0]

    @pytest.mark.parametrize("unit", [1e-200, 1.0, 1e150])
    def test_the_unit_does_not_matter(self, unit: float) -> None:
        generator = torch.Generator().manual_seed(2)
        y = torch.rand(300, generator=generator).double()
        preds = y.unsqueeze(1) + torch.randn(300, 2, generator=generator).double() * torch.tensor([1.0, 2.0])
        assert choose_shares(preds * unit, y * unit) == pytest.approx(choose_shares(preds, y))

    def test_rows_of_no_weight_do_not_count(self) -> None:
        y = torch.zeros(400)
        preds = torch.stack([torch.where(torch.arange(400) < 200, 0.0, 50.0), torch.ones(400)], 1)
        weight = (torch.arange(400) < 200).double()
        first, second = choose_shares(preds, y, weight)
        assert first > second

    def test_one_huge_error_decides_a_tenth(self) -> None:
        """Errors ±1 that cancel, and one row in which the first part alone is off by 1,000.

        A sample without that row has shares of a half, a sample with it (0, 1). A hundred samples contain it 10 ± 3
        times, so that the first part gets 0.9 / 2, up to 0.5 · 0.03 · 4.
        """
        preds = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).repeat(1_000, 1)
        preds[0] = torch.tensor([1_000.0, 0.0])
        first, second = choose_shares(preds, torch.zeros(2_000))
        assert first == pytest.approx(0.45, abs=0.06)
        assert first + second == pytest.approx(1.0)


class TestSmallWeights:
    y = torch.arange(1.0, 201.0).double()

    def test_who_knows_the_order_gets_the_small_amounts(self) -> None:
        """The amounts are hardly more than a constant; one part is the target, and one its opposite."""
        amount = 100.5 + 0.01 * self.y
        weights = choose_small_weights(torch.stack([amount, self.y, 201.0 - self.y], 1), [1, 0, 0], 100.0, self.y)
        assert weights[1] > 0.0
        assert weights[2] == 0.0

    @pytest.mark.parametrize("weight", [None, torch.arange(200.0)])
    def test_the_total_stays(self, weight: torch.Tensor | None) -> None:
        amount, level = 50.0 + self.y.sqrt(), 70.0
        preds = torch.stack([amount, 3.0 * self.y], 1)
        weights = choose_small_weights(preds, [1.0, 0.0], level, self.y, weight)
        assert weights[1] > 0.0
        mixed = by_level(amount, preds @ torch.tensor(weights).double(), level)
        counts = torch.ones(200) if weight is None else weight
        assert float((counts * mixed).sum()) == pytest.approx(float((counts * amount).sum()))

    def test_an_order_that_costs_much_is_not_taken(self) -> None:
        """The amounts err by 10 each, up and down, and so order neighbours wrongly; y⁸ errs by far more."""
        amount = self.y + 10.0 * torch.tensor([1.0, -1.0]).repeat(100)
        assert XAUC(amount, self.y) < 0.97
        preds = torch.stack([amount, 1e-15 * self.y**8], 1)
        assert choose_small_weights(preds, [1.0, 0.0], 100.0, self.y) == pytest.approx([1.0, 0.0])

    def test_an_order_that_is_hardly_better_is_not_worth_an_error(self) -> None:
        """Two neighbours of 200 change places: XAUC falls from 1 by 1 in 19,900 pairs."""
        amount = self.y.clone()
        amount[[50, 51]] = amount[[51, 50]]
        preds = torch.stack([amount, self.y + 20.0 * (self.y > 100.0)], 1)
        assert choose_small_weights(preds, [1.0, 0.0], 100.0, self.y) == pytest.approx([1.0, 0.0])

    @pytest.mark.parametrize("unit", [1e-150, 1e150])
    def test_the_unit_does_not_matter(self, unit: float) -> None:
        amount = 50.0 + self.y.sqrt()
        preds = torch.stack([amount, self.y], 1)
        scaled = choose_small_weights(unit * preds, [1.0, 0.0], unit * 70.0, unit * self.y)
        assert scaled == pytest.approx(choose_small_weights(preds, [1.0, 0.0], 70.0, self.y))

    def test_rows_of_no_weight_do_not_count(self) -> None:
        """Rows of no weight are in the opposite order."""
        y, preds = torch.cat([self.y, self.y]), torch.cat([self.y, -self.y + 201.0])
        amount, weight = torch.full((400,), 100.5).double(), torch.ones(400).double()
        weight[200:] = 0.0
        assert choose_small_weights(torch.stack([amount, preds], 1), [1.0, 0.0], 100.0, y, weight)[1] > 0.0

    def test_nothing_is_gained_where_nothing_is_wrong(self) -> None:
        """Two thirds of y - 1 and a third of y + 2 are y: these shares stay, although they are no quarters."""
        preds, thirds = torch.stack([self.y - 1.0, self.y + 2.0], 1), [2.0 / 3.0, 1.0 / 3.0]
        assert choose_small_weights(preds, thirds, 100.0, self.y) == pytest.approx(thirds)

    def test_without_an_order_the_least_error_decides(self) -> None:
        y, amount = torch.ones(300), torch.full((300,), 2.0)
        weights = choose_small_weights(torch.stack([amount, torch.rand(300)], 1), [1.0, 0.0], 2.0, y)
        assert weights == pytest.approx([1.0, 0.0])
