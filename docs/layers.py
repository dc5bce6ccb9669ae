"""The layers of the code, computed from its imports, for the picture in architecture.md and for tests/test_layers.py.

A room is a package or a module directly below `transun`. The layer of a room is one above the highest layer that it
imports from: rooms that import no other room are layer 0, and layers exist only if no rooms import each other.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Functions that import a library whose name is an argument; see `transun.support.extras`.
_IMPORTING_FUNCTIONS = ("need", "import_module")


@dataclass(frozen=True)
class Module:
    """One file of a package.

    Args:
        name: the full name, such as `transun.heads.gts`.
        path: the file.

    """

    name: str
    path: Path

    @property
    def room(self) -> str:
        """The name of the package or module directly below the root package, such as `heads`; empty for the root."""
        return self.name.partition(".")[2].partition(".")[0]

    @cached_property
    def imports(self) -> frozenset[str]:
        """The names that it imports anywhere, such as `torch.nn` or `transun.heads.gts.GTS`."""
        return frozenset(_imported(ast.walk(self._tree)))

    @cached_property
    def imports_at_run_time(self) -> frozenset[str]:
        """The names that it imports outside `if TYPE_CHECKING:`."""
        return frozenset(_imported(_walk_run_time(self._tree)))

    @property
    def libraries(self) -> set[str]:
        """The top packages that it imports, by statements or by calls such as `need("scipy.stats")`."""
        called = (
            argument.value
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _IMPORTING_FUNCTIONS
            for argument in node.args
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        )
        return {name.partition(".")[0] for name in (*self.imports, *called)}

    @cached_property
    def _tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))


def modules(package: str, folder: Path) -> dict[str, Module]:
    """Every module of a package by name; a package goes by its own name, not by that of its `__init__`."""
    by_name = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [package, *path.relative_to(folder).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        by_name[name] = Module(name, path)
    return by_name


PRODUCT = modules("transun", ROOT / "src" / "transun")


def rooms(package: Mapping[str, Module]) -> dict[str, set[str]]:
    """The rooms of a package, and for each the other rooms that it imports."""
    graph: dict[str, set[str]] = {module.room: set() for module in package.values() if module.room}
    for module in package.values():
        if module.room:
            targets = {package[name].room for name in imported_modules(module.imports, package)}
            graph[module.room] |= targets - {module.room, ""}
    return graph


def inner_imports(room: str, package: Mapping[str, Module]) -> dict[str, set[str]]:
    """The modules of a room, and for each the other modules of the room that it imports at run time."""
    members = {name: module for name, module in package.items() if module.room == room}
    return {name: imported_modules(m.imports_at_run_time, members) - {name} for name, m in members.items()}


def imported_modules(names: Iterable[str], package: Mapping[str, Module]) -> set[str]:
    """The modules that imported names belong to: `transun.heads.GTS` belongs to `transun.heads`."""
    owners = set()
    for name in names:
        while name and name not in package:
            name = name.rpartition(".")[0]
        owners |= {name} - {""}
    return owners


def layers(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The nodes of a graph from the lowest layer to the highest; a `ValueError` names a cycle.

    >>> layers({"roof": {"walls"}, "walls": {"ground"}, "ground": set(), "garden": {"ground"}})
    [['ground'], ['garden', 'walls'], ['roof']]
    """
    level: dict[str, int] = {}
    while len(level) < len(graph):
        free = [node for node in graph if node not in level and graph[node] <= level.keys()]
        if not free:
            raise ValueError(f"these import each other: {' -> '.join(_cycle(graph, set(level)))}")
        level |= {node: 1 + max((level[other] for other in graph[node]), default=-1) for node in free}
    highest = max(level.values(), default=-1)
    return [sorted(node for node in level if level[node] == height) for height in range(highest + 1)]


def picture() -> str:
    """The layers of the product as text, the highest first, each room with the rooms that it imports."""
    graph = rooms(PRODUCT)
    width = max(map(len, graph))
    lines = [f"layer  {'room':{width}}  imports"]
    for height, names in reversed(list(enumerate(layers(graph)))):
        lines += [f"{height:5}  {name:{width}}  {' '.join(sorted(graph[name]))}".rstrip() for name in names]
    return "\n".join(["```text", *lines, "```"])


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _walk_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            yield node
            yield from _walk_run_time(node)


def _cycle(graph: Mapping[str, set[str]], settled: set[str]) -> list[str]:
    """A cycle among the nodes that are not settled, each of which imports another of them."""
    path = [min(graph.keys() - settled)]
    while path[-1] not in path[:-1]:
        path.append(min(graph[path[-1]] - settled))
    return path[path.index(path[-1]) :]
