"""A diagnosis as JSON."""

import json
import math
from dataclasses import asdict
from typing import Any

import transun
from transun.diagnosis import Diagnosis

__all__ = ["diagnosis_json"]


def diagnosis_json(diagnosis: Diagnosis) -> str:
    """Every number of the diagnosis; what is not finite is null, since JSON has no other numbers."""
    return json.dumps({"transun": transun.__version__} | _finite(asdict(diagnosis)), ensure_ascii=False, indent=1)


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {key: _finite(part) for key, part in value.items()}
        case list() | tuple():
            return [_finite(part) for part in value]
        case float() if not math.isfinite(value):
            return None
    return value
