"""The command `transun`, also as `python -m transun`: its very first imports can be interrupted without a traceback."""

import sys

from transun.support.interruption import INTERRUPTED, never_lose_interrupts

__all__ = ["main"]


def main() -> None:
    """Import the command line and run it; Ctrl-C ends in one line and exit code 130 from here on."""
    never_lose_interrupts()
    try:
        from transun.cli import main as run

        run()
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
