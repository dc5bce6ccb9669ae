"""`transun demo`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import Json, Out, Progress
from transun.cli.output import print_table


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

    if not as_json:
        typer.echo(f"A log of {orders:,} orders whose true mean is known; the last fifth is held out.")
    outcomes = run_demo(OrderLog(orders, seed=seed), seed=seed, progress=progress)
    chart = calibration_chart({name: decile_rows(outcome.deciles) for name, outcome in outcomes.items()}, "order value")
    for name in ("calibration.svg", "calibration.png"):
        save(chart, out / name)
    write(out / "demo.json", demo_json(outcomes))
    (out / "demo.md").write_text(demo_page(outcomes, "calibration.svg"), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(demo_json(outcomes)))
        return
    print_table(*demo_table(outcomes))
    typer.echo(verdict(outcomes))
    typer.echo(f"Written to {out}/: demo.md, demo.json, calibration.png, calibration.svg")
