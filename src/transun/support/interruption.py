"""What a command says that Ctrl-C has ended; apart from the commands, whose import may be what was interrupted."""

__all__ = ["INTERRUPTED"]

INTERRUPTED = "interrupted: nothing was written but what was finished before"
"""Files are replaced in one step, so that this holds at every moment."""
