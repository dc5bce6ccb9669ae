import pytest

from transun.heads import LogMSE, LogSUN
from transun_paper.lab.published import published
from transun_paper.tables.efficiency import SHARING, costs, drawn, efficiency_claims, forward, memory, paper_network

TABLE = 5_000_000 * 16
# 32 inputs (words and items), 128, 64, 32, 1: weights and biases of the paper's dense layers.
LAYERS = ((32, 128), (128, 64), (64, 32), (32, 1))
DENSE = sum(a * b + b for a, b in LAYERS)


@pytest.mark.parametrize("label", SHARING)
def test_memory_is_the_papers_to_the_last_digit(label):
    found = memory(paper_network(LogSUN(shared=SHARING[label])))
    assert f"{found:.2f}" == f"{published('efficiency', 'LogSUN', label, 'Mem (MB)'):.2f}"


def test_memory_is_the_table_and_the_dense_layers():
    assert memory(paper_network(LogMSE())) == pytest.approx(4 * (TABLE + DENSE) / 2**20, rel=1e-12)


def test_nothing_is_allocated():
    assert all(parameter.is_meta for parameter in paper_network(LogSUN()).parameters())


def test_operations_of_the_first_branch_by_hand():
    dense = sum(2 * a * b for a, b in LAYERS) + 3 * (128 + 64 + 32) + 1
    # Two bags of ten vectors of 16: mask 160, sum 144, sum of the mask 9, quotient 16.
    pooled = 2 * (160 + 144 + 9 + 16)
    assert forward(paper_network(LogMSE())) == pytest.approx(512 * (dense + pooled) / 1e6, rel=1e-12)
    assert drawn(paper_network(LogMSE())) == pytest.approx(2 * (TABLE + sum(a * b for a, b in LAYERS)) / 1e6, rel=1e-12)


@pytest.mark.parametrize("column", ["MFLOPS", "MFLOPS OH (%)", "Mem (MB) OH (%)"])
def test_the_other_columns_are_the_papers_within_a_hundredth(column):
    printed_as = {"Mem (MB) OH (%)": "Mem OH (%)"}.get(column, column)
    for row in costs()[1:]:
        paper = published("efficiency", "LogSUN", row["label"], printed_as)
        assert row[column] == pytest.approx(paper, abs=0.015), row["label"]


def test_the_claims_say_what_the_numbers_say():
    assert [claim["holds"] for claim in efficiency_claims()] == ["yes", "yes", "no"]
