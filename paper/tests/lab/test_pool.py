import json
import subprocess
import sys

import pytest

from transun.corrections import Smearing
from transun.heads import MSE, LogMSE, LogSUN, Scaled
from transun.support.files import new_draft
from transun.training.optimisers import SGD, Adam
from transun_paper.lab.pool import carry_out
from transun_paper.lab.protocol import Budget, Study, TuningProtocol
from transun_paper.lab.run import MLP, Run, lab_recipe
from transun_paper.lab.store import Store
from transun_paper.lab.worker import read_work
from transun_paper.tables import curves

NET = MLP(dim=4, hidden=(8,))
PROTOCOL = TuningProtocol((Adam(1e-3), Adam(1e-2)), seeds=3, otherwise=Budget(64, 2), budgets={"other": Budget(32, 7)})


def studies(key):
    return [
        PROTOCOL.study(key, LogMSE(), backbone=NET),
        PROTOCOL.study(key, LogMSE(), Smearing(), NET),
        PROTOCOL.study(key, Scaled(MSE()), backbone=NET),
    ]


class Interrupting(Store):
    """Stops the whole undertaking when it has kept so many results."""

    def keep(self, text, result, seconds=None):
        super().keep(text, result, seconds)
        if len(list(self.folder.glob("*.json"))) >= 4:
            raise KeyboardInterrupt


def times(store):
    return {path.name: path.stat().st_mtime_ns for path in store.folder.glob("*.json")}


def test_all_is_done_once(key, cache, tmp_path):
    store, lines = Store(tmp_path / "runs"), []
    carry_out(studies(key), store, cache, jobs=1, write=lines.append)
    # Three methods at two rates, and two more seeds each.
    assert len(times(store)) == 3 * 2 + 3 * 2
    assert "left" in lines[0]
    kept = times(store)
    carry_out(studies(key), store, cache, jobs=1, write=pytest.fail)
    assert times(store) == kept
    for study in studies(key):
        assert [report["data"]["name"] for report in study.reports(store)] == ["tiny"] * 3
        best = study.chosen(store)
        least = min(store.read(run.text)["valid"]["NRMSE"] for run in study.candidates)
        assert store.read(best.text)["valid"]["NRMSE"] == least


def test_an_interrupted_undertaking_goes_on(key, cache, tmp_path, monkeypatch):
    store = Store(tmp_path / "runs")
    monkeypatch.setattr("transun_paper.lab.pool.Store", Interrupting)
    with pytest.raises(KeyboardInterrupt):
        carry_out(studies(key), store, cache, jobs=1)
    kept = times(store)
    assert len(kept) == 4
    assert studies(key)[2].reports(store) == []
    monkeypatch.undo()
    new_draft(store.folder).touch()  # what a process that is killed while it writes leaves behind
    carry_out(studies(key), store, cache, jobs=1)
    assert not list(store.folder.glob(".*"))
    assert {name: when for name, when in times(store).items() if name in kept} == kept
    assert len(times(store)) == 12


def test_the_worker_needs_torch_and_numpy_alone(key, cache, tmp_path):
    """The machine with many cores has nothing else; its processes import this script, and so block the same."""
    script = tmp_path / "bare.py"
    script.write_text(
        """
import sys
for name in ("rich", "typer", "scipy", "sklearn", "lightgbm", "altair", "pandas", "polars", "pyarrow", "safetensors"):
    sys.modules[name] = None
if __name__ == "__main__":
    from transun_paper.lab.worker import main
    sys.exit(main(sys.argv[1:]))
"""
    )
    file, store = tmp_path / "studies.jsonl", Store(tmp_path / "runs")
    trace = curves.trace(PROTOCOL, key, LogMSE(), 0)
    file.write_text("".join(line.text + "\n" for line in (*studies(key), trace)))
    arguments = [str(file), "--cache", str(cache), "--store", str(store.folder), "--jobs", "2"]
    result = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert len(times(store)) == 12 + 1
    assert len(store.read(trace.text)["looks"]) > 1
    here = Store(tmp_path / "here")
    carry_out(studies(key), here, cache, jobs=1)
    for study in studies(key):
        assert study.chosen(store) == study.chosen(here)
        for there, own in zip(study.reports(store), study.reports(here), strict=True):
            assert there["metrics"] == pytest.approx(own["metrics"], rel=1e-3, abs=1e-4)


def test_a_study_survives_its_text(key):
    study = studies(key)[1]
    run = Run(key, LogSUN(), seed=3)
    again, single = read_work([study.text, "", run.text])[0]
    assert again == study
    assert single == Study((run,), (3,))
    assert json.loads(study.text)["seeds"] == [0, 1, 2]


def test_one_candidate_needs_no_contest(key, cache, tmp_path):
    store = Store(tmp_path)
    study = Study((Run(key, LogMSE(), lab_recipe(batch_size=64), NET),), (0, 1))
    assert study.decided(store)
    assert [run.seed for run in study.finals(store)] == [0, 1]
    carry_out([study], store, cache, jobs=1)
    assert len(study.reports(store)) == 2


class Arriving(Store):
    """A store into which another worker puts each report right after it was asked for."""

    def __contains__(self, text):
        arrived = super().__contains__(text)
        self.keep(text, {"valid": {"NRMSE": 1.0 / Run.parse(text).training.optimiser.rate}})
        return arrived


def test_a_report_that_arrives_between_two_questions_decides_nothing(key, tmp_path):
    """Its own rate may be at the end of those tried, so that the next one is still to come."""
    store = Arriving(tmp_path)
    rates = tuple(lab_recipe(optimiser=Adam(rate)) for rate in (0.125, 0.25, 0.5, 1.0))
    study = Study(tuple(Run(key, LogMSE(), training, NET) for training in rates), (0,), first=(0, 1))
    looks = []
    while not study.decided(store):
        looks.append(study.tried(Store(tmp_path)))
    assert len(looks) == 4
    assert study.chosen(store).training == rates[-1]


def test_what_failed_is_not_chosen(key, cache, tmp_path):
    store = Store(tmp_path)
    good, bad = lab_recipe(optimiser=Adam(1e-2), batch_size=64), lab_recipe(optimiser=SGD(1e20), batch_size=32)
    study = Study(tuple(Run(key, LogMSE(), training, NET) for training in (bad, good)), (0, 1))
    carry_out([study], store, cache, jobs=1)
    assert study.chosen(store).training == good
    hopeless = Study(tuple(Run(key, head, bad, NET) for head in (LogMSE(), LogSUN())), (0, 1))
    carry_out([hopeless], store, cache, jobs=1)
    assert [set(report) for report in hopeless.reports(store)] == [{"failed"}]


def test_a_budget_belongs_to_a_data_set():
    assert PROTOCOL.training_for("other-123", Adam()).epochs == 7
    assert PROTOCOL.training_for("else-123", Adam()).batch_size == 64
    assert "other 32 and 7" in PROTOCOL.statement
    assert "Adam 0.001, Adam 0.01" in PROTOCOL.statement
    assert "not tuned" in TuningProtocol((Adam(),)).statement


def test_nonsense_is_refused(tmp_path):
    with pytest.raises(ValueError, match="jobs"):
        carry_out([], Store(tmp_path), tmp_path, jobs=0)
    with pytest.raises(ValueError, match="epochs"):
        lab_recipe(epochs=0)


class TestWidening:
    """Rates beyond the first ones are tried only while the best so far is at an end."""

    RATES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)

    def study(self, first=(1, 4)):
        runs = [Run("small-0", LogMSE(), lab_recipe(optimiser=Adam(rate))) for rate in self.RATES]
        return Study(tuple(runs), (0,), first)

    def tried(self, folder, errors, first=(1, 4)):
        """The rates that are tried in the end, where the validation NRMSE of each is known, and the one chosen."""
        study, store = self.study(first), Store(folder)
        while not study.decided(store):
            for run in study.tried(store):
                error = errors[run.training.optimiser.rate]
                store.keep(run.text, {"failed": "diverged"} if error is None else {"valid": {"NRMSE": error}})
        rates = [run.training.optimiser.rate for run in study.tried(store)]
        return rates, study.chosen(store).training.optimiser.rate, study.at_the_end(store)

    @pytest.mark.parametrize(
        ("errors", "rates", "chosen", "end"),
        [
            ((5, 3, 1, 2, 4), [1e-3, 1e-2, 1e-1], 1e-2, False),
            ((2, 1, 3, 4, 5), [1e-4, 1e-3, 1e-2, 1e-1], 1e-3, False),
            ((1, 2, 3, 4, 5), [1e-4, 1e-3, 1e-2, 1e-1], 1e-4, True),
            ((5, 4, 3, 2, 1), [1e-3, 1e-2, 1e-1, 1.0], 1.0, True),
            ((1, None, None, None, 9), [1e-4, 1e-3, 1e-2, 1e-1], 1e-4, True),
        ],
    )
    def test_goes_on_while_the_best_is_at_an_end(self, tmp_path, errors, rates, chosen, end):
        assert self.tried(tmp_path, dict(zip(self.RATES, errors, strict=True))) == (rates, chosen, end)

    def test_without_a_first_part_all_are_tried(self, tmp_path):
        errors = dict(zip(self.RATES, (5, 3, 1, 2, 4), strict=True))
        assert self.tried(tmp_path, errors, None) == (list(self.RATES), 1e-2, False)

    def test_the_text_keeps_what_is_tried_first_and_failures_are_listed(self, tmp_path):
        study = self.study()
        assert Study.parse(study.text) == study
        store = Store(tmp_path)
        for run in study.candidates:
            store.keep(run.text, {"failed": "nan"} if run is study.candidates[3] else {"valid": {"NRMSE": 1.0}})
        assert study.diverged(store) == [(1e-1, "nan")]
