"""The command line of the paper: `transun-paper reproduce`, `transun-paper leaderboard` and `transun-paper pages`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.main import run
from transun.cli.options import Json, Out, Progress
from transun.cli.output import print_table
from transun.cli.sources import new_folder

if TYPE_CHECKING:
    from transun_paper.pages.reproductions import Reproduction, Workspace

__all__ = ["app", "main"]

REPORTS = Path("paper", "reports")
_LIBRARIES = ("sklearn", "lightgbm", "polars", "altair", "vl_convert")

app = typer.Typer(
    name="transun-paper",
    help="The tables and figures of the TranSUN paper, and the leaderboards that transun is measured on.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def main() -> None:
    """Run the command line of the paper; the exit codes are those of `transun`."""
    run(app)


Quick = Annotated[bool, typer.Option("--quick", help="Few rows, seeds and draws: to see that everything works.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes of one thread each.")]
UserData = Annotated[
    list[str],
    typer.Option("--user-data", metavar="NAME=FOLDER", help="A data set you have: cikm16=FOLDER or dtmart=FOLDER."),
]
Plan = Annotated[
    bool,
    typer.Option("--plan", help="Write the runs to OUT/runs/work.jsonl for another machine instead of doing them."),
]


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="What to make, or `all`. Without it: a list.")] = None,
    out: Out = REPORTS,
    quick: Quick = False,
    jobs: Jobs = 2,
    user_data: UserData = [],  # noqa: B006 - typer copies it
    plan: Plan = False,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Make the tables and figures of the TranSUN paper again, our numbers beside the paper's, and our own tables.

    Finished runs are kept in OUT/runs: an interrupted command continues where it stopped, and tables share runs. The
    public data sets are looked for in the folder that the variable TRANSUN_DATA names, else in `data`. `all --quick`
    takes some minutes on two cores, `all` some hours; it leaves out `ahead`, which takes another hour. Without a name,
    the list says what each took: minutes of one core, from OUT/costs.json.

    Example: transun-paper reproduce synthetic --quick --out reports
    """
    _require_libraries()
    from transun_paper.pages.reproductions import (
        ALL,
        REPRODUCTIONS,
        Workspace,
        core_minutes,
        gather_work,
        read_costs,
        write_costs,
        write_report,
    )

    if not names:
        costs = read_costs(out)
        rows = [[name, listed.title, core_minutes(costs, name)] for name, listed in REPRODUCTIONS.items()]
        print_table(["name", "what", "core minutes"], rows)
        return
    chosen = list(ALL) if names == ["all"] else names
    for name in chosen:
        _require_known(name, list(REPRODUCTIONS))
    workspace = Workspace(out, quick, jobs, progress, dict(_folder(option) for option in user_data))
    obstacles = {name: REPRODUCTIONS[name].obstacle(workspace) for name in chosen}
    for name, obstacle in obstacles.items():
        if obstacle is not None and names != ["all"]:
            raise ValueError(f"{name} cannot be made here: {obstacle}")
        if obstacle is not None:
            typer.echo(f"{name} is left as it is: {obstacle}", err=True)
    reproductions = {name: REPRODUCTIONS[name] for name in chosen if obstacles[name] is None}
    if plan:
        _write_plan(list(reproductions.values()), workspace)
        return
    new_folder(out)
    # All the work first: what the reproductions share is then done once, and long runs begin first.
    workspace.carry_out(gather_work(reproductions.values(), workspace))
    reports, used = {}, {}
    for name, reproduction in reproductions.items():
        workspace.store.used.clear()
        reports[name] = write_report(name, reproduction, workspace)
        used[name] = set(workspace.store.used)
        answers = reproduction.answers(reports[name])
        if answers and not as_json:
            rows = [[answer.claim, answer.holds.strip("*"), answer.evidence] for answer in answers]
            print_table(["claim", "holds", "evidence"], rows)
        if not as_json:
            typer.echo(f"Written to {out}/: {name}.md, {name}.json")
    if not quick:
        write_costs(used, workspace)
    if as_json:
        typer.echo(json.dumps(reports[chosen[0]] if len(chosen) == 1 else reports))


@app.command()
def leaderboard(
    only: Annotated[list[str], typer.Option("--only", help="This method; may be repeated.")] = [],  # noqa: B006
    data: Annotated[list[str], typer.Option("--data", help="This data set; may be repeated.")] = [],  # noqa: B006
    out: Out = REPORTS,
    quick: Quick = False,
    jobs: Jobs = 2,
    plan: Plan = False,
    as_json: Json = False,
) -> None:
    """Rank methods on public data by one protocol: fixed splits, five seeds, the best marked by a test.

    `transun-paper reproduce leaderboard` makes the whole leaderboard; this makes a page of one row, or of some.

    Example: transun-paper leaderboard --only LogSUN --only MSE --data online_retail --quick --out rows
    """
    _require_libraries()
    from transun_paper.pages.leaderboard import names, wins_table
    from transun_paper.pages.reproductions import Leaderboard, Workspace, write_report

    name = "leaderboard" if not (only or data) else "rows"
    reproduction, workspace = Leaderboard(tuple(only), tuple(data)), Workspace(out, quick, jobs)
    if plan:
        _write_plan([reproduction], workspace)
        return
    new_folder(out)
    report = write_report(name, reproduction, workspace)
    if as_json:
        typer.echo(json.dumps(report))
        return
    typer.echo(wins_table(report))
    typer.echo(f"{len(names(report))} methods; written to {out}/: {name}.md, {name}.json")


@app.command()
def board(
    methods: Annotated[list[str], typer.Option(help="This method, * for anything; may be repeated.")] = [],  # noqa: B006
    tables: Annotated[
        list[str], typer.Option(help="This table or group (numbers, ids, unseen, large), * for anything; repeatable.")
    ] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of every method with randomness.")] = 5,
    rows: Annotated[int | None, typer.Option(min=1, help="About so many rows of each table; all by default.")] = None,
    jobs: Jobs = 2,
    again: Annotated[bool, typer.Option("--again", help="Forget the results of these methods, tables, seeds.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List methods and tables, and stop.")] = False,
    out: Out = REPORTS,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Measure methods on the board of tables; the page shows every result so far, not only those of this command.

    Finished results are kept in OUT/runs: an interrupted command continues where it stopped. All of them are also in
    OUT/board/results.jsonl, which fills OUT/runs on another machine. A result stays when transun changes, unless its
    method has a new version; `--again` computes it anew. With one job on a free machine the seconds are those of one
    core.
    The report is OUT/board/tables.json, with --rows 2000 OUT/board/tables-2000.json, its page beside it.

    Example: transun-paper board --methods default --methods 'lightgbm_*' --tables numbers --seeds 1
    """
    _require_libraries()
    from transun.support.files import write_json
    from transun_paper.board.methods import METHODS
    from transun_paper.board.record import fill_store, recorded_files, write_record
    from transun_paper.board.run import Board
    from transun_paper.board.summary import board_report
    from transun_paper.board.tables import BOARD_TABLES
    from transun_paper.lab.progress import silent, to_stderr
    from transun_paper.lab.store import Store
    from transun_paper.pages.board import FOLDER, write_board_pages

    chosen = Board.matching(methods, tables, seeds, rows)
    if listing:
        skipped = chosen.skipped()
        texts = {name: METHODS[name].settings for name in chosen.methods}
        texts |= {name: repr(BOARD_TABLES[name]) for name in chosen.tables}
        print_table(["name", "what", "skipped because"], [[name, texts[name], skipped.get(name, "")] for name in texts])
        return
    store, record = Store(out / "runs"), out / FOLDER / "results.jsonl"
    fill_store(record, store)
    if again:
        typer.echo(f"{chosen.forget(store)} results forgotten", err=True)
    for name, reason in chosen.skipped().items():
        typer.echo(f"{name} is left out: {reason}", err=True)
    chosen.run(store, jobs, silent if progress is False else to_stderr)
    everything = Board(tuple(METHODS), tuple(BOARD_TABLES), max(seeds, 5), rows, recorded_files(record))
    store.used.clear()  # of what has been run; the report asks for all that is current
    report = board_report(everything, store, "transun-paper board" + (f" --rows {rows}" if rows else ""))
    write_record(record, store, rows)
    write_json(out / FOLDER / f"tables{f'-{rows}' if rows else ''}.json", report)
    pages_written = write_board_pages(out)
    if as_json:
        typer.echo(json.dumps(report))
        return
    if report["claims"]:
        print_table(
            ["claim", "holds", "evidence"],
            [[claim["text"], "yes" if claim["holds"] else "no", claim["evidence"]] for claim in report["claims"]],
        )
    typer.echo(f"{len(report['entries'])} results; written to {', '.join(map(str, pages_written))}")


@app.command()
def pages(out: Out = REPORTS) -> None:
    """Write every page and picture again from the report beside it; nothing is trained.

    Example: transun-paper pages --out paper/reports
    """
    _require_libraries()
    from transun_paper.pages.board import write_board_pages
    from transun_paper.pages.reproductions import REPRODUCTIONS, write_page

    reported = [name for name in REPRODUCTIONS if (out / f"{name}.json").is_file()]
    for name in reported:
        write_page(name, REPRODUCTIONS[name], out)
    count = len(reported) + len(write_board_pages(out))
    if not count:
        raise ValueError(f"{out} has no report of `transun-paper reproduce` or `transun-paper board`")
    typer.echo(f"{count} pages written to {out}/")


def _write_plan(reproductions: "list[Reproduction]", workspace: "Workspace") -> None:
    from transun_paper.pages.reproductions import write_plan

    path, count = write_plan(reproductions, workspace)
    runs, cache = path.parent, workspace.cache
    typer.echo(f"{count} studies and computations in {path}; the data they need is in {cache}. Next:")
    typer.echo(f"python -m transun_paper.lab.worker {path} --cache {cache} --store {runs} --jobs N")


def _require_libraries() -> None:
    """Raise a `ModuleNotFoundError` before any work if a library is missing that a later page needs."""
    from transun.support.extras import require

    for library in _LIBRARIES:
        try:
            require(library)
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"transun-paper needs {library}: `pip install ./paper` in a clone of transun installs all that it needs"
            ) from None


def _require_known(name: str, known: list[str]) -> None:
    from transun.support.suggest import did_you_mean

    if name not in known:
        hint = f"{did_you_mean(name, known)} There are all, {', '.join(known)}".lstrip()
        raise ValueError(f"there is nothing called {name!r} to reproduce: {hint}")


def _folder(option: str) -> tuple[str, Path]:
    name, _, folder = option.partition("=")
    if name not in ("cikm16", "dtmart") or not folder:
        raise ValueError(f"--user-data is cikm16=FOLDER or dtmart=FOLDER, got {option!r}")
    return name, Path(folder)
