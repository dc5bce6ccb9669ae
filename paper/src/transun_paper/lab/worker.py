"""Carries out a list of work: `python -m transun_paper.lab.worker WORK.jsonl --cache DIR --store DIR --jobs 16`.

A line of the list is a study, a run or a computation. `transun-paper reproduce NAME --plan` writes such a list and the
encoded data that it needs. The worker needs torch and numpy alone, so any machine will do: copy both packages, the
encoded data and the list to it, and copy the folder of results back.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from transun_paper.lab.computation import Computation
from transun_paper.lab.pool import carry_out
from transun_paper.lab.protocol import Study
from transun_paper.lab.store import Store


def main(arguments: Sequence[str] | None = None) -> int:
    """Do everything in the list that the store does not hold yet."""
    parser = argparse.ArgumentParser(prog="python -m transun_paper.lab.worker", description=__doc__)
    parser.add_argument("list", type=Path, help="lines of JSON: studies, runs and computations")
    parser.add_argument("--cache", type=Path, required=True, help="folder of encoded data")
    parser.add_argument("--store", type=Path, required=True, help="folder of results, a file each")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--device", default="cpu", help="where models are trained, such as cuda; processes share it")
    options = parser.parse_args(arguments)
    studies, computations = read_work(options.list.read_text(encoding="utf-8").splitlines())
    try:
        store = Store(options.store)
        carry_out(studies, store, options.cache, options.jobs, computations=computations, device=options.device)
    except KeyboardInterrupt:
        print("interrupted; finished work is kept", file=sys.stderr)
        return 130
    return 0


def read_work(lines: Sequence[str]) -> tuple[list[Study], list[Computation]]:
    """The studies and the computations of a list; empty lines are skipped."""
    studies, computations = [], []
    for line in filter(str.strip, lines):
        if "computation" in json.loads(line):
            computations.append(Computation.parse(line))
        else:
            studies.append(Study.parse(line))
    return studies, computations


if __name__ == "__main__":
    sys.exit(main())
