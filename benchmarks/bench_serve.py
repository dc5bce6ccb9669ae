"""`transun serve` under load from this machine: requests a second, latencies, refusals, and whether memory stays flat.

Writes benchmarks/results/serve.json. `--seconds` sets the length of each phase. The client shares the cores with the
server, so that what is measured is a lower bound. Every hundredth request is malformed and every thousandth is too
large: all of them must be refused, and no good one. Labelled feedback for a tenth of the predictions is sent too.
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


@dataclass
class Load:
    """What the clients have seen."""

    seconds: list[float] = field(default_factory=list)
    statuses: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, kind: str, status: int, seconds: float) -> None:
        self.statuses[kind, status] = self.statuses.get((kind, status), 0) + 1
        if kind == "good":
            self.seconds.append(seconds)

    def count(self, kind: str, *statuses: int) -> int:
        return sum(count for (of, status), count in self.statuses.items() if of == kind and status in statuses)


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


async def phase(port: int, rate: float | None, seconds: float, bodies: dict[str, list[bytes]]) -> tuple[Load, float]:
    load, began = Load(), time.perf_counter()
    interval = CONNECTIONS / rate if rate else 0.0
    calls = (client(port, number, interval, began + seconds, bodies, load) for number in range(CONNECTIONS))
    await asyncio.gather(*calls)
    return load, time.perf_counter() - began


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
    arguments.add_argument("--seconds", type=float, default=60.0, help="length of each phase")
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
                for rate in (200.0, 1000.0, None):
                    before, worked = resident(server.pid), processor_seconds(server.pid)
                    load, lasted = asyncio.run(phase(port, rate, seconds, bodies))
                    good, all_good = (
                        load.count("good", 200),
                        sum(c for (k, _), c in load.statuses.items() if k == "good"),
                    )
                    wrong = sum(c for (k, _), c in load.statuses.items() if k in ("malformed", "oversized"))
                    refused = load.count("malformed", 400) + load.count("oversized", 413)
                    p50, p99 = (round(1e3 * float(np.quantile(load.seconds, q)), 1) for q in (0.5, 0.99))
                    growth = round(resident(server.pid) - before, 1)
                    asked = "as many as it can" if rate is None else f"{rate:g}"
                    rate_seen = round(sum(load.statuses.values()) / lasted)
                    answered, told = f"{good} of {all_good}", f"{refused} of {wrong}"
                    cost = round(1e3 * (processor_seconds(server.pid) - worked) / sum(load.statuses.values()), 2)
                    rows.append([asked, rate_seen, p50, p99, cost, answered, told, growth])
                    print(*rows[-1], flush=True)
                if server.poll() is not None:
                    raise RuntimeError(f"the server has stopped with code {server.returncode}")
            finally:
                server.terminate()
    write(
        "serve",
        f"transun serve, one process, with a small network (6 columns): requests of one row over {CONNECTIONS} "
        f"connections from the same machine, {seconds:g} seconds each. Aims: 1,000 requests a second with a 99th "
        "percentile under 50 ms on 2 free cores, every wrong request refused, memory flat.",
        [
            "requests a second",
            "answered",
            "median ms",
            "p99 ms",
            "processor ms a request",
            "good ones",
            "wrong ones refused",
            "memory, MB more",
        ],
        rows,
        ["Requests answered include feedback for a tenth of the predictions and 1 % of wrong requests."],
        where=machine("torch", "starlette", "uvicorn"),
    )


if __name__ == "__main__":
    main()
