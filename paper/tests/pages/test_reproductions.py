"""What can be made, is made: a report, a page and answers for each kind."""

import json

import pytest

from transun_paper.pages.reproductions import REPRODUCTIONS, Desk, Leaderboard, put_down


def test_every_one_says_what_it_is():
    assert all(len(made.title) > 10 for made in REPRODUCTIONS.values())


@pytest.mark.parametrize("name", ["bins", "fig_densities"])
def test_report_page_and_answers(name, tmp_path):
    desk = Desk(tmp_path, quick=True, jobs=1, progress=False)
    desk.__dict__["keys"] = {}  # needs no data set
    report = put_down(name, REPRODUCTIONS[name], desk)
    assert json.loads((tmp_path / f"{name}.json").read_text())["command"] == f"transun-paper reproduce {name} --quick"
    assert (tmp_path / f"{name}.md").read_text().startswith("# ")
    for text, holds, evidence in REPRODUCTIONS[name].answers(report):
        assert text
        assert holds.strip("*") in ("yes", "no", "within noise", "unknown")
        assert evidence


def test_an_unknown_row_of_the_leaderboard_is_named(tmp_path):
    with pytest.raises(ValueError, match="no method 'LogSun'"):
        put_down("rows", Leaderboard(("LogSun",)), Desk(tmp_path, quick=True))
