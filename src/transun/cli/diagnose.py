"""`transun diagnose`."""

from pathlib import Path
from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import By, Data, Exposure, Json, Progress, Unit, Weight
from transun.cli.output import deliver
from transun.cli.sources import data_name, readable, require_writable


@app.command()
def diagnose(
    data: Data,
    target: Annotated[str, typer.Option("--target", help="Column of the actual values.")],
    pred: Annotated[str, typer.Option("--pred", help="Column of the predictions, in the target's unit.")],
    by: By = None,
    weight: Weight = None,
    exposure: Exposure = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for diagnosis.html, .md and .json.", file_okay=False)
    ] = Path("diagnosis"),
    fail_if_biased: Annotated[
        bool, typer.Option("--fail-if-biased", help="Exit with 1 if the total or a segment is biased.")
    ] = False,
    unit: Unit = "",
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Find out whether predictions from any tool add up: is the total biased, where, why, and what would help.

    Give it predictions of rows that the model was not trained on. Exit codes: 0 done, 1 biased (with
    --fail-if-biased), 2 a mistake in the call or the data.

    Example: transun diagnose orders.csv --target gmv --pred predicted --by country --out diagnosis
    """
    from transun.diagnosis import diagnose_table
    from transun.report import formatting
    from transun.report.diagnosis import diagnosis_document, diagnosis_json
    from transun.support.extras import require

    require("pyarrow", "scipy")
    require_writable(out)
    with readable(data) as source:
        diagnosis = diagnose_table(
            source, target, pred, by or (), weight, exposure=exposure, name=data_name(data), progress=progress
        )
    shown = formatting.Unit(formatting.visible(unit))
    document, values = diagnosis_document(diagnosis, shown), diagnosis_json(diagnosis)
    deliver(document, values, out, "diagnosis", as_json=as_json)
    if fail_if_biased and diagnosis.verdict.alarming:
        raise typer.Exit(1)
