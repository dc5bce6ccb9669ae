"""`python -m transun_paper` is the command line of the paper."""

from transun_paper.cli import main

main()
