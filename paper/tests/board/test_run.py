from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from transun.metrics import NRMSE
from transun_paper.board.method import NOTHING, BoardMethod, FitResult
from transun_paper.board.methods import METHODS, RIVALS
from transun_paper.board.run import Board, run_of
from transun_paper.lab.progress import silent
from transun_paper.lab.store import Store

CALLS = []


@dataclass(frozen=True)
class Factor(BoardMethod):
    """Predicts a factor times the mean, after `after` where that is named."""

    factor: float = 1.0
    after: str | None = None

    def fit_predict(self, data, seed, given=NOTHING):
        CALLS.append((self.name, seed))
        if self.factor < 0.0:
            raise ValueError("no such factor")
        mean = self.factor * data.y_train.mean()
        return FitResult(np.full(len(data.valid), mean), np.full(len(data.test), mean), 2.5, dict(given))

    def needs(self, seed):
        return None if self.after is None else (self.after, seed)

    def taken_from(self, result):
        return {"limit": result["seconds"]}


class Steady(Factor):
    deterministic: ClassVar[bool] = True


class Absent(Factor):
    libraries: ClassVar[tuple[str, ...]] = ("a_library_nobody_has",)


@pytest.fixture
def board(registered, monkeypatch):
    CALLS.clear()
    methods = [Factor("one"), Steady("steady"), Factor("follower", after="one"), Absent("absent"), Factor("bad", -1.0)]
    for method in methods:
        monkeypatch.setitem(METHODS, method.name, method)
    return Board(tuple(method.name for method in methods), ("made_up",), seeds=3)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


class Killed(Store):
    """Stops everything when it has kept so many results."""

    def keep(self, text, result, seconds=None):
        super().keep(text, result, seconds)
        if len(list(self.folder.glob("*.json"))) >= 4:
            raise KeyboardInterrupt


def test_killed_and_continued_nothing_is_repeated(board, store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("transun_paper.lab.pool.Store", Killed)
        with pytest.raises(KeyboardInterrupt):
            board.run(store, jobs=1, write=silent)
    assert len(CALLS) == 4
    board.run(store, jobs=1, write=silent)
    assert len(CALLS) == len(set(CALLS)) == 3 + 3 + 3 + 1


def test_every_seed_once_and_a_deterministic_method_once(board, store):
    board.run(store, jobs=1, write=silent)
    expected = {(name, seed) for name in ("one", "follower", "bad") for seed in range(3)} | {("steady", 0)}
    assert sorted(CALLS) == sorted(expected)
    board.run(store, jobs=1, write=silent)
    assert len(CALLS) == len(expected)


def test_a_run_waits_for_the_result_that_it_needs(board, store):
    board.run(store, jobs=1, write=silent)
    assert CALLS.index(("one", 2)) < CALLS.index(("follower", 2))
    assert board.results(store)["made_up", "follower"][0]["details"] == {"limit": 2.5}


def test_metrics_are_of_the_test_rows(board, store, registered):
    board.run(store, jobs=1, write=silent)
    (result,) = board.results(store)["made_up", "steady"]
    data = registered.load()
    pred = np.full(len(data.test), data.y_train.mean())
    assert result["metrics"]["PGR"] == pytest.approx(data.y_train.mean() / data.y_test.mean(), rel=1e-6)
    rmse = np.sqrt(np.mean((pred - data.y_test) ** 2))
    assert result["metrics"]["NRMSE"] == pytest.approx(rmse / data.y_test.mean(), rel=1e-6)
    assert result["metrics"]["XAUC"] == 0.5  # a constant ranks nothing
    # Without the first block, every twentieth row from the first on.
    kept = np.arange(len(pred)) % 20 != 0
    assert result["left_out"]["NRMSE"][0] == pytest.approx(NRMSE(pred[kept], data.y_test[kept]), rel=1e-6)
    assert result["valid"]["PGR"] == pytest.approx(data.y_train.mean() / data.y_valid.mean(), rel=1e-6)


def test_a_failure_is_kept_with_its_message(board, store):
    board.run(store, jobs=1, write=silent)
    assert [result["failed"] for result in board.results(store)["made_up", "bad"]] == ["ValueError: no such factor"]


def test_what_is_missing_is_skipped_with_a_reason(board, store):
    board.run(store, jobs=1, write=silent)
    assert board.skipped() == {"absent": "this needs a_library_nobody_has: pip install a_library_nobody_has"}
    assert ("made_up", "absent") not in board.results(store)


def test_other_settings_rows_and_data_have_other_keys(board, store, monkeypatch):
    some = Board(("one",), ("made_up",), seeds=1)
    some.run(store, jobs=1, write=silent)
    Board(("one",), ("made_up",), seeds=1, rows=200).run(store, jobs=1, write=silent)
    monkeypatch.setitem(METHODS, "one", Factor("one", 2.0))
    some.run(store, jobs=1, write=silent)
    assert CALLS == [("one", 0)] * 3
    assert len(list(store.folder.glob("*.json"))) == 3


def test_another_version_of_the_default_leaves_other_methods_as_they_are(registered, monkeypatch):
    def keys():
        return {name: run_of(registered.name, registered.fingerprint, METHODS[name], 0, None).text for name in METHODS}

    before = keys()
    monkeypatch.setattr("transun_paper.board.networks._DEFAULT_VERSION", 99)
    after = keys()
    changed = {name for name in METHODS if before[name] != after[name]}
    assert "default" in changed
    assert "default:trees_alone" in changed
    assert not changed & {method.name for method in RIVALS}


def test_forgotten_results_are_computed_again(board, store):
    one = Board(("one", "steady"), ("made_up",), seeds=2)
    one.run(store, jobs=1, write=silent)
    assert Board(("one",), ("made_up",), seeds=2).forget(store) == 2
    one.run(store, jobs=1, write=silent)
    assert CALLS.count(("one", 0)) == 2
    assert CALLS.count(("steady", 0)) == 1


def test_results_end_at_the_first_missing_seed(board, store):
    one = Board(("one",), ("made_up",), seeds=3)
    one.run(store, jobs=1, write=silent)
    (middle,) = [run for run in one._runs(store) if run.arguments["seed"] == 1]
    store.path(middle.text).unlink()
    assert len(one.results(store)["made_up", "one"]) == 1


def test_patterns_and_groups():
    assert Board.matching(["lightgbm_t*"]).methods == ("lightgbm_tweedie", "lightgbm_tuned", "lightgbm_tuned_refit")
    assert len(Board.matching(tables=["ids"]).tables) == 6
    assert "fremtpl2_claims" not in Board.matching().tables
    assert Board.matching(tables=["large"]).tables == ("fremtpl2_claims",)
    assert Board.matching().methods == tuple(METHODS)
    with pytest.raises(ValueError, match=r"no method 'lightgbm_poison': did you mean 'lightgbm_poisson'"):
        Board.matching(["lightgbm_poison"])
    with pytest.raises(ValueError, match=r"no table 'imdb'"):
        Board.matching(tables=["imdb"])


def test_a_table_that_is_not_there_is_skipped(board, store, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path / "nowhere"))
    board.run(store, jobs=1, write=silent)
    assert CALLS == []
    assert "set TRANSUN_DATA" in board.skipped()["made_up"]


def test_results_of_a_table_that_is_not_there_are_those_of_the_recorded_file(board, store, tmp_path, monkeypatch):
    board.run(store, jobs=1, write=silent)
    here, calls = board.results(store), len(CALLS)
    files = {run.arguments["table"]: run.arguments["data"] for run in board._runs(store)}
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path / "nowhere"))
    assert board.results(store) == {}
    elsewhere = replace(board, recorded=files)
    assert elsewhere.results(store) == here
    elsewhere.run(store, jobs=1, write=silent)
    assert len(CALLS) == calls
