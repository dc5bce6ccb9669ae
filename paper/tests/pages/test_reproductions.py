"""Everything that can be reproduced has a report, a page and answers."""

import json
import shutil
from pathlib import Path

import pytest

from transun.support.files import new_draft
from transun_paper.lab.worker import read_work
from transun_paper.pages.reproductions import (
    REPRODUCTIONS,
    Leaderboard,
    Workspace,
    core_minutes,
    gather_work,
    read_costs,
    write_costs,
    write_page,
    write_plan,
    write_report,
)

REPORTS = Path(__file__).parents[2] / "reports"


def test_each_has_a_title():
    assert all(len(reproduction.title) > 10 for reproduction in REPRODUCTIONS.values())


@pytest.mark.parametrize("name", ["bins", "fig_densities"])
def test_report_page_and_answers_need_no_data(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path / "nowhere"))
    report = write_report(name, REPRODUCTIONS[name], Workspace(tmp_path, quick=True, jobs=1, progress=False))
    assert json.loads((tmp_path / f"{name}.json").read_text())["command"] == f"transun-paper reproduce {name} --quick"
    assert (tmp_path / f"{name}.md").read_text().startswith("# ")
    for answer in REPRODUCTIONS[name].answers(report):
        assert answer.claim
        assert answer.holds.strip("*") in ("yes", "no", "undecided", "unknown")
        assert answer.evidence


def test_simulated_orders_need_no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path / "nowhere"))
    work = REPRODUCTIONS["industrial"].work(Workspace(tmp_path, quick=True))
    assert len(work.computations) == 22  # ten methods, two seeds, and two references
    path, count = write_plan([REPRODUCTIONS["industrial"]], Workspace(tmp_path, quick=True))
    assert count == 22
    assert read_work(path.read_text().splitlines()) == ([], list(work.computations))


def test_shared_work_is_planned_once(tmp_path):
    keys = {"lastfm": "lastfm-00000000"}

    class Encoded(Workspace):
        def keys(self, names):
            return keys

    both = [REPRODUCTIONS["comparison"], REPRODUCTIONS["ranking"]]
    work = gather_work(both, Encoded(tmp_path, quick=True))
    # The methods of the ranking are among those of the comparison; both have a witness and two constants.
    assert len(work.lines) == 16 + 1 + 2
    assert len(work.studies) == 16 + 1 + 14 + 1


def test_costs_are_by_page_and_together(tmp_path):
    workspace = Workspace(tmp_path)
    for text, seconds in {"a": 60.0, "b": 120.0, "c": 240.0}.items():
        workspace.store.keep(text, None, seconds)
    workspace.store.keep("d", None)
    write_costs({"bins": {"a", "b"}, "online": {"b", "c"}, "levels": {"d"}, "industrial": {"a"}}, workspace)
    costs = read_costs(tmp_path)
    assert costs["together"]["names"] == ["bins", "levels", "online"]
    assert costs["together"]["seconds"] == pytest.approx(420.0)  # b is shared
    assert (costs["together"]["results"], costs["together"]["timed"]) == (4, 3)
    assert costs["gpu"]["industrial"]["seconds"] == pytest.approx(60.0)  # minutes of a GPU are not those of a core
    assert [core_minutes(costs, name) for name in ("bins", "online", "levels", "synthetic")] == ["3", "6", "", ""]
    write_costs({"bins": {"a", "d"}}, workspace)
    costs = read_costs(tmp_path)
    assert core_minutes(costs, "bins") == "at least 1"
    assert len(costs["together"]["names"]) == 3  # that of more pages stays


def test_an_unknown_row_of_the_leaderboard_is_named(tmp_path):
    with pytest.raises(ValueError, match="no method 'LogSun'"):
        write_report("rows", Leaderboard(("LogSun",)), Workspace(tmp_path, quick=True))


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_the_committed_page_is_that_of_the_report_beside_it(name, tmp_path):
    if not (REPORTS / f"{name}.json").is_file():
        pytest.skip(f"{REPORTS} has no report {name}: the package is tested without its repository")
    shutil.copy(REPORTS / f"{name}.json", tmp_path)
    write_page(name, REPRODUCTIONS[name], tmp_path)
    assert (tmp_path / f"{name}.md").read_text() == (REPORTS / f"{name}.md").read_text()


def test_what_a_killed_command_was_writing_is_removed(tmp_path):
    for folder in (tmp_path, tmp_path / "runs" / "data"):
        folder.mkdir(parents=True, exist_ok=True)
        new_draft(folder).touch()
    Workspace(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
