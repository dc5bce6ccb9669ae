"""`transun reproduce`: one command per table of the paper."""

import json
from pathlib import Path
from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import Json, Out, Progress
from transun.cli.output import print_table

reproduce = typer.Typer(
    help="Regenerate the tables of the TranSUN paper, our numbers beside its own.", no_args_is_help=True
)
app.add_typer(reproduce, name="reproduce")

REPORTS = Path("reports")

Quick = Annotated[bool, typer.Option("--quick", help="A tenth of the draws and fewer seeds.")]


@reproduce.command()
def synthetic(out: Out = REPORTS, quick: Quick = False, as_json: Json = False, progress: Progress = None) -> None:
    """T-MSE against TranSUN on eight distributions, by the paper's protocol: about two minutes on two cores.

    Finished cells are kept in OUT/runs, so that an interrupted reproduction goes on where it stopped.

    Example: transun reproduce synthetic --quick --out reports
    """
    _reproduce("synthetic", out, quick, as_json, progress)


@reproduce.command()
def methods(out: Out = REPORTS, quick: Quick = False, as_json: Json = False, progress: Progress = None) -> None:
    """MAE, WLR, ZILN, MDME, TPM, CREAD, OptDist and LogSUN on the eight distributions, beside their closed forms.

    Example: transun reproduce methods --quick --out reports
    """
    _reproduce("methods", out, quick, as_json, progress)


@reproduce.command()
def bins(out: Out = REPORTS, quick: Quick = False, as_json: Json = False, progress: Progress = None) -> None:
    """TPM with 4, 32 and 256 bins on the eight distributions: its bias shrinks with the bins.

    Example: transun reproduce bins --quick --out reports
    """
    _reproduce("bins", out, quick, as_json, progress)


@reproduce.command()
def instances(out: Out = REPORTS, quick: Quick = False, as_json: Json = False, progress: Progress = None) -> None:
    """GTS of four point losses and three slopes on the eight distributions: all of them unbiased.

    Example: transun reproduce instances --quick --out reports
    """
    _reproduce("instances", out, quick, as_json, progress)


@reproduce.command()
def real(
    out: Out = REPORTS,
    quick: Annotated[bool, typer.Option("--quick", help="The first 5,000 rows of each data set.")] = False,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """MSE, LogMSE, Gamma and LogSUN on the six public data sets, one recipe for all: some minutes on two cores.

    The Parquet files are looked for in the folder TRANSUN_DATA, else in ../shared/data.

    Example: transun reproduce real --quick --out reports
    """
    import torch

    from transun import __version__
    from transun.lab.real import QUICK_ROWS, RECIPE, real_table
    from transun.lab.store import Store, write
    from transun.report.real import real_page, real_rows
    from transun.spec import dumps

    entries = real_table(Store(out / "runs"), QUICK_ROWS if quick else None, show=progress)
    command = "transun reproduce real" + (" --quick" if quick else "")
    report = {
        "command": command,
        "version": __version__,
        "torch": torch.__version__,
        "recipe": dumps(RECIPE),
        "entries": entries,
    }
    write(out / "real.json", report)
    (out / "real.md").write_text(real_page(report), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(report))
        return
    # A terminal is narrow: the standard errors are in the files.
    rows = [[cell.split(" ± ")[0] for cell in row] for row in real_rows(report)]
    print_table(["data", "method", "signed TRE", "TRE", "MRE", "NRMSE", "NMAE", "XAUC", "s"], rows)
    typer.echo(f"Written to {out}/: real.md, real.json")


def _reproduce(name: str, out: Path, quick: bool, as_json: bool, progress: bool | None) -> None:
    from transun.lab.reproduce import REPRODUCTIONS
    from transun.lab.store import Store, write
    from transun.report.synthetic import synthetic_page

    chosen = REPRODUCTIONS[name]
    command = f"transun reproduce {name}" + (" --quick" if quick else "")
    report = chosen.run(chosen.quick if quick else chosen.full, Store(out / "runs"), command, progress)
    write(out / f"{name}.json", report)
    (out / f"{name}.md").write_text(synthetic_page(report), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(report))
        return
    answers = [[claim["text"], "yes" if claim["holds"] else "NO", claim["evidence"]] for claim in report["claims"]]
    print_table(["claim", "holds", "evidence"], answers)
    typer.echo(f"Written to {out}/: {name}.md, {name}.json")
