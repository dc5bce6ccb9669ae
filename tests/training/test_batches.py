"""Parts of batches: every row is in one part of one batch, whatever the ranks hold."""

import pytest
import torch

from transun.data import Dataset
from transun.support.group import Group
from transun.training.batches import LocalRows, own_parts


class Rank(Group):
    """One of several ranks whose rows are known beforehand, without the others."""

    def __init__(self, rank, counts):
        super().__init__()
        self.rank, self.size, self.counts = rank, len(counts), counts

    def gather_numbers(self, numbers):
        return [[count] for count in self.counts]

    def gather_objects(self, value):
        return [value, NOTHING]


NOTHING = next(iter(Dataset({"bag": torch.zeros(1, 1, dtype=torch.int64)}, [1.0]).batches(1)))
NOTHING = NOTHING._replace(x={"bag": NOTHING.x["bag"][:0]}, y=NOTHING.y[:0])


def rows(count):
    return Dataset({"bag": torch.arange(count).reshape(-1, 1)}, torch.arange(float(count)))


@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_parts_of_ranks_are_the_batches_of_one(size):
    data = rows(10)
    whole = [batch.y.tolist() for batch in data.batches(4, seed=3)]
    parts = [list(own_parts(data, Rank(rank, [0] * size), 4, seed=3)) for rank in range(size)]
    for number, batch in enumerate(whole):
        same = [of_rank[number] for of_rank in parts]
        assert torch.cat([part.y for part in same]).tolist() == batch
        assert {part.rows for part in same} == {len(batch)}
        assert [part.start for part in same] == [sum(len(before.y) for before in same[:r]) for r in range(size)]


@pytest.mark.parametrize("counts", [[10, 0], [9, 1], [0, 3]], ids=str)
def test_rows_of_each_rank_end_in_the_same_step(counts):
    seen = []
    for rank, count in enumerate(counts):
        group = Rank(rank, counts)
        source = LocalRows(rows(count) if count else None, group)
        parts = list(source.parts(group, 4, None))
        assert len(parts) == -(-sum(counts) // 4)
        assert [part.x["bag"].flatten().tolist() for part in parts] == [part.y.long().tolist() for part in parts]
        seen.append(torch.cat([part.y for part in parts]).tolist())
    assert [len(set(values)) for values in seen] == counts


def test_lists_of_different_length_meet_in_one_part():
    class Uneven:
        def __len__(self):
            return 2

        def batches(self, size, *, seed=None):
            for width in (1, 2):
                yield next(iter(Dataset({"bag": torch.ones(1, width, dtype=torch.int64)}, [1.0]).batches(1)))

    (part,) = LocalRows(Uneven(), Group()).parts(Group(), 2, None)
    assert part.x["bag"].tolist() == [[1, -1], [1, 1]]


def test_no_rows_anywhere_is_an_error():
    with pytest.raises(ValueError, match="no rank has any rows"):
        LocalRows(None, Group())
