"""Trees grown on encoded rows: means of ids leak nothing."""

import torch

from transun.backbones import Trees
from transun.backbones.boosting import _seen_by_training_rows


def test_a_mean_that_a_row_sees_does_not_contain_its_target() -> None:
    """A mean of ids that occur once must be the overall mean: any other value would come from the row itself."""
    n = 50
    matrix = Trees(ids={"user": n}).columns()
    columns = _seen_by_training_rows(
        matrix, {"user": torch.arange(n)}, torch.arange(1.0, n + 1.0), torch.ones(n), torch.arange(n) % 5
    )
    assert columns[matrix.meanings.index(("user", "means"))].abs().max() == 0.0
