"""The entry point: a mistake of the user ends in one line, not in a traceback."""

import sys

import typer

from transun.cli.app import app

__all__ = ["main", "run"]


def main() -> None:
    """Run the command line. Exit codes: 0 done, 2 a mistake in the call or the data, 130 interrupted."""
    run(app)


def run(commands: typer.Typer) -> None:
    """Run an application; a mistake ends in one line on standard error and exit code 2."""
    try:
        commands()
    except KeyboardInterrupt:
        typer.echo("interrupted; what was finished is kept", err=True)
        sys.exit(130)
    except (ValueError, ModuleNotFoundError, OSError, FloatingPointError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
