"""`transun demo`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import Json, Out, Progress
from transun.cli.output import print_blocks
from transun.cli.sources import require_writable, write_texts


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
    from transun.report.demo import CALIBRATION, calibration_svg, demo_document, demo_json, held_out_orders, run_demo
    from transun.report.diagnosis import diagnosis_document
    from transun.support.extras import require

    require("pyarrow", "scipy")
    require_writable(out)
    if not as_json:
        typer.echo(f"A log of {orders:,} orders whose true mean is known; the last fifth is held out.")
    log = OrderLog(orders, seed=seed)
    outcomes = run_demo(log, seed=seed, progress=progress)
    y, prices = (column.numpy() for column in held_out_orders(log))
    pages = {}
    for file, (name, outcome) in zip(("biased.html", "debiased.html"), outcomes.items(), strict=True):
        title = f"{name}, held-out orders"
        diagnosis = diagnose(y, outcome.pred.numpy(), {"price": prices}, name=title, progress=False)
        pages[file] = diagnosis_document(diagnosis).html()
    document, values = demo_document(outcomes), demo_json(outcomes)
    texts = {
        "demo.md": document.markdown(),
        "demo.json": json.dumps(values, indent=1) + "\n",
        CALIBRATION: calibration_svg({name: model["deciles"] for name, model in values.items()}),
    }
    write_texts(out, pages | texts)
    if as_json:
        typer.echo(json.dumps(values))
        return
    print_blocks(document.brief)
    typer.echo(f"Open {' and '.join(f'{out}/{file}' for file in pages)} for the diagnosis of each model.")
    typer.echo(f"Written to {out}/ too: {', '.join(texts)}")
