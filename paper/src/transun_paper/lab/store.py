"""Results on disk, found by the text of what was computed: a finished run is never repeated."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from transun.support.files import write_json


class StoredCost(NamedTuple):
    """What stored results took: how many there are, of how many the time is known, and seconds of one core in all."""

    results: int
    timed: int
    seconds: float


@dataclass(frozen=True)
class Store:
    """A folder of JSON results, one file per text.

    A result is written under a temporary name and then renamed, so an interrupted run leaves no incomplete file.

    Args:
        folder: of the files.
        used: the texts whose results were asked for, from which the cost of a report is known.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> store.run("1 + 1", lambda: 2), store.run("1 + 1", lambda: 3)  # the second is read back
    (2, 2)

    """

    folder: Path
    used: set[str] = field(default_factory=set, compare=False, repr=False)

    def run(self, text: str, compute: Callable[[], Any]) -> Any:
        """The result stored for this text, computed and stored if there is none yet."""
        if text in self:
            return self.read(text)
        began = time.process_time()
        result = compute()
        self.keep(text, result, time.process_time() - began)
        self.used.add(text)
        return result

    def __contains__(self, text: str) -> bool:
        return self.path(text).exists()

    def read(self, text: str) -> Any:
        """The result stored for this text."""
        self.used.add(text)
        return self.entry(text)["result"]

    def keep(self, text: str, result: Any, seconds: float | None = None) -> None:
        """Store a result that was computed elsewhere, and the seconds of one core that it took, where they are known.

        The seconds are of the processor and not of the clock, so that a busy machine does not make them more.
        """
        timed = {} if seconds is None else {"seconds": round(seconds, 3)}
        write_json(self.path(text), {"text": text, **timed, "result": result})

    def cost(self, texts: Iterable[str]) -> StoredCost:
        """What the results of these texts took.

        A run tells its seconds of training itself; those of the processor count where both are known.

        >>> import tempfile
        >>> store = Store(Path(tempfile.mkdtemp()))
        >>> store.keep("a", 1, seconds=2.0), store.keep("b", {"seconds": 3.0}), store.keep("c", 4)
        (None, None, None)
        >>> store.cost(["a", "b", "c"])
        StoredCost(results=3, timed=2, seconds=5.0)
        """
        known = [_seconds(self.entry(text)) for text in set(texts)]
        timed = [seconds for seconds in known if seconds is not None]
        return StoredCost(len(known), len(timed), math.fsum(timed))

    def torch_versions(self) -> list[str]:
        """The versions of torch by which the results that were asked for were computed, as far as they tell."""
        results = [self.entry(text)["result"] for text in self.used]
        return sorted({result["torch"] for result in results if isinstance(result, dict) and "torch" in result})

    def entry(self, text: str) -> dict[str, Any]:
        """All that is stored for this text: the text, the seconds where they are known, and the result."""
        stored: dict[str, Any] = json.loads(self.path(text).read_text(encoding="utf-8"))
        return stored

    def path(self, text: str) -> Path:
        """The file of the result of this text."""
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _seconds(stored: dict[str, Any]) -> float | None:
    result = stored["result"]
    return stored.get("seconds", result.get("seconds") if isinstance(result, dict) else None)


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
