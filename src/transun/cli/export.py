"""`transun export`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import Json, Model
from transun.cli.output import print_table
from transun.cli.sources import load_trained, require_writable


@app.command()
def export(
    model: Model,
    out: Annotated[
        Path,
        typer.Option("--out", help="A file ending in .onnx, .pt2 or .aoti.pt2 (compiled); a folder with --format."),
    ],
    format_: Annotated[
        str | None,
        typer.Option("--format", help='"huggingface": a folder for the hub, with a model card. By default a file.'),
    ] = None,
    quantile: Annotated[
        list[float] | None,
        typer.Option("--quantile", help="Level of a quantile to output too, such as 0.9; repeatable."),
    ] = None,
    encoded: Annotated[
        bool, typer.Option("--encoded", help="Inputs are codes and scaled numbers, and not the columns of a table.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a model as one file for serving, from raw columns to predictions; onnxruntime or torch alone opens it.

    Inputs are called like the columns: ids are text or whole numbers, numbers are float64 and NaN where missing, times
    int64 microseconds since 1970. Outputs are prediction, and original for the one before debiasing. Where a column is
    called prediction or original, the output is called model_prediction or model_original. A .pt2 file has no text, so
    that columns of text are codes there. Types of inputs and the certificate are in the file, and in a JSON file beside
    it. Predictions are compared after writing. Exit codes: 0 done, 2 a mistake in the call.

    --format huggingface writes a folder instead, ready to be uploaded: the model itself, an .onnx file, and a README.md
    made of the certificate. Nothing is uploaded.

    Example: transun export model --out model.onnx
    """
    from transun.integrations.huggingface import write_hub_folder
    from transun.models.certificate import valid_certificate
    from transun.tables import graph_export

    if format_ is None:
        graph_export.require_format(out)
        require_writable(out.parent)
        exported = graph_export.export(
            load_trained(model), out, quantiles=quantile or (), encoded=encoded, certificate=valid_certificate(model)
        )
    elif format_ != "huggingface":
        raise ValueError(f"--format is huggingface, got {format_!r}; the ending of --out tells .onnx from .pt2")
    elif quantile or encoded:
        raise ValueError("--format huggingface takes neither --quantile nor --encoded: leave them out")
    else:
        load_trained(model)  # an error that helps, where there is no model
        require_writable(out)
        exported = write_hub_folder(model, out)
    if as_json:
        files = {"out": str(exported.path), "document": str(exported.document)}
        files |= {} if exported.features is None else {"features": str(exported.features)}
        about = {"max_relative_difference": exported.difference, "inputs": exported.inputs, "outputs": exported.outputs}
        typer.echo(json.dumps(files | about))
        return
    header = ["input", "dtype", "shape", "meaning"]
    print_table(header, [[i["name"], i["dtype"], " × ".join(i["shape"]), i["meaning"]] for i in exported.inputs])
    typer.echo(f"{exported.path}: predictions differ from the model's by {exported.difference:.1e} at most (relative)")
    typer.echo(f"{exported.document}: names, types and shapes of inputs and outputs")
    if exported.features is not None:
        typer.echo(f"{exported.features}: how encoded inputs are made of columns (transun.Features)")
    if format_ is not None:
        typer.echo(f"{out}: the model, its certificate, and README.md, a model card; nothing was uploaded")
