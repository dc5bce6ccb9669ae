"""The options of commands that train have the defaults of the recipe, without importing it for --help."""

import inspect

import pytest

from transun.cli.debias import debias
from transun.cli.fit import fit
from transun.support.text_form import dumps
from transun.training import Recipe

RECIPE = Recipe()
EXPECTED = {
    "epochs": RECIPE.epochs,
    "batch_size": RECIPE.batch_size,
    "rate": RECIPE.optimiser.rate,
    "seed": RECIPE.seed,
    "valid_share": RECIPE.valid_share,
    "patience": RECIPE.patience,
    "monitor": RECIPE.monitor.name,
    "device": RECIPE.device,
    "engine": dumps(RECIPE.engine),
}


@pytest.mark.parametrize("command", [fit, debias])
def test_defaults_are_those_of_the_recipe(command):
    defaults = {name: parameter.default for name, parameter in inspect.signature(command).parameters.items()}
    assert {name: defaults[name] for name in EXPECTED} == EXPECTED
