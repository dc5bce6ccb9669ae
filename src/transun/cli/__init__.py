"""The command line: one file per command. Imports nothing heavy until a command runs, so that help is instant."""

# The modules of the commands are imported for their registration.
from transun.cli import (
    abtest,
    compare,
    debias,
    demo,
    diagnose,
    evaluate,
    export,
    fit,
    info,
    predict,
    serve,
    total,
    watch,
)
from transun.cli.app import app
from transun.cli.main import main

__all__ = [
    "abtest",
    "app",
    "compare",
    "debias",
    "demo",
    "diagnose",
    "evaluate",
    "export",
    "fit",
    "info",
    "main",
    "predict",
    "serve",
    "total",
    "watch",
]
