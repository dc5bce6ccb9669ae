"""A module imports only from lower layers; siblings of layer 1 never import each other."""

import ast
from pathlib import Path
from types import FunctionType

import pytest

import transun

ROOT = Path(transun.__file__).parent
LAYERS = [
    {"support"},
    {"transforms", "losses"},
    {"schemes"},
    {"corrections"},
    {"heads", "backbones", "metrics", "data"},
    {"models"},
    {"training"},
    {"tables"},
    {"estimators"},
    {"diagnosis"},
    {"report"},
    {"cli", "api"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
# Heavy libraries and the only rooms that may import them.
OWNERS = {
    "altair": set(),
    "scipy": {"metrics", "estimators", "diagnosis"},
    "sklearn": {"estimators"},
    "polars": set(),
    "typer": {"cli"},
}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path):
    room = room_of(path)
    for name in imported(path):
        package, _, rest = name.partition(".")
        other = rest.split(".")[0]
        if package == "transun" and other in LEVEL and other != room:
            own, theirs = LEVEL[room], LEVEL[other]
            assert theirs < own, f"{room} (layer {own}) imports {other} (layer {theirs})"
        assert room in OWNERS.get(package, {room}), f"{room} imports {package}"


def test_no_two_rooms_export_one_name():
    from transun import api

    assert len(api.__all__) == len(set(api.__all__))


def test_every_export_is_documented():
    from transun import api

    missing = [
        name
        for name in api.__all__
        if isinstance(value := getattr(api, name), (type, FunctionType)) and not value.__doc__
    ]
    assert not missing
