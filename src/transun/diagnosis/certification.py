"""The certificate of a saved model: what its assessment measured, written beside it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from transun.data.fingerprint import fingerprint
from transun.diagnosis.result import Assessment, ModelAssessment
from transun.metrics import Estimate
from transun.models.certificate import Certificate, Measured, Part, write_certificate
from transun.models.description import describe_model
from transun.tables.model import TableModel

__all__ = ["certify_folder", "whole_part"]


def whole_part(assessment: Assessment) -> Part:
    """The metrics of all rows, as a certificate holds them."""
    return Part("", "all rows", assessment.rows, _measured(assessment.metrics))


def certify_folder(
    folder: Path, trained: TableModel, source: Any, assessment: ModelAssessment, held_out: str, seen: float = 0.0
) -> Certificate:
    """Write the certificate of the model in a folder, dated now; rows of its training are refused.

    Args:
        folder: of the saved model.
        trained: the model.
        source: the rows that it was assessed on.
        assessment: of these rows.
        held_out: how the rows were chosen, in words.
        seen: the share of them that were training rows, which prove nothing.

    """
    if seen:
        raise ValueError(
            f"about {seen:.0%} of these rows are training rows of the model, which prove nothing: certify it on rows "
            "that it has not seen"
        )
    description = describe_model(folder)
    certificate = Certificate(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        model=description.checksum,
        head=description.head,
        seed=description.seed,
        target=trained.target,
        held_out=held_out,
        fingerprint=fingerprint(source, _columns(trained)),
        versions={name: version(name) for name in ("transun", "torch", "numpy", "pyarrow")},
        whole=whole_part(assessment),
        weight=trained.weight,
        segments=tuple(
            Part(table.column, segment.value, segment.rows, _measured(segment.metrics))
            for table in assessment.segments
            for segment in table.segments
        ),
        noise=assessment.noise,
    )
    write_certificate(certificate, folder)
    return certificate


def _measured(estimates: Sequence[Estimate]) -> dict[str, Measured]:
    return {estimate.name: Measured(estimate.value, estimate.low, estimate.high) for estimate in estimates}


def _columns(trained: TableModel) -> list[str]:
    return [*trained.sources, trained.target, *([trained.weight] if trained.weight else [])]
