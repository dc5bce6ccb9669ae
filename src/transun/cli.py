"""The command line. Imports nothing heavy until a command runs, so that help is instant."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="transun",
    help="Unbiased regression for skewed targets: find retransformation bias, remove it, prove it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
reproduce = typer.Typer(
    help="Regenerate the tables of the TranSUN paper, our numbers beside its own.", no_args_is_help=True
)
app.add_typer(reproduce, name="reproduce")

REPORTS = Path("reports")

Out = Annotated[Path, typer.Option("--out", help="Folder for the results.", file_okay=False)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Progress = Annotated[
    bool | None, typer.Option("--progress/--no-progress", help="Show progress bars; by default on a terminal.")
]


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        from transun import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    out: Out = Path("demo-report"),
    orders: Annotated[int, typer.Option(min=1000, help="Orders in the simulated log.")] = 200_000,
    seed: Annotated[int, typer.Option(help="Seed of the log and of the training.")] = 0,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Train a log-target model and its debiased twin on a simulated order log, and compare their totals.

    Example: transun demo --orders 50000 --out demo-report
    """
    from transun.data import OrderLog
    from transun.lab.demo import run_demo
    from transun.lab.store import write
    from transun.report.chart import calibration_chart, save
    from transun.report.demo import decile_rows, demo_json, demo_page, demo_table, verdict

    _say(f"A log of {orders:,} orders whose true mean is known; the last fifth is held out.", as_json)
    outcomes = run_demo(OrderLog(orders, seed=seed), seed=seed, progress=progress)
    chart = calibration_chart({name: decile_rows(outcome.deciles) for name, outcome in outcomes.items()}, "order value")
    for name in ("calibration.svg", "calibration.png"):
        save(chart, out / name)
    write(out / "demo.json", demo_json(outcomes))
    (out / "demo.md").write_text(demo_page(outcomes, "calibration.svg"), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(demo_json(outcomes)))
        return
    _print_table(*demo_table(outcomes))
    typer.echo(verdict(outcomes))
    typer.echo(f"Written to {out}/: demo.md, demo.json, calibration.png, calibration.svg")


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
    _print_table(["data", "method", "signed TRE", "TRE", "MRE", "NRMSE", "NMAE", "XAUC", "s"], rows)
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
    _print_table(["claim", "holds", "evidence"], answers)
    typer.echo(f"Written to {out}/: {name}.md, {name}.json")


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        typer.echo(text)


def _print_table(header: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    shown = Table(*header)
    for row in rows:
        shown.add_row(*map(escape, row))
    Console().print(shown)


def main() -> None:
    """Run the command line; what a user did wrong is told in a line, not in a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("interrupted; what was finished is kept", err=True)
        sys.exit(130)
    except (ValueError, ModuleNotFoundError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
