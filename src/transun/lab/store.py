"""Results on disk, addressed by the text of what was computed: a finished run is never repeated."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transun.files import replacing


@dataclass(frozen=True)
class Store:
    """A folder of JSON results, one file per text.

    A result is written under a temporary name and renamed, so an interrupted run leaves no half file behind.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> store.run("1 + 1", lambda: 2), store.run("1 + 1", lambda: 3)  # the second is read back
    (2, 2)
    """

    folder: Path

    def run(self, text: str, compute: Callable[[], Any]) -> Any:
        """The result stored for this text, computed and stored if there is none yet."""
        path = self.path(text)
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))["result"]
        result = compute()
        write(path, {"text": text, "result": result})
        return result

    def path(self, text: str) -> Path:
        """Where the result of this text lives."""
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def write(path: Path, value: Any) -> None:
    """Write JSON in one step: the file is either the old one or the new one, never a part."""
    with replacing(path) as draft:
        draft.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
