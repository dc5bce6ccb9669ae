"""Paths of files on this machine and in object stores, such as s3://bucket/orders, which are opened through fsspec."""

from os import PathLike
from pathlib import Path
from typing import Any

from transun.support.extras import need

__all__ = ["arrow_arguments", "as_path", "is_path", "is_remote"]


def is_path(value: Any) -> bool:
    """Whether a value names a file or folder: text, a path, or the path of an object store that `as_path` made."""
    return isinstance(value, (str, PathLike)) or hasattr(value, "rglob")


def as_path(value: Any) -> Path:
    """The path that a text or a path names; s3://bucket/orders, or a text with another scheme, is of an object store.

    Object stores need the extra `s3`, or universal-pathlib with the package of another store. Their paths have the
    methods of `pathlib.Path`. Where the store is and who asks, its own settings say, such as AWS_ENDPOINT_URL.

    >>> as_path("orders/a.parquet").name
    'a.parquet'
    """
    if isinstance(value, str) and "://" in value:
        path: Path = need("upath").UPath(value)
        return path
    return Path(value) if isinstance(value, (str, PathLike)) else value


def is_remote(path: Path) -> bool:
    """Whether a path is of an object store.

    >>> is_remote(as_path("orders"))
    False
    """
    return not isinstance(path, Path)


def arrow_arguments(path: Path) -> tuple[Any, dict[str, Any]]:
    """What pyarrow opens the file by: a name, and the file system that it is in."""
    if isinstance(path, Path):
        return path, {}
    return path.path, {"filesystem": path.fs}
