import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from transun.backbones import Constant
from transun.data import Dataset
from transun.heads import LogMSE
from transun.models.network import Model
from transun_paper.lab import gpu
from transun_paper.lab.boards import FULL_BOARD, QUICK_BOARD
from transun_paper.lab.computation import Computation
from transun_paper.lab.encoded_dataset import EncodedDataset
from transun_paper.lab.methods import METHODS
from transun_paper.lab.pool import carry_out
from transun_paper.lab.progress import silent
from transun_paper.lab.sources import DatasetSource, encode_dataset
from transun_paper.lab.store import Store
from transun_paper.lab.worker import main, read_work
from transun_paper.pages.figures import draw, figure_page
from transun_paper.pages.paper import paper_page
from transun_paper.tables import industrial, variance
from transun_paper.tables.registry import FIGURES, TABLES

REFERENCES = ("the truth E[y|x]", "log_price alone")
ROWS = {"train": 480, "valid": 120, "test": 240}


def rows(count: int, seed: int) -> Dataset:
    generator = np.random.default_rng(seed)
    item = generator.integers(0, 12, count)
    return Dataset({"item": item}, np.exp(0.15 * item + 0.9 * generator.standard_normal(count)).astype(np.float32))


def encoded() -> EncodedDataset:
    parts = [rows(count, seed) for seed, count in enumerate(ROWS.values())]
    return EncodedDataset("small", *parts, ids={"item": 12}, bags={})


def do(parts, store, cache, keys):
    studies = [study for part in parts for study in part.studies(keys, True)]
    computations = [computation for part in parts for computation in part.computations(keys, True)]
    carry_out(studies, store, cache, 1, computations=computations, write=silent)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A store with all that three tables and two figures need, on one small data set."""
    folder = tmp_path_factory.mktemp("lab")
    cache, store = folder / "cache", Store(folder / "runs")
    keys = {"small": encode_dataset("small", DatasetSource(lambda: "small", encoded), cache)}
    parts = [TABLES[name] for name in ("debiasing", "schemes", "variance")]
    parts += [FIGURES[name] for name in ("fig_training", "fig_bins")]
    do(parts, store, cache, keys)
    return store, cache, keys


def test_finished_work_is_not_repeated(lab):
    store, cache, keys = lab
    before = {path: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    do([TABLES["schemes"], TABLES["variance"], FIGURES["fig_training"]], store, cache, keys)
    assert {path: path.stat().st_mtime_ns for path in store.folder.iterdir()} == before


def test_every_name_is_the_name_of_its_report():
    assert all(part.name == name and part.title for name, part in {**TABLES, **FIGURES}.items())
    assert not set(TABLES) & set(FIGURES)


@pytest.mark.parametrize("quick", [True, False])
def test_work_is_lines_that_a_worker_can_read(quick):
    keys = {"online_retail": "online_retail-00000000", "lastfm": "lastfm-00000000"}
    parts = [*TABLES.values(), *FIGURES.values()]
    studies = [study.text for part in parts for study in part.studies(keys, quick)]
    computations = [computation.text for part in parts for computation in part.computations(keys, quick)]
    read_studies, read_computations = read_work([*studies, "", *computations])
    assert [study.text for study in read_studies] == studies
    assert [computation.text for computation in read_computations] == computations
    assert len(set(studies)) < len(studies)  # tables share runs


def test_tuned_tables_share_the_leaderboards_studies():
    keys = {"lastfm": "lastfm-00000000"}
    board = {study.text for study in QUICK_BOARD.only(datasets=["lastfm"]).studies(keys).values()}
    assert len(board) == len(METHODS)
    for name in ("debiasing", "posthoc", "comparison", "ranking"):
        assert {study.text for study in TABLES[name].studies(keys, True)} <= board
    # The witnesses of the extension are runs of their own.
    extension = TABLES["extension"]
    own = {study.text for study in extension.studies(keys, True)} - board
    assert len(own) == len(extension.witnesses)


@pytest.mark.parametrize("name", ["schemes", "gts_instances", "sharing", "fig_epsilon"])
def test_ablations_share_the_run_of_logsun_with_the_leaderboard(name):
    keys = {"kuairand": "kuairand-00000000"}
    (board,) = FULL_BOARD.only(["LogSUN"], ["kuairand"]).studies(keys).values()
    own = [study.candidates[0].text for study in {**TABLES, **FIGURES}[name].studies(keys)]
    assert len(set(own)) == len(own)
    assert sum(text == run.text for text in own for run in board.candidates) == 1


def test_ablations_leave_costly_data_sets_out():
    keys = {name: f"{name}-00000000" for name in ("globo", "movietweetings", "cikm16")}
    used = {study.candidates[0].dataset.split("-")[0] for study in TABLES["schemes"].studies(keys)}
    assert used == {"cikm16"}


def test_a_table_has_every_row_with_its_paired_test(lab):
    store, _, keys = lab
    report = TABLES["debiasing"].report(store, keys, True)
    (found,) = report["tables"]
    assert len(found["rows"]) == 6
    for row in found["rows"]:
        value, _ = row["cells"]["TRE"]
        assert value == pytest.approx(np.mean(row["seeds"]["TRE"]), rel=1e-4)
        assert ("p" in row) == (row["method"] == "TranSUN")
    # exp(0.9²/2) = 1.5: a log-trained model of log-normal rows is this much too low, ln(1 + y) a little less.
    by_label = {(row["method"], row["label"]): row["cells"]["TRE"][0] for row in found["rows"]}
    assert 0.2 < by_label["T-MSE", "ln(y+1)"] < 0.6
    assert by_label["TranSUN", "ln(y+1)"] < 0.1
    holds = {(claim["claim"].split()[3], claim["where"]): claim["holds"] for claim in report["claims"]}
    assert holds["TRE", "small, ln(y+1)"] == "yes"


def test_the_variance_of_y_is_numpys(lab):
    store, _, keys = lab
    report = TABLES["variance"].report(store, keys, True)
    cells = {row["label"]: row["cells"] for row in report["tables"][0]["rows"]}
    y = encoded().train.y.double().numpy()
    assert cells["y"]["Var"][0] == pytest.approx(y.var(), rel=1e-3)
    assert cells["ln(1+y)"]["V/E²"][0] == pytest.approx(np.log1p(y).var() / np.log1p(y).mean() ** 2, rel=1e-3)
    assert cells["y"]["Outlier %"][0] == pytest.approx(100 * np.mean(abs(y - y.mean()) > 3 * y.std()), rel=1e-3)


def test_pages_answer_every_claim(lab):
    store, _, keys = lab
    for name in ("debiasing", "schemes", "variance"):
        report = {
            "version": "0",
            "torch": "2",
            "command": "transun-paper reproduce x",
            **TABLES[name].report(store, keys, True),
        }
        page = paper_page(json.loads(json.dumps(report)))
        assert "transun-paper reproduce x" in page
        assert "## The paper" in page
        for claim in report["claims"]:
            assert claim["evidence"].replace("|", "\\|") in page


def test_what_is_missing_is_said_to_be_missing(tmp_path, lab):
    keys = lab[2]
    for name, part in TABLES.items():
        report = {"version": "0", "torch": "2", "command": "x", **part.report(Store(tmp_path), keys, True)}
        # Costs are counted, not run.
        run = [claim for claim in report["claims"] if claim["where"] not in ("all five schemes", "forward pass alone")]
        assert {claim["holds"] for claim in run} <= {"unknown"}, name
        assert paper_page(report)
    for part in FIGURES.values():
        assert part.report(Store(tmp_path), keys, True)["panels"]


def test_curves_begin_and_end_where_training_does(lab):
    store, _, keys = lab
    (panel,) = FIGURES["fig_training"].report(store, keys, True)["panels"]
    assert set(panel["curves"]) == {"MSE", "LogMSE", "LogSUN"}
    for curve in panel["curves"].values():
        assert curve["looks"][-1]["step"] == 8  # two epochs of 480 rows, 128 a step
        assert all(np.isfinite(look["PGR"]) for look in curve["looks"])
    assert panel["curves"]["LogMSE"]["looks"][-1]["PGR"] < 0.9


def test_figures_are_drawn(lab, tmp_path):
    altair = pytest.importorskip("altair")
    store, _, keys = lab
    for name in ("fig_training", "fig_bins", "fig_densities"):
        report = {"version": "0", "torch": "2", "command": "x", **FIGURES[name].report(store, keys, True)}
        chart = draw(report)
        assert isinstance(chart, altair.TopLevelMixin)
        assert chart.to_dict()["$schema"]
        assert f"{name}.svg" in figure_page(report, f"{name}.svg")


def test_epsilon_is_drawn_from_points():
    point = {"TRE": [0.1, 0.01], "MRE": [0.2, 0.01], "NRMSE": [1.0, 0.1], "XAUC": [0.6, 0.01]}
    panels = [{"dataset": "a", "points": [{"eps": 0.1, **point}, {"eps": 1.0, **point}]}]
    text = json.dumps(draw({"name": "fig_epsilon", "panels": panels}).to_dict())
    assert '"low": 0.0804' in text
    assert '"NRMSE"' in text


def test_densities_hold_their_mass():
    report = FIGURES["fig_densities"].report(Store.__new__(Store), {}, True)
    assert [panel["dataset"] for panel in report["panels"]] == [
        "RS-G", "RS-BU", "RS-ZIG", "LS-B", "LS-BU", "SM-U", "SM-TN", "SM-BU",
    ]  # fmt: skip
    for panel in report["panels"]:
        mass = np.trapezoid(panel["density"], panel["v"]) + panel["at_zero"]
        assert mass == pytest.approx(1.0, abs=0.05), panel["dataset"]


TOY = replace(industrial.QUICK_SIZE, train=500, test=100)


def test_top_orders_are_those_of_highest_value(tmp_path):
    row = industrial._ROWS[1]
    result = industrial.training(row, TOY, 0).compute(tmp_path)
    assert result["data"]["test"] == 100
    assert 0.3 < result["share_of_top"] < 1.0
    # Rows chosen by their high target are predicted too low by any model of x.
    assert result["top"]["metrics"]["STRE"] < result["metrics"]["STRE"]


def test_the_truth_is_nearest_to_itself_and_the_price_has_the_right_total(tmp_path):
    large = replace(TOY, train=10, test=20_000)
    truth, price = (Computation("industrial", large.arguments(name, 0)).compute(tmp_path) for name in REFERENCES)
    assert truth["distance"] == 0.0
    assert abs(truth["metrics"]["STRE"]) < 4 * 1.7 / np.sqrt(20_000)  # the deviation of y over its mean is below 1.7
    assert price["metrics"]["STRE"] == pytest.approx(0.0, abs=1e-4)
    assert price["distance"] > 0.3
    assert truth["metrics"]["XAUC"] > price["metrics"]["XAUC"] + 0.02


def test_a_gpu_table_says_what_it_lacks_and_is_made_from_what_was_brought_back(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    store = Store(tmp_path)
    assert "need a GPU" in industrial.INDUSTRIAL.obstacle(store, quick=False)
    assert industrial.INDUSTRIAL.obstacle(store, quick=True) is None  # a toy that any processor trains
    for work in industrial.INDUSTRIAL.computations({}, quick=False):
        store.keep(work.text, {"failed": "for a test"})
    assert industrial.INDUSTRIAL.obstacle(store, quick=False) is None
    report = industrial.INDUSTRIAL.report(store, {})
    assert {row["failed"] for table in report["tables"] for row in table["rows"]} == {"for a test"}


def test_the_gpu_program_trains_what_the_store_lacks(tmp_path, capfd):
    rows = industrial.INDUSTRIAL.by_row(quick=True)
    last = list(rows.values())[-1]
    for seeds in list(rows.values())[:-2]:
        for seed in seeds:
            Store(tmp_path).keep(seed.text, {"failed": "for a test"})
    assert gpu.main(["--store", str(tmp_path), "--quick", "--jobs", "1", "--minutes", "0"]) == 0
    assert "2 trainings are left" in capfd.readouterr().out
    assert gpu.main(["--store", str(tmp_path), "--quick", "--jobs", "1", "--shard", "1/2"]) == 0
    assert "finished" in capfd.readouterr().out
    assert "bins" in Store(tmp_path).read(last[0].text)


def test_computations_are_kept_and_found_again(tmp_path):
    computation = industrial.training(industrial._ROWS[0], TOY, 0)
    store = Store(tmp_path / "runs")
    store.keep(computation.text, {"already": "there"})
    carry_out([], store, tmp_path, 1, computations=[computation])
    assert store.read(computation.text) == {"already": "there"}
    other = industrial.training(industrial._ROWS[0], replace(TOY, train=501), 0)
    (tmp_path / "work.jsonl").write_text(computation.text + "\n\n" + other.text + "\n")
    assert (
        main([str(tmp_path / "work.jsonl"), "--cache", str(tmp_path), "--store", str(store.folder), "--jobs", "1"]) == 0
    )
    assert set(store.read(other.text)) >= {"metrics", "left_out", "top"}


def test_unknown_computations_are_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"there is no computation 'nonsense'; there are .*board, booster, .*industrial"
    ):
        Computation("nonsense", {}).compute(tmp_path)


def test_the_same_computation_gives_the_same_numbers(tmp_path):
    torch.manual_seed(1)
    computation = industrial.training(industrial._ROWS[-1], TOY, 3)
    assert computation.compute(tmp_path)["metrics"] == computation.compute(tmp_path)["metrics"]


def test_loss_targets_of_a_constant_point():
    data = rows(500, 7)
    found = variance._statistics(Model(Constant(), LogMSE()).prepare(data.y.double()), data)
    y = data.y.double().numpy()
    u = np.log1p(y).mean()
    for label, kappa in {"1/(|T⁻¹(u)|+ε)": np.exp(-u), "1/(|u|+ε)": 1 / (u + 1), "|u|": u}.items():
        statistics = found[f"κ·y, κ = {label}"]
        assert statistics["Mean"] == pytest.approx(kappa * y.mean(), rel=1e-5)
        assert statistics["Var"] == pytest.approx(kappa**2 * y.var(), rel=1e-5)
        assert statistics["V/E²"] == pytest.approx(y.var() / y.mean() ** 2, rel=1e-5)
