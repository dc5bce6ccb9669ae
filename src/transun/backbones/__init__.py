"""Backbones: stages of layers that branches may share."""

from transun.backbones.activations import Activation, Dice, PReLU, ReLU, Sigmoid
from transun.backbones.backbone import Backbone, Constant, Custom, Inputs
from transun.backbones.beside import Beside
from transun.backbones.din import DIN
from transun.backbones.embedding import ByCardinality, ByTable, Dimension, EmbeddingMLP
from transun.backbones.sharded import ShardedTable, sharding
from transun.backbones.tabm import TabM
from transun.backbones.trees import Tree, Trees

__all__ = [
    "DIN",
    "Activation",
    "Backbone",
    "Beside",
    "ByCardinality",
    "ByTable",
    "Constant",
    "Custom",
    "Dice",
    "Dimension",
    "EmbeddingMLP",
    "Inputs",
    "PReLU",
    "ReLU",
    "ShardedTable",
    "Sigmoid",
    "TabM",
    "Tree",
    "Trees",
    "sharding",
]
