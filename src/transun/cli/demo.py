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

    Each gets the diagnosis that `transun diagnose` makes of anybody's predictions: biased.html, debiased.html.

    Example: transun demo --orders 50000 --out demo-report
    """
    from transun.data import OrderLog
    from transun.diagnosis import diagnose
    from transun.report.demo import demo_json, demo_page, demo_table, held_out_orders, run_demo, verdict
    from transun.report.diagnosis import diagnosis_page
    from transun.support.files import write_json

    if not as_json:
        typer.echo(f"A log of {orders:,} orders whose true mean is known; the last fifth is held out.")
    log = OrderLog(orders, seed=seed)
    outcomes = run_demo(log, seed=seed, progress=progress)
    out.mkdir(parents=True, exist_ok=True)
    values, prices = (column.numpy() for column in held_out_orders(log))
    for file, (name, outcome) in zip(("biased.html", "debiased.html"), outcomes.items(), strict=True):
        about = f"{name}, held-out orders"
        found = diagnose(values, outcome.pred.numpy(), {"price": prices}, name=about, progress=False)
        (out / file).write_text(diagnosis_page(found), encoding="utf-8")
    write_json(out / "demo.json", demo_json(outcomes))
    (out / "demo.md").write_text(demo_page(outcomes, "calibration.svg"), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(demo_json(outcomes)))
        return
    print_table(*demo_table(outcomes))
    typer.echo(verdict(outcomes))
    typer.echo(f"Open {out}/biased.html and {out}/debiased.html for what `transun diagnose` says of each.")
    typer.echo(f"Written to {out}/ too: demo.md, demo.json")
