"""Trees as a stage: leaves are found as by walking down, and the stage behaves like that of any backbone."""

import numpy as np
import pytest
import torch

from transun.backbones import Beside, Constant, EmbeddingMLP, TabM, Tree, Trees
from transun.heads import MSE, Blend, Poisson
from transun.models import Model
from transun.models.checkpoint import grow, load_model, save_model
from transun.models.mixture import mix


def walk(tree: Tree, row: list[float]) -> float:
    """The leaf that a row reaches, found node by node."""
    node = 0 if tree.columns else -1
    while node >= 0:
        question, value = tree.questions[node], row[tree.columns[node]]
        yes = value in question if isinstance(question, frozenset) else value <= question
        node = tree.yes[node] if yes else tree.no[node]
    return tree.values[-1 - node]


def random_tree(rng: np.random.Generator, leaves: int, numbers: list[int], codes: dict[int, int]) -> Tree:
    """A tree that is grown by splitting a random leaf, until it has so many leaves."""
    columns: list[int] = []
    questions: list[float | frozenset[int]] = []
    yes: list[int] = []
    no: list[int] = []
    ends: list[tuple[list[int], int]] = []  # where the open ends of the tree are noted
    for number in range(leaves - 1):
        if ends:
            side, parent = ends.pop(rng.integers(len(ends)))
            side[parent] = number
        column = int(rng.choice([*numbers, *codes]))
        columns.append(column)
        questions.append(frozenset(rng.choice(codes[column], 2).tolist()) if column in codes else float(rng.normal()))
        yes.append(0)
        no.append(0)
        ends += [(yes, number), (no, number)]
    for leaf, (side, parent) in enumerate(ends):
        side[parent] = -1 - leaf
    return Tree(columns, questions, yes, no, rng.normal(size=max(leaves, 1)).tolist())


@pytest.mark.parametrize("leaves", [1, 2, 7, 31])
def test_leaves_are_those_of_walking_down(leaves: int) -> None:
    rng = np.random.default_rng(leaves)
    inputs = Trees(ids={"item": 6}, numeric=("a", "b"))  # columns a, b, codes of item, means of item
    trees = [random_tree(rng, leaves, [0, 1], {2: 6}) for _ in range(5)]
    model = Model(inputs.holding(trees), MSE())
    forest = model.network.stacks[0][0]
    forest.plant(trees)
    batch = {
        "a": torch.tensor(rng.normal(size=50)).float(),
        "b": torch.tensor(rng.normal(size=50)).float(),
        "item": torch.tensor(rng.integers(0, 6, 50)),
    }
    rows = zip(batch["a"].tolist(), batch["b"].tolist(), batch["item"].tolist(), strict=True)
    expected = [np.exp(sum(walk(tree, list(row)) for tree in trees)) for row in rows]
    np.testing.assert_allclose(forest(batch).squeeze(1).numpy(), expected, rtol=1e-5)


def test_leaves_are_linear_within_the_range_of_the_training_rows() -> None:
    """e^(1 + 2a) up to a = ½ and e^(3 - b) above it; beyond the rows, which end at ±1, a and b count as ±1."""
    tree = Tree([0], [0.5], [-1], [-2], [1.0, 3.0], [{0: 2.0}, {1: -1.0}])
    backbone = Trees(numeric=("a", "b")).holding([tree, tree])
    assert backbone.slopes == (0, 1)
    forest = backbone.forest()
    forest.plant([tree, tree], torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]))
    batch = {"a": torch.tensor([0.25, 1.0, -9.0, 7.0]), "b": torch.tensor([0.0, 0.5, 0.0, 8.0])}
    assert forest(batch).log().squeeze(1).tolist() == pytest.approx([3.0, 5.0, -2.0, 4.0])
    assert forest.learned_numbers() == 2 * (2 + 1 + 2)


def test_questions_and_leaves_are_counted_beside_the_parameters_of_a_network() -> None:
    """3 leaves and 2 questions, and 1 leaf without a question; the output layers have a weight and a bias each."""
    trees = [Tree([0, 0], [0.5, 0.1], [1, -1], [-2, -3], [0.0, 2.0, 1.0]), Tree([], [], [], [], [3.0])]
    forest = Model(Trees(numeric=("a",)).holding(trees), MSE())
    assert forest.network.learned_numbers() == 2  # nothing is planted yet
    forest.network.stacks[0][0].plant(trees)
    assert forest.network.learned_numbers() == 3 + 2 + 1 + 2
    network = Model(EmbeddingMLP(numeric=("a",), hidden=(4,)), MSE())
    parameters = sum(parameter.numel() for parameter in network.parameters())
    assert network.network.learned_numbers() == parameters
    assert mix([forest, network], [0.5, 0.5]).network.learned_numbers() == 8 + parameters


def test_a_threshold_in_double_precision_asks_the_same_of_single_numbers() -> None:
    x = torch.tensor([0.1, 0.3, 1e-40, 5e20])
    for value in x.tolist():
        for threshold in (value, np.nextafter(value, -np.inf), np.nextafter(value, np.inf)):
            tree = Tree([0], [threshold], [-1], [-2], [0.0, 1.0])
            model = Model(Trees(numeric=("a",)).holding([tree]), MSE())
            forest = model.network.stacks[0][0]
            forest.plant([tree])
            answers = forest({"a": x}).squeeze(1).log().round().tolist()
            assert answers == [0.0 if number <= threshold else 1.0 for number in x.tolist()]


def test_ids_that_are_added_change_no_prediction(tmp_path) -> None:
    tree = Tree([1], [frozenset({1})], [-1], [-2], [0.0, 1.0])
    model = Model(Trees(ids={"item": 3}, numeric=("a",)).holding([tree]), MSE())
    model.network.stacks[0][0].plant([tree])
    larger = grow(model, {"item": 5})
    batch = {"a": torch.zeros(3), "item": torch.tensor([0, 1, 2])}
    assert torch.equal(model(batch), larger(batch))
    new = {"a": torch.zeros(2), "item": torch.tensor([0, 4])}
    assert larger(new)[0] == larger(new)[1]  # a new id is like any other that is not in the set
    save_model(larger.prepare(torch.tensor([1.0, 2.0])), tmp_path)
    assert torch.equal(load_model(tmp_path)(batch), larger(batch))


class TestBeside:
    def test_every_branch_is_that_of_its_own_model(self) -> None:
        x = {"a": torch.linspace(-1.0, 1.0, 5)}
        first = Model(TabM(numeric=("a",), hidden=(8,), members=4), Poisson(2.0), seed=1)
        second = Model(EmbeddingMLP(numeric=("a",), hidden=(4,)), Poisson(6.0), seed=2)
        mixture = mix([first.eval(), second.eval()], [0.3, 0.7])
        torch.testing.assert_close(mixture(x), 0.3 * first(x) + 0.7 * second(x))
        assert mixture.members == 4
        assert mixture.backbone.of_branch(1) == second.backbone

    def test_three_models_have_their_shares(self) -> None:
        models = [Model(Constant(), MSE()).prepare(torch.tensor([mean])) for mean in (1.0, 10.0, 100.0)]
        assert mix(models, [0.5, 0.3, 0.2])(torch.zeros(1, 1)).item() == pytest.approx(23.5)

    def test_a_mixture_of_mixtures_is_a_mixture(self) -> None:
        x = {"a": torch.linspace(-1.0, 1.0, 5)}
        models = [
            Model(TabM(numeric=("a",), hidden=(8,), members=4), Poisson(2.0), seed=1).eval(),
            Model(EmbeddingMLP(numeric=("a",), hidden=(4,)), Poisson(6.0), seed=2).eval(),
            Model(EmbeddingMLP(numeric=("a",), hidden=(6,)), Blend((Poisson(1.0), MSE()), shared=1), seed=3).eval(),
        ]
        inner = mix(models[:2], [0.3, 0.7])
        torch.testing.assert_close(mix([inner, models[2]], [0.5, 0.5])(x), 0.5 * inner(x) + 0.5 * models[2](x))
        torch.testing.assert_close(mix([models[2], inner], [0.5, 0.5])(x), 0.5 * inner(x) + 0.5 * models[2](x))

    def test_a_branch_shares_nothing_with_another_backbone(self) -> None:
        backbone = Beside((Constant(), EmbeddingMLP(numeric=("a",))), (1, 1))
        with pytest.raises(ValueError, match="of another backbone"):
            Model(backbone, Blend((MSE(), MSE()), shared=1))

    def test_a_head_with_more_branches_is_refused(self) -> None:
        with pytest.raises(ValueError, match="more branches than the 1"):
            Model(Beside((Constant(),), (1,)), Blend((MSE(), MSE()), shared=0))

    @pytest.mark.parametrize("branches", [(1,), (1, 0), (1, 1, 1)])
    def test_every_part_supplies_a_branch(self, branches: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match="a number of branches"):
            Beside((Constant(), Constant()), branches)
