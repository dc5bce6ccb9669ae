"""A training in TensorBoard."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transun.support.extras import need, require

__all__ = ["TensorBoardTracker"]


class TensorBoardTracker:
    """Writes the numbers of a training into a folder that TensorBoard shows: `fit(..., tracker=...)`.

    The folder is made at the first number, so that of several ranks only rank 0 writes. A training that is resumed may
    be given the same folder: the curves go on, and a step that is trained again has the same numbers.

    Args:
        folder: of one training; TensorBoard compares those beside each other.

    """

    def __init__(self, folder: str | Path) -> None:
        require("tensorboard")
        self.folder = Path(folder)
        self._writer: Any = None

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write the numbers, so that they can be seen at once."""
        if self._writer is None:
            self._writer = need("torch.utils.tensorboard").SummaryWriter(self.folder)
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def __getstate__(self) -> dict[str, Any]:
        # An open file cannot be copied, and scikit-learn copies the parameters of an estimator.
        return {"folder": self.folder, "_writer": None}
