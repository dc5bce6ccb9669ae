"""Training: `fit` and its settings, corrections of what is trained, and predictions and metrics of a model."""

from transun.corrections.multicalibration import RatioFit, fit_ratio
from transun.support.group import Group, current_group
from transun.training.averaging import EMA, Averaging, Tail
from transun.training.batches import BatchSource, LocalRows, RowBatch
from transun.training.calibration import balance, calibrate, shrink
from transun.training.engine import Compiled, Eager, Engine
from transun.training.evaluation import evaluate, measure, predict
from transun.training.fusion import fuse
from transun.training.history import Check, History, Step
from transun.training.loop import fit
from transun.training.multicalibration import multicalibrate
from transun.training.optimisers import (
    SGD,
    Adagrad,
    AdagradDecay,
    Adam,
    AdamW,
    Optimiser,
    RowWise,
    constant,
    cosine,
    linear,
)
from transun.training.recipe import Recipe, plain_recipe
from transun.training.tracking import Tracker

__all__ = [
    "EMA",
    "SGD",
    "Adagrad",
    "AdagradDecay",
    "Adam",
    "AdamW",
    "Averaging",
    "BatchSource",
    "Check",
    "Compiled",
    "Eager",
    "Engine",
    "Group",
    "History",
    "LocalRows",
    "Optimiser",
    "RatioFit",
    "Recipe",
    "RowBatch",
    "RowWise",
    "Step",
    "Tail",
    "Tracker",
    "balance",
    "calibrate",
    "constant",
    "cosine",
    "current_group",
    "evaluate",
    "fit",
    "fit_ratio",
    "fuse",
    "linear",
    "measure",
    "multicalibrate",
    "plain_recipe",
    "predict",
    "shrink",
]
