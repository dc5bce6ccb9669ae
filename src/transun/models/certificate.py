"""The bias certificate of a saved model: metrics of its totals on rows that it was not trained on.

The certificate is a JSON file beside the model. A model without one can be loaded, and a damaged one is an error only
for those who read it. Reading needs no torch, so that a pipeline can check a certificate in a moment.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from transun.models.description import Description, describe_model
from transun.models.noise import Noise
from transun.support.files import checksum, write_json

__all__ = ["Certificate", "Measured", "Part", "read_certificate", "valid_certificate", "write_certificate"]

FILE = "certificate.json"
_FORMAT = 3
_REMEDY = "certify the model again, on rows that it has not seen: `transun evaluate MODEL DATA --certify`"


@dataclass(frozen=True)
class Measured:
    """A number with its 99 % interval; NaN where it is undefined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Part:
    """Metrics by name of the rows whose `column` equals `value`, or of all rows if `column` is empty."""

    column: str
    value: str
    rows: int
    metrics: Mapping[str, Measured]

    def names(self) -> dict[str, float]:
        """The numbers that a requirement may name: metrics in lower case, and the ends of their intervals.

        >>> Part("", "all rows", 9, {"TRE": Measured(0.1, 0.0, 0.2)}).names()
        {'tre': 0.1, 'tre_low': 0.0, 'tre_high': 0.2}
        """
        numbers: dict[str, float] = {}
        for metric, measured in self.metrics.items():
            name = metric.lower()
            numbers |= {name: measured.value, f"{name}_low": measured.low, f"{name}_high": measured.high}
        return numbers


@dataclass(frozen=True)
class Certificate:
    """The metrics of one model on held-out rows, with what identifies the model and the rows.

    Args:
        date: the time of the measurement, in UTC.
        model: SHA-256 of the model's description, which names its weights, head and features: a certificate is valid
            for this model only.
        head: the head, as text of `transun.models.spec`.
        seed: the seed of the training.
        target: the column that was predicted.
        held_out: how the rows were chosen, in words.
        fingerprint: SHA-256 of the columns that were used.
        versions: the versions of the libraries.
        whole: metrics of all rows.
        weight: the column of sample weights, or None.
        segments: metrics of the rows of each segment.
        noise: how well a total can be known at all, from the rows of the training and from these.

    """

    date: str
    model: str
    head: str
    seed: int
    target: str
    held_out: str
    fingerprint: str
    versions: Mapping[str, str]
    whole: Part
    weight: str | None = None
    segments: tuple[Part, ...] = field(default=())
    noise: Noise | None = None

    def names(self) -> dict[str, float]:
        """The numbers that a requirement may name: those of all rows, and the noise of the total."""
        return self.whole.names() | ({} if self.noise is None else {"noise": self.noise.together})


def write_certificate(certificate: Certificate, folder: str | Path) -> None:
    """Write the certificate into the model's folder, in place of an older one and in one step."""
    write_json(Path(folder) / FILE, certificate_json(certificate))


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """The certificate as a JSON object, with the checksum that `read_certificate` compares."""
    body = {name: getattr(certificate, name) for name in _TYPES}
    body["versions"] = dict(certificate.versions)
    body["whole"] = _part_json(certificate.whole)
    body["segments"] = [_part_json(part) for part in certificate.segments]
    body["noise"] = None if certificate.noise is None else _noise_json(certificate.noise)
    return {"format": _FORMAT, **body, "checksum": checksum(body)}


def read_certificate(folder: str | Path) -> Certificate:
    """The certificate in a model's folder, with every field checked; it must belong to the model in the folder.

    The model must be whole: its weights must be there, although they are not read.

    >>> import tempfile
    >>> read_certificate(tempfile.mkdtemp())
    Traceback (most recent call last):
    FileNotFoundError: ...certificate.json is not there: certify the model again, ...
    """
    path = Path(folder) / FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: {_REMEDY}")
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        file_format, stored_checksum, actual_checksum = body.pop("format"), body.pop("checksum"), checksum(body)
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged or no certificate: {_REMEDY}") from None
    if file_format != _FORMAT:
        raise ValueError(f"{path} has format {file_format}, this transun reads {_FORMAT}: {_REMEDY}")
    if stored_checksum != actual_checksum:
        raise ValueError(f"{path} was changed after it was written: {_REMEDY}")
    certificate = _check_fields(path, body)
    description = _describe(folder)
    if certificate.model != description.checksum:
        raise ValueError(f"{path} belongs to another model than the one in the folder: {_REMEDY}")
    description.weights_in(folder)  # what was certified cannot predict without them
    return certificate


def valid_certificate(folder: str | Path) -> Certificate | None:
    """The certificate in a model's folder; None where there is none or it is not valid, as `read_certificate` says."""
    try:
        return read_certificate(folder)
    except (OSError, ValueError):
        return None


_TYPES: dict[str, tuple[type, ...]] = {
    "date": (str,),
    "model": (str,),
    "head": (str,),
    "seed": (int,),
    "target": (str,),
    "held_out": (str,),
    "fingerprint": (str,),
    "versions": (dict,),
    "whole": (dict,),
    "weight": (str, type(None)),
    "segments": (list,),
    "noise": (dict, type(None)),
}


def _check_fields(path: Path, body: Mapping[str, Any]) -> Certificate:
    wrong = [name for name, types in _TYPES.items() if name not in body or not isinstance(body[name], types)]
    wrong += [name for name in body if name not in _TYPES]
    if wrong:
        raise ValueError(f"{path} is damaged at {wrong[0]!r}: {_REMEDY}")
    try:
        parts = {
            "whole": _read_part(body["whole"]),
            "segments": tuple(map(_read_part, body["segments"])),
            "noise": None if body["noise"] is None else _read_noise(body["noise"]),
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(f"{path} is damaged in its metrics: {_REMEDY}") from None
    return Certificate(**{**body, **parts})


def _read_part(body: Mapping[str, Any]) -> Part:
    metrics = {
        str(name): Measured(*(_read_number(measured[key]) for key in ("value", "low", "high")))
        for name, measured in body["metrics"].items()
    }
    rows = body["rows"]
    if not isinstance(rows, int) or rows < 0:
        raise ValueError("the number of rows is not a count")
    return Part(str(body["column"]), str(body["value"]), rows, metrics)


def _read_noise(body: Mapping[str, Any]) -> Noise:
    values = dict(body)
    cluster = values.pop("cluster")
    numbers = {name: _read_number(value) for name, value in values.items()}
    counts = {name: int(numbers[name]) for name in ("training_rows", "rows", "units", "tail_count")}
    if set(values) | {"cluster"} != {each.name for each in fields(Noise)} or min(counts.values()) < 0:
        raise ValueError("not the numbers of a noise")
    arguments: dict[str, Any] = {**numbers, **counts, "cluster": None if cluster is None else str(cluster)}
    return Noise(**arguments)


def _noise_json(noise: Noise) -> dict[str, Any]:
    return {name: _number_json(value) if isinstance(value, float) else value for name, value in asdict(noise).items()}


def _part_json(part: Part) -> dict[str, Any]:
    metrics = {
        name: {key: _number_json(getattr(measured, key)) for key in ("value", "low", "high")}
        for name, measured in part.metrics.items()
    }
    return {"column": part.column, "value": part.value, "rows": part.rows, "metrics": metrics}


def _read_number(value: Any) -> float:
    """The number that `_number_json` wrote."""
    if value is None:
        return math.nan
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("not a number")
    return float(value)


def _number_json(value: float) -> float | str | None:
    """The number as JSON, which has neither NaN nor infinity: NaN is null, and infinity is a text."""
    return value if math.isfinite(value) else None if math.isnan(value) else str(value)


def _describe(folder: str | Path) -> Description:
    try:
        return describe_model(folder)
    except (OSError, ValueError):
        raise ValueError(f"{folder} holds no readable model: give the folder that `transun fit` wrote, whole") from None
