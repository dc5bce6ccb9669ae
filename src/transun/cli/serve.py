"""`transun serve`."""

from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import Model
from transun.cli.sources import load_trained


@app.command()
def serve(
    model: Model,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen at; 0.0.0.0 lets every machine in, without a password.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen at; 0 takes a free one.")] = 8000,
    max_rows: Annotated[int, typer.Option("--max-rows", help="Most rows of a request.")] = 10_000,
    max_bytes: Annotated[int, typer.Option("--max-bytes", help="Most bytes of a request.")] = 1 << 20,
) -> None:
    """Serve a model over HTTP, to try it: predictions, feedback, and an alert if its certificate is contradicted.

    POST /predict takes a row as a JSON object, a list of rows, or {"columns": {...}}, and returns predictions and their
    ids. POST /feedback takes {"ids": [...], "actual": [...]}, or "rows" or "columns" in place of ids. GET /schema says
    how each column is written, /health whether the certificate's promise is kept, and /metrics gives counts, latencies
    and totals to Prometheus.

    If actual amounts leave the interval of PGR in the certificate, /health and /metrics say so. The probability of a
    false alarm is at most 5 % in 365 blocks of labelled rows, however often one looks. Totals are forgotten when the
    server stops: `transun watch` keeps an eye on a model for years, and `transun export` writes a file for servers of
    production.

    Exit codes: 0 stopped by Ctrl-C, 2 a mistake in the call.

    Example: transun serve model --port 8000
    """
    from transun.serving.app import LIBRARIES, listen, run_server
    from transun.serving.promise import promise_of
    from transun.serving.service import Limits, Service
    from transun.support.extras import require

    require(*LIBRARIES)
    limits = Limits(body=max_bytes, rows=max_rows)
    with listen(host, port) as listening:
        service = Service(load_trained(model), promise_of(model), limits)
        address = f"[{host}]" if ":" in host else host
        typer.echo(f"Serving {model} at http://{address}:{listening.getsockname()[1]}; Ctrl-C stops it.")
        typer.echo(f"Its promise: {service.health()['promise']}.")
        try:
            run_server(service, listening)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
