"""Backbones: stages of layers that branches may share."""

from transun.backbones.backbone import Backbone, Constant, Custom, Features
from transun.backbones.embedding import EmbeddingMLP

__all__ = ["Backbone", "Constant", "Custom", "EmbeddingMLP", "Features"]
