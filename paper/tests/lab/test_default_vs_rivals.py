import pytest

from transun.models.spec import dumps, loads
from transun_paper.lab.boards import FULL_BOARD, QUICK_BOARD
from transun_paper.lab.default_vs_rivals import (
    DEFAULT,
    PIECES,
    ablation_board,
    convergence_studies,
    convergence_table,
    dataset_verdict,
    default_claims,
    small_board,
)
from transun_paper.lab.store import Store


def report(nrmse, stre=0.0, xauc=0.7):
    """One seed's: blocks of test rows that differ little, so that noise is known and small."""
    metrics = {"NRMSE": nrmse, "STRE": stre, "XAUC": xauc}
    left_out = {name: [value + 1e-4 * (block % 2) for block in range(20)] for name, value in metrics.items()}
    return {"metrics": metrics, "left_out": left_out}


def seeds(nrmse, stre=0.0, xauc=0.7):
    return [report(nrmse + step, stre + step, xauc) for step in (-1e-3, 0.0, 1e-3)]


FOUND = {
    "AutoSUN": seeds(1.0, 0.001, 0.72),
    "MSE": seeds(1.1, 0.002, 0.70),
    "ZILN": seeds(0.9, -0.3, 0.80),
    "LogMSE": seeds(2.0, -0.9, 0.73),
}


def test_the_best_rival_is_the_one_of_least_error():
    found = dataset_verdict("here", FOUND)
    assert (found["best"], found["gap"]["value"]) == ("ZILN", pytest.approx(0.1))
    assert found["right"]
    assert found["log_order"]["value"] == pytest.approx(-0.01)


def test_order_is_compared_with_rivals_whose_totals_are_right():
    """ZILN ranks best and is 30 % too low; MSE is right."""
    found = dataset_verdict("here", FOUND)
    assert (found["ranked"], found["order"]["value"]) == ("MSE", pytest.approx(0.02))
    nobody = dataset_verdict("here", {name: reports for name, reports in FOUND.items() if name != "MSE"})
    assert nobody["ranked"] is None


def test_claims_say_where_they_fail():
    good, bad = dataset_verdict("good", FOUND | {"ZILN": seeds(1.2)}), dataset_verdict("bad", FOUND)
    found = {claim.text.split(",")[0]: claim for claim in default_claims([good, bad])}
    assert found["totals are right"].holds
    error = found["NRMSE is not above the best rival's by more than one standard error"]
    assert (error.holds, error.evidence) == (False, "on 1 of 2, not on bad")
    assert not found["XAUC is within 0.005 of that of LogMSE"].holds


def test_pieces_are_written_as_text_and_differ_from_the_whole():
    whole = ablation_board(quick=False).methods[0]
    assert whole.name == DEFAULT
    texts = [(dumps(piece.head), piece.balanced) for piece in PIECES]
    assert len({*texts, (dumps(whole.head), whole.balanced)}) == len(PIECES) + 1
    assert all(dumps(loads(text)) == text for text, _ in texts)


def test_small_boards_have_small_data():
    board = small_board(FULL_BOARD)
    assert set(board.rows.values()) == {2_000}
    assert [method.name for method in board.methods] == [DEFAULT, "MSE"]


def test_convergence_counts_the_steps_of_looks(tmp_path):
    keys = dict.fromkeys(QUICK_BOARD.datasets, "tiny-0")
    studies = convergence_studies(QUICK_BOARD, keys)
    store = Store(tmp_path)
    place = next(iter(studies))
    for run in studies[place].finals(store):
        store.keep(run.text, {"looks": [[5, 2.0], [10, 1.01], [15, 1.0]], "steps": 15})
    (row,) = convergence_table({place: studies[place]}, store)
    assert (row["steps"], row["all"], row["method"]) == (10, 15, "AutoSUN")
