"""`transun debias` of a saved model: a bias branch is trained beside it, and both are compared on rows held out."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from transun.cli.output import print_blocks
from transun.cli.sources import data_name, load_trained, new_folder, readable

if TYPE_CHECKING:
    from transun.cli.training import SplitRows
    from transun.data.holdout import Split
    from transun.tables.model import TableModel
    from transun.training.recipe import Recipe

__all__ = ["ModelDebiasing"]


@dataclass(frozen=True)
class ModelDebiasing:
    """A training that starts from a saved model and adds a branch for its bias.

    Args:
        folder: of the saved model.
        recipe: how to train.
        split: which rows are held out for the certificate.
        by: columns of segments.
        out: the folder of the new model.

    """

    folder: Path
    recipe: "Recipe"
    split: "Split"
    by: list[str]
    out: Path

    def run(self, data: Path, stream: bool | None, resume: bool, as_json: bool, progress: bool | None) -> None:
        """Train on the data, save the new model, and print what it changes.

        Args:
            data: rows with the target, or - for standard input.
            stream: read Parquet files in every epoch; None does so if they are too large for memory.
            resume: continue an interrupted training.
            as_json: print JSON.
            progress: show progress bars; None shows them on a terminal.

        """
        from transun.cli.training import (
            TrainingJob,
            choose_segments,
            resume_file,
            show_dropped,
            show_hold_out,
            show_report,
        )
        from transun.report.assessment import side_by_side_table
        from transun.report.formatting import as_json as dump
        from transun.support.group import current_group
        from transun.tables.folder import is_streamed
        from transun.tables.plan import plan_debiasing

        if self.out.resolve() == self.folder.resolve():
            raise ValueError(f"--out {self.out} is the model itself: name another folder, so that both can be compared")
        base = load_trained(self.folder)
        group = current_group()
        with readable(data) as source:
            streamed = is_streamed(source, stream)
            rows = self._in_folder(base, source, progress) if streamed else self._in_memory(base, source)
            plan = plan_debiasing(base, rows.sample)
            segments = choose_segments(plan, self.by, rows.held_out_sample)
            group.from_leader(lambda: new_folder(self.out))
            resume_path = group.from_leader(lambda: resume_file(self.out, resume))
            before = rows.assess(base, segments, group)
            seen = rows.seen_share(base)
            show_dropped(rows, as_json=as_json)
            if not as_json:
                show_hold_out(rows)
                if seen:
                    typer.echo(
                        f"About {seen:.0%} of the rows held out are training rows of {self.folder}, so that there will "
                        "be no certificate: give rows that it has not seen, or the data, --holdout, --test-share and "
                        "--seed of its training."
                    )
            job = TrainingJob(data_name(data), plan, self.recipe, rows, segments, self.out, base, seen)
            report = job.run(base.model.backbone, resume_path, progress)
        if report is None:
            return
        after = report.assessment
        if as_json:
            numbers = {"before": before, "after": after, "head": plan.head_text, "seen_by_base": seen}
            typer.echo(dump(numbers | {"out": str(self.out)}))
            return
        print_blocks([side_by_side_table({"before": before, "after": after})])
        show_report(report, self.out, certified=not seen)

    def _in_memory(self, base: "TableModel", source: Path) -> "SplitRows":
        from transun.cli.training import RowsInMemory
        from transun.data import read_table
        from transun.data.schema import given_names, require_columns

        table = base.features.convert(read_table(source, verbatim=base.features.types))
        require_columns(table.column_names, given_names(base.target, base.weight, base.exposure, *self.by))
        return RowsInMemory.of(table, base.target, self.split, base.weight, base.exposure)

    def _in_folder(self, base: "TableModel", source: Path, progress: bool | None) -> "SplitRows":
        from transun.cli.training import RowsInFolder

        settings = {"weight": base.weight, "exposure": base.exposure, "features": base.features, "keep": self.by}
        return RowsInFolder.of(source, base.target, self.split, progress, **settings)
