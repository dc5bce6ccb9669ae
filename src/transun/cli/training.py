"""What `fit` and `debias` share: a training that can be resumed, saved, and then certified on rows held out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from transun.cli.output import print_blocks
from transun.cli.sources import write_texts

if TYPE_CHECKING:
    import pyarrow as pa

    from transun.backbones import Backbone
    from transun.data.holdout import Split
    from transun.diagnosis.result import ModelAssessment
    from transun.report.model import ModelReport
    from transun.support.group import Group
    from transun.tables.folder import StreamedFolder
    from transun.tables.model import TableModel
    from transun.tables.plan import Plan
    from transun.training.recipe import Recipe

__all__ = [
    "RowsInFolder",
    "RowsInMemory",
    "SplitRows",
    "TrainingJob",
    "choose_segments",
    "make_recipe",
    "resume_file",
    "show_dropped",
    "show_hold_out",
    "show_report",
]

# Up to three columns of at most 20 values, and the code of unseen ones, become segments without being asked for.
_MOST_VALUES, _MOST_COLUMNS = 21, 3
# Description, certificate and report take less than this.
_REPORT_BYTES = 20_000_000


def make_recipe(*, rate: float, monitor: str, engine: str, **settings: Any) -> "Recipe":
    """The recipe that the options of a command describe; also checks that the libraries and the device are there.

    Args:
        rate: the learning rate of Adam.
        monitor: the name of a metric.
        engine: the text of an engine.
        **settings: other settings of `Recipe`, under their own names.

    """
    from transun import training
    from transun.metrics import metric_named
    from transun.support.device import require_device
    from transun.support.extras import require
    from transun.support.text_form import parse

    require("pyarrow", "safetensors", "scipy")
    engines = {name: getattr(training, name) for name in ("Compiled", "Eager")}
    chosen = parse(engine, engines)
    if not isinstance(chosen, training.Engine):
        raise ValueError(f"--engine is Eager() or Compiled('bfloat16'), got {engine!r}")
    recipe = training.Recipe(training.Adam(rate), monitor=metric_named(monitor), engine=chosen, **settings)
    require_device(recipe.device)
    return recipe


def resume_file(out: Path, resume: bool) -> Path:
    """The file for the state of an interrupted training; an existing one is an error without --resume.

    A process that torchrun has started anew in place of one that failed resumes without being asked to.
    """
    from transun.support.group import restarted
    from transun.training.resume import interrupted_files

    path = out / "training.pt"
    left = interrupted_files(path)
    if left and not (resume or restarted()):
        raise ValueError(
            f"{left[0]} is of an interrupted training: add --resume to continue it, or remove the file to start over"
        )
    return path


class SplitRows(ABC):
    """Training rows, and rows held out for the certificate.

    Attributes:
        split: how they were divided.
        dropped: how many rows are left out because they have no target.

    """

    split: "Split"
    dropped: int

    @property
    @abstractmethod
    def held_out(self) -> Any:
        """The rows held out, as `read_table` takes them."""

    @property
    @abstractmethod
    def held_out_sample(self) -> "pa.Table":
        """The rows held out, or a sample of them."""

    @property
    @abstractmethod
    def held_out_count(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def sample(self) -> "pa.Table":
        """The training rows, or a sample of them."""

    @property
    def remark(self) -> str:
        """What a reader of the plan should know of the rows; empty if nothing."""
        return ""

    @abstractmethod
    def description(self) -> str:
        """How the rows held out were chosen."""

    @abstractmethod
    def plan(self, target: str, **settings: Any) -> "Plan":
        """The plan of a training on these rows; further settings are those of `transun.tables.plan.make_plan`."""

    @abstractmethod
    def train(self, plan: "Plan", backbone: "Backbone", recipe: "Recipe", **settings: Any) -> "TableModel":
        """The model that a plan describes; further settings are those of `transun.tables.training.train_plan`."""

    @abstractmethod
    def assess(self, model: "TableModel", by: Sequence[str], group: "Group") -> "ModelAssessment":
        """The assessment of the model on the rows held out, by all ranks together."""

    @abstractmethod
    def seen_share(self, model: "TableModel") -> float:
        """The share of the rows held out that a model was trained on."""


@dataclass(frozen=True)
class RowsInMemory(SplitRows):
    """A table of training rows, and a table of rows held out."""

    split: "Split"
    dropped: int
    rows: "pa.Table"
    test: "pa.Table"

    @classmethod
    def of(
        cls, table: "pa.Table", target: str, split: "Split", weight: str | None, exposure: str | None
    ) -> "RowsInMemory":
        """The rows of a table that have a target, divided.

        Targets, weights and exposures are checked in all of them: what is wrong in a row held out would be found after
        the training, and a part of the rows has other numbers than the file.
        """
        import numpy as np

        from transun.data import drop_missing
        from transun.data.row_rules import Finite
        from transun.data.table import as_numbers, column_array
        from transun.tables.plan import target_rates
        from transun.tables.training import hold_out

        split.rule.refuse_target(target)
        known, dropped = drop_missing(table, target)
        if not len(known):
            raise ValueError(f"no row has a target {target!r}: name another column")
        number = np.flatnonzero(Finite(target).holds(table, np.arange(len(table))))
        target_rates(known, target, weight, exposure, number)
        train, test = hold_out(known, split.test_share, split.seed, split.rule)
        if weight is not None and not as_numbers(f"column {weight!r}", column_array(test, weight)).any():
            raise ValueError(
                f"column {weight!r} is 0 in all {len(test):,} rows held out, which then prove nothing: weigh some of "
                "them, or hold out others"
            )
        return cls(split, dropped, train, test)

    @property
    def held_out(self) -> "pa.Table":
        return self.test

    @property
    def held_out_sample(self) -> "pa.Table":
        return self.test

    @property
    def held_out_count(self) -> int:
        return len(self.test)

    @property
    def sample(self) -> "pa.Table":
        return self.rows

    def description(self) -> str:
        return self.split.rule.description(self.test, self.split.seed)

    def plan(self, target: str, **settings: Any) -> "Plan":
        from transun.tables.plan import make_plan

        return make_plan(self.rows, target, **settings)

    def train(self, plan: "Plan", backbone: "Backbone", recipe: "Recipe", **settings: Any) -> "TableModel":
        from transun.tables.training import train_plan

        return train_plan(plan, self.rows, backbone, recipe, by=self.split.rule, **settings)

    def assess(self, model: "TableModel", by: Sequence[str], group: "Group") -> "ModelAssessment":
        from transun.diagnosis.evaluation import evaluate_held_out

        return evaluate_held_out(model, self.test, by, self.split.rule.cluster, group=group)

    def seen_share(self, model: "TableModel") -> float:
        return model.seen_share(self.test)


@dataclass(frozen=True)
class RowsInFolder(SplitRows):
    """Parts of a folder that is larger than memory."""

    split: "Split"
    dropped: int
    folder: "StreamedFolder"
    progress: bool | None

    @classmethod
    def of(cls, source: Path, target: str, split: "Split", progress: bool | None, **settings: Any) -> "RowsInFolder":
        """The rows of Parquet files that have a target, divided; settings are those of `survey_folder`."""
        from transun.tables.folder import survey_folder
        from transun.tables.training import require_test_share

        require_test_share(split.test_share)
        folder = survey_folder(source, target, split, progress=progress, **settings)
        return cls(split, folder.dropped, folder, progress)

    @property
    def held_out(self) -> Any:
        return self.folder.test

    @property
    def held_out_sample(self) -> "pa.Table":
        return self.folder.test_sample

    @property
    def held_out_count(self) -> int:
        return 0 if self.folder.test is None else len(self.folder.test)

    @property
    def sample(self) -> "pa.Table":
        return self.folder.sample

    @property
    def remark(self) -> str:
        return self.folder.description()

    def description(self) -> str:
        sampled = len(self.folder.test_sample)
        note = f", seen in {sampled:,} of them" if sampled < self.held_out_count else ""
        return self.split.rule.description(self.folder.test_sample, self.split.seed) + note

    def plan(self, target: str, **settings: Any) -> "Plan":
        from transun.tables.plan import make_plan

        return make_plan(self.folder.sample, target, folder=self.folder, **settings)

    def train(self, plan: "Plan", backbone: "Backbone", recipe: "Recipe", **settings: Any) -> "TableModel":
        from transun.tables.training import train_folder

        return train_folder(plan, self.folder, backbone, recipe, **settings)

    def assess(self, model: "TableModel", by: Sequence[str], group: "Group") -> "ModelAssessment":
        from transun.diagnosis.evaluation import evaluate_model

        def assessed() -> "ModelAssessment":
            test, cluster = self.folder.test, self.split.rule.cluster
            return evaluate_model(model, test, by, cluster=cluster, progress=self.progress).assessment

        return group.from_leader(assessed)

    def seen_share(self, model: "TableModel") -> float:
        return model.seen_share(self.folder.test_sample)


@dataclass(frozen=True)
class TrainingJob:
    """A training to be done: its plan and recipe, its rows, and where the results go.

    Args:
        name: what the data is called in reports.
        plan: features, target and head.
        recipe: how to train.
        rows: the training rows, and the rows held out.
        by: columns of segments.
        out: the folder of the model.
        base: a trained model to start from, or None.
        seen: the share of the rows held out that `base` was trained on; such rows prove nothing.
        unit: of the target, for the report.

    """

    name: str
    plan: "Plan"
    recipe: "Recipe"
    rows: SplitRows
    by: tuple[str, ...]
    out: Path
    base: "TableModel | None" = None
    seen: float = 0.0
    unit: str = ""

    def run(self, backbone: "Backbone", resume: Path, progress: bool | None) -> "ModelReport | None":
        """Train and save the model, then evaluate it on the test rows and write certificate and report.

        Of several ranks, all train and predict; rank 0 alone writes files, and the others return None.
        Ctrl-C leaves the file `resume` and says how to continue. The model is saved before it is evaluated, so that
        nothing that fails later can lose it.
        """
        from transun.diagnosis.certification import certify_folder
        from transun.models.interval_file import save_intervals
        from transun.report.formatting import as_json
        from transun.report.model import model_document, model_report
        from transun.support.group import current_group
        from transun.training.resume import interrupted_files

        group = current_group()
        group.from_leader(lambda: _require_space(self.out, backbone, self.plan))
        base = None if self.base is None else self.base.model
        try:
            model = self.rows.train(self.plan, backbone, self.recipe, base=base, resume=resume, progress=progress)
        except KeyboardInterrupt:
            files = interrupted_files(resume) if group.leads else ()
            for file in files:
                typer.echo(f"interrupted: the same command with --resume continues from {file}", err=True)
            if group.leads and not files:
                typer.echo("interrupted before there was anything to resume from: begin anew", err=True)
            raise typer.Exit(130) from None
        if self.base is not None and model.seen is not None:
            model = replace(model, seen=model.seen.joined(self.base.seen))
        if group.leads:
            model.save(self.out)
        assessment = self.rows.assess(model, self.by, group)
        if not group.leads:
            return None
        description, test_share = self.rows.description(), self.rows.split.test_share
        if not self.seen:
            certify_folder(
                self.out, model, self.rows.held_out, assessment, f"{test_share:g} of {self.name}: {description}"
            )
            save_intervals(model.with_intervals(self.rows.held_out_sample).intervals, self.out)
        report = model_report(self.name, self.plan, self.recipe, test_share, description, model, assessment, self.unit)
        document = model_document(report)
        texts = {"html": document.html(), "md": document.markdown(), "json": as_json(report) + "\n"}
        write_texts(self.out, {f"report.{ending}": text for ending, text in texts.items()})
        return report


def choose_segments(plan: "Plan", by: Sequence[str], test: "pa.Table") -> tuple[str, ...]:
    """The columns of segments: those asked for, else up to three columns of few values.

    Columns whose values name rows instead of segments are an error here, before the training.
    """
    from transun.diagnosis.assessment import require_segments

    if by:
        columns = tuple(dict.fromkeys(by))
        require_segments(test.select(list(columns)))
        return columns
    sizes = {name: size for name, size in plan.features.ids.items() if name in plan.features.columns}
    few = [name for name, size in sizes.items() if isinstance(size, int) and size <= _MOST_VALUES]
    return tuple(few[:_MOST_COLUMNS])


def show_dropped(rows: SplitRows, *, as_json: bool) -> None:
    """Say how many rows nothing is learned from; on standard error where standard output is JSON."""
    if rows.dropped:
        from transun.report.assessment import dropped_sentence

        typer.echo(dropped_sentence(rows.dropped), err=as_json)


def show_hold_out(rows: SplitRows) -> None:
    """Say which rows are held out, and which columns therefore are no features."""
    from transun.report.formatting import visible_line

    typer.echo(visible_line(f"held out: {rows.description()}"))
    for name in rows.split.rule.useless:
        typer.echo(visible_line(f"{name!r} is no feature: rows held out have none of the values of training rows"))


def show_report(report: "ModelReport", out: Path, *, certified: bool = True) -> None:
    """The outcome on a terminal."""
    from transun.report.model import model_document

    print_blocks(model_document(report).brief)
    certificate = "certificate.json, " if certified else ""
    typer.echo(f"Written to {out}/: the model, {certificate}report.html, report.md, report.json")


def _require_space(folder: Path, backbone: "Backbone", plan: "Plan") -> None:
    """Raise an `OSError` where the disk has no room for the model and for the state of an interrupted training.

    That state has the weights, two moments of the optimiser, their average and the best weights; while it is replaced,
    there are two of it.
    """
    import torch

    from transun.models.network import Model
    from transun.support.files import require_space

    with torch.device("meta"):
        model = Model(backbone, plan.head)
    weights = sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())
    require_space(folder, 12 * weights + _REPORT_BYTES)
