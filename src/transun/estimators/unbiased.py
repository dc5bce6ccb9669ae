"""The automatic choice between unbiased ways to use a regressor."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from transun.estimators.balance import Balance, LearnedBalance
from transun.estimators.candidates import Candidate, make_candidates
from transun.estimators.choice import Choice, choose_weights
from transun.estimators.cross_fitting import CrossFit, Split, predict_1d, split_rows
from transun.estimators.gts import AmplificationWarning
from transun.estimators.meta_regressor import MetaRegressor
from transun.estimators.target import prepare_transform
from transun.support.progress import Progress
from transun.transforms import Asinh, Log1p, Transform

Array = NDArray[np.float64]


class UnbiasedRegressor(MetaRegressor):
    """The best of several unbiased uses of a regressor, or their convex combination, by out-of-fold squared error.

    Which loss is best depends on the data: squares where the noise is even, Poisson or Gamma deviance where it grows
    with the amount, GTS where a transform makes it tame, calibrated T-MSE where rows are few. All of them estimate a
    mean, so their squared errors can be compared, and a convex combination estimates it too. Each candidate predicts
    rows that none of its parts was fitted to; the best one is taken, or the combination where that is better by more
    than the standard error of the difference. A last factor makes the out-of-fold total exact.

    Args:
        regressor: anything with `fit` and `predict`; histogram gradient boosting by default. Deviances are tried
            where it can minimise them (LightGBM, XGBoost, CatBoost, scikit-learn's boosting and trees, alone or
            at the end of a pipeline).
        target_transforms: T of the GTS candidates, on targets scaled to a mean of 100; the logarithm by default,
            arsinh for targets of both signs. Another one costs about as much again.
        powers: powers of the slopes, besides the variance power that the data show.
        balance: the last step; None leaves it out.
        budget: the largest cost of the comparison, in fits to all rows. Candidates that would exceed it are left out
            and listed in the table. With five folds squares and each deviance cost 4, a transform 6 and each slope 4;
            the final fit adds 1 for a plain candidate and 5 for GTS.
        cv: folds, or a splitter whose held-out rows are a partition; at least three.
        n_jobs: the number of fits at the same time.
        random_state: seed of the shuffling into folds.
        verbose: show a progress bar.

    Attributes:
        choice_: the table of candidates with their errors and weights; print it.
        estimators_: the fitted regressors with a positive weight.
        weights_: their weights, which add up to one.
        balance_: the learned last factor.
        cost_: the cost of the comparison, in fits to all rows.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any) -> Self:
        """Compare the candidates, then fit those with a positive weight to all rows.

        Args:
            X: features, in any form that the regressor takes.
            y: targets, in their own units.
            sample_weight: weights of the rows, in the fits and in the comparison.
            groups: the group of each row, for the splitter; with a number of folds no group is in two of them.
            fit_params: parameters of the `fit` of every regressor. An evaluation set is refused, since candidates
                differ in the units of their targets: use a regressor that stops early by a share of its training rows.

        """
        if "eval_set" in fit_params:
            raise ValueError("UnbiasedRegressor takes no eval_set; use a regressor that holds out rows of its own")
        X, target, weight = self._check_training_rows(X, y, sample_weight)
        # Transforms and slopes bend at 1, and libraries have thresholds in their deviances: scale the mean to 100.
        self.unit_ = float(np.average(np.abs(target), weights=weight)) / 100.0 or 1.0
        target = target / self.unit_
        folds = split_rows(self.cv, X, target, self.random_state, groups)
        _require_partition(folds, len(target))
        fitting = self._fittings(weight, fit_params)["regressor"]
        cross_fit = CrossFit(fitting, X, target, weight, folds, self.n_jobs)
        candidates, columns, skipped = self._predict_candidates(cross_fit)
        predictions = np.column_stack(columns)
        weights = choose_weights(predictions, target, weight)
        names = [candidate.name for candidate in candidates]
        self.choice_ = Choice.score(names, predictions, skipped, weights, target, weight)
        self.weights_ = weights[weights > 0.0]
        chosen = [candidate for candidate, share in zip(candidates, weights, strict=True) if share > 0.0]
        self.estimators_ = [replace(fitting, regressor=each.build(cross_fit))(X, target) for each in chosen]
        self.balance_ = LearnedBalance()
        if self.balance is not None:
            self.balance_ = self.balance(predictions @ weights, target, weight, self._segments(X))
        return self

    def predict(self, X: Any) -> Array:
        """Estimates of E[y|x], (n,)."""
        X = self._check_features(X)
        with warnings.catch_warnings():
            # The guard was active in the comparison too, so that its warnings would bring no news.
            warnings.simplefilter("ignore", AmplificationWarning)
            models = zip(self.estimators_, self.weights_, strict=True)
            pred = np.sum([share * predict_1d(model, X) for model, share in models], axis=0)
        return np.asarray(self.balance_.apply(pred, self._segments(X)) * self.unit_)

    def _predict_candidates(self, cross_fit: CrossFit) -> tuple[list[Candidate], list[Array], dict[str, str]]:
        """The candidates within the budget, their out-of-fold predictions, and why others were left out."""
        candidates: list[Candidate] = []
        predictions: list[Array] = []
        skipped: dict[str, str] = {}
        y = cross_fit.y
        plan = list(make_candidates(cross_fit.fitting.regressor, y, self._transforms(y), self.powers))
        self.cost_ = 0.0
        with Progress("candidates", len(plan), self.verbose) as bar:
            for number, planned in enumerate(plan):
                bar.advance(number, planned.name)
                cost, left = planned.cost(cross_fit), self.budget - self.cost_
                if candidates and cost > left:
                    skipped[planned.name] = f"would cost {cost:g} fits, {left:g} of the budget are left"
                    continue
                self.cost_ += cost
                try:
                    candidate = planned.estimate(cross_fit)
                    # An estimated power may be equal to one of the given powers.
                    if candidate.name not in (other.name for other in candidates):
                        predictions.append(candidate.predict(cross_fit))
                        candidates.append(candidate)
                except Exception as error:  # each library has its own exceptions for a fold that does not suit a loss
                    if not candidates:
                        raise
                    skipped[planned.name] = f"{type(error).__name__}: {error}"
        return candidates, predictions, skipped

    def _segments(self, X: Any) -> NDArray[Any] | None:
        return None if self.balance is None else self.balance.segments(X)

    def _transforms(self, y: Array) -> list[Transform]:
        transforms = self.target_transforms
        if transforms is None:
            transforms = [Log1p() if y.min() >= 0.0 else Asinh()]
        return [prepare_transform(transform, y) for transform in transforms]


def _require_partition(folds: list[Split], rows: int) -> None:
    all_held_out = np.sort(np.concatenate([held_out for _, held_out in folds]))
    if len(folds) < 3 or not np.array_equal(all_held_out, np.arange(rows)):
        raise ValueError("UnbiasedRegressor needs at least 3 folds that hold out every row exactly once")
