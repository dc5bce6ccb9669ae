"""
Optuna: a search that ends trainings which lag behind
=====================================================

A recipe is a value, so any search can choose it. A tracker gets the metrics of the validation rows after each check;
here it hands them to Optuna, which ends a training early where others were better. Where Optuna is not installed, three
learning rates are tried one after the other.
"""

from importlib.util import find_spec

import numpy as np

from transun import Adam, LogSUN, Recipe, embedding_mlp, train
from transun.metrics import NRMSE

# %%
# Orders of 30 items, whose noise differs by item, so that a model of ln(1 + y) alone would have wrong totals.
rng = np.random.default_rng(0)
item = rng.integers(0, 30, 2_000)
gmv = np.exp(2.0 + 0.05 * item + (0.2 + 0.03 * item) * rng.standard_normal(2_000))
past = {"item": item[:1_500], "gmv": gmv[:1_500]}
recent = {"item": item[1_500:], "gmv": gmv[1_500:]}


def trained(rate, tracker=None):
    """A model trained with a learning rate; the metric of the validation rows is the error of a row."""
    recipe = Recipe(Adam(rate), epochs=4, monitor=NRMSE)
    return train(past, "gmv", LogSUN(), backbone=embedding_mlp, recipe=recipe, tracker=tracker, progress=False)


# %%
if find_spec("optuna"):
    import optuna

    class Reporting:
        """A tracker that reports to a trial, and ends the training where Optuna says so."""

        def __init__(self, trial):
            self.trial = trial

        def log(self, step, values):
            """Report the error after so many steps."""
            self.trial.report(values["valid/NRMSE"], step)
            if self.trial.should_prune():
                raise optuna.TrialPruned

    def error(trial):
        """The smallest error of the validation rows in a training."""
        model = trained(trial.suggest_float("rate", 1e-4, 0.1, log=True), Reporting(trial))
        return model.history.best.values["NRMSE"]

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0), pruner=optuna.pruners.MedianPruner(2))
    study.optimize(error, n_trials=6)
    pruned = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.PRUNED]
    print(f"{len(study.trials)} trainings, of which {len(pruned)} were ended early")
    best = study.best_params["rate"]
else:
    print("Optuna is not installed: three learning rates, one after the other")
    errors = {rate: trained(rate).history.best.values["NRMSE"] for rate in (1e-3, 1e-2, 1e-1)}
    best = min(errors, key=errors.__getitem__)

# %%
# Judged by rows that neither the trainings nor the search have seen.
print(f"learning rate {best:.4f}, predicted / actual total {trained(best).evaluate(recent)['PGR']:.3f}")
