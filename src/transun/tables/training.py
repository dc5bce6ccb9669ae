"""From a table to a trained model in one call."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from transun.backbones import Backbone
from transun.data import Dataset, Features, HoldOut, HoldOutRows, ParquetStream, read_table
from transun.data.holdout import Split, calibration_seed, require_hold_out
from transun.data.schema import require_columns
from transun.data.seen_rows import SeenRows
from transun.data.split import EmptyPartError
from transun.heads import Head
from transun.models.network import Model, require_base
from transun.support.arguments import listed, require_kind
from transun.support.counting import counted
from transun.support.group import current_group
from transun.support.memory import return_freed_memory
from transun.support.paths import as_path
from transun.tables.folder import StreamedFolder, is_streamed, survey_folder
from transun.tables.model import TableModel, tree_inputs
from transun.tables.plan import Only, Plan, make_plan
from transun.training.history import History
from transun.training.loop import FitOptions
from transun.training.multicalibration import multicalibrate
from transun.training.recipe import Recipe, require_recipe
from transun.training.tracking import Tracker
from transun.training.validated import fit_with_validation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["hold_out", "require_test_share", "train", "train_folder", "train_plan"]


def train(
    source: Any,
    target: str,
    head: Head | str | None = None,
    *,
    features: Features | None = None,
    exclude: Iterable[str] = (),
    weight: str | None = None,
    exposure: str | None = None,
    backbone: Callable[[Features], Backbone] | None = None,
    recipe: Recipe = Recipe(),
    only: Only | None = None,
    valid: Any = None,
    by: HoldOut = HoldOutRows(),
    base: Model | None = None,
    stream: bool | None = None,
    resume: str | Path | None = None,
    tracker: Tracker | None = None,
    progress: bool | None = None,
) -> TableModel:
    """Train a model on a table: a frame, a CSV or Parquet file, a folder of them, of any size.

    By default the model is an ensemble of boosted trees and a network, a mean with weights that validation rows decide;
    see `model.history.parts`. With a named head, or with a base, it is a network with that head alone.

    Args:
        source: the training rows; what `read_table` takes.
        target: the column to predict.
        head: the method, or its text such as "LogSUN()". None recommends one by the targets and adds a factor that
            makes the total right, see `balance`.
        features: how to read the columns, fitted here to these rows; None guesses, see `infer`, and
            `print(model.features.summary())` shows the result.
        exclude: columns that a guess must leave out, above all what is known only after the target.
        weight: the column of sample weights.
        exposure: the column that amounts were collected over, such as the years of a policy: the model learns amounts
            per unit of it, predicts exposure times rate, and remembers the column. It is no feature.
        backbone: builds the network from the fitted features, such as `embedding_mlp`; None is TabM, with
            members for small tables.
        recipe: how to train. `Recipe(budget=10)` takes ten seconds or less.
        only: "trees" or "network" trains that alone.
        valid: validation rows, in place of the recipe's share of the training rows. They end the training and decide
            the weights of the mean; then the trees learn from them too where they tell much, unless the recipe has
            `refit=False`.
        by: how that share is chosen: `HoldOutRows()`, `HoldOutTime(column)` or `HoldOutGroups(column)`; choose it
            as for the rows that you judge the model by, see `hold_out`.
        base: a trained `Model` without the head's last branches, to start from, such as the `model` of a `TableModel`;
            see `fit`.
        stream: read Parquet files again in every epoch instead of holding them in memory; the network then sees all
            rows, and trees and the ranks of numbers are learned from a sample. None does so where the files would take
            more than an eighth of the free memory.
        resume: a file that keeps the state of an interrupted training; see `fit`.
        tracker: gets losses and metrics of the network along its training; see `fit`.
        progress: show a progress bar; None shows it on a terminal.

    >>> table = {"item": ["a", "b"] * 50, "gmv": [1.0, 10.0, 3.0, 30.0] * 25}
    >>> model = train(table, "gmv", recipe=Recipe(epochs=50))
    >>> a, b = model.predict({"item": ["a", "b"]}).tolist()
    >>> a < 8 < b
    True

    """
    require_recipe(recipe)
    require_hold_out(by)
    if features is not None:
        require_kind("features", features, Features, "write features=Features({'column': Id()})")
    if backbone is not None and not callable(backbone):
        raise TypeError(f"backbone is {backbone!r}, where a function of Features is meant: write backbone=tabm")
    if base is not None:
        require_base(base)
    exclude = listed("exclude", exclude)
    if base is not None and only == "trees":
        raise ValueError("a base is the start of a network: leave out `base`, or `only`")
    only = "network" if base else only
    options = FitOptions(base=base, resume=resume, tracker=tracker, progress=progress)
    if is_streamed(source, stream):
        if valid is not None:
            raise ValueError("validation rows of a table larger than memory are a share of it: leave out `valid`")
        folder = survey_folder(
            as_path(source),
            target,
            Split(
                by,
                valid_share=recipe.valid_share,
                seed=recipe.seed,
                calibration_share=recipe.calibration_share,
            ),
            weight=weight,
            exposure=exposure,
            features=features,
            exclude=exclude,
            progress=progress,
        )
        plan = make_plan(folder.sample, target, head=head, weight=weight, only=only, folder=folder, exposure=exposure)
        return train_folder(plan, folder, plan.backbone(backbone), recipe, **options)
    table = read_table(source)
    plan = make_plan(
        table,
        target,
        head=head,
        features=features,
        exclude=exclude,
        weight=weight,
        only=only,
        exposure=exposure,
    )
    held = None if valid is None else read_table(valid)
    return train_plan(plan, table, plan.backbone(backbone), recipe, valid=held, by=by, **options)


def train_plan(
    plan: Plan,
    table: "pa.Table",
    backbone: Backbone,
    recipe: Recipe = Recipe(),
    *,
    valid: "pa.Table | None" = None,
    by: HoldOut = HoldOutRows(),
    **options: Unpack[FitOptions],
) -> TableModel:
    """Train the model that a plan describes.

    Args:
        plan: features, target, head, and whether there are trees and a network; see `make_plan`.
        table: the rows that the plan was made for.
        backbone: of the network.
        recipe: how to train.
        valid: validation rows, in place of the recipe's share.
        by: how that share is chosen; where the rule cannot part the rows, single rows are.
        **options: see `FitOptions`.

    """
    by.refuse_target(plan.target)
    calibration = None
    if recipe.calibration_share:
        table, calibration = _calibration_split(plan, table, recipe, by)
    if valid is None:
        table, valid = by.validation_split(table, recipe.valid_share, recipe.seed)
    features, columns = plan.features, (plan.target, plan.weight, plan.exposure)
    data = features.to_dataset(table, *columns)
    valid_data = None if valid is None else features.to_dataset(valid, *columns)
    model, history = _fit(plan, data, valid_data, backbone, recipe, **options)
    seen = SeenRows.of(data)
    if valid_data is not None:
        seen = seen.joined(SeenRows.of(valid_data))
    if calibration is not None:
        unseen = features.to_dataset(calibration, *columns)
        model = _multicalibrated(model, history, unseen, features, recipe, options.get("progress"))
        seen = seen.joined(SeenRows.of(unseen))
    return TableModel(features, model, plan.target, plan.weight, history, seen, plan.exposure)


def train_folder(
    plan: Plan,
    folder: StreamedFolder,
    backbone: Backbone,
    recipe: Recipe = Recipe(),
    **options: Unpack[FitOptions],
) -> TableModel:
    """`train_plan` on rows larger than memory: the network reads all of them, and trees learn from the sample."""
    if recipe.calibration_share:
        _require_amounts(plan)
    columns = (plan.features, plan.target, plan.weight, plan.exposure)
    sample, valid, stream = folder.sampled(*columns), folder.validation(*columns), folder.stream(*columns)
    return_freed_memory()  # of columns that were encoded, and the training needs memory of its own
    model, history = _fit(plan, sample, valid, backbone, recipe, stream, **options)
    seen, unseen = folder.seen(sample), folder.calibration_rows(*columns)
    if unseen is not None:
        model = _multicalibrated(model, history, unseen, plan.features, recipe, options.get("progress"))
        seen = seen.joined(SeenRows.of(unseen))
    return TableModel(plan.features, model, plan.target, plan.weight, history, seen, plan.exposure)


def _fit(
    plan: Plan,
    data: Dataset,
    valid: Dataset | None,
    backbone: Backbone,
    recipe: Recipe,
    stream: ParquetStream | None = None,
    **options: Unpack[FitOptions],
) -> tuple[Model, History]:
    """The model of a plan, trained on encoded rows; see `fit_with_validation`."""
    return fit_with_validation(
        Model(backbone, plan.head, recipe.seed) if plan.network else None,
        data,
        recipe,
        valid=valid,
        balanced=plan.recommended,
        trees=tree_inputs(plan.features) if plan.trees else None,
        stream=stream,
        **options,
    )


def require_test_share(test_share: float) -> None:
    """Raise a `ValueError` for a share of rows held out that leaves nothing to train on or nothing to judge by."""
    if not 0.0 < test_share < 1.0:
        raise ValueError(
            f"the test share must lie strictly between 0 and 1, got {test_share:g}: without rows held out nobody could "
            "tell what the totals are worth"
        )


def _multicalibrated(
    model: Model, history: History, unseen: Dataset, features: Features, recipe: Recipe, progress: bool | None
) -> Model:
    """The model with totals of segments put right by rows that the training has not seen; rank 0 does it for all."""
    calibrate = partial(multicalibrate, model, unseen, tree_inputs(features), seed=recipe.seed, progress=progress)
    calibrated, fitted = current_group().from_leader(calibrate)
    history.multicalibration = str(fitted)
    return calibrated


def _require_amounts(plan: Plan) -> None:
    if plan.summary.negative:
        raise ValueError(f"column {plan.target!r} has targets below 0: leave out the calibration share")


def _calibration_split(plan: Plan, table: "pa.Table", recipe: Recipe, by: HoldOut) -> tuple["pa.Table", "pa.Table"]:
    """The rows for the training, and those from which totals of segments are put right."""
    _require_amounts(plan)
    try:
        return by.split(table, recipe.calibration_share, calibration_seed(recipe.seed))
    except EmptyPartError as error:
        share = recipe.calibration_share
        raise ValueError(
            f"{counted(len(table), 'row')} cannot be split with a calibration share of {share:g}: {error}"
        ) from None


def hold_out(source: Any, test_share: float, seed: int, by: HoldOut = HoldOutRows()) -> tuple["pa.Table", "pa.Table"]:
    """Training rows and test rows; judge a model by test rows chosen as those are that it will meet.

    Args:
        source: all rows; what `read_table` takes.
        test_share: the share of rows that nothing sees before the end; the certificate is about them.
        seed: of the hash that chooses rows or groups.
        by: `HoldOutRows()` holds out single rows, `HoldOutTime(column)` the last ones, `HoldOutGroups(column)` all rows
            of some values, such as users.

    >>> train, test = hold_out({"gmv": list(range(1000))}, 0.2, seed=0)
    >>> len(train) + len(test), 150 < len(test) < 250
    (1000, True)
    >>> hold_out({"day": [1, 2, 3, 4, 5]}, 0.2, seed=0, by=HoldOutTime("day"))[1]["day"].to_pylist()
    [5]

    """
    require_hold_out(by)
    require_test_share(test_share)
    table = read_table(source)
    require_columns(table.column_names, by.columns)
    try:
        return by.split(table, test_share, seed)
    except EmptyPartError as error:
        raise ValueError(
            f"{counted(len(table), 'row')} cannot be split with a test share of {test_share:g}: {error}; give more rows"
        ) from None
