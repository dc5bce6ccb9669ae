"""`transun abtest`."""

from pathlib import Path
from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import By, Data, Json
from transun.cli.output import deliver
from transun.cli.sources import data_name, readable, require_writable


@app.command()
def abtest(
    log: Data,
    user: Annotated[str, typer.Option("--user", help="Column of the users, who were assigned to arms.")],
    value: Annotated[str, typer.Option("--value", help="Column of the amounts; they are summed by user.")],
    arm: Annotated[str | None, typer.Option("--arm", help="Column of the arms.")] = None,
    control: Annotated[
        str | None, typer.Option("--control", help="Arm to compare with; by default the first by name.")
    ] = None,
    per: Annotated[
        str | None, typer.Option("--per", help="Column of counts, such as impressions, for value per count as well.")
    ] = None,
    before: Annotated[
        str | None, typer.Option("--before", help="Column of the user's value before the test, to narrow intervals.")
    ] = None,
    predicted: Annotated[
        str | None,
        typer.Option("--predicted", help="Column of the user's value as a model predicted it before the test."),
    ] = None,
    by: By = None,
    id: Annotated[
        str | None, typer.Option("--id", help="Column that names a row, such as an order number; must not repeat.")
    ] = None,
    shares: Annotated[
        list[str] | None,
        typer.Option(
            "--share",
            metavar="ARM=SHARE",
            help="Share of users planned for an arm, such as new=0.15; give all arms, or none for equal shares.",
        ),
    ] = None,
    plan: Annotated[
        float | None,
        typer.Option(
            "--plan", metavar="CHANGE", help="Plan a test instead: users that find this change, such as 0.01."
        ),
    ] = None,
    power: Annotated[float, typer.Option("--power", help="Probability to find the planned change.")] = 0.8,
    level: Annotated[float, typer.Option("--level", help="Level of the intervals.")] = 0.95,
    horizon: Annotated[
        int,
        typer.Option(
            "--horizon", min=1, help="Users at which the always-valid interval is narrowest; fixed before the test."
        ),
    ] = 10_000,
    out: Annotated[Path, typer.Option("--out", help="Folder for abtest.html, .md and .json.", file_okay=False)] = Path(
        "abtest"
    ),
    as_json: Json = False,
) -> None:
    """Find out from the log of an A/B test whether an arm changed the value per user, and by how much.

    The effect on values as they are comes first, that on capped ones beside it; --before and --predicted narrow the
    intervals. A log that cannot tell is refused: a user in two arms, missing values, shares of users that chance does
    not explain. With --plan the log is one of the past without arms, and the result is how many users a test needs.

    Exit codes: 0 done, 2 a mistake in the call or the data.

    Example: transun abtest visits.csv --user user --arm arm --value gmv --per impressions --before gmv_before
    """
    from transun.experiments import LogColumns, plan_abtest
    from transun.experiments import abtest as analyse
    from transun.report.experiment import abtest_document, plan_document
    from transun.report.formatting import as_json as to_json
    from transun.support.extras import require

    require("tea_tasting")
    if arm is None and plan is None:
        raise ValueError("name the column of the arms with --arm, or plan a test with --plan")
    require_writable(out)
    columns = LogColumns(user, value, arm, per, before, predicted, tuple(by or ()), id)
    planned, name = _shares(shares), data_name(log)
    with readable(log) as source:
        if plan is None:
            test = analyse(source, columns, control=control, shares=planned, level=level, horizon=horizon, name=name)
            document, values = abtest_document(test), to_json(test)
        else:
            plans = plan_abtest(source, columns, plan, power=power, level=level)
            settings = {"effect": plan, "power": power, "level": level}
            document, values = plan_document(plans, **settings, name=name), to_json(settings | {"plans": plans})
    deliver(document, values, out, "abtest", as_json=as_json)


def _shares(texts: list[str] | None) -> dict[str, float] | None:
    """The shares of `--share ARM=SHARE`, which is given once for each arm."""
    shares: dict[str, float] = {}
    for text in texts or ():
        arm, _, share = text.rpartition("=")
        try:
            shares[arm] = float(share)
        except ValueError:
            raise ValueError(f"--share is ARM=SHARE, such as new=0.15; got {text!r}") from None
    return shares or None
