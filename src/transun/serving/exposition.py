"""The numbers of a server in the text form that Prometheus reads."""

from collections.abc import Mapping
from typing import Any

from transun.serving.feedback import Feedback
from transun.support.extras import need

__all__ = ["ServerMetrics"]

# Upper ends of the buckets of latencies, in seconds.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class ServerMetrics:
    """Counts, latencies and totals of one server, each server with its own: see `text` for what there is.

    Args:
        feedback: whose totals are shown.

    """

    def __init__(self, feedback: Feedback) -> None:
        client = need("prometheus_client")
        self._registry: Any = client.CollectorRegistry()
        counter, gauge = client.Counter, client.Gauge
        kept = {"registry": self._registry}
        self._requests = counter(
            "transun_requests", "Requests that were answered, by path and status.", ["path", "status"], **kept
        )
        self._seconds = client.Histogram(
            "transun_request_seconds", "Time from request to answer.", ["path"], buckets=_BUCKETS, **kept
        )
        self._rows = counter("transun_predicted_rows", "Rows that were predicted.", **kept)
        self._sum = gauge("transun_predicted_sum", "Sum of all predictions.", **kept)
        self._unseen = counter("transun_unseen_ids", "Ids that training has not seen, by column.", ["column"], **kept)

        def show(name: str, text: str, value: Any) -> None:
            gauge(name, text, **kept).set_function(value)

        show("transun_feedback_rows", "Labelled rows.", lambda: feedback.rows)
        show("transun_feedback_predicted_sum", "Predicted total of labelled rows.", lambda: feedback.predicted)
        show("transun_feedback_actual_sum", "Actual total of labelled rows.", lambda: feedback.actual)
        show("transun_feedback_pgr", "Predicted over actual total of labelled rows.", lambda: feedback.pgr)
        about = "end of the always-valid 95 % interval of PGR."
        show("transun_feedback_pgr_low", f"Lower {about}", lambda: feedback.interval.low)
        show("transun_feedback_pgr_high", f"Upper {about}", lambda: feedback.interval.high)
        for name, (meaning, value) in feedback.promise.gauges().items():
            show(f"transun_{name}", meaning, value)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def predicted(self, rows: int, total: float, unseen: Mapping[str, int]) -> None:
        """Count predictions, their sum, and the ids among their rows that training has not seen."""
        self._rows.inc(rows)
        self._sum.inc(total)
        for column, count in unseen.items():
            self._unseen.labels(column).inc(count)

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        written: bytes = need("prometheus_client").generate_latest(self._registry)
        return written
