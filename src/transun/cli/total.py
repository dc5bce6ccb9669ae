"""`transun total`."""

from pathlib import Path
from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import By, Cluster, Json, Model, ModelExposure, Progress
from transun.cli.output import deliver
from transun.cli.sources import STDIN, data_name, load_trained, readable, require_writable


@app.command()
def total(
    model: Model,
    new: Annotated[Path, typer.Argument(help="Rows whose total is wanted; they need no target. - for standard input.")],
    labelled: Annotated[
        Path, typer.Option("--labelled", help="Rows with the target, like the new ones, that the model has not seen.")
    ],
    by: By = None,
    cluster: Cluster = None,
    weight: Annotated[
        str | None,
        typer.Option("--weight", help="Column by which amounts are multiplied in the total; by default the model's."),
    ] = None,
    exposure: ModelExposure = None,
    level: Annotated[float, typer.Option("--level", help="Level of the intervals.")] = 0.95,
    cap: Annotated[
        float | None, typer.Option("--cap", help="Count amounts above this as this, for a total of capped amounts.")
    ] = None,
    finite_variance: Annotated[
        bool,
        typer.Option(
            "--finite-variance",
            help="Take the variance of the amounts to be finite, as where they have an upper end, unless the rows "
            "show beyond chance that it is not.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder for total.html, .md and .json.", file_okay=False)] = Path(
        "total"
    ),
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Say what rows without a target will add up to, with an interval, overall and by segment.

    Predictions of the new rows are corrected by what they miss on labelled rows, so that the total is right even where
    the model is not. Where single amounts decide, or where the variance of the amounts is likelier infinite than
    finite, no interval is given, with the reason and what would allow one. Exit codes: 0 done, also without an
    interval, 2 a mistake in the call or the data, 130 interrupted.

    Example: transun total model new.csv --labelled labelled.csv --by country --out total
    """
    import math

    from transun.report.formatting import visible_line
    from transun.report.total import TotalReport, total_document, total_json
    from transun.support.extras import require
    from transun.totals import certified_tail
    from transun.totals import total as estimate

    require("pyarrow", "scipy")
    require_writable(out)
    if new == STDIN and labelled == STDIN:
        raise ValueError("the new and the labelled rows cannot both come from standard input: name a file")
    trained = load_trained(model, exposure)
    with readable(new) as new_rows, readable(labelled) as labelled_rows:
        totals = estimate(
            trained,
            new_rows,
            labelled_rows,
            by=by or (),
            cluster=cluster,
            weight=weight,
            level=level,
            cap=math.inf if cap is None else cap,
            tail=certified_tail(model),
            finite_variance=finite_variance,
            progress=progress,
        )
    for remark in (*totals.remarks, *totals.warnings()):
        typer.echo(visible_line(remark), err=True)
    report = TotalReport(model.name or str(model), data_name(new), data_name(labelled), trained.target, totals)
    document, values = total_document(report), total_json(report)
    deliver(document, values, out, "total", as_json=as_json)
