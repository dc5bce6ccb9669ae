"""Builds the wheel, installs it alone in a fresh environment, and runs every command with it.

`make wheel` runs this: `python tools/check_wheel.py`, or with the path of a wheel that is built. It fails if the wheel
holds anything but the product, if a command fails, or if a command of the application is not among those that are run
here.
"""

import csv
import os
import random
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from release import check_wheel_contents

ROOT = Path(__file__).parent.parent
COMMANDS = (
    "--version",
    "--help",
    "info",
    "fit orders.csv --target gmv --epochs 2 --out first",
    "fit orders.csv --target gmv --head LogMSE() --epochs 2 --out second",
    "info first",
    "predict first orders.csv --keep gmv --out predicted.csv",
    "evaluate first orders.csv --require pgr>0",
    "compare first second orders.csv --out comparison",
    "debias second orders.csv --epochs 1 --out debiased",
    "diagnose predicted.csv --target gmv --pred prediction --out diagnosis",
    "debias predicted.csv --target gmv --pred prediction --out corrected.parquet",
    "export first --out model.pt2",
    "demo --orders 2000 --out demo",
    # These want an extra, or rows of several days.
    "abtest --help",
    "serve --help",
    "total --help",
    "watch --help",
)


def build(folder: Path) -> Path:
    """The wheel of the product, after a look at what is in it."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("transun-*.whl")
    check_wheel_contents(wheel)
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    """The folder of programs of a fresh environment that has the wheel and its dependencies, and nothing else."""
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True)
    return programs


def write_orders(path: Path, rows: int = 2_000) -> None:
    """A table of skewed amounts."""
    rng = random.Random(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["shop", "item", "price", "gmv"])
        for _ in range(rows):
            shop, item, price = rng.randrange(3), rng.randrange(50), rng.uniform(1, 20)
            writer.writerow([f"shop {shop}", item, f"{price:.2f}", f"{price * rng.lognormvariate(0, 1):.2f}"])


def run_commands(programs: Path, folder: Path) -> None:
    """Every command, in a folder of its own and without this repository in sight."""
    write_orders(folder / "orders.csv")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command in COMMANDS:
        call = [str(programs / "transun"), *command.split()]
        result = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        print(f"{'ok' if result.returncode == 0 else 'FAILED'}: transun {command}")
        if result.returncode != 0:
            raise SystemExit(result.stdout + result.stderr)
    listed = "import transun.cli as c; print(*(x.name or x.callback.__name__ for x in c.app.registered_commands))"
    names = subprocess.check_output([str(programs / "python"), "-c", listed], cwd=folder, env=environment, text=True)
    forgotten = set(names.split()) - {command.split()[0] for command in COMMANDS}
    if forgotten:
        raise SystemExit(f"these commands are not among those run here: {', '.join(sorted(forgotten))}")


def main() -> None:
    """Build, look, install, run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else build(folder / "wheel")
        programs = install(wheel, folder / "environment")
        (folder / "work").mkdir()
        run_commands(programs, folder / "work")


if __name__ == "__main__":
    main()
