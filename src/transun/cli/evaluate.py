"""`transun evaluate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.app import app
from transun.cli.options import By, Json, Model, Progress, Require
from transun.cli.output import print_cells, print_table
from transun.cli.sources import STDIN, data_name, load_trained, readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transun.models.certificate import Certificate, Measured
    from transun.models.requirements import Requirement, Verdict


@app.command()
def evaluate(
    model: Model,
    data: Annotated[
        Path | None,
        typer.Argument(help="Rows with the target that the model was not trained on; - for standard input."),
    ] = None,
    by: By = None,
    require: Require = None,
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Look at the model's own certificate, without data.")
    ] = False,
    certify: Annotated[
        bool, typer.Option("--certify", help="Write what was found into the model's folder as its certificate.")
    ] = False,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Say what a model's totals are worth on some rows, with intervals, and hold a pipeline to it.

    A requirement compares metrics in lower case with numbers: tre, stre (signed), pgr, mre, nrmse, nmae, xauc, and the
    ends of their 95 % intervals, as in tre_high; abs, and, or. Exit codes: 0 done, 1 a requirement is broken, 2 a
    mistake in the call or the data, 130 interrupted.

    Example: transun evaluate model orders.csv --by country --require "pgr_high >= 0.2 and nrmse < 100"
    """
    from transun.models.requirements import Requirement

    required = [Requirement(text) for text in require or []]
    if certificate:
        if data is not None or by or certify:
            raise ValueError("--certificate looks at the certificate alone: leave out DATA, --by and --certify")
        _by_certificate(model, required, as_json)
        return
    if data is None:
        raise ValueError("give the rows to judge by, or --certificate to look at what was measured at the training")
    if certify and data == STDIN:
        raise ValueError("--certify takes a fingerprint of the rows: name a file instead of standard input")
    _by_data(model, data, by or [], required, certify, as_json, progress)


def _by_data(
    model: Path,
    data: Path,
    by: list[str],
    required: "list[Requirement]",
    certify: bool,
    as_json: bool,
    progress: bool | None,
) -> None:
    from transun.diagnosis.assessment import NAMES
    from transun.diagnosis.judging import certify_folder, judge
    from transun.report.diagnosis import visible_line
    from transun.report.model import as_json as dump
    from transun.report.model import metric_table, segment_table
    from transun.report.model.words import verdict

    for one in required:
        one.require_names(NAMES)
    trained = load_trained(model)
    with readable(data) as source:
        found = judge(trained, source, by, progress=progress)
        if certify:
            certify_folder(model, trained, source, found.assessment, f"{data_name(data)}, by transun evaluate")
    verdicts = [one.judge(found.assessment.part().names()) for one in required]
    if as_json:
        said = {"model": str(model), "dropped": found.dropped, "assessment": found.assessment, "requirements": verdicts}
        typer.echo(dump(said))
    else:
        if found.dropped:
            typer.echo(f"{found.dropped:,} rows without a target are left out.")
        print_cells(metric_table(found.assessment))
        if found.assessment.segments:
            print_cells(segment_table(found.assessment.segments))
        typer.echo(visible_line(verdict(found.assessment, "these rows")[1]))
    _enforce(verdicts, as_json)


def _by_certificate(model: Path, required: "list[Requirement]", as_json: bool) -> None:
    from transun.models.certificate import certificate_json, read_certificate
    from transun.models.description import is_saved_model

    if not is_saved_model(model):
        load_trained(model)  # which says what is wrong with the folder
    found = read_certificate(model)
    values = found.whole.names()
    for one in required:
        one.require_names(list(values))
    verdicts = [one.judge(values) for one in required]
    if as_json:
        import json
        from dataclasses import asdict

        said = certificate_json(found) | {"requirements": [asdict(one) for one in verdicts]}
        typer.echo(json.dumps(said))
    else:
        show_certificate(found)
    _enforce(verdicts, as_json)


def show_certificate(found: "Certificate") -> None:
    """A certificate on a terminal."""
    header = ["rows", "TRE", "signed TRE", "PGR", "MRE"]
    rows = []
    for part in (found.whole, *found.segments):
        title = f"{part.column} {part.value}".strip()
        cells = [_ends(part.metrics.get(name)) for name in ("TRE", "STRE", "PGR", "MRE")]
        rows.append([f"{title} ({part.rows:,})", *cells])
    print_table(header, rows)
    typer.echo(
        f"certified {found.date} on {found.held_out}; target {found.target}, head {found.head}, seed {found.seed}"
    )
    typer.echo(f"data {found.fingerprint[:16]}…, {', '.join(f'{k} {v}' for k, v in found.versions.items())}")


def _ends(one: "Measured | None") -> str:
    return "–" if one is None else f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def _enforce(verdicts: "Sequence[Verdict]", as_json: bool) -> None:
    for one in verdicts:
        if not one.holds:
            typer.echo(f"broken: {one.text}: {'; '.join(one.reasons)}", err=True)
        elif not as_json:
            typer.echo(f"holds: {one.text}")
    if not all(one.holds for one in verdicts):
        raise typer.Exit(1)
