"""The application that every command registers with, and its own options."""

from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(
    name="transun",
    help="Unbiased regression for skewed targets: find retransformation bias, remove it, prove it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Reflows the paragraphs of a docstring to the width of the terminal.
    rich_markup_mode="markdown",
)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        from transun import __version__

        typer.echo(f"transun {__version__}")
        raise typer.Exit
