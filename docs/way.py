"""The way of the data from a table to predictions, as a list of steps with what each of them gives."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, tensor

from transun import Dataset, Features, Id, LogSUN, Model, Number, read_table, tabm
from transun.report.markdown import table as markdown_table


def way() -> str:
    """Two rows on their way through a small model: what is called, and the shapes of what comes out."""
    table = {"item": ["a", "b"], "price": [10.0, 25.0], "gmv": [12.0, 90.0]}
    source = read_table(table)
    features = Features({"item": Id(), "price": Number()}).fit(source)
    batch = features.encode(source)
    y = tensor(table["gmv"])
    model = Model(tabm(features, members=2, hidden=(8, 8)), LogSUN(shared=1)).prepare(y).eval()
    raw = model.raw(batch)
    terms = model.loss(batch, y)
    steps = [
        (
            "`read_table(file)`",
            "`data/table.py`",
            f"a table of {source.num_rows} rows: {', '.join(source.column_names)}",
        ),
        ("`Features.fit(table)`", "`data/features.py`", "vocabularies and scales, learned from training rows once"),
        ("`Features.encode(table)`", "`data/kinds/`", _shapes(batch)),
        (
            "`Dataset(batch, y)`",
            "`data/dataset.py`",
            f"{len(Dataset(batch, y))} rows in memory; `ParquetStream` reads them in chunks",
        ),
        ("`model.raw(batch)`", "`models/network.py`", _raw(raw, model.head.branches)),
        ("`model.loss(batch, y)`", "`heads/`", f"a cost per row by name: {', '.join(f'`{name}`' for name in terms)}"),
        ("`model(batch)`", "`heads/`", f"predictions {_shape(model(batch))} in units of y: z / κ(f)"),
    ]
    return markdown_table(["call", "where", "what comes out"], steps).replace("--:", ":--")


def _shapes(batch: Mapping[str, Tensor]) -> str:
    return ", ".join(f"`{name}` {_shape(values)}" for name, values in batch.items())


def _raw(raw: Any, branches: Any) -> str:
    shapes = " and ".join(map(_shape, raw))
    return f"raw outputs of {len(branches)} branches, f and z: {shapes}, a row for each of the 2 members of a row"


def _shape(values: Tensor) -> str:
    return f"({', '.join(map(str, values.shape))}{',' * (values.dim() == 1)})"
