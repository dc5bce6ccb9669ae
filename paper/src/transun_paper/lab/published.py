"""The numbers that the paper prints, kept as data."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _paper() -> dict[str, Any]:
    text = files("transun_paper.lab").joinpath("published.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)["tables"]
    return tables


def published(table: str, method: str, label: str, column: str) -> float | None:
    """The paper's value of a cell, or None where it prints none.

    >>> published("solve_bias_sim", "TranSUN", "ln(y+1)", "RS-G")
    0.0014
    """
    entry = _paper()[table]
    for row in entry["rows"]:
        if (row["method"], row["label"]) == (method, label):
            value = row["values"][entry["columns"].index(column)]
            return None if value is None else float(value)
    return None


def notes(table: str) -> list[str]:
    """Why cells of the paper differ from the closed form, where we know."""
    texts: list[str] = _paper()[table].get("notes", [])
    return texts


def printed(table: str) -> dict[str, Any]:
    """A whole table as the paper prints it: its `columns` and its `rows` of method, label and values.

    >>> printed("efficiency")["columns"][0], printed("efficiency")["rows"][0]["values"][0]
    ('Mem (MB)', 610.46)
    """
    entry = _paper()[table]
    return {"table": table, "metric": entry["metric"], "columns": entry["columns"], "rows": entry["rows"]}
