"""From a table to a trained model, and back to predictions for other tables."""

from transun.tables.graph_export import export
from transun.tables.model import TableModel, embedding_mlp, load, tabm
from transun.tables.training import hold_out, train

__all__ = ["TableModel", "embedding_mlp", "export", "hold_out", "load", "tabm", "train"]
