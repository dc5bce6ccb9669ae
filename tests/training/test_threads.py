"""A training takes the threads that suit its steps, within what its container may use, and gives them back."""

import pytest
import torch

from transun.backbones import Constant
from transun.data import Dataset
from transun.heads import MSE
from transun.models.network import Model
from transun.training.loop import fit
from transun.training.recipe import Recipe
from transun.training.threads import threads_for


@pytest.mark.parametrize(
    ("rows", "available", "quota", "threads"),
    [
        (16, 2, None, 1),
        (512, 64, None, 1),
        (8192, 2, None, 2),
        (8192, 2, 8.0, 2),
        (8192, 16, 4.0, 4),
        (8192, 16, 0.5, 1),
        (8192, 1, None, 1),
    ],
)
def test_small_steps_get_one_thread_and_large_ones_what_the_container_may_use(rows, available, quota, threads):
    assert threads_for(rows, available, quota) == threads


@pytest.mark.parametrize(("chosen", "during"), [(None, 1), ("2", 2)])
def test_training_on_few_rows_uses_one_thread_unless_somebody_chose(monkeypatch, chosen, during):
    if chosen is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []
    try:
        data = Dataset({"a": torch.zeros(8)}, torch.arange(8.0))
        fit(Model(Constant(), MSE()), data, Recipe(epochs=1), on_step=lambda _: seen.append(torch.get_num_threads()))
        after = torch.get_num_threads()
    finally:
        torch.set_num_threads(before)
    assert (seen, after) == ([during], 2)
