"""`transun serve` as a process: it answers at the address that it prints, and Ctrl-C stops it."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

from transun.tables import load

for library in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(library)


def test_a_server_answers_until_it_is_interrupted(shop):
    command = [sys.executable, "-m", "transun", "serve", str(shop / "model"), "--port", "0"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())[0]
            promise = server.stdout.readline()
            row = {"item_id": 3, "country": "IT", "price": 9.5, "same": 7.0, "minus": -1.0}
            request = urllib.request.Request(
                f"{address}/predict", json.dumps(row).encode(), {"Content-Type": "application/json"}
            )
            # The socket listens before the server runs, so that the first request waits for it.
            with urllib.request.urlopen(request, timeout=120) as answer:
                predictions = json.load(answer)["predictions"]
        finally:
            server.send_signal(signal.SIGINT)
            _, errors = server.communicate(timeout=120)
    model = load(shop / "model")
    assert predictions == pytest.approx(
        model.predict({name: [value] for name, value in row.items()}).tolist(), rel=1e-5
    )
    assert "the certificate promises a PGR from" in promise
    assert (server.returncode, errors) == (0, "stopped\n")
