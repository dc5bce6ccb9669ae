"""A device that is not there is told in a sentence, before any work."""

import pytest
import torch
from typer.testing import CliRunner

from transun.backbones import Constant
from transun.cli import app
from transun.data import Dataset
from transun.heads import MSE
from transun.models import Model
from transun.support.device import require_device
from transun.training import Recipe, fit
from transun.training.validated import fit_with_validation

# More GPUs than any machine has: it is missing with and without CUDA.
MISSING = "cuda:99"


@pytest.mark.parametrize("name", ["gpu", "", "meta", "cuda:x", 3.5])
def test_a_recipe_refuses_what_is_no_device(name):
    with pytest.raises(ValueError, match="there is no kind of device"):
        Recipe(device=name)


def test_the_processor_is_always_there():
    require_device("cpu")
    require_device(None)


@pytest.mark.parametrize("train", [fit, fit_with_validation])
def test_training_on_a_missing_device_is_refused(train):
    rows = Dataset({"a": torch.zeros(4)}, torch.ones(4))
    with pytest.raises(ValueError, match=r"this machine cannot train on 'cuda:99' \(.+\): leave the device out"):
        train(Model(Constant(), MSE()), rows, Recipe(device=MISSING))


def test_the_command_says_so_before_it_reads_the_data():
    result = CliRunner().invoke(app, ["fit", "no_such_file.csv", "--target", "gmv", "--device", MISSING])
    assert isinstance(result.exception, (ValueError, SystemExit))
    assert "cannot train on 'cuda:99'" in f"{result.exception} {result.output}"
