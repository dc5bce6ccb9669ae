import json
import os
import subprocess
import sys
import time

from typer.testing import CliRunner

from transun_paper.cli import app


def test_an_interrupted_reproduction_goes_on(tmp_path):
    """Killed after its first cells, the second run repeats none of them."""
    command = [sys.executable, "-m", "transun_paper", "reproduce", "synthetic", "--quick", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
    runs = tmp_path / "runs"
    deadline = time.monotonic() + 120
    while len(list(runs.glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    kept = {path.name: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert len(kept) >= 3
    result = CliRunner().invoke(app, ["reproduce", "synthetic", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert {name: (runs / name).stat().st_mtime_ns for name in kept} == kept
    report = json.loads((tmp_path / "synthetic.json").read_text())
    assert len(report["cells"]) == 56
    claims = {claim["text"]: claim["holds"] for claim in report["claims"]}
    assert all(holds for text, holds in claims.items() if text.startswith("T-MSE") or "0.02 level" in text)
    page = (tmp_path / "synthetic.md").read_text()
    assert page.count("\n| TranSUN | ln(y+1) |") == 5
