"""A certificate is of the rows that it names, and of no rows that the model has learned from."""

from dataclasses import replace

import pytest

from prepared_model import model, rows
from transun import LogMSE, load
from transun.data.fingerprint import fingerprint
from transun.data.seen_rows import SeenRows
from transun.diagnosis.certification import certify_folder
from transun.diagnosis.evaluation import evaluate_held_out, evaluate_model

pytest.importorskip("scipy")


def test_rows_of_the_training_are_no_proof(tmp_path):
    table = rows()
    trained = model(LogMSE(), table)
    trained = replace(trained, seen=SeenRows.of(trained.dataset(table)))
    trained.save(tmp_path)
    assert load(tmp_path).seen_share(table) == 1.0
    assert load(tmp_path).seen_share(rows(seed=1)) == 0.0
    evaluation = evaluate_model(load(tmp_path), table)
    assert evaluation.seen == 1.0
    with pytest.raises(ValueError, match=r"about 100% of these rows .* that it has not seen"):
        certify_folder(tmp_path, trained, table, evaluation.assessment, "all rows", evaluation.seen)
    assert not (tmp_path / "certificate.json").exists()


def test_a_certificate_is_of_exactly_its_rows(tmp_path):
    table = rows()
    trained = model(LogMSE(), table)
    trained.save(tmp_path)
    assessment = evaluate_held_out(trained, table, ["shop"])
    certificate = certify_folder(tmp_path, trained, table, assessment, "all rows")
    assert certificate.fingerprint == fingerprint(table, ["item", "y"])
    assert certificate.fingerprint != fingerprint(table.slice(1), ["item", "y"])
    assert certificate.whole.metrics["PGR"].value == assessment.metric("PGR").value
    assert {part.value: part.rows for part in certificate.segments} == {
        segment.value: segment.rows for segment in assessment.segments[0].segments
    }
    assert set(certificate.segments[0].metrics) == {estimate.name for estimate in assessment.metrics}
