"""Nothing got slower: counts of what typical work takes, against those that are stored. No test looks at a clock."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def guard():
    spec = importlib.util.spec_from_file_location("guard", ROOT / "benchmarks" / "guard.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["guard"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["guard"]


@pytest.fixture(scope="module")
def stored(guard):
    return json.loads(guard.STORED.read_text(encoding="utf-8"))


def test_nothing_got_slower(guard):
    # In a process of its own: torch formats the stack now and then, and pytest's is deep and differs by version.
    found = subprocess.run([sys.executable, guard.__spec__.origin], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_work_done_twice_is_noticed(guard, stored):
    """The guard itself: each workload's counts double when it runs twice, and the message names what and how."""
    name = "predict, 8 batches"
    work = guard.workloads()[name]()

    def twice():
        work()
        work()

    found = guard.regressions(stored | {name: guard.cost(twice)}, stored)
    kinds = [kind for kind in ("operations", "megabytes", "calls") if any(f" {kind}, " in text for text in found)]
    assert kinds == ["operations", "megabytes", "calls"]
    assert all(text.startswith(f"{name} got slower") and guard.RENEW in text for text in found)


def test_what_is_new_or_gone_is_named(guard, stored):
    name = "predict, 8 batches"
    less = {key: value for key, value in stored.items() if key != name}
    assert guard.regressions(stored, less) == [f"{name} is not stored: run {guard.RENEW}"]
    assert guard.regressions(less, stored) == [f"{name} is stored but gone: run {guard.RENEW}"]


@pytest.mark.parametrize("arguments", ["--help", "fit --help", "diagnose --help"])
def test_help_does_not_import_torch(arguments):
    code = (
        "import sys\n"
        "from transun.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert end.code in (0, None)\n"
        "assert not {'torch', 'numpy', 'sklearn', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, *arguments.split()], check=True, capture_output=True)
