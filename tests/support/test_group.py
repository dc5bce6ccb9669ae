"""What ranks tell each other, with different numbers of rows on each, and with none."""

import pytest
import torch

from rank_jobs import exchange_everything
from transun.support.group import Group, current_group, restarted

ROWS = [2, 0, 3]
EVERY = [[0, 1], [], [20, 21, 22]]


def test_every_rank_gets_what_the_others_have(pool):
    answers = pool.run(3, exchange_everything, ROWS)
    for rank, answer in enumerate(answers):
        assert answer["sum"] == [0 + 1 + 2, 3]
        assert answer["sums"] == [[[3.0, 3.0], [3.0, 3.0]], [3.0, 3.0, 3.0]]
        assert answer["gather"] == EVERY
        assert answer["objects"] == ["0", "1", "2"]
        assert answer["any"] == [True, False]
        assert answer["joined"] == [1.0, 2.0, 21.0, 22.0, 23.0]
        # Rank r computes (r + 1)·Σx² over all rows: the gradient of a row is (1 + 2 + 3)·2x on its own rank.
        assert answer["gradient"] == [12.0 * (value + 1) for value in EVERY[rank]]
        assert answer["leader"] == 0
        assert "no number" in answer["failure"]
        assert answer["start"] == [0.0, 0.0]
    assert [answer["cut"] for answer in answers] == [(0, 2), (2, 4), (4, 7)]
    assert [answer["exchange"] for answer in answers] == [([], [0, 0, 0])] * 2 + [([0, 1, 20, 21, 22], ROWS)]


def test_a_process_alone_is_a_group_of_one(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    group = current_group()
    assert (group.rank, group.size, group.leads) == (0, 1, True)
    tensor = torch.arange(3.0)
    assert group.sum(tensor) is tensor
    assert group.bytes_sent == 0
    monkeypatch.setenv("WORLD_SIZE", "1")  # as torchrun --nproc-per-node 1 has it
    assert current_group().size == 1


def test_a_rank_outside_the_group_is_refused():
    with pytest.raises(ValueError, match=r"a group of 2 has the ranks 0\.\.1, not 2"):
        Group(2, 2)


@pytest.mark.parametrize(("count", "expected"), [(None, False), ("0", False), ("2", True)])
def test_restarts_are_told_by_torchrun(monkeypatch, count, expected):
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT", raising=False)
    if count is not None:
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", count)
    assert restarted() is expected
