"""`transun diagnose`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.app import app
from transun.cli.options import Json, Progress
from transun.cli.output import print_table
from transun.cli.sources import data_name, readable, write_texts

if TYPE_CHECKING:
    from transun.diagnosis import Diagnosis


@app.command()
def diagnose(
    data: Annotated[Path, typer.Argument(help="Parquet or CSV file, a folder of them, or - for standard input.")],
    target: Annotated[str, typer.Option("--target", help="Column of the actual values.")],
    pred: Annotated[str, typer.Option("--pred", help="Column of the predictions, in the target's unit.")],
    by: Annotated[
        list[str] | None, typer.Option("--by", help="Column of segments to look into; may be given several times.")
    ] = None,
    weight: Annotated[str | None, typer.Option("--weight", help="Column of how often each row counts.")] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for diagnosis.html, .md and .json.", file_okay=False)
    ] = Path("diagnosis"),
    fail_if_biased: Annotated[
        bool, typer.Option("--fail-if-biased", help="Exit with 1 if the total or a segment is biased.")
    ] = False,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Tell whether predictions from any tool add up: is the total biased, where, why, and what would help.

    Give it predictions of rows that the model was not trained on. Exit codes: 0 done, 1 biased (with
    --fail-if-biased), 2 a mistake in the call or the data.

    Example: transun diagnose orders.csv --target gmv --pred predicted --by country --out diagnosis
    """
    from transun.diagnosis import diagnose_table

    with readable(data) as source:
        found = diagnose_table(source, target, pred, by or (), weight, name=data_name(data), progress=progress)
    _write(found, out)
    _show(found, out, as_json)
    if fail_if_biased and found.verdict.kind != "fine":
        raise typer.Exit(1)


def _write(found: "Diagnosis", out: Path) -> None:
    from transun.report.diagnosis import diagnosis_json, diagnosis_markdown, diagnosis_page

    makers = {"html": diagnosis_page, "md": diagnosis_markdown, "json": diagnosis_json}
    # All texts first: a mistake in one leaves the old files of all three.
    write_texts(out, {f"diagnosis.{ending}": make(found) for ending, make in makers.items()})


def _show(found: "Diagnosis", out: Path, as_json: bool) -> None:
    from transun.report.diagnosis import cell_text, cure_table, diagnosis_json, metric_table, visible_line

    if as_json:
        typer.echo(diagnosis_json(found))
        return
    typer.echo(visible_line(found.verdict.text))
    # Of the corrections what fits on a narrow terminal; the files have the rest.
    for (header, rows), columns in ((metric_table(found), (1, 2, 3)), (cure_table(found), (1, 3))):
        shown = [[row[0].text, *[cell_text(row[column]) for column in columns]] for row in rows]
        print_table([header[0], *[header[column] for column in columns]], shown)
    for text in (found.advice.now, *found.skipped):
        typer.echo(visible_line(text))
    typer.echo(f"Written to {out}/: diagnosis.html, diagnosis.md, diagnosis.json")
