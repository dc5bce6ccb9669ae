"""Processors are shared: threads sleep soon while they wait, and are no more than the container may use."""

import os
import subprocess
import sys

import pytest

from transun.support import processors
from transun.support.processors import processor_quota, threads_for_boosting

linux = pytest.mark.skipif(sys.platform != "linux", reason="GNU's OpenMP is that of Linux")


def settings_after(code: str, **environment: str) -> str:
    """The two settings of OpenMP in a fresh process after it has run some code."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("GOMP_", "OMP_"))}
    show = "import os; print(os.environ.get('GOMP_SPINCOUNT'), os.environ.get('OMP_WAIT_POLICY'))"
    command = [sys.executable, "-c", f"{code}; {show}"]
    return subprocess.run(
        command, env=others | environment, capture_output=True, text=True, check=True, timeout=120
    ).stdout.strip()


@linux
@pytest.mark.parametrize(
    ("code", "environment", "settings"),
    [
        ("import transun", {}, "1000 None"),
        ("import transun", {"GOMP_SPINCOUNT": "5"}, "5 None"),
        ("import transun", {"OMP_WAIT_POLICY": "ACTIVE"}, "None ACTIVE"),
        ("import sys; sys.modules['torch'] = sys; import transun", {}, "None None"),
    ],
    ids=["by default", "chosen", "chosen otherwise", "after torch"],
)
def test_waiting_is_limited_where_that_is_still_possible(code, environment, settings):
    assert settings_after(code, **environment) == settings


@linux
@pytest.mark.parametrize(
    ("environment", "threads"), [({}, 1), ({"GOMP_SPINCOUNT": "1000"}, 4), ({"OMP_NUM_THREADS": "4"}, 4)]
)
def test_without_a_limit_trees_are_boosted_by_one_thread(monkeypatch, environment, threads):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(processors, "processor_quota", lambda: None)
    assert threads_for_boosting(4) == threads


@pytest.mark.parametrize(("quota", "threads"), [(0.5, 1), (2.5, 2), (8.0, 4)])
def test_trees_are_boosted_by_as_many_threads_as_the_container_may_use(monkeypatch, quota, threads):
    monkeypatch.setenv("GOMP_SPINCOUNT", "1000")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(processors, "processor_quota", lambda: quota)
    assert threads_for_boosting(4) == threads


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "50000 100000\n"}, 0.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": "nonsense"}, None),
        ({}, None),
    ],
)
def test_the_quota_is_that_of_the_control_group(tmp_path, files, quota):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert processor_quota(tmp_path) == quota
