"""Pictures, drawn without a browser."""

from pathlib import Path
from typing import Any

from transun.support.extras import need


def save(chart: Any, path: Path) -> None:
    """Write a picture; the ending of the path decides the format: .svg, .png, .html or .json."""
    need("vl_convert")
    path.parent.mkdir(parents=True, exist_ok=True)
    chart.save(str(path), **({"scale_factor": 2} if path.suffix == ".png" else {}))
