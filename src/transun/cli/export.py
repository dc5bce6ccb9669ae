"""`transun export`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import Json, Model
from transun.cli.output import print_table
from transun.cli.sources import load_trained


@app.command()
def export(
    model: Model,
    out: Annotated[Path, typer.Option("--out", help="File ending in .pt2 (torch) or .onnx.")],
    as_json: Json = False,
) -> None:
    """Write a model as one file for serving: network, transform, slope and correction in one graph.

    The inputs of the graph are encoded columns: codes of ids and scaled numbers. The encoding of raw columns is written
    beside it, as is a JSON file that documents the inputs. Predictions are compared after writing. Exit codes: 0 done,
    2 a mistake in the call.

    Example: transun export model --out model.pt2
    """
    from transun.tables import graph_export

    graph_export.require_format(out)
    exported = graph_export.export(load_trained(model), out)
    if as_json:
        files = {"out": str(exported.path), "document": str(exported.document), "features": str(exported.features)}
        typer.echo(json.dumps(files | {"max_relative_difference": exported.difference, "inputs": exported.inputs}))
        return
    header = ["input", "dtype", "shape", "meaning"]
    print_table(header, [[i["name"], i["dtype"], " × ".join(i["shape"]), i["meaning"]] for i in exported.inputs])
    typer.echo(f"{exported.path}: predictions differ from the model's by {exported.difference:.1e} at most (relative)")
    typer.echo(f"{exported.document}: names, types and shapes of the inputs")
    typer.echo(f"{exported.features}: the encoding of raw columns, which is not part of the graph (transun.Features)")
