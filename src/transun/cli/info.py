"""`transun info`."""

import json
import platform
from pathlib import Path
from typing import Annotated, Any

import typer

from transun.cli.app import app
from transun.cli.options import Json
from transun.cli.output import print_table
from transun.models.description import is_saved_model

_LIBRARIES = {
    "torch": "",
    "numpy": "",
    "pyarrow": "data",
    "polars": "data",
    "safetensors": "save",
    "scipy": "lab",
    "scikit-learn": "sklearn",
    "altair": "report",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "onnxruntime": "onnx",
}


@app.command()
def info(
    path: Annotated[
        Path | None, typer.Argument(help="Folder of a saved model, or data; nothing: the versions.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is installed, what a saved model is and what its certificate promises, or what a table holds.

    Exit codes: 0 done, 2 a mistake in the call.

    Example: transun info model
    """
    if path is None:
        _versions(as_json)
    elif is_saved_model(path):
        _model(path, as_json)
    else:
        _data(path, as_json)


def _versions(as_json: bool) -> None:
    # Asked of the installer's records: importing torch would take seconds.
    from transun import __version__

    found = {"transun": __version__, "python": platform.python_version()}
    found |= {name: _version(name) or "" for name in _LIBRARIES}
    if as_json:
        typer.echo(json.dumps({name: text or None for name, text in found.items()}))
        return
    missing = {name: f"not installed: pip install 'transun[{extra}]'" for name, extra in _LIBRARIES.items() if extra}
    print_table(
        ["library", "version"], [[name, text or missing.get(name, "not installed")] for name, text in found.items()]
    )


def _version(name: str) -> str | None:
    # Here and not above: it would be a tenth of what `transun --help` takes.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _model(folder: Path, as_json: bool) -> None:
    from transun.cli.evaluate import show_certificate
    from transun.data import Features
    from transun.models.certificate import certificate_json, read_certificate
    from transun.models.description import describe_model

    said = describe_model(folder)
    size = (folder / said.file).stat().st_size if (folder / said.file).is_file() else 0
    try:
        certificate, problem = read_certificate(folder), ""
    except (ValueError, OSError) as error:  # a model without a good certificate is still a model
        certificate, problem = None, str(error)
    target = said.extra.get("target")
    if as_json:
        told: dict[str, Any] = {
            name: getattr(said, name) for name in ("head", "backbone", "seed", "prepared", "versions")
        }
        told |= {"target": target, "weight": said.extra.get("weight"), "bytes": size}
        told |= {
            "certificate": None if certificate is None else certificate_json(certificate),
            "problem": problem or None,
        }
        typer.echo(json.dumps(told))
        return
    typer.echo(f"head {said.head}")
    typer.echo(f"target {target}, weight {said.extra.get('weight')}, seed {said.seed}, {size / 1e6:.2f} MB of weights")
    typer.echo(f"saved with {', '.join(f'{name} {text}' for name, text in said.versions.items())}")
    if "features" in said.extra:
        typer.echo(Features.from_dict(said.extra["features"]).summary())
    if certificate is None:
        typer.echo(f"no certificate: {problem}")
    else:
        show_certificate(certificate)


def _data(path: Path, as_json: bool) -> None:
    from transun.data.table import overview

    found = overview(path)
    if as_json:
        typer.echo(json.dumps({"rows": found.rows, "columns": found.columns}))
        return
    header = ["column", "type", "missing", "smallest", "largest"]
    print_table(
        header,
        [[str(one[name]) for name in ("name", "type", "missing", "smallest", "largest")] for one in found.columns],
    )
    typer.echo(f"{found.rows:,} rows, {len(found.columns)} columns")
