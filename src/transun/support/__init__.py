"""Helpers that every package uses: files, optional libraries, progress bars, error hints, the text form of objects."""
