"""The readers of the public data sets, and the eight distributions of the synthetic tables."""
