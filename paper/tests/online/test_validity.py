"""Counts of simulated tests: their shares, and the judgement of promises."""

from pathlib import Path

import pytest

from transun_paper.lab.store import Store
from transun_paper.online.validity import TestSizes, validity_claims, validity_computations, validity_table
from transun_paper.pages.online import validity_page

pytest.importorskip("tea_tasting")


def stored(folder, significant, covered, found, always):
    """Eight tests a world, in which so many are significant and so on."""
    store = Store(folder)
    for works in validity_computations(TestSizes(8, 100)).values():
        for work in works:
            counts = {"significant": significant, "covered": covered}
            result = {
                "outcomes": {"GMV": counts, "GMVPI": counts},
                "looks": {"one look": 2, "always valid": always},
                "found": found,
                "detectable": 0.1,
                "tests": 8,
            }
            store.keep(work.text, result)
    return store


def test_shares_are_counts_over_tests(tmp_path):
    entries = validity_table(stored(tmp_path, 2, 6, 4, 1), TestSizes(8, 100))
    assert entries[0]["outcomes"]["GMV"] == {"significant": 0.25, "covered": 0.75}
    assert entries[0]["found"] == 0.5
    assert entries[0]["looks"] == {"one look": 1.0, "always valid": 0.5}  # every fourth of eight tests is looked at


def test_promises_are_judged(tmp_path):
    bad = validity_claims(validity_table(stored(tmp_path / "bad", 8, 0, 0, 2), TestSizes(8, 100)))
    assert not any(claim["holds"] for claim in bad)
    page = validity_page({"entries": [], "claims": bad, "tests": 8, "users": 100, "command": "x"})
    assert page.startswith("# Do A/B tests keep their word")
    assert f"0 of {len(bad)} promises hold" in page


def test_a_chunk_counts_its_tests():
    (work,) = validity_computations(TestSizes(4, 200))["lognormal"]
    result = work.compute(Path())
    assert result["tests"] == 4
    assert all(0 <= count <= 4 for counts in result["outcomes"].values() for count in counts.values())
    assert 0 <= result["looks"]["always valid"] <= result["looks"]["one look"] <= 1


def test_worlds_that_are_not_done_are_left_out(tmp_path):
    assert validity_table(Store(tmp_path), TestSizes()) == []
