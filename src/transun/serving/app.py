"""The service over HTTP: paths, limits of bodies, and errors of one sentence."""

import gc
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from transun.data.json_rows import TooManyRowsError
from transun.serving.batching import OverloadedError, Worker
from transun.serving.exposition import ServerMetrics
from transun.serving.service import Predicted, Service
from transun.support.extras import need

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["LIBRARIES", "create_app", "listen", "run_server"]

LIBRARIES = ("starlette", "uvicorn", "prometheus_client")
"""The libraries of the extra `serve`."""


# Connections at once; more are answered by 503 before their bodies are read.
_CONNECTIONS = 512
# What Prometheus expects of its text form.
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class _RefusedError(Exception):
    """A request that is answered by a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status, self.sentence = status, sentence
        super().__init__(sentence)


def create_app(service: Service) -> "Starlette":
    """An application of Starlette, for any ASGI server; see `transun serve --help` for its paths.

    Args:
        service: answers the requests.

    """
    applications, responses, routing = (need(f"starlette.{name}") for name in ("applications", "responses", "routing"))
    metrics = ServerMetrics(service.totals)
    worker: Worker[Predicted] = Worker(service.predict, service.limits.body, service.limits.waiting)

    async def predict(request: "Request") -> Any:
        answer = await worker.submit(await _body(request, service.limits.body))
        metrics.predicted(len(answer.predictions), sum(answer.predictions), answer.unseen)
        return {"predictions": answer.predictions, "ids": answer.ids}

    async def feedback(request: "Request") -> Any:
        return await worker.call(service.feedback, await _body(request, service.limits.body))

    async def schema(request: "Request") -> Any:
        return service.schema()

    async def health(request: "Request") -> Any:
        return await worker.run(service.health)

    async def numbers(request: "Request") -> "Response":
        return _response(responses.Response(await worker.run(metrics.text), media_type=_PROMETHEUS))

    def answering(path: str, answer: Callable[["Request"], Awaitable[Any]]) -> Callable[["Request"], Awaitable[Any]]:
        async def handler(request: "Request") -> "Response":
            began, status, headers = time.perf_counter(), 200, {}
            try:
                content = await answer(request)
            except _RefusedError as error:
                status, content = error.status, {"error": error.sentence}
            except TooManyRowsError as error:
                status, content = 413, {"error": str(error)}
            except ValueError as error:
                status, content = 400, {"error": str(error)}
            except OverloadedError as error:
                status, content, headers = 503, {"error": str(error)}, {"Retry-After": "1"}
            metrics.answered(path, status, time.perf_counter() - began)
            return _response(responses.JSONResponse(content, status, headers))

        return handler

    async def no_path(request: "Request", error: Exception) -> "Response":
        status = getattr(error, "status_code", 404)
        paths = "POST /predict, POST /feedback, GET /schema, GET /health, GET /metrics"
        sentence = f"{request.method} {request.url.path} is none of {paths}"
        return _response(responses.JSONResponse({"error": sentence}, status, getattr(error, "headers", None)))

    @asynccontextmanager
    async def lifespan(app: "Starlette") -> AsyncIterator[None]:
        try:
            yield
        finally:
            worker.close()

    def route(path: str, answer: Callable[["Request"], Awaitable[Any]], method: str) -> Any:
        return routing.Route(path, answering(path, answer), methods=[method])

    routes = [
        route("/predict", predict, "POST"),
        route("/feedback", feedback, "POST"),
        route("/schema", schema, "GET"),
        route("/health", health, "GET"),
        routing.Route("/metrics", numbers, methods=["GET"]),
    ]
    app: Starlette = applications.Starlette(
        routes=routes, exception_handlers={404: no_path, 405: no_path}, lifespan=lifespan
    )
    return app


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; an `OSError` names the address if it cannot be had."""
    try:
        if not 0 <= port < 1 << 16:
            raise OSError("ports are numbers from 0 to 65535")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_CONNECTIONS)
    except OSError as error:
        raise OSError(f"cannot listen at {host}, port {port} ({error}): name others with --host and --port") from None


def run_server(service: Service, listening: socket.socket) -> None:
    """Answer requests until the process is interrupted or terminated; what has begun is finished first."""
    import torch

    # A request is small: threads that wait for each other would cost more than they save, and the loop needs a core.
    torch.set_num_threads(1)
    uvicorn = need("uvicorn")
    app = create_app(service)
    # The garbage collector would visit every object of the libraries and the model from time to time, and no request is
    # answered meanwhile: it took a fifth of a second. What is there before the first request stays, and is left out.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )
    uvicorn.Server(config).run(sockets=[listening])


async def _body(request: "Request", most: int) -> bytes:
    """The body of a request, of which no more is read than is allowed."""
    # A page of another site can make a browser send any other type without asking this server.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise _RefusedError(415, "the body must be JSON: send the header Content-Type: application/json")
    too_large = _RefusedError(413, f"the body is larger than the {most:,} bytes allowed: send several requests")
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared[:19]) > most:
        raise too_large
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise too_large
            parts.append(part)
    except need("starlette.requests").ClientDisconnect:
        raise _RefusedError(400, "the connection was closed before the body was complete") from None
    return b"".join(parts)


def _response(made: Any) -> "Response":
    """The type of what an optional library has made."""
    response: Response = made
    return response
