"""The pages about engines that start ranks: their example runs where the engine is installed."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


@pytest.mark.parametrize(("page", "engine"), [("ray", "ray"), ("spark", "pyspark")])
def test_two_workers_train_one_model(page, engine):
    if importlib.util.find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    (example,) = re.findall(r"```\{code-block\} python\n(.*?)```", (GUIDES / f"{page}.md").read_text(), re.DOTALL)
    process = subprocess.Popen(
        [sys.executable, "-c", example],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, errors = process.communicate(timeout=900)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # the engine too, which outlives the script
            process.communicate()
    assert process.returncode == 0, errors
    ranks, total = printed.split()[-2:]
    assert ranks == "2"
    assert 0.5 < float(total) < 2.0  # one epoch of 1,500 rows: it was trained and measured, no more is claimed
