"""Models of rates: predictions are exposure times rate, and the column is remembered."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from transun import Recipe, load, train
from transun.data import read_table
from transun.diagnosis import diagnose_table
from transun.diagnosis.evaluation import evaluate_held_out, evaluate_model
from transun.metrics import GINI
from transun.tables import export


def policies(n, seed):
    """Two kinds of policies, of rates 100 and 300 a year, over a tenth of a year to a year."""
    rng = np.random.default_rng(seed)
    kind, years = rng.choice(["a", "b"], n), rng.uniform(0.1, 1.0, n)
    claims = years * np.where(kind == "a", 100.0, 300.0) * rng.gamma(4.0, 0.25, n)
    return {"kind": kind, "years": years, "claims": claims}


@pytest.fixture(scope="module")
def model():
    return train(policies(2_000, 0), "claims", exposure="years", only="trees", recipe=Recipe(seed=0), progress=False)


def test_a_prediction_is_exposure_times_rate(model, tmp_path):
    table = {"kind": ["a", "a", "b"], "years": [1.0, 0.5, 0.5]}
    pred = model.predict(table).numpy()
    # 1,000 rates of a coefficient of variation of ½: 1.6 %.
    assert pred == pytest.approx([100.0, 50.0, 150.0], rel=0.08)
    assert pred[1] == pytest.approx(pred[0] / 2.0, rel=1e-6)
    assert "years" not in model.features.columns
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.exposure == "years"
    assert loaded.predict(table).numpy() == pytest.approx(pred)


def test_rates_are_judged_and_totals_are_those_of_the_amounts(model):
    fresh = policies(3_000, 1)
    pred = model.predict(fresh).numpy().astype(float)
    evaluation = evaluate_model(model, fresh, ["kind"], progress=False)
    assert evaluation.assessment.metric("PGR").value == pytest.approx(pred.sum() / fresh["claims"].sum(), rel=1e-5)
    held_out = evaluate_held_out(model, read_table(fresh), ["kind"])
    assert held_out.metric("PGR").value == pytest.approx(evaluation.assessment.metric("PGR").value, rel=1e-5)
    # Levels are those of the rate, of which there are two, and means are pure premiums.
    means = [level.actual.value for level in held_out.levels]
    assert (min(means), max(means)) == pytest.approx((100.0, 300.0), rel=0.06)


def test_a_diagnosis_by_exposure_has_levels_of_the_rate(model):
    fresh = policies(3_000, 2)
    table = fresh | {"pred": model.predict(fresh).numpy()}
    diagnosis = diagnose_table(table, "claims", "pred", exposure="years", progress=False)
    assert diagnosis.metric("PGR").value == pytest.approx(table["pred"].sum() / table["claims"].sum(), rel=1e-6)
    # Rounding tells equal rates apart, so that there are ten levels of two rates.
    means = [level.pred for level in diagnosis.levels]
    assert (min(means), max(means)) == pytest.approx((100.0, 300.0), rel=0.08)
    with pytest.raises(ValueError, match="the exposure 'pred' is also another of the columns"):
        diagnose_table(table, "claims", "pred", exposure="pred", progress=False)


def test_mistakes_are_named_before_training():
    table = policies(300, 3)
    with pytest.raises(ValueError, match="the exposure 'claims' is also the target"):
        train(table, "claims", exposure="claims")
    with pytest.raises(ValueError, match="column 'years', row 0: 0 is no exposure"):
        train(table | {"years": np.zeros(300)}, "claims", exposure="years")


def test_french_motor_policies(monkeypatch):
    """Numbers that insurers know of the data: exposure, pure premium, and a Gini that is not 0."""
    import os

    file = Path(os.environ.get("TRANSUN_DATA", "data")) / "tables" / "fremtpl2_claims.parquet"
    if not file.is_file():
        pytest.skip("the French motor policies are not here: set TRANSUN_DATA")
    table = read_table(file, ["ClaimAmount", "Exposure", "BonusMalus", "DrivAge"])
    claims, years = (table[name].to_numpy().astype(float) for name in ("ClaimAmount", "Exposure"))
    assert len(claims) == 678_013
    assert years.sum() == pytest.approx(358_499, rel=1e-3)
    premium = claims.sum() / years.sum()
    assert premium == pytest.approx(167.0, rel=0.01)  # 59.9 million over 358 thousand years
    bonus = table["BonusMalus"].to_numpy().astype(float)
    # A malus has more claims: ordering by it alone must lift, and by chance the Gini would be 0 ± 0.02.
    assert GINI(bonus, claims / years, years) > 0.1


def test_an_exported_graph_takes_the_exposure_and_returns_amounts(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    exported = export(model, tmp_path / "model.onnx")
    assert exported.difference < 1e-5
    session = runtime.InferenceSession(exported.path)
    columns = {"kind": np.array(["a", "a", "b"], object), "years": np.array([1.0, 0.5, 0.25])}
    amounts, original = session.run(["prediction", "original"], columns)
    np.testing.assert_allclose(amounts, model.predict(columns).numpy(), rtol=1e-5)
    np.testing.assert_allclose(original[1], 0.5 * original[0], rtol=1e-6)
    rates = session.run(["prediction"], columns | {"years": np.ones(3)})[0]
    np.testing.assert_allclose(amounts, columns["years"] * rates, rtol=1e-6)
    document = json.loads(session.get_modelmeta().custom_metadata_map["transun"])
    assert document["exposure"] == "years"
    assert document["outputs"][0]["meaning"] == "an estimate of the mean of claims over the input years"
    assert [each["name"] for each in document["inputs"]] == ["kind", "years"]


def test_a_torch_graph_of_codes_takes_the_exposure_too(model, tmp_path):
    exported = export(model, tmp_path / "model.pt2", encoded=True)
    graph = torch.export.load(exported.path).module()
    table = {"kind": ["a", "b"], "years": [0.5, 2.0]}
    made = graph(model.features.encode(table) | {"years": torch.tensor([0.5, 2.0], dtype=torch.float64)})
    torch.testing.assert_close(made["prediction"], model.predict(table), rtol=1e-5, atol=0.0)
