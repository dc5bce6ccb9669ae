"""From a table to a trained model, and back to predictions for other tables."""

from transun.tables.model import Recipe, TableModel, embedding_mlp, train

__all__ = ["Recipe", "TableModel", "embedding_mlp", "train"]
