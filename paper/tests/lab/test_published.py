"""The paper's printed numbers, checked against what else it prints."""

import pytest

from transun_paper.lab.published import _paper, printed, published

FIVE = ("TRE", "MRE", "NRMSE", "NMAE", "XAUC")
# Gains in per cent as the paper prints them beside its values.
EXTENSION = {
    "WLR": (-88.72, -78.36, -33.20, -22.42, -0.07),
    "ZILN": (-94.31, -95.04, -12.81, -7.53, 0.01),
    "MDME": (-81.38, -73.98, -33.60, -30.85, 0.19),
    "OptDist": (-93.88, -94.96, -10.84, -4.66, -0.09),
}
DEBIASING = {
    "ln(y+1)": (-96.2, -94.9, -72.3, -49.4),
    "sqrt(y)": (-72.0, -77.2, -79.3, -80.7),
    "arctan(y)": (-90.3, -88.5, -77.6, -81.6),
}


@pytest.mark.parametrize("host", EXTENSION)
def test_the_gains_of_the_extension_follow_from_both_tables(host):
    for metric, gain in zip(FIVE, EXTENSION[host], strict=True):
        column = f"CIKM16 {metric}"
        after = published("apply_to_sota", "GTS", host, column)
        before = published("comp_sota_pub", host, "-", column)
        assert 100 * (after / before - 1) == pytest.approx(gain, abs=0.011), (host, metric)


@pytest.mark.parametrize("transform", DEBIASING)
def test_the_gains_of_debiasing_follow_from_its_table(transform):
    columns = printed("solve_rb_rw")["columns"]
    for column, gain in zip(columns, DEBIASING[transform], strict=True):
        after, before = (published("solve_rb_rw", method, transform, column) for method in ("TranSUN", "T-MSE"))
        assert 100 * (after / before - 1) == pytest.approx(gain, abs=0.051), column


def test_the_row_of_logsun_is_the_same_wherever_the_paper_repeats_it():
    own = [published("comp_sota_pub", "LogSUN", "-", f"CIKM16 {metric}") for metric in FIVE]
    for table, method, label in (
        ("compare_bias_model", "LogSUN", "S2"),
        ("arch_sens", "LogSUN", "0/1 embedding, 0/3 MLP"),
        ("lcltm_compare_rw", "MSE", "1/(|T⁻¹(u)|+ε)"),
    ):
        assert [published(table, method, label, f"CIKM16 {metric}") for metric in FIVE] == own
    assert [published("comp_bcm", "LogSUN", "-", f"CIKM16 {metric}") for metric in FIVE[:4]] == own[:4]


def test_every_row_of_every_table_has_a_value_or_none_for_every_column():
    for name, table in _paper().items():
        for row in table["rows"]:
            assert len(row["values"]) == len(table["columns"]), (name, row["method"])
