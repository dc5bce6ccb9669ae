"""The bias certificate of a saved model: what its totals were worth on rows that it was not trained on.

A JSON file beside the model, apart from it: a model without one loads as well, and a damaged one is told only to those
who ask for it. Reading needs no torch, so that a pipeline can check a certificate in a moment.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transun.support.files import checksum, replacing

__all__ = ["Certificate", "Measured", "Part", "read_certificate", "write_certificate"]

FILE = "certificate.json"
_FORMAT = 1
_MODEL = "transun.json"
_AGAIN = "certify the model again: `transun evaluate MODEL DATA --certify`"


@dataclass(frozen=True)
class Measured:
    """A number with its 95 % interval; NaN where it is undefined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Part:
    """Metrics by name of some rows: those whose `column` says `value`, or all of them where `column` is empty."""

    column: str
    value: str
    rows: int
    metrics: Mapping[str, Measured]

    def names(self) -> dict[str, float]:
        """What a requirement may name: metrics in lower case, and the ends of their intervals.

        >>> Part("", "all rows", 9, {"TRE": Measured(0.1, 0.0, 0.2)}).names()
        {'tre': 0.1, 'tre_low': 0.0, 'tre_high': 0.2}
        """
        found: dict[str, float] = {}
        for name, one in self.metrics.items():
            key = name.lower()
            found |= {key: one.value, f"{key}_low": one.low, f"{key}_high": one.high}
        return found


@dataclass(frozen=True)
class Certificate:
    """What was measured, on which rows, of which model.

    Args:
        date: when, in UTC.
        weights: SHA-256 of the model's file of numbers: a certificate does not pass to another model.
        head: the method, as text of `transun.models.spec`.
        seed: of the training.
        target: the column that was predicted.
        held_out: how the rows were chosen, in words.
        fingerprint: SHA-256 of the rows' columns that were used.
        versions: of the libraries.
        whole: metrics of all rows.
        weight: the column of what each row counts, or None.
        segments: metrics of the rows of each segment.

    """

    date: str
    weights: str
    head: str
    seed: int
    target: str
    held_out: str
    fingerprint: str
    versions: Mapping[str, str]
    whole: Part
    weight: str | None = None
    segments: tuple[Part, ...] = field(default=())


def write_certificate(certificate: Certificate, folder: str | Path) -> None:
    """Put the certificate into the model's folder, in place of an older one, at once."""
    with replacing(Path(folder) / FILE) as draft:
        draft.write_text(json.dumps(certificate_json(certificate), indent=1, ensure_ascii=False) + "\n", "utf-8")


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """The certificate as JSON can hold it, with the checksum that `read_certificate` looks at."""
    body = {name: getattr(certificate, name) for name in _KINDS}
    body["versions"] = dict(certificate.versions)
    body["whole"] = _part_json(certificate.whole)
    body["segments"] = [_part_json(part) for part in certificate.segments]
    return {"format": _FORMAT, **body, "checksum": checksum(body)}


def read_certificate(folder: str | Path) -> Certificate:
    """The certificate in a model's folder, every field checked; it must be of the weights that lie there.

    >>> import tempfile
    >>> read_certificate(tempfile.mkdtemp())
    Traceback (most recent call last):
    FileNotFoundError: ...certificate.json is not there: certify the model again: ...
    """
    path = Path(folder) / FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: {_AGAIN}")
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        number, noted, sum_ = said.pop("format"), said.pop("checksum"), checksum(said)
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged or no certificate: {_AGAIN}") from None
    if number != _FORMAT:
        raise ValueError(f"{path} has format {number}, this transun reads {_FORMAT}: {_AGAIN}")
    if noted != sum_:
        raise ValueError(f"{path} was changed after it was written: {_AGAIN}")
    certificate = _checked(path, said)
    if certificate.weights != _weights(Path(folder)):
        raise ValueError(f"{path} belongs to other weights than those in the folder: {_AGAIN}")
    return certificate


_KINDS: dict[str, tuple[type, ...]] = {
    "date": (str,),
    "weights": (str,),
    "head": (str,),
    "seed": (int,),
    "target": (str,),
    "held_out": (str,),
    "fingerprint": (str,),
    "versions": (dict,),
    "whole": (dict,),
    "weight": (str, type(None)),
    "segments": (list,),
}


def _checked(path: Path, said: Mapping[str, Any]) -> Certificate:
    wrong = [name for name, kinds in _KINDS.items() if name not in said or not isinstance(said[name], kinds)]
    wrong += [name for name in said if name not in _KINDS]
    if wrong:
        raise ValueError(f"{path} is damaged at {wrong[0]!r}: {_AGAIN}")
    try:
        parts = {"whole": _part(said["whole"]), "segments": tuple(map(_part, said["segments"]))}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(f"{path} is damaged in its metrics: {_AGAIN}") from None
    return Certificate(**{**said, **parts})


def _part(said: Mapping[str, Any]) -> Part:
    metrics = {
        str(name): Measured(*(_number(one[end]) for end in ("value", "low", "high")))
        for name, one in said["metrics"].items()
    }
    rows = said["rows"]
    if not isinstance(rows, int) or rows < 0:
        raise ValueError("a number of rows is none")
    return Part(str(said["column"]), str(said["value"]), rows, metrics)


def _part_json(part: Part) -> dict[str, Any]:
    metrics = {
        name: {"value": _plain(one.value), "low": _plain(one.low), "high": _plain(one.high)}
        for name, one in part.metrics.items()
    }
    return {"column": part.column, "value": part.value, "rows": part.rows, "metrics": metrics}


def _number(value: Any) -> float:
    """JSON has neither NaN nor infinity: null is NaN, and the text of infinity is read as it."""
    if value is None:
        return math.nan
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("not a number")
    return float(value)


def _plain(value: float) -> float | str | None:
    return value if math.isfinite(value) else None if math.isnan(value) else str(value)


def _weights(folder: Path) -> str:
    try:
        return str(json.loads((folder / _MODEL).read_text(encoding="utf-8"))["weights"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{folder} holds no readable model: give the folder that `transun fit` wrote, whole") from None
