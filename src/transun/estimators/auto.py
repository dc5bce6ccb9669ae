"""The automatic choice between unbiased ways to use a regressor."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from transun.estimators.balance import Balance
from transun.estimators.balanced import segments
from transun.estimators.candidates import Candidate, candidates
from transun.estimators.choice import Choice
from transun.estimators.folds import Split, speak, splits
from transun.estimators.gts import AmplificationWarning
from transun.estimators.mixing import judge, mix
from transun.estimators.trial import Trial, prepared
from transun.estimators.wrapping import Wrapping
from transun.support.progress import Progress
from transun.transforms import Asinh, Log1p, Transform

Array = NDArray[np.float64]


class UnbiasedRegressor(Wrapping):
    """The best of several unbiased uses of a regressor, or their convex combination, by out-of-fold squared error.

    Which loss is best depends on the data: squares where the noise is even, Poisson or Gamma deviance where it grows
    with the amount, GTS where a transform makes it tame, calibrated T-MSE where rows are few. All of them estimate a
    mean, so their squared errors can be compared, and a convex combination estimates it too. Each candidate is judged
    on rows that nothing in it has seen; the best is taken, or the combination where that is better by more than the
    standard error of the difference. A last factor makes the out-of-fold total exact.

    Args:
        regressor: anything with `fit` and `predict`; histogram gradient boosting by default. Deviances are tried
            where it can minimise them (LightGBM, XGBoost, CatBoost, scikit-learn's boosting and trees, alone or
            at the end of a pipeline).
        target_transforms: T of the GTS candidates, on targets scaled to a mean of 100; the logarithm by default,
            arsinh for targets of both signs. A further one costs about as much again.
        powers: of the slopes, besides the variance power that the data show.
        balance: the last step; None leaves it out.
        budget: the most that the trial may cost, in fits to all rows. Candidates that would exceed it are left out;
            the table says which. With five folds squares and each deviance cost 4, a transform 6 and each slope 4;
            the final fit adds 1 for a direct candidate and 5 for GTS.
        cv: folds, or a splitter whose held-out rows are a partition; three at least.
        n_jobs: fits at the same time.
        random_state: of the shuffling into folds.
        verbose: show a progress bar.

    Attributes:
        choice_: the table of candidates with their errors and weights; print it.
        estimators_: the fitted regressors that count.
        weights_: what each of them counts; they add up to one.
        balanced_: the last factor.

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X, y = [[0], [1]] * 20, [1.0, 100.0] * 10 + [3.0, 300.0] * 10
    >>> model = UnbiasedRegressor(DecisionTreeRegressor(random_state=0), random_state=0).fit(X, y)
    >>> model.predict([[0], [1]]).round(-1)
    array([  0., 200.])

    """

    def __init__(
        self,
        regressor: Any = None,
        *,
        target_transforms: Sequence[Transform] | None = None,
        powers: Sequence[float] = (1.0, 2.0),
        balance: Balance | None = Balance(),
        budget: float = 50.0,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.regressor = regressor
        self.target_transforms = target_transforms
        self.powers = powers
        self.balance = balance
        self.budget = budget
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Judge the candidates, then fit those that count to all rows.

        Args:
            X: features, in any form that the regressor takes.
            y: targets, in their own units.
            sample_weight: what each row counts, in the fits and in the comparison.
            fit_params: for the `fit` of every regressor. Evaluation sets are not among them, since candidates
                differ in the units of their targets: let the regressor stop by a share of its own rows.

        """
        if "eval_set" in fit_params:
            raise ValueError("UnbiasedRegressor takes no eval_set; use a regressor that holds out rows of its own")
        X, target, weight = self._rows(X, y, sample_weight)
        # Transforms and slopes bend at 1, deviances have thresholds of their own: put the amounts at 100.
        self.unit_ = float(np.average(np.abs(target), weights=weight)) / 100.0 or 1.0
        target = target / self.unit_
        folds = _partition(splits(self.cv, X, target, self.random_state), len(target))
        trial = Trial(self._fittings(weight, fit_params)["regressor"], X, target, weight, folds, self.n_jobs)
        judged, skipped = self._try(trial)
        predictions = np.column_stack([pred for _, pred in judged])
        weights = _weights(predictions, target, weight)
        names = [candidate.name for candidate, _ in judged]
        self.choice_ = Choice.of(names, predictions, skipped, weights, target, weight)
        chosen = [(candidate, share) for (candidate, _), share in zip(judged, weights, strict=True) if share > 0.0]
        self.weights_ = np.array([share for _, share in chosen])
        self.estimators_ = [replace(trial.fitting, regressor=each.build(trial))(X, target) for each, _ in chosen]
        self.balanced_ = None
        if self.balance is not None:
            self.balanced_ = self.balance(predictions @ weights, target, weight, segments(X, self.balance))
        return self

    def predict(self, X: Any) -> Array:
        """Estimates of E[y|x], (n,)."""
        X = self._features(X)
        with warnings.catch_warnings():
            # The candidates were judged with their guard, so there is nothing to be told about it here.
            warnings.simplefilter("ignore", AmplificationWarning)
            each = [share * speak(model, X) for model, share in zip(self.estimators_, self.weights_, strict=True)]
        pred = np.sum(each, axis=0)
        if self.balanced_ is not None:
            pred = self.balanced_(pred, segments(X, self.balance))
        return np.asarray(pred * self.unit_)

    def _try(self, trial: Trial) -> tuple[list[tuple[Candidate, Array]], dict[str, str]]:
        """Out-of-fold predictions of the candidates that could be afforded and fitted, and why others were not."""
        judged: list[tuple[Candidate, Array]] = []
        skipped: dict[str, str] = {}
        plan = list(candidates(trial.fitting.regressor, trial.y, self._transforms(trial.y), self.powers))
        spent = 0.0
        with Progress("candidates", len(plan), self.verbose) as bar:
            for number, planned in enumerate(plan):
                bar.advance(number, planned.name)
                cost = planned.cost(trial)
                if judged and spent + cost > self.budget:
                    skipped[planned.name] = f"would cost {cost:g} fits, {self.budget - spent:g} of the budget are left"
                    continue
                spent += cost
                try:
                    candidate = planned.settle(trial)
                    # What the rows show may be what another candidate has already.
                    if candidate.name not in (other.name for other, _ in judged):
                        judged.append((candidate, candidate.judge(trial)))
                except Exception as error:  # libraries raise their own kinds when a fold's targets do not suit a loss
                    if not judged:
                        raise
                    skipped[planned.name] = f"{type(error).__name__}: {error}"
        self.cost_ = spent
        return judged, skipped

    def _transforms(self, y: Array) -> list[Transform]:
        given = self.target_transforms
        if given is None:
            given = [Log1p() if y.min() >= 0.0 else Asinh()]
        return [prepared(transform, y) for transform in given]


def _partition(folds: list[Split], rows: int) -> list[Split]:
    held = np.sort(np.concatenate([held for _, held in folds]))
    if len(folds) < 3 or not np.array_equal(held, np.arange(rows)):
        raise ValueError("UnbiasedRegressor needs at least 3 folds that hold out every row exactly once")
    return folds


def _weights(predictions: Array, y: Array, weight: Array | None) -> Array:
    """All weight on the best candidate, or the convex combination where it is better by more than the noise."""
    mixed = mix(predictions, y, weight)
    errors = (np.column_stack((predictions, predictions @ mixed)) - y[:, None]) ** 2
    verdicts = judge(errors, weight)
    singles = [verdict.worse_by for verdict in verdicts[:-1]]
    best = int(np.argmin(singles))
    if singles[best] > verdicts[best].standard_error:
        return mixed
    return np.asarray(np.eye(len(singles))[best])
