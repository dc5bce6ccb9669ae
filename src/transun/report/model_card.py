"""The model card of a saved model: a README with front matter, as registries such as the Hugging Face hub read it."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from transun import __version__
from transun.models.certificate import Certificate, Measured, Part
from transun.models.head_summary import summarise_head
from transun.report.assessment import metric_text, metric_title
from transun.report.formatting import visible
from transun.report.markdown import escape, table
from transun.support.counting import counted
from transun.support.text_form import dumps
from transun.tables.model import TableModel

__all__ = ["model_card"]

_TASK = "tabular-regression"
_NOT_CERTIFIED = (
    "Nobody has certified the totals of this model. `transun evaluate MODEL DATA --certify` measures them on rows that "
    "it has not seen."
)
_LIMITS = (
    "Predictions are estimates of the mean, made to add up to the right total; they are no medians. The numbers above "
    "hold for rows like those that were held out: totals of another time or another population can be off, and ids "
    "that were not in the training rows share one guess."
)


def model_card(
    trained: TableModel,
    certificate: Certificate | None,
    inputs: Sequence[Mapping[str, Any]],
    graph: str,
    output: str = "prediction",
) -> str:
    """The card as Markdown: what the model predicts, how right its totals are, how it is used, what it reads.

    The front matter is YAML, which every JSON value is, so that no name from the data can break out of it.

    Args:
        trained: the model.
        certificate: what was measured about its totals; None where nobody has.
        inputs: name, dtype, shape and meaning of every input of the exported graph.
        graph: the name of the file of the graph.
        output: the name that the prediction has there.

    """
    target = visible(trained.target)
    exposure = trained.exposure
    per_unit = "" if exposure is None else f" for an exposure of {escape(visible(exposure))}"
    sections = {
        f"Mean {escape(target)} of a row": [
            f"A model of [transun](https://pypi.org/project/transun) that predicts the mean of **{escape(target)}**"
            f"{per_unit} from {counted(len(trained.features.sources), 'column')} of a table. "
            f"Head: `{summarise_head(dumps(trained.model.head))}`."
        ],
        "How right its totals are": [_NOT_CERTIFIED] if certificate is None else _measured(certificate),
        "Use": [_usage(inputs, graph, output)],
        "Columns": [_columns(inputs)],
        "Limits": [_LIMITS],
    }
    first, *others = sections
    parts = [_front_matter(trained, certificate), f"# {first}", *sections[first]]
    for title in others:
        parts += [f"## {title}", *sections[title]]
    return "\n\n".join(parts) + "\n"


def _front_matter(trained: TableModel, certificate: Certificate | None) -> str:
    entries: dict[str, Any] = {
        "library_name": "transun",
        "pipeline_tag": _TASK,
        "tags": ["transun", "onnx", "retransformation-bias", _TASK],
    }
    if certificate is not None:
        finite = {name: each for name, each in certificate.whole.metrics.items() if math.isfinite(each.value)}
        entries["metrics"] = list(finite)
        result = {
            "task": {"type": _TASK},
            "dataset": {"name": visible(certificate.held_out), "type": "tabular"},
            "metrics": [
                {"type": name, "name": metric_title(name), "value": each.value} for name, each in finite.items()
            ],
        }
        entries["model-index"] = [{"name": f"{visible(trained.target)} by transun", "results": [result]}]
    lines = [f"{key}: {json.dumps(value, ensure_ascii=True, allow_nan=False)}" for key, value in entries.items()]
    return "\n".join(["---", *lines, "---"])


def _measured(certificate: Certificate) -> list[str]:
    """Metrics of the rows held out, of the whole and of segments."""
    whole = certificate.whole
    rows = [[escape(metric_title(name)), *_texts(name, each)] for name, each in whole.metrics.items()]
    parts = [
        f"Measured on {counted(whole.rows, 'row')} that the training has not seen "
        f"({escape(visible(certificate.held_out))}), with 99 % intervals; predicted / actual total is "
        "1 where the total is right.",
        table(["metric", "value", "99 % from", "to"], rows),
    ]
    segments = [_segment(part) for part in certificate.segments if "PGR" in part.metrics]
    if segments:
        header = ["segment", "rows", "predicted / actual total", "99 % from", "to"]
        parts.append(table(header, segments))
    if certificate.noise is not None:
        parts.append(escape(certificate.noise.sentence()))
    return parts


def _segment(part: Part) -> list[str]:
    name = escape(visible(f"{part.column} = {part.value}"))
    return [name, f"{part.rows:,}", *_texts("PGR", part.metrics["PGR"])]


def _texts(name: str, measured: Measured) -> list[str]:
    return [metric_text(name, value) for value in (measured.value, measured.low, measured.high)]


def _usage(inputs: Sequence[Mapping[str, Any]], graph: str, output: str) -> str:
    names = ", ".join(f"{json.dumps(visible(each['name']))}: ..." for each in inputs[:2])
    more = ", ..." if len(inputs) > 2 else ""
    return f"""With transun, which executes nothing from these files:

```python
from transun import load

model = load("the folder of these files")  # such as huggingface_hub.snapshot_download(...) returns
model.predict("rows.csv")  # or a frame, a Parquet file, columns by name
```

Without transun, by onnxruntime alone; `{graph}.json` describes the inputs:

```python
import onnxruntime

session = onnxruntime.InferenceSession("{graph}")
(prediction,) = session.run(["{output}"], {{{names}{more}}})
```"""


def _columns(inputs: Sequence[Mapping[str, Any]]) -> str:
    rows = [[escape(visible(each["name"])), each["dtype"], escape(each["meaning"])] for each in inputs]
    return table(["input", "type", "what it is"], rows) + f"\n\nMade by transun {__version__}."
