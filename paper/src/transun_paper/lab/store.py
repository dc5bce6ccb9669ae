"""Results on disk, found by the text of what was computed: a finished run is never repeated."""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transun.support.files import write_json


@dataclass(frozen=True)
class Store:
    """A folder of JSON results, one file per text.

    A result is written under a temporary name and then renamed, so an interrupted run leaves no incomplete file.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> store.run("1 + 1", lambda: 2), store.run("1 + 1", lambda: 3)  # the second is read back
    (2, 2)
    """

    folder: Path

    def run(self, text: str, compute: Callable[[], Any]) -> Any:
        """The result stored for this text, computed and stored if there is none yet."""
        if text in self:
            return self.read(text)
        result = compute()
        self.keep(text, result)
        return result

    def __contains__(self, text: str) -> bool:
        return self.path(text).exists()

    def read(self, text: str) -> Any:
        """The result stored for this text."""
        return json.loads(self.path(text).read_text(encoding="utf-8"))["result"]

    def keep(self, text: str, result: Any) -> None:
        """Store a result that was computed elsewhere."""
        write_json(self.path(text), {"text": text, "result": result})

    def path(self, text: str) -> Path:
        """The file of the result of this text."""
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def rounded(value: Any, digits: int = 7) -> Any:
    """Plain values with so many significant digits; a number that is not finite becomes None, as JSON cannot hold it.

    >>> rounded({"a": [1 / 3, float("nan")]}, digits=3)
    {'a': [0.333, None]}
    """
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value
