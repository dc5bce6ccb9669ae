"""The command line of the paper: `transun-paper reproduce` and `transun-paper leaderboard`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from transun.cli.main import run
from transun.cli.options import Json, Out, Progress
from transun.cli.output import print_table

__all__ = ["app", "main"]

REPORTS = Path("paper", "reports")

app = typer.Typer(
    name="transun-paper",
    help="The tables and figures of the TranSUN paper, and the boards that transun is measured on.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def main() -> None:
    """Run the command line of the paper; exit codes as of `transun`."""
    run(app)


Quick = Annotated[bool, typer.Option("--quick", help="Few rows, seeds and draws: to see that everything works.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes of one thread each.")]
Own = Annotated[
    list[str],
    typer.Option("--own", metavar="NAME=FOLDER", help="A data set you have: cikm16=FOLDER or dtmart=FOLDER."),
]


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="What to make, or `all`. Without it: a list.")] = None,
    out: Out = REPORTS,
    quick: Quick = False,
    jobs: Jobs = 2,
    own: Own = [],  # noqa: B006 - typer copies it
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Regenerate the tables and figures of the TranSUN paper, our numbers beside its own, and our own tables.

    Finished runs are kept in OUT/runs: what was interrupted goes on where it stopped, and tables share runs. The
    public data sets are looked for in the folder that the variable TRANSUN_DATA names, else in `data`. `all --quick`
    takes some minutes on two cores, `all` some hours; it leaves out `ahead`, which takes an hour of its own.

    Example: transun-paper reproduce synthetic --quick --out reports
    """
    from transun_paper.pages.reproductions import ALL, REPRODUCTIONS, Desk, prepare, put_down

    if not names:
        print_table(["name", "what"], [[name, made.title] for name, made in REPRODUCTIONS.items()])
        return
    chosen = list(ALL) if names == ["all"] else names
    for name in chosen:
        _require_known(name, list(REPRODUCTIONS))
    desk = Desk(out, quick, jobs, progress, dict(_folder(given) for given in own))
    if len(chosen) > 1:
        prepare(chosen, desk)
    reports = {}
    for name in chosen:
        reports[name] = put_down(name, REPRODUCTIONS[name], desk)
        answers = REPRODUCTIONS[name].answers(reports[name])
        if answers and not as_json:
            print_table(["claim", "holds", "evidence"], [[text, holds.strip("*"), why] for text, holds, why in answers])
        if not as_json:
            typer.echo(f"Written to {out}/: {name}.md, {name}.json")
    if as_json:
        typer.echo(json.dumps(reports[chosen[0]] if len(chosen) == 1 else reports))


@app.command()
def leaderboard(
    only: Annotated[list[str], typer.Option("--only", help="This method; may be repeated.")] = [],  # noqa: B006
    data: Annotated[list[str], typer.Option("--data", help="This data set; may be repeated.")] = [],  # noqa: B006
    out: Out = REPORTS,
    quick: Quick = False,
    jobs: Jobs = 2,
    as_json: Json = False,
) -> None:
    """Rank methods on public data by one protocol: frozen splits, five seeds, the best marked by a test.

    The whole of it is `transun-paper reproduce leaderboard`; this makes one row, or some, into a page of their own.

    Example: transun-paper leaderboard --only LogSUN --only MSE --data online_retail --quick --out rows
    """
    from transun_paper.pages.leaderboard import names, wins_table
    from transun_paper.pages.reproductions import Desk, Leaderboard, put_down

    name = "leaderboard" if not (only or data) else "rows"
    report = put_down(name, Leaderboard(tuple(only), tuple(data)), Desk(out, quick, jobs))
    if as_json:
        typer.echo(json.dumps(report))
        return
    typer.echo(wins_table(report))
    typer.echo(f"{len(names(report))} methods; written to {out}/: {name}.md, {name}.json")


def _require_known(name: str, known: list[str]) -> None:
    from transun.support.suggest import did_you_mean

    if name not in known:
        hint = f"{did_you_mean(name, known)} There are all, {', '.join(known)}".lstrip()
        raise ValueError(f"there is nothing called {name!r} to reproduce: {hint}")


def _folder(given: str) -> tuple[str, Path]:
    name, _, folder = given.partition("=")
    if name not in ("cikm16", "dtmart") or not folder:
        raise ValueError(f"--own is cikm16=FOLDER or dtmart=FOLDER, got {given!r}")
    return name, Path(folder)
