"""Builds the files of a release in dist/ and checks them; it uploads nothing.

`make release` runs this: `python tools/release.py`. The wheel is built from the sdist, as an installer would do it. It
fails if the two do not hold exactly the modules of the product, if a file is unexpectedly large, if `twine` finds fault
with the metadata, or if the version is not the same wherever it is written.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "transun"
# The files of the sdist beside the product.
TEXTS = {
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
    ".gitignore",
}
# More than this means that data or pictures have slipped in.
LARGEST = 2_000_000


def build(folder: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it."""
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, stdout=subprocess.DEVNULL
    )
    (sdist,), (wheel,) = folder.glob("transun-*.tar.gz"), folder.glob("transun-*.whl")
    return sdist, wheel


def product_files() -> set[str]:
    """The files of the package, relative to its folder."""
    return {
        path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*") if path.is_file() and path.suffix != ".pyc"
    }


def check_wheel_contents(wheel: Path) -> None:
    """Refuse a wheel that holds more or less than the package and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    _compare(wheel, names, {f"transun/{name}" for name in product_files()})


def check_sdist_contents(sdist: Path) -> None:
    """Refuse an sdist that holds more or less than the package and the texts around it."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    _compare(sdist, names, {f"src/transun/{name}" for name in product_files()} | TEXTS)


def versions() -> dict[str, str]:
    """The version by the place where it is written; the changelog's is that of its first heading."""
    patterns = {
        "src/transun/__init__.py": r'^__version__ = "(.+)"',
        "CHANGELOG.md": r"^## (\S+)",
        "CITATION.cff": r"^version: (\S+)",
        "conda/recipe.yaml": r"^  version: (\S+)",
        "paper/pyproject.toml": r'^version = "(.+)"',
    }
    return {
        name: re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)[0]
        for name, pattern in patterns.items()
    }


def _compare(path: Path, names: set[str], expected: set[str]) -> None:
    if names != expected:
        raise SystemExit(f"{path.name} has {sorted(names - expected)} too many and lacks {sorted(expected - names)}")
    size = path.stat().st_size
    if size > LARGEST:
        raise SystemExit(f"{path.name} has {size:,} bytes, more than {LARGEST:,}")
    print(f"{path.name}: {len(names)} files, {size / 1e3:.0f} kB")


def main() -> None:
    """Build and check."""
    written = versions()
    if len(set(written.values())) != 1:
        raise SystemExit(f"the version is not the same everywhere: {written}")
    folder = ROOT / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    sdist, wheel = build(folder)
    check_sdist_contents(sdist)
    check_wheel_contents(wheel)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)], check=True)
    print(f"checked; to publish: git tag v{written['CITATION.cff']} && twine upload dist/*")


if __name__ == "__main__":
    main()
