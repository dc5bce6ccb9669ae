"""What a server answers, without HTTP: bodies of requests in, objects for JSON out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from transun.data.columns import Chunk
from transun.data.json_rows import JsonReader, parse_json
from transun.data.logical import AnyType, FractionType
from transun.data.magnitude import require_squarable
from transun.data.shift import TableShift
from transun.serving.feedback import Feedback, MadePredictions
from transun.serving.promise import NoPromise, Promise
from transun.support.arrays import Floats
from transun.support.counting import counted
from transun.support.text_form import dumps
from transun.tables.model import TableModel
from transun.tables.prediction import predict_chunk

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Limits", "Predicted", "Service"]


@dataclass(frozen=True)
class Limits:
    """How much a server takes, so that no request and no number of them exhausts its memory.

    Args:
        body: bytes of the body of a request.
        rows: rows of a request.
        waiting: bytes of bodies that wait for their turn.
        predictions: that are remembered for feedback by id, 8 bytes each.

    """

    body: int = 1 << 20
    rows: int = 10_000
    waiting: int = 1 << 26
    predictions: int = 1_000_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 1:
                raise ValueError(f"the limit of {name} is {value}: it must be 1 or more")


@dataclass(frozen=True)
class Predicted:
    """The answer to one request of predictions.

    Args:
        ids: by which feedback names the predictions.
        predictions: in units of the target.
        unseen: by column, how many ids training has not seen.

    """

    ids: list[str]
    predictions: list[float]
    unseen: Mapping[str, int] = field(default_factory=dict)


class Service:
    """A table model that answers requests, and counts what comes back for its predictions.

    Its methods are called by one thread at a time.

    Args:
        model: predicts.
        promise: of the certificate; see `promise_of`.
        limits: of the requests.

    >>> import json
    >>> model = train({"item": ["a", "b"], "gmv": [1.0, 3.0]}, "gmv", MSE())
    >>> service = Service(model)
    >>> (answer,) = service.predict([b'{"item": "a"}'])
    >>> answer.predictions == model.predict({"item": ["a"]}).tolist()
    True
    >>> service.feedback(f'{{"ids": {json.dumps(answer.ids)}, "actual": [1.5]}}'.encode())["rows"]
    1

    """

    def __init__(
        self, model: TableModel, promise: Promise | NoPromise = NoPromise(), limits: Limits = Limits()
    ) -> None:
        self.model, self.limits = model, limits
        types = {name: model.features.types.get(name, AnyType()) for name in model.features.sources}
        if model.exposure is not None:
            types[model.exposure] = FractionType()
        self._reader = JsonReader(types, limits.rows)
        self._made = MadePredictions(limits.predictions)
        self.totals = Feedback(promise)

    def schema(self) -> dict[str, Any]:
        """The columns of a request, in words and types, and the limits."""
        kinds = {
            source: str(kind) for name, kind in self.model.features.columns.items() for source in kind.sources(name)
        }
        columns = [
            {"name": name, "kind": kinds.get(name, "exposure"), "type": type(type_).__name__, "form": type_.json_form}
            for name, type_ in self._reader.types.items()
        ]
        return {
            "target": self.model.target,
            "exposure": self.model.exposure,
            "head": dumps(self.model.model.head),
            "columns": columns,
            "missing": "null",
            "limits": {"bytes": self.limits.body, "rows": self.limits.rows},
        }

    def health(self) -> dict[str, Any]:
        """Whether the promise of the certificate is kept; a server that answers is alive."""
        promise = self.totals.promise
        return {"status": promise.status, "promise": promise.sentence(), "labelled_rows": self.totals.rows}

    def predict(self, bodies: Sequence[bytes]) -> list[Predicted | ValueError]:
        """The answers to several requests, predicted together, which is quicker; a wrong one is answered by its error.

        Predictions of rows do not depend on the rows beside them, but for rounding.
        """
        requests = [self._read(body) for body in bodies]
        good = [request for request in requests if not isinstance(request, ValueError)]
        try:
            answers = iter(self._predict(good) if good else [])
        except ValueError as error:
            if len(good) > 1:  # rows are counted within a request, and a mistake concerns its own request only
                return [answer for body in bodies for answer in self.predict([body])]
            answers = iter([error])
        return [request if isinstance(request, ValueError) else next(answers) for request in requests]

    def feedback(self, body: bytes) -> dict[str, Any]:
        """Count actual amounts of predictions, by their ids, or of rows; a wrong request is not counted at all."""
        content = parse_json(body)
        given = [name for name in ("ids", "rows", "columns") if isinstance(content, dict) and name in content]
        if len(given) != 1 or set(content) != {given[0], "actual"}:
            raise ValueError('feedback is an object of "actual", a list of amounts, and "ids", "rows" or "columns"')
        (name,), actual = given, self._amounts(content["actual"])
        if name == "ids":
            if not isinstance(content["ids"], list):
                raise ValueError("ids is not a list")
            _require_equal(len(content["ids"]), len(actual), "ids")
            pred = self._made.take(content["ids"])
        else:
            columns = self._reader.read(content["rows"] if name == "rows" else {"columns": content["columns"]})
            _require_equal(len(next(iter(columns.values()))), len(actual), name)
            pred = self._predictions(self._reader.to_arrow(columns))[0]
        self.totals.update(pred, actual)
        interval = self.totals.interval
        return {
            "counted": len(actual),
            "rows": self.totals.rows,
            "predicted": self.totals.predicted,
            "actual": self.totals.actual,
            "pgr": _finite(self.totals.pgr),
            "pgr_low": _finite(interval.low),
            "pgr_high": _finite(interval.high),
        }

    def _read(self, body: bytes) -> dict[str, list[Any]] | ValueError:
        try:
            return self._reader.read(parse_json(body))
        except ValueError as error:
            return error

    def _predict(self, requests: Sequence[Mapping[str, list[Any]]]) -> list[Predicted | ValueError]:
        joined = {name: [value for each in requests for value in each[name]] for name in self._reader.types}
        pred, shift = self._predictions(self._reader.to_arrow(joined))
        ids, values = self._made.add(pred.tolist()), pred.tolist()
        unseen = {name: column.unseen for name, column in shift.columns.items() if column.unseen}
        first = next(iter(self._reader.types))
        ends = pairwise([0, *accumulate(len(each[first]) for each in requests)])
        # What was unseen is counted for all requests together, with the first of them.
        return [Predicted(ids[begin:end], values[begin:end], {} if begin else unseen) for begin, end in ends]

    def _predictions(self, table: "pa.Table") -> tuple[Floats, TableShift]:
        chunk = predict_chunk(self.model, Chunk(0, table, 0), ())
        pred = np.asarray(chunk.pred.double().numpy(), np.float64)
        wrong = np.flatnonzero(~np.isfinite(pred))
        if len(wrong):
            raise ValueError(f"row {wrong[0]} has values so extreme that its prediction is not finite: correct them")
        return pred, chunk.shift

    def _amounts(self, values: Any) -> Floats:
        if not isinstance(values, list) or not values:
            raise ValueError("actual is not a list of amounts")
        amounts = JsonReader({"actual": FractionType()}, self.limits.rows).read({"columns": {"actual": values}})[
            "actual"
        ]
        if None in amounts:
            raise ValueError(f"actual, row {amounts.index(None)} is null: leave out rows whose amount is not known")
        actual = np.array(amounts, np.float64)
        require_squarable(np.arange(len(actual)), **{"actual amount": actual})
        return actual


def _require_equal(count: int, amounts: int, name: str) -> None:
    if count != amounts:
        raise ValueError(f"{name} has {counted(count, 'row')} and actual has {amounts:,}: give both the same")


def _finite(value: float) -> float | None:
    """JSON has no NaN and no infinity: they are null."""
    return value if math.isfinite(value) else None
