"""Writes what a worker needs: `python -m transun_paper.lab.plan --cache DIR --out STUDIES.jsonl`, then carry both away.

The frozen data goes to the cache, the leaderboard's studies (by Adam, and some by SGD) to the list.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from transun_paper.lab.boards import BY_SGD, FULL, QUICK, plan


def main(arguments: Sequence[str] | None = None) -> int:
    """Write cache and list, and say how to go on."""
    parser = argparse.ArgumentParser(prog="python -m transun_paper.lab.plan", description=__doc__)
    parser.add_argument("--cache", type=Path, required=True, help="folder of frozen data")
    parser.add_argument("--out", type=Path, required=True, help="the list to write, a study a line")
    parser.add_argument("--quick", action="store_true", help="few rows, one rate, two seeds")
    parser.add_argument("--only", action="append", default=[], metavar="METHOD", help="this method; may be repeated")
    parser.add_argument("--data", action="append", default=[], metavar="NAME", help="this data set; may be repeated")
    given = parser.parse_args(arguments)
    boards = [QUICK] if given.quick else [FULL, *([] if given.only else [BY_SGD])]
    count = plan([board.only(given.only, given.data) for board in boards], given.cache, given.out)
    worker = f"python -m transun_paper.lab.worker {given.out} --cache {given.cache}"
    print(f"{count} studies; next: {worker} --store DIR --jobs N")

    return 0


if __name__ == "__main__":
    sys.exit(main())
