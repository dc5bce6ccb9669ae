"""Data: rows in memory, the paper's synthetic targets, and a simulated order log with a known truth."""

from transun.data.dataset import Batch, Dataset
from transun.data.simulated import OrderLog
from transun.data.synthetic import DISTRIBUTIONS, Distribution

__all__ = ["DISTRIBUTIONS", "Batch", "Dataset", "Distribution", "OrderLog"]
