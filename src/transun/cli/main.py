"""The entry point: a mistake of the user ends in one line, not in a traceback."""

import errno
import os
import sys
from pathlib import Path

import typer

from transun.cli.app import app
from transun.support.interruption import INTERRUPTED

__all__ = ["main", "run"]


def main() -> None:
    """Run the command line. Exit codes: 0 done, 2 a mistake in the call or the data, 130 interrupted."""
    run(app)


def run(commands: typer.Typer) -> None:
    """Run an application; a mistake ends in one line on standard error and exit code 2."""
    # Where several processes do the same work, only the first prints the result; an error names its process.
    rank = int(os.environ.get("RANK", "0"))
    if rank:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - it is open as long as the process lives
    try:
        commands()
    except SystemExit as stop:
        # Typer turns Ctrl-C into an exit code and says nothing; a training that was interrupted has said how to go on.
        if not rank and isinstance(getattr(stop.__context__, "__cause__", None), KeyboardInterrupt):
            typer.echo(INTERRUPTED, err=True)
        raise
    except (ValueError, ModuleNotFoundError, OSError, FloatingPointError) as error:
        sentence = _sentence(error)
        typer.echo(f"error of rank {rank}: {sentence}" if rank else f"error: {sentence}", err=True)
        sys.exit(2)


def _sentence(error: Exception) -> str:
    # Every file that is written names itself where its disk is full; what is left has no name.
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        return f"no room for standard output or a temporary file ({error.strerror}): make room, or set TMPDIR"
    return str(error)
