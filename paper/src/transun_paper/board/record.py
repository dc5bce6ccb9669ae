"""Every result of the board in one file of the repository, from which a store can be filled on another machine."""

import json
from pathlib import Path
from typing import Any

from transun.support.files import write_text
from transun_paper.lab.store import Store


def fill_store(record: Path, store: Store) -> int:
    """Store the results of a record that the store lacks; how many there were."""
    added = 0
    for entry in _entries(record):
        if entry["text"] not in store:
            store.keep(entry["text"], entry["result"], entry.get("seconds"))
            added += 1
    return added


def write_record(record: Path, store: Store, rows: int | None) -> None:
    """Write the results that were asked for, of so many rows of each table; those of other numbers of rows stay.

    A result that nothing asks for is of an old version of its method, and is left out.
    """
    others = [entry for entry in _entries(record) if _arguments(entry)["rows"] != rows]
    entries = [*others, *map(store.entry, store.used)]
    lines = [json.dumps(entry, separators=(",", ":")) for entry in sorted(entries, key=_place)]
    write_text(record, "".join(f"{line}\n" for line in lines))


def recorded_files(record: Path) -> dict[str, str]:
    """By table, the fingerprint of the file that most of its results in a record are of."""
    found: dict[str, list[str]] = {}
    for arguments in map(_arguments, _entries(record)):
        found.setdefault(arguments["table"], []).append(arguments["data"])
    return {table: max(sorted(set(files)), key=files.count) for table, files in found.items()}


def _entries(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.is_file() else []


def _arguments(entry: dict[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = json.loads(entry["text"])
    return arguments


def _place(entry: dict[str, Any]) -> tuple[Any, ...]:
    arguments = _arguments(entry)
    return arguments["rows"] or 0, arguments["table"], arguments["method"], arguments["seed"]
