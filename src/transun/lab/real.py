"""First numbers on real data: four methods, one recipe, the same rows for all."""

from collections.abc import Sequence
from typing import Any

from transun.averaging import EMA
from transun.data import PUBLIC, by_row, load
from transun.evaluation import measure
from transun.heads import MSE, Gamma, Head, LogMSE, LogSUN, Scaled
from transun.lab.store import Store
from transun.metrics import MRE, NMAE, NRMSE, STRE, TRE, XAUC
from transun.optimisers import Adam, linear
from transun.progress import Progress
from transun.spec import dumps
from transun.tabular import Recipe, train

HEADS: dict[str, Head] = {
    "MSE": Scaled(MSE()),
    "LogMSE": LogMSE(),
    "Gamma": Gamma(),
    "LogSUN": LogSUN(),
}
METRICS = (TRE, STRE, MRE, NRMSE, NMAE, XAUC)
RECIPE = Recipe(Adam(1e-3), decay=linear, averaging=EMA(0.99))
TRAIN_SHARE = 0.8
QUICK_ROWS = 5_000


def real_table(
    store: Store, rows: int | None = None, names: Sequence[str] = PUBLIC, show: bool | None = None
) -> list[dict[str, Any]]:
    """One entry per data set and head: metrics with standard errors on held-out rows, and seconds of training.

    Args:
        store: where finished entries are kept.
        rows: only the first so many rows of each data set; None takes all.
        names: which data sets.
        show: a progress bar.

    """
    entries = []
    with Progress("real data", len(names) * len(HEADS), show) as bar:
        for name in names:
            for method, head in HEADS.items():
                text = f"{dumps(head)} on {name}, {rows or 'all'} rows, by {dumps(RECIPE)}"
                entry = store.run(text, lambda name=name, head=head: _entry(name, head, rows))  # type: ignore[misc]
                entries.append({"dataset": name, "method": method, **entry})
                bar.advance(len(entries), f"{name} {method}")
    return entries


def _entry(name: str, head: Head, rows: int | None) -> dict[str, Any]:
    data = load(name)
    training, test = by_row(data.table.slice(0, rows), TRAIN_SHARE)
    trained = train(training, data.target, head, features=data.features, recipe=RECIPE, progress=False)
    meter = measure(trained.model, trained.dataset(test), METRICS)
    return {
        "rows": len(training),
        "test_rows": len(test),
        "metrics": meter.compute(),
        "errors": meter.standard_errors(),
        "seconds": trained.history.seconds,
    }
