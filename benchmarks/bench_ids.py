"""How many distinct ids the part of a batch that a rank has reads, and how evenly owners of table rows are asked.

Simulated: rows are drawn from an order log of as many ids as no machine here holds a table of, which costs no memory.
Runs with torch and numpy alone and writes benchmarks/results/ids.json.
"""

from itertools import product

import record
import torch

from transun import OrderLog

IDS = (10**6, 10**8, 10**9)
ROWS = (512, 4096, 65536)
OWNERS = (8, 64)


def row(ids: int, history: int, rows: int) -> list[record.Cell]:
    """One line: a sixth of the ids are items, as in the paper's log, the others users."""
    log = OrderLog(orders=rows, users=ids - ids // 6, items=ids // 6, history=history)
    x = log.rows(torch.arange(rows))[0]
    items = torch.cat([x["item"].unsqueeze(1), x["history"]], 1)
    distinct = torch.cat([x["user"].unique(), items[items >= 0].unique()])
    lookups = rows + int((items >= 0).sum())
    shares = [torch.bincount(distinct % owners, minlength=owners).double() for owners in OWNERS]
    crowding = [round(float(share.max() / share.mean()), 3) for share in shares]
    return [ids, history, rows, lookups / rows, len(distinct), len(distinct) / lookups, *crowding]


def main() -> None:
    """Write the table."""
    columns = ["ids", "history", "rows", "look-ups a row", "distinct ids", "distinct ids a look-up"]
    record.write(
        "ids",
        "Distinct ids in some rows of the simulated order log, which is what these rows make a rank send and receive; "
        "and how many more of them the busiest owner of table rows has than the mean, where ids modulo the number of "
        "owners decide",
        [*columns, *(f"busiest of {owners} owners" for owners in OWNERS)],
        [row(*setting) for setting in product(IDS, (20, 50), ROWS)],
        where=record.machine("torch", "numpy"),
    )


if __name__ == "__main__":
    main()
