"""Boosted trees as a stage: the amount that an ensemble of trees predicts is the feature of the output layer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from transun.backbones.backbone import Backbone, Inputs
from transun.backbones.embedding import named_columns
from transun.support.arguments import listed

__all__ = ["MAX_LOG_RATIO", "Tree", "Trees"]

# Numbers that one step of the forward pass may hold, few enough for the cache of a processor.
_PIECE = 1 << 20
MAX_LOG_RATIO = 20.0
"""ln of an amount stays within this of ln of the unit, as in `Poisson`."""


@dataclass(frozen=True)
class Tree:
    """One regression tree. Inner node i asks a question; its answer leads to another inner node or to a leaf.

    Args:
        columns: of each inner node the column it asks about.
        questions: of each inner node a threshold t, "is x ≤ t?", or a set of codes, "is x one of them?".
        yes: the node for the answer yes: an inner node i as i, leaf j as -1 - j.
        no: the node for the answer no.
        values: of each leaf.
        slopes: of each leaf the slope of every column that it is linear in; empty where all leaves are constant.

    """

    columns: Sequence[int]
    questions: Sequence[float | frozenset[int]]
    yes: Sequence[int]
    no: Sequence[int]
    values: Sequence[float]
    slopes: Sequence[Mapping[int, float]] = ()

    def paths(self) -> Iterator[tuple[int, list[tuple[int, bool]]]]:
        """Each leaf with the answers that lead to it."""
        waiting: list[tuple[int, list[tuple[int, bool]]]] = [(0 if self.columns else -1, [])]
        while waiting:
            node, answers = waiting.pop()
            if node < 0:
                yield -1 - node, answers
            else:
                waiting += [(self.yes[node], [*answers, (node, True)]), (self.no[node], [*answers, (node, False)])]


@dataclass(frozen=True)
class Trees(Backbone):
    """Boosted trees with a logarithmic link: the one feature of a row is exp(Σ leaves that it reaches), an amount.

    Trees see steep places and interactions that a smooth network needs many rows to learn; a network sees what is
    smooth, or additive in ids. Their errors differ, so that a mixture of both is better than either on most tables.

    The trees are fitted elsewhere (`transun.backbones.boosting`) and have no gradient; the output layer brings the
    amount into the unit of the target. A row finds its leaves without a loop: all questions of all trees are answered
    at once, and in each tree the one leaf whose answers are all as needed counts. This costs a little more
    arithmetic than walking down, and is several times faster in torch.

    A column of ids is seen as its codes, about which nodes ask by sets, and as the mean target of each id, less the
    overall mean and shrunk towards it; a bag as the number of its ids and the average of their means.

    A leaf is a constant, or linear in some columns: c + Σ slopeⱼ·xⱼ. Linear leaves follow what is smooth with far fewer
    leaves. Beyond the range of the training rows they would explode, so that there each xⱼ counts as the nearest end of
    that range.

    Args:
        ids: single-valued columns (B,) of integers, as in `EmbeddingMLP`.
        bags: multi-valued columns (B, L) padded with -1, as in `EmbeddingMLP`.
        numeric: columns (B,) of floats.
        trees: how many.
        leaves: of the largest tree.
        sets: for columns of codes, how many different sets of codes the nodes ask about.
        slopes: the numbers of the columns that leaves are linear in; see `TreeColumns`.

    >>> model = Model(Trees(numeric=("a",), trees=1, leaves=2), MSE())
    >>> forest = model.network.stacks[0][0]
    >>> forest.plant([Tree([0], [0.5], [-1], [-2], [0.0, 2.0])])  # 0 up to a = ½, else 2
    >>> [round(v, 3) for v in forest({"a": torch.tensor([0.0, 1.0])}).flatten().tolist()]  # e⁰ and e²
    [1.0, 7.389]

    """

    ids: Mapping[str, int | str] = field(default_factory=dict)
    bags: Mapping[str, int | str] = field(default_factory=dict)
    numeric: Sequence[str] = ()
    trees: int = 0
    leaves: int = 1
    sets: Mapping[str, int] = field(default_factory=dict)
    slopes: Sequence[int] = ()
    out_features: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numeric", tuple(listed("numeric", self.numeric)))
        if not self.ids and not self.bags and not self.numeric:
            raise ValueError("Trees needs at least one column in ids, bags or numeric")
        if self.trees < 0 or self.leaves < 1:
            raise ValueError(f"Trees needs trees >= 0 and leaves >= 1, got {self.trees} and {self.leaves}")
        if unknown := [name for name in self.sets if name not in self.ids]:
            raise ValueError(f"Trees has sets of codes for {unknown[0]!r}, which is no column of ids")
        object.__setattr__(self, "slopes", tuple(self.slopes))

    def stages(self) -> list[Callable[[], nn.Module]]:
        return [self.forest]

    def set_up_output(self, output: nn.Module) -> nn.Module:
        # The one feature is the amount already. A gradient would find another line through the amounts of some rows.
        return output.requires_grad_(False)

    def numbers_without_gradient(self, stages: nn.Sequential) -> int:
        return sum(cast(Forest, forest).learned_numbers() for forest in stages)

    def forest(self) -> "Forest":
        """The one stage, with room for the trees; without any it gives 1 for every row."""
        return Forest(self.columns(), self.trees, self.leaves, self.sets, self.slopes)

    def columns(self) -> "TreeColumns":
        """What turns a batch into the columns that the trees ask about."""
        return TreeColumns(self.ids, self.bags, self.numeric)

    def holding(self, trees: Sequence[Tree]) -> Self:
        """The same columns with room for these trees."""
        sets = {name: len(members) for name, members in _distinct_sets(trees, self.columns()).items()}
        leaves = max((len(tree.values) for tree in trees), default=1)
        slopes = sorted({column for tree in trees for leaf in tree.slopes for column in leaf})
        return replace(self, trees=len(trees), leaves=leaves, sets=sets, slopes=slopes)

    def grow(self, sizes: Mapping[str, int]) -> Self:
        """The same trees with room for more ids, about which no node asks and whose mean is the overall one."""
        ids, bags = ({name: sizes.get(name, size) for name, size in group.items()} for group in (self.ids, self.bags))
        return replace(self, ids=ids, bags=bags)


class TreeColumns(nn.Module):
    """A batch as the columns that trees ask about, (columns, B): numbers, codes, mean targets of ids, sizes of bags."""

    def __init__(self, ids: Mapping[str, int | str], bags: Mapping[str, int | str], numeric: Sequence[str]) -> None:
        super().__init__()
        tables = {**ids, **bags}
        self.sizes: dict[str, int] = {
            name: size if isinstance(size, int) else cast(int, tables[size]) for name, size in tables.items()
        }
        self.ids, self.bags, self.numeric = tuple(ids), tuple(bags), tuple(numeric)
        # What a column of the matrix is: a number, codes, the mean target of the codes, or the size of a bag.
        self.meanings = (
            *((name, "number") for name in self.numeric),
            *((name, "codes") for name in self.ids),
            *((name, "means") for name in (*self.ids, *self.bags)),
            *((name, "size") for name in self.bags),
        )
        self.names = (*self.numeric, *self.ids, *self.bags)
        for index, name in enumerate((*self.ids, *self.bags)):
            # Means less the overall mean, so that 0 is right for an id that nothing is known about.
            self.register_buffer(f"means_{index}", torch.zeros(self.sizes[name]))

    def means(self, name: str) -> Tensor:
        """The mean target of each id of a column, less the overall mean."""
        return self.get_buffer(f"means_{(*self.ids, *self.bags).index(name)}")

    def forward(self, batch: Inputs) -> Tensor:
        columns = named_columns(batch, self.names)
        parts = [columns[name].float() for name in self.numeric]
        parts += [columns[name].float() for name in self.ids]
        parts += [self.means(name)[columns[name]] for name in self.ids]
        parts += [bag_means(self.means(name), columns[name]) for name in self.bags]
        parts += [(columns[name] >= 0).sum(1).float() for name in self.bags]
        return torch.stack(parts)


def bag_means(means: Tensor, codes: Tensor) -> Tensor:
    """The average over the codes of each row (B, L), padded with -1; 0 for an empty row.

    >>> bag_means(torch.tensor([1.0, 3.0]), torch.tensor([[0, 1], [1, -1], [-1, -1]])).tolist()
    [2.0, 3.0, 0.0]
    """
    present = codes >= 0
    return (means[codes.clamp(min=0)] * present).sum(1) / present.sum(1).clamp(min=1)


class Forest(nn.Module):
    """Trees side by side, each filled up to the number of leaves of the largest; gives amounts (B, 1).

    Leaf l of a tree is reached if Σᵢ path[l, i]·answer[i] = needed[l], where answers are 0 and 1, and path is 1 where
    the answer must be yes, -1 where it must be no, and 0 where the question is not on the way; needed counts the yes.
    The constants of leaves are the first row of `values`, and their slopes the others.
    """

    def __init__(
        self, matrix: TreeColumns, trees: int, leaves: int, sets: Mapping[str, int], slopes: Sequence[int] = ()
    ) -> None:
        super().__init__()
        questions = max(leaves - 1, 1)
        self.matrix, self.sets, self.slopes = matrix, dict(sets), list(slopes)
        self.codes = [matrix.meanings.index((name, "codes")) for name in sets]
        self.register_buffer("columns", torch.zeros(trees, questions, dtype=torch.int32))
        self.register_buffer("thresholds", torch.zeros(trees, questions))
        self.register_buffer("path", torch.zeros(trees, leaves, questions, dtype=torch.int8))
        self.register_buffer("needed", torch.full((trees, leaves), -1, dtype=torch.int8))
        self.register_buffer("values", torch.zeros(1 + len(slopes), trees, leaves))
        self.register_buffer("least", torch.full((len(slopes),), -torch.inf))
        self.register_buffer("most", torch.full((len(slopes),), torch.inf))
        for index, (name, count) in enumerate(sets.items()):
            # True for every code that is not in the set: a question about a set is one about a number, "≤ ½?".
            self.register_buffer(f"outside_{index}", torch.ones(matrix.sizes[name], count, dtype=torch.bool))

    def forward(self, batch: Inputs) -> Tensor:
        logs = self._sum_leaves(self.matrix(batch))
        return logs.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp().unsqueeze(-1)

    def plant(self, trees: Sequence[Tree], x: Tensor | None = None) -> None:
        """Fill the buffers with trees.

        Args:
            trees: as many as there is room for.
            x: the columns (columns, n) of the training rows, beyond whose range no leaf goes on; None sets no end.

        """
        sets = _distinct_sets(trees, self.matrix)
        starts: dict[str, int] = {}
        start = len(self.matrix.meanings)
        for index, (name, members) in enumerate(sets.items()):
            starts[name], start = start, start + len(members)
            for codes, number in members.items():
                self.get_buffer(f"outside_{index}")[sorted(codes), number] = False
        columns, thresholds = self.get_buffer("columns").numpy(), self.get_buffer("thresholds").numpy()
        path, needed = self.get_buffer("path").numpy(), self.get_buffer("needed").numpy()
        values = self.get_buffer("values").numpy()
        for number, tree in enumerate(trees):
            for node, (column, question) in enumerate(zip(tree.columns, tree.questions, strict=True)):
                if isinstance(question, frozenset):
                    name = self.matrix.meanings[column][0]
                    column, question = starts[name] + sets[name][question], 0.5
                columns[number, node], thresholds[number, node] = column, _largest_single(question)
            for leaf, answers in tree.paths():
                values[0, number, leaf] = tree.values[leaf]
                for column, slope in (tree.slopes[leaf] if tree.slopes else {}).items():
                    values[1 + self.slopes.index(column), number, leaf] = slope
                needed[number, leaf] = sum(yes for _, yes in answers)
                for node, yes in answers:
                    path[number, leaf, node] = 1 if yes else -1
        if x is not None and self.slopes:
            self.get_buffer("least").copy_(x[self.slopes].amin(1))
            self.get_buffer("most").copy_(x[self.slopes].amax(1))

    def learned_numbers(self) -> int:
        """The values and slopes of all leaves and the questions that lead to them, of which a tree has one less."""
        leaves = (self.get_buffer("needed") >= 0).sum(1)
        return int((2 * leaves - 1).clamp(min=0).sum()) + int(self.get_buffer("values")[1:].count_nonzero())

    def _sum_leaves(self, x: Tensor) -> Tensor:
        """The sum of leaves (B,) for the columns x (columns, B)."""
        if torch.compiler.is_compiling():  # in one piece, because a graph has no loops
            return self._sum(self._with_sets(x), slice(None))
        rows = max(1, _PIECE // max(sum(self.sets.values()), 64))
        return torch.cat([self._sum_in_pieces(self._with_sets(part)) for part in torch.split(x, rows, 1)])

    def _sum_in_pieces(self, x: Tensor) -> Tensor:
        _, trees, leaves = self.get_buffer("values").shape
        step = max(1, _PIECE // (leaves * max(x.shape[1], 1)))
        total = x.new_zeros(x.shape[1])
        for begin in range(0, trees, step):
            total += self._sum(x, slice(begin, begin + step))
        return total

    def _with_sets(self, x: Tensor) -> Tensor:
        """The columns, and for every set of codes whether a row's code is outside it."""
        parts = [x]
        for index, column in enumerate(self.codes):
            parts.append(self.get_buffer(f"outside_{index}")[x[column].long()].t().to(x.dtype))
        return torch.cat(parts) if len(parts) > 1 else x

    def _sum(self, x: Tensor, trees: slice) -> Tensor:
        columns, path = self.get_buffer("columns")[trees], self.get_buffer("path")[trees]
        asked = x[columns.flatten().long()].reshape(*columns.shape, x.shape[1])
        # In place the answers are numbers at once: conversions from booleans would take most of the time.
        answers = asked.le_(self.get_buffer("thresholds")[trees].unsqueeze(-1))
        reached = torch.bmm(path.to(x.dtype), answers).eq_(self.get_buffer("needed")[trees].unsqueeze(-1))
        sums: Tensor = self.get_buffer("values")[:, trees].flatten(1) @ reached.flatten(0, 1)
        if not self.slopes:
            return sums[0]
        inside = x[self.slopes].clamp(self.get_buffer("least").unsqueeze(1), self.get_buffer("most").unsqueeze(1))
        return sums[0] + (sums[1:] * inside).sum(0)


def _distinct_sets(trees: Sequence[Tree], matrix: TreeColumns) -> dict[str, dict[frozenset[int], int]]:
    """For every column that nodes ask about by sets, the different sets, numbered."""
    sets: dict[str, dict[frozenset[int], int]] = {}
    for tree in trees:
        for column, question in zip(tree.columns, tree.questions, strict=True):
            if isinstance(question, frozenset):
                members = sets.setdefault(matrix.meanings[column][0], {})
                members.setdefault(question, len(members))
    return sets


def _largest_single(value: float) -> np.float32:
    """The largest number of single precision that is not above a threshold t: for single x, x ≤ t asks the same.

    >>> bool(_largest_single(0.1) <= 0.1 < np.nextafter(_largest_single(0.1), np.float32(1)))
    True
    """
    single = np.float32(value)
    return np.nextafter(single, np.float32(-np.inf)) if single > value else single
