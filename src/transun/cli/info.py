"""`transun info`."""

import json
import platform
from pathlib import Path
from typing import Annotated, Any

import typer

from transun.cli.app import app
from transun.cli.options import Json
from transun.cli.output import print_table
from transun.cli.sources import readable
from transun.models.description import is_saved_model
from transun.support.counting import counted
from transun.support.extras import how_to_install
from transun.support.paths import as_path

# The packages whose versions matter for a result or a file.
_PACKAGES = (
    "torch",
    "numpy",
    "pyarrow",
    "safetensors",
    "scipy",
    "scikit-learn",
    "lightgbm",
    "onnx",
    "onnxscript",
    "onnxruntime",
)


@app.command()
def info(
    path: Annotated[
        Path | None,
        typer.Argument(
            parser=as_path, metavar="[PATH]", help="Folder of a saved model, or data; nothing: the versions."
        ),
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
    # From the installer's records: importing torch would take seconds.
    from transun import __version__

    versions = {"transun": __version__, "python": platform.python_version()}
    versions |= {name: _version(name) or "" for name in _PACKAGES}
    if as_json:
        typer.echo(json.dumps({name: text or None for name, text in versions.items()}))
        return
    rows = [[name, text or f"not installed: {how_to_install(name)}"] for name, text in versions.items()]
    print_table(["library", "version"], rows)


def _version(name: str) -> str | None:
    # Imported here and not above: it would add a tenth to the time of `transun --help`.
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
    from transun.models.head_summary import summarise_head

    description = describe_model(folder)
    size = description.weights_in(folder).stat().st_size
    try:
        certificate, problem = read_certificate(folder), ""
    except (ValueError, OSError) as error:  # a model without a good certificate is still a model
        certificate, problem = None, str(error)
    target, weight = description.extra.get("target"), description.extra.get("weight")
    if as_json:
        values: dict[str, Any] = {
            name: getattr(description, name) for name in ("head", "backbone", "seed", "prepared", "versions")
        }
        values |= {"target": target, "weight": weight, "bytes": size}
        values |= {
            "certificate": None if certificate is None else certificate_json(certificate),
            "problem": problem or None,
        }
        typer.echo(json.dumps(values))
        return
    typer.echo(f"head {summarise_head(description.head)}")
    typer.echo(f"target {target}, weight {weight}, seed {description.seed}, {size / 1e6:.2f} MB of weights")
    typer.echo(f"saved with {', '.join(f'{name} {text}' for name, text in description.versions.items())}")
    if "features" in description.extra:
        typer.echo(Features.from_dict(description.extra["features"]).summary())
    if certificate is None:
        typer.echo(f"no certificate: {problem}")
    else:
        show_certificate(certificate)


def _data(path: Path, as_json: bool) -> None:
    from transun.data.table import overview
    from transun.report import formatting

    with readable(path) as source:
        table = overview(source)
    if as_json:
        typer.echo(formatting.as_json(table))
        return

    def shown(value: float | None) -> str:
        return "" if value is None else formatting.number(value)

    header = ["column", "type", "missing", "smallest", "largest"]
    rows = [
        [each.name, each.type, formatting.share(each.missing, 1), shown(each.smallest), shown(each.largest)]
        for each in table.columns
    ]
    print_table(header, rows)
    typer.echo(f"{counted(table.rows, 'row')}, {counted(len(table.columns), 'column')}")
