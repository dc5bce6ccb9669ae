"""What `fit` and `debias` share: a training that can be gone on with, judged on held-out rows, saved with its proof."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from transun.cli.output import print_blocks
from transun.cli.sources import write_texts

if TYPE_CHECKING:
    import pyarrow as pa

    from transun.models.network import Model
    from transun.report.model import ModelReport
    from transun.tables.model import TableModel
    from transun.tables.plan import Plan
    from transun.tables.training import Settings

__all__ = ["Job", "choose_segments", "journal_of", "show_report"]

# Columns of so few values are looked at by segment without being asked.
_FEW, _MOST = 21, 3


def journal_of(out: Path, resume: bool) -> Path:
    """Where the state of an interrupted training is kept; one that is there must be meant."""
    journal = out / "training.pt"
    if journal.exists() and not resume:
        raise ValueError(
            f"{journal} is of an interrupted training: add --resume to go on with it, or remove the file to start over"
        )
    return journal


@dataclass(frozen=True)
class Job:
    """A training to be done: an untrained model, its rows, and where the results go."""

    name: str
    plan: "Plan"
    settings: "Settings"
    rows: "pa.Table"
    test: "pa.Table"
    by: tuple[str, ...]
    out: Path

    def run(
        self, untrained: "TableModel", journal: Path, progress: bool | None, base: "Model | None" = None
    ) -> "ModelReport":
        """Train, judge, save model, certificate and report; Ctrl-C leaves a journal and says how to go on."""
        from transun.diagnosis.evaluation import certify_folder, evaluate_held_out
        from transun.report.formatting import as_json
        from transun.report.model import model_document, model_report
        from transun.tables.training import train_watched

        try:
            training = train_watched(untrained, self.rows, self.settings, base=base, journal=journal, progress=progress)
        except KeyboardInterrupt:
            if journal.exists():
                typer.echo(f"interrupted: the same command with --resume goes on from {journal}", err=True)
            raise typer.Exit(130) from None
        assessment = evaluate_held_out(training.model, self.test, self.by)
        report = model_report(self.name, self.plan, self.settings, training, assessment)
        document = model_document(report)
        texts = {
            "report.html": document.html(),
            "report.md": document.markdown(),
            "report.json": as_json(report) + "\n",
        }
        training.model.save(self.out)
        held_out = (
            f"{self.settings.test_share:g} of {self.name}, by a hash of the row number, seed {self.settings.seed}"
        )
        certify_folder(self.out, training.model, self.test, assessment, held_out)
        write_texts(self.out, texts)
        return report


def choose_segments(plan: "Plan", asked: Sequence[str]) -> tuple[str, ...]:
    """The columns of segments: those asked for, else up to three columns of few values."""
    if asked:
        return tuple(dict.fromkeys(asked))
    sizes = {name: size for name, size in plan.features.ids.items() if name in plan.features.columns}
    few = [name for name, size in sizes.items() if isinstance(size, int) and size <= _FEW]
    return tuple(few[:_MOST])


def show_report(report: "ModelReport", out: Path) -> None:
    """The outcome on a terminal."""
    from transun.report.model import model_document

    print_blocks(model_document(report).brief)
    typer.echo(f"Written to {out}/: the model, certificate.json, report.html, report.md, report.json")
