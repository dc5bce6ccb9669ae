"""`transun evaluate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.app import app
from transun.cli.options import By, Cluster, Json, MaxUnseen, Model, ModelExposure, Progress, Require
from transun.cli.output import print_blocks, print_table
from transun.cli.shift import require_seen, show_shift
from transun.cli.sources import STDIN, data_name, load_trained, readable
from transun.support.paths import as_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transun.diagnosis.evaluation import Evaluation
    from transun.models.certificate import Certificate
    from transun.models.requirements import Requirement, RequirementResult


@app.command()
def evaluate(
    model: Model,
    data: Annotated[
        Path | None,
        typer.Argument(
            parser=as_path,
            metavar="[DATA]",
            help="Rows with the target that the model was not trained on; - for standard input.",
        ),
    ] = None,
    by: By = None,
    cluster: Cluster = None,
    require: Require = None,
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Read the model's certificate instead of data.")
    ] = False,
    certify: Annotated[
        bool, typer.Option("--certify", help="Write the result into the model's folder as its certificate.")
    ] = False,
    exposure: ModelExposure = None,
    max_unseen: MaxUnseen = None,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Measure how right a model's predictions are on some rows, with intervals, and stop a pipeline if they are not.

    A requirement compares metrics in lower case, such as tre, stre (signed), pgr or nrmse, and the ends of their 99 %
    intervals, as in tre_high, with numbers; noise is how well the total can be known at all. It may use abs, and, or.
    Exit codes: 0 done, 1 a requirement is broken, 2 a mistake in the call or the data, 130 interrupted.

    Example: transun evaluate model orders.csv --by country --require "tre <= 0.2 and nrmse < 2"
    """
    from transun.models.requirements import Requirement

    required = [Requirement(text) for text in require or []]
    if certificate:
        if data is not None or by or cluster or certify or exposure is not None or max_unseen is not None:
            raise ValueError(
                "--certificate looks at the certificate alone: leave out DATA, --by, --cluster, --certify, --exposure "
                "and --max-unseen"
            )
        _by_certificate(model, required, as_json)
        return
    if data is None:
        raise ValueError("give the rows to judge by, or --certificate to look at what was measured at the training")
    if certify and data == STDIN:
        raise ValueError("--certify takes a fingerprint of the rows: name a file instead of standard input")
    from transun.diagnosis.assessment import requirement_names
    from transun.diagnosis.certification import certify_folder, whole_part
    from transun.diagnosis.evaluation import evaluate_model
    from transun.models.interval_file import save_intervals
    from transun.models.row_intervals import RowIntervals

    for requirement in required:
        requirement.require_names([*requirement_names(), "noise"])
    trained = load_trained(model, exposure)
    with readable(data) as source:
        evaluation = evaluate_model(trained, source, by or (), cluster=cluster, progress=progress)
        require_seen(evaluation.shift, max_unseen)
        assessment = evaluation.assessment
        if certify:
            held_out = f"{data_name(data)}, by transun evaluate"
            certify_folder(model, trained, source, assessment, held_out, evaluation.seen)
            save_intervals(RowIntervals.of(evaluation.sample["pred"], evaluation.sample["y"]), model)
    values = whole_part(assessment).names() | {"noise": assessment.noise.together}
    results = [requirement.check(values) for requirement in required]
    if as_json:
        typer.echo(_json(model, evaluation, results))
    else:
        _show(evaluation)
    _enforce(results, as_json)


def _json(model: Path, evaluation: "Evaluation", results: "Sequence[RequirementResult]") -> str:
    from transun.report.formatting import as_json

    return as_json(
        {
            "model": str(model),
            "dropped": evaluation.dropped,
            "seen": evaluation.seen,
            "sampled": evaluation.remark,
            "shift": evaluation.shift.to_dict(),
            "assessment": evaluation.assessment,
            "requirements": results,
        }
    )


def _show(evaluation: "Evaluation") -> None:
    from transun.report.assessment import dropped_sentence, seen_warning
    from transun.report.model import assessment_blocks, noise_block

    if evaluation.dropped:
        typer.echo(dropped_sentence(evaluation.dropped))
    if evaluation.seen:
        typer.echo(seen_warning("the model", evaluation.seen))
    print_blocks([*assessment_blocks(evaluation.assessment), noise_block(evaluation.assessment)])
    if evaluation.remark:
        typer.echo(evaluation.remark)
    show_shift(evaluation.shift)


def _by_certificate(model: Path, required: "list[Requirement]", as_json: bool) -> None:
    from transun.models.certificate import certificate_json, read_certificate
    from transun.models.description import is_saved_model

    if not is_saved_model(model):
        load_trained(model)  # raises an error that says what is wrong with the folder
    certificate = read_certificate(model)
    values = certificate.names()
    for requirement in required:
        requirement.require_names(list(values))
    results = [requirement.check(values) for requirement in required]
    if as_json:
        import json
        from dataclasses import asdict

        requirements = [asdict(result) for result in results]
        typer.echo(json.dumps(certificate_json(certificate) | {"requirements": requirements}))
    else:
        show_certificate(certificate)
    _enforce(results, as_json)


def show_certificate(certificate: "Certificate") -> None:
    """Print a certificate: every metric of all rows, and predicted / actual of the segments.

    Neither torch nor `transun.metrics` is imported here, so that a pipeline checks a certificate in a moment.
    """
    from transun.models.head_summary import summarise_head
    from transun.report.formatting import visible_line

    whole = certificate.whole
    rows = [[name, *map(_number, (each.value, each.low, each.high))] for name, each in whole.metrics.items()]
    print_table([f"{whole.value} ({whole.rows:,})", "value", "99 % from", "to"], rows)
    segments = [
        [f"{part.column} {part.value}", f"{part.rows:,}", *map(_number, (pgr.value, pgr.low, pgr.high))]
        for part in certificate.segments
        if (pgr := part.metrics.get("PGR")) is not None
    ]
    if segments:
        print_table(["segment", "rows", "PGR", "99 % from", "to"], segments)
    if certificate.noise is not None:
        typer.echo(visible_line(certificate.noise.sentence()))
    typer.echo(
        f"certified {certificate.date} on {certificate.held_out}; target {certificate.target}, head "
        f"{summarise_head(certificate.head)}, seed {certificate.seed}"
    )
    versions = ", ".join(f"{name} {text}" for name, text in certificate.versions.items())
    typer.echo(f"data {certificate.fingerprint[:16]}…, {versions}")


def _number(value: float) -> str:
    from transun.report.formatting import ratio

    return ratio(value)


def _enforce(results: "Sequence[RequirementResult]", as_json: bool) -> None:
    for result in results:
        if not result.holds:
            typer.echo(f"broken: {result.text}: {'; '.join(result.reasons)}", err=True)
        elif not as_json:
            typer.echo(f"holds: {result.text}")
    if not all(result.holds for result in results):
        raise typer.Exit(1)
