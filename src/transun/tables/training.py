"""A training that can be judged: some rows held out for the end, some watched on the way, and a way to go on."""

import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from transun.data import Dataset, by_row, read_table
from transun.metrics import NRMSE, PGR
from transun.models.network import Model
from transun.support.files import replacing
from transun.tables.model import TableModel, steady_batch
from transun.training.averaging import EMA
from transun.training.calibration import balance
from transun.training.evaluation import BATCH, measure
from transun.training.history import Step
from transun.training.loop import fit
from transun.training.optimisers import Adam, linear

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Look", "Settings", "Training", "hold_out", "slopes", "train_watched"]


@dataclass(frozen=True)
class Settings:
    """How to train and what to keep aside.

    Args:
        epochs: passes over the rows at most.
        batch_size: rows a step; None is a 32nd of the rows, yet from 16 to 512, so that small tables get steps enough.
        rate: learning rate of Adam.
        seed: of both splits, the first weights and the order of rows.
        valid_share: share of the training rows that early stopping watches; 0 trains to the last epoch.
        test_share: share of all rows that nothing sees before the end; the certificate is of them.
        patience: epochs without a better validation error before training stops.
        balanced: whether a last factor makes the total right; see `balance`.

    """

    epochs: int = 20
    batch_size: int | None = None
    rate: float = 1e-3
    seed: int = 0
    valid_share: float = 0.1
    test_share: float = 0.2
    patience: int = 3
    balanced: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.rate < math.inf:
            raise ValueError(f"the learning rate must be finite and above 0, got {self.rate:g}")
        if not 0.0 <= self.valid_share < 1.0:
            raise ValueError(f"the validation share must be at least 0 and below 1, got {self.valid_share:g}")
        if not 0.0 < self.test_share < 1.0:
            raise ValueError(
                f"the test share must lie strictly between 0 and 1, got {self.test_share:g}: without rows held out "
                "nobody could tell what the totals are worth"
            )


@dataclass(frozen=True)
class Look:
    """Metrics of the validation rows after `step` steps, by the weights of that step; those kept are averaged."""

    step: int
    values: dict[str, float]


@dataclass(frozen=True)
class Training:
    """A trained model, and what was seen on the way."""

    model: TableModel
    looks: tuple[Look, ...] = ()
    rows: int = 0
    valid_rows: int = 0
    parameters: int = 0


def hold_out(source: Any, settings: Settings) -> tuple["pa.Table", "pa.Table"]:
    """Rows to train on and rows to judge by, told apart by a hash of the row's number and the seed."""
    table = read_table(source)
    try:
        return by_row(table, 1.0 - settings.test_share, settings.seed)
    except ValueError as error:
        raise ValueError(
            f"{len(table)} rows cannot be split with a test share of {settings.test_share:g}: {error}; give more rows"
        ) from None


def train_watched(
    untrained: TableModel,
    source: Any,
    settings: Settings = Settings(),
    *,
    base: Model | None = None,
    journal: Path | None = None,
    progress: bool | None = None,
) -> Training:
    """Train on a table with early stopping, looking at PGR and NRMSE of the validation rows after each epoch.

    Args:
        untrained: features, network and head; its model is trained in place.
        source: rows with the target.
        settings: how.
        base: a trained model whose weights the first branches start from; see `fit`.
        journal: a file for the state of an interrupted training, from which the next call goes on.
        progress: show a bar; None shows it on a terminal.

    >>> table = {"item": ["a", "b"] * 50, "gmv": [1.0, 10.0] * 50}
    >>> features = Features({"item": Id()}).fit(table)
    >>> untrained = TableModel(features, Model(embedding_mlp(features), LogSUN()), "gmv")
    >>> training = train_watched(untrained, table, Settings(epochs=2))
    >>> [look.step for look in training.looks], training.rows + training.valid_rows
    ([6, 12], 100)

    """
    data = untrained.dataset(source)
    rows, valid = data, None
    if settings.valid_share:
        rows, valid = data.split(1.0 - settings.valid_share, settings.seed)
    batch_size = settings.batch_size or steady_batch(len(rows))
    watch = _Watch(untrained.model, valid, math.ceil(len(rows) / batch_size), settings.epochs, journal)
    history = fit(
        untrained.model,
        rows,
        optimiser=Adam(settings.rate),
        epochs=settings.epochs,
        batch_size=batch_size,
        decay=linear,
        averaging=EMA(0.99),
        valid=valid,
        patience=None if valid is None else settings.patience,
        # A run that goes on has the base's weights in its journal; taking them over again is overwritten by it.
        base=base,
        resume=journal,
        seed=settings.seed,
        on_step=watch,
        progress=progress,
    )
    watch.close()
    parameters = sum(parameter.numel() for parameter in untrained.model.parameters())
    model = balance(untrained.model, rows, valid) if settings.balanced else untrained.model
    trained = replace(untrained, model=model, history=history)
    return Training(trained, tuple(watch.looks), len(rows), 0 if valid is None else len(valid), parameters)


@torch.no_grad()
def slopes(model: Model, data: Dataset) -> Tensor | None:
    """How far the bias branch's label moves per unit of target, κ(u) (n,), for heads that have such a branch.

    None where there is no such branch, or where its label is no multiple of the target and so has no slope.

    >>> data = Dataset({"a": [0.0, 1.0]}, [2.0, 2.0])
    >>> model = Model(Constant(), LogSUN()).prepare(data.targets())
    >>> [round(value, 4) for value in slopes(model, data).tolist()]  # 1 / (2 + 1)
    [0.3333, 0.3333]
    """
    found = []
    for batch in data.batches(BATCH):
        raw = model.raw(batch.x)
        zero, one, two = (model.head.ranking_pairs(raw, torch.full_like(batch.y, value)) for value in (0.0, 1.0, 2.0))
        if "bias" not in one:
            return None
        slope = one["bias"][1] - zero["bias"][1]
        if not torch.allclose(two["bias"][1] - one["bias"][1], slope, rtol=1e-3):
            return None
        found.append(slope)
    return torch.cat(found)


@dataclass
class _Watch:
    """Called after every step; looks at the validation rows at the end of each epoch, and keeps looks in a file."""

    model: Model
    valid: Dataset | None
    per_epoch: int
    epochs: int
    journal: Path | None
    looks: list[Look] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Looks without a journal are of a training that is over.
        if self._file is not None and self.journal is not None and self.journal.exists() and self._file.exists():
            self.looks = [Look(int(one["step"]), dict(one["values"])) for one in json.loads(self._file.read_text())]

    @property
    def _file(self) -> Path | None:
        return None if self.journal is None else self.journal.with_suffix(".looks.json")

    def __call__(self, step: Step) -> None:
        done = step.step + 1
        if self.valid is None or (done % self.per_epoch and done < self.epochs * self.per_epoch):
            return
        values = measure(self.model, self.valid, [NRMSE, PGR]).compute()
        self.looks.append(Look(done, values))
        if self._file is not None:
            with replacing(self._file) as draft:
                draft.write_text(json.dumps([asdict(look) for look in self.looks]), encoding="utf-8")

    def close(self) -> None:
        if self._file is not None:
            self._file.unlink(missing_ok=True)
