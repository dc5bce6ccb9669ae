"""Trees grown on encoded rows: means of ids leak nothing, and totals are right for rows as they were seen."""

import pytest
import torch

from transun.backbones import Trees
from transun.backbones.boosters import Boosting
from transun.backbones.boosting import _seen_by_training_rows, grow
from transun.backbones.boosting_loss import TweedieDeviance
from transun.data import Dataset


def test_a_mean_that_a_row_sees_does_not_contain_its_target() -> None:
    """A mean of ids that occur once must be the overall mean: any other value would come from the row itself."""
    n = 50
    matrix = Trees(ids={"user": n}).columns()
    columns = _seen_by_training_rows(
        matrix, {"user": torch.arange(n)}, torch.arange(1.0, n + 1.0), torch.ones(n), torch.arange(n) % 5
    )
    assert columns[matrix.meanings.index(("user", "means"))].abs().max() == 0.0


@pytest.mark.parametrize("other", [False, True])
def test_the_total_is_right_for_rows_that_see_no_mean_of_their_own(other: bool) -> None:
    """That is how the trees were boosted, and how new rows are: their own target is in no mean."""
    pytest.importorskip("sklearn")
    generator = torch.Generator().manual_seed(0)
    user, fold = torch.randint(0, 100, (1_500,), generator=generator), torch.arange(1_500) % 5
    y = torch.randn(100, generator=generator).exp()[user] * torch.randn(1_500, generator=generator).square()
    rows = Dataset({"user": user}, y)
    # A user is seen by the mean target alone if ids are too many for sets of codes.
    inputs = Trees({"user": 1_000})
    totals = Dataset(rows.x, 3.0 * y + 1.0, torch.rand(1_500, generator=generator)) if other else None
    settings = Boosting(TweedieDeviance(1.3), 8, 0.1, by_means=True, most_trees=40)
    grown = grow(rows, None, inputs, settings, fold, totals=totals)
    seen = _seen_by_training_rows(grown.forest.matrix, {"user": user}, y / y.mean(), torch.ones(1_500), fold)
    amounts = grown.unit * grown.forest._sum_leaves(seen).double().exp()
    wanted, weight = (y, torch.ones(1_500)) if totals is None else (totals.y, totals.weight)
    assert float((weight * amounts).sum()) == pytest.approx(float((weight * wanted).sum()), rel=1e-4)
