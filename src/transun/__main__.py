"""`python -m transun` is the command line."""

from transun.cli import main

main()
