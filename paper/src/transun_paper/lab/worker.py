"""Carries out a list: `python -m transun_paper.lab.worker --cache DIR --store DIR --jobs 16 LIST.jsonl`.

A line is a study, a run, or a job of the paper's tables.

Needs torch and numpy alone, hence any machine will do: copy the package, the cache of frozen data and the list there,
and the store's folder back.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from transun_paper.lab.pool import carry_out
from transun_paper.lab.protocol import read_studies
from transun_paper.lab.store import Store
from transun_paper.tables.jobs import Job, carry_out_jobs


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the list says; finished runs are found in the store and not repeated."""
    parser = argparse.ArgumentParser(prog="python -m transun_paper.lab.worker", description=__doc__)
    parser.add_argument("list", type=Path, help="lines of JSON, a study, a run or a job each, as a plan wrote them")
    parser.add_argument("--cache", type=Path, required=True, help="folder of frozen data")
    parser.add_argument("--store", type=Path, required=True, help="folder of reports, one file a run")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    given = parser.parse_args(arguments)
    lines = [line for line in given.list.read_text(encoding="utf-8").splitlines() if line.strip()]
    kinds: dict[bool, list[str]] = {True: [], False: []}
    for line in lines:
        kinds["job" in json.loads(line)].append(line)
    jobs, studies = kinds[True], read_studies(kinds[False])
    try:
        carry_out(studies, Store(given.store), given.cache, given.jobs)
        carry_out_jobs(map(Job.parse, jobs), Store(given.store), given.cache, given.jobs)
    except KeyboardInterrupt:
        print("interrupted; finished runs are kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
