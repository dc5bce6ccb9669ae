"""What every fuzz test shares: how many cases there are, what may happen in one, and a small trained model.

`make test` runs 200 cases, the same in every run; `make fuzz` runs 10,000, which its variable SEED selects. A case ends
in an answer or in a refusal: an exception that the command line shows as one sentence. Any other exception, a case that
takes more than a minute, and code that the input makes run are failures.
"""

import datetime
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, settings

from transun import Recipe, train
from transun.data import Bag, Datetime, Features, Id, Lists, Number

CASES = int(os.environ.get("TRANSUN_FUZZ_CASES", "200"))
REFUSALS = (ValueError, OSError, FloatingPointError)
_LONGEST = 60
# Longer than this, a message is no sentence that a person reads.
_LONGEST_MESSAGE = 1_500
# What a file could do only by making Python run something. Imports and `compile` are left out: our own code does both.
_FORBIDDEN = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "subprocess.Popen",
    "pickle.find_class",
    "shutil.rmtree",
)

_watching = False


def cases(share):
    """Settings of a test that gets this share of all cases."""
    return settings(
        max_examples=max(1, round(share * CASES)),
        deadline=None,
        derandomize="TRANSUN_FUZZ_CASES" not in os.environ,
        database=None,
        # Fixtures of a fuzz test are not changed by its cases, or are overwritten by every case.
        suppress_health_check=list(HealthCheck),
    )


class Hang(BaseException):
    """A case that takes too long; no `except Exception` in the code under test swallows it."""


@contextmanager
def watched():
    """Fails the test if the block takes longer than a minute or makes Python run something."""
    global _watching

    def stop(*_):
        raise Hang(f"the case takes longer than {_LONGEST} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_LONGEST)
    _watching = True
    try:
        yield
    finally:
        _watching = False
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


class Executed(BaseException):
    """The input made Python run something."""


def _audit(event, arguments):
    if event == "shutil.rmtree" and Path(arguments[0]).name.startswith("transun-"):
        return  # a temporary folder of our own
    if _watching and event.startswith(_FORBIDDEN):
        raise Executed(f"{event}{arguments}"[:200])


sys.addaudithook(_audit)


def outcome(call, *arguments):
    """The result of a call, or the text of its refusal; and whether it was an answer."""
    with watched():
        try:
            return call(*arguments), True
        except REFUSALS as error:
            message = str(error)
    if not message.strip() or len(message) > _LONGEST_MESSAGE:
        raise AssertionError(f"a refusal is one sentence, this is none: {message[:3000]!r}")
    return message, False


DAY = datetime.datetime(2024, 1, 1)


def table(rows=120, seed=0):
    """A table with every kind of column that a model reads, some values missing."""
    rng = np.random.default_rng(seed)
    shop = rng.integers(0, 5, rows)
    price = np.round(rng.lognormal(2.0, 0.7, rows), 2)
    amount = np.round(price * rng.lognormal(0.1 * shop, 0.5, rows), 2)
    visits = [list(map(int, rng.integers(0, 9, rng.integers(0, 4)))) for _ in range(rows)]
    return pa.table(
        {
            "shop": pa.array(shop),
            "code": pa.array([None if row % 17 == 3 else f"{row % 7:03d}" for row in range(rows)]),
            "price": pa.array(price, mask=rng.random(rows) < 0.05),
            "when": pa.array(
                [DAY + datetime.timedelta(hours=int(h)) for h in rng.integers(0, 2000, rows)], pa.timestamp("us")
            ),
            "visits": pa.array(visits),
            "amount": pa.array(amount),
        }
    )


def flat_table(rows=120, seed=0):
    """The columns of the table that a CSV file can hold."""
    return table(rows, seed).drop_columns(["visits"])


def trained(flat=True):
    """A model of the table, after a few steps: enough that every column matters."""
    columns = {"shop": Id(), "code": Id(), "price": Number(), "when": Datetime()}
    columns |= {} if flat else {"visits": Bag(Lists())}
    data = flat_table() if flat else table()
    recipe = Recipe(epochs=2, batch_size=40, valid_share=0.0)
    return train(data, "amount", "Scaled(LogSUN())", features=Features(columns), recipe=recipe, progress=False)
