"""`transun serve` under load from this machine: requests a second, latencies, refusals, and whether memory stays flat.

Writes benchmarks/results/serve.json. `--seconds` sets the length of the phase of 1,000 requests a second; fewer and as
many as possible take a fifth of it each. The client shares the cores with the server, so that what is measured is a
lower bound. Every hundredth request is malformed and every thousandth is too large: all of them must be refused, and no
good one. Labelled feedback for a tenth of the predictions is sent too. A server that ends is an error.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from bench_serving import table
from record import Cell, machine, write

from transun import LogSUN, Recipe, train

HEADERS = "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
CONNECTIONS = 32
SHARES = ("good", 1), ("malformed", 100), ("oversized", 1000)
STATUSES = ("good", 200), ("malformed", 400), ("oversized", 413)


@dataclass
class Load:
    """What the clients have seen."""

    seconds: list[float] = field(default_factory=list)
    statuses: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, kind: str, status: int, seconds: float) -> None:
        self.statuses[kind, status] = self.statuses.get((kind, status), 0) + 1
        if kind == "good":
            self.seconds.append(seconds)

    def count(self, *kinds: str) -> int:
        """Answers to requests of these kinds, whatever their status."""
        return sum(count for (kind, _), count in self.statuses.items() if kind in kinds)

    def milliseconds(self, level: float) -> float:
        """A quantile of the latencies of good requests."""
        return round(1e3 * float(np.quantile(self.seconds, level)), 1)


async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes) -> tuple[int, bytes]:
    """Status and body of the answer, over a connection that is kept."""
    writer.write(HEADERS.format(path=path, size=len(body)).encode() + body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    size = int(re.search(r"content-length: (\d+)", head)[1])
    return int(head.split()[1]), await reader.readexactly(size)


async def client(
    port: int, number: int, interval: float, until: float, bodies: dict[str, list[bytes]], load: Load
) -> None:
    """One connection that sends a request every `interval` seconds, or without a pause if it is 0.

    A latency is counted from the moment at which a request was due, so that a server that stalls is not excused.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    due, sent = time.perf_counter() + interval * number / CONNECTIONS, number
    while due < until:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        kind = next(name for name, share in reversed(SHARES) if sent % share == 0)
        body = bodies[kind][sent % len(bodies[kind])]
        began = due if interval else time.perf_counter()
        status, answer = await post(reader, writer, "/predict", body)
        load.add(kind, status, time.perf_counter() - began)
        if kind == "oversized":  # the body was not read, so that the connection is closed
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if kind == "good" and sent % 10 == 0:
            made = json.loads(answer)
            actual = [value * 1.01 for value in made["predictions"]]
            feedback = json.dumps({"ids": made["ids"], "actual": actual}).encode()
            load.add("feedback", (await post(reader, writer, "/feedback", feedback))[0], 0.0)
        sent += CONNECTIONS if CONNECTIONS % 2 else CONNECTIONS + 1
        due = due + interval if interval else time.perf_counter()
    writer.close()


async def phase(port: int, rate: float | None, seconds: float, bodies: dict[str, list[bytes]]) -> Load:
    """What the clients see in so many seconds, at a rate or without pauses."""
    load, until = Load(), time.perf_counter() + seconds
    interval = CONNECTIONS / rate if rate else 0.0
    calls = (client(port, number, interval, until, bodies, load) for number in range(CONNECTIONS))
    await asyncio.gather(*calls)
    return load


async def measured(
    server: int, port: int, rate: float | None, seconds: float, bodies: dict[str, list[bytes]]
) -> list[Cell]:
    """One phase as a row of the table."""
    began, worked, memory = time.perf_counter(), processor_seconds(server), [resident(server)]

    async def note_memory() -> None:
        await asyncio.sleep(seconds / 2)
        memory.append(resident(server))

    load, _ = await asyncio.gather(phase(port, rate, seconds, bodies), note_memory())
    memory.append(resident(server))
    answers = sum(load.statuses.values())
    good, malformed, oversized = (load.statuses.get(each, 0) for each in STATUSES)
    return [
        "as many as it can" if rate is None else f"{rate:g}",
        seconds,
        round(answers / (time.perf_counter() - began)),
        load.milliseconds(0.5),
        load.milliseconds(0.99),
        load.milliseconds(1.0),
        round(1e3 * (processor_seconds(server) - worked) / answers, 2),
        f"{good} of {load.count('good')}",
        f"{malformed + oversized} of {load.count('malformed', 'oversized')}",
        round(memory[2] - memory[0], 1),
        round(memory[2] - memory[1], 1),
    ]


def resident(process: int) -> float:
    """Megabytes that a process holds."""
    return int(Path(f"/proc/{process}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def processor_seconds(process: int) -> float:
    """Seconds that the processors have worked for a process, whatever else they did meanwhile."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bodies_of(data: dict[str, np.ndarray]) -> dict[str, list[bytes]]:
    rows = [
        {
            "country": str(data["country"][number]),
            "item": int(data["item"][number]),
            "price": float(data["price"][number]),
            "age": float(data["age"][number]),
            "discount": None if np.isnan(data["discount"][number]) else float(data["discount"][number]),
            "ordered": str(data["ordered"][number]),
        }
        for number in range(500)
    ]
    return {
        "good": [json.dumps(row).encode() for row in rows],
        "malformed": [json.dumps(row | {"price": "cheap"}).encode() for row in rows[:7]] + [b"{", b"[]"],
        "oversized": [b" " * (2 << 20)],
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60.0, help="length of the phase of 1,000 a second")
    seconds = arguments.parse_args().seconds
    data = table(8192)
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as folder:
        model = train(data, "gmv", LogSUN(shared="all"), recipe=Recipe(epochs=1), progress=False)
        model.save(folder)
        command = [sys.executable, "-u", "-m", "transun", "serve", folder, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                port = int(re.search(r":(\d+);", server.stdout.readline())[1])
                bodies = bodies_of(data)
                asyncio.run(phase(port, 100.0, 5.0, bodies))
                for rate, length in ((200.0, seconds / 5), (1000.0, seconds), (None, seconds / 5)):
                    rows.append(asyncio.run(measured(server.pid, port, rate, length, bodies)))
                    print(*rows[-1], flush=True)
                if server.poll() is not None:
                    raise RuntimeError(f"the server has stopped with code {server.returncode}")
            finally:
                server.terminate()
    write(
        "serve",
        f"transun serve, one process, with a small network (6 columns): requests of one row over {CONNECTIONS} "
        "connections from the same machine. Aims: 1,000 requests a second with a 99th percentile under 50 ms on 2 free "
        "cores, every wrong request refused, no restart in ten minutes, memory flat.",
        [
            "requests a second",
            "seconds",
            "answered a second",
            "median ms",
            "p99 ms",
            "longest ms",
            "processor ms a request",
            "good ones",
            "wrong ones refused",
            "memory, MB more",
            "in the second half",
        ],
        rows,
        [
            "Answers include feedback for a tenth of the predictions and 1 % of wrong requests.",
            "One process has answered all of it.",
        ],
        where=machine("torch", "starlette", "uvicorn"),
        script=f"bench_serve.py --seconds {seconds:g}",
    )


if __name__ == "__main__":
    main()
