"""The automatic choice between unbiased ways to use a regressor."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from transun.estimators.balance import Balance, LearnedBalance
from transun.estimators.candidates import Predictor, make_candidates
from transun.estimators.choice import Choice, choose_weights
from transun.estimators.compact import FoldTeacher
from transun.estimators.composition import Composition, Mixed
from transun.estimators.cross_fitting import CrossFit, NewRows, Split, split_rows
from transun.estimators.fitting import EVALUATION_PARAMETERS
from transun.estimators.meta_regressor import MetaRegressor
from transun.estimators.target import check_target, prepare_transform
from transun.models.row_intervals import RowIntervals
from transun.support.arrays import Floats
from transun.support.progress import Progress
from transun.transforms import Asinh, Log1p, Transform


class UnbiasedRegressor(MetaRegressor):
    """The best of several unbiased uses of a regressor, or their convex combination, by out-of-fold squared error.

    Which way is best depends on the data: a deviance where the noise grows with the amount, GTS where a transform makes
    it tame, calibrated T-MSE where rows are few. All of them estimate a mean, so their squared errors can be compared,
    and a convex combination estimates it too. Each candidate has one model per fold, which predicts the rows that it
    was not fitted to; the best candidate is taken, or the combination where that is better by more than the standard
    error of the difference. Boosters stop early by the rows of the fold. New rows are predicted by the mean over the
    folds, so that nothing is fitted twice, and a last factor makes the out-of-fold total exact.

    It costs 12 fits: four of T(y), which serve calibration and GTS and show how the variance grows with the mean; four
    by the loss that is efficient for such a variance, squares, Poisson or Tweedie deviance; and four of z.

    Args:
        regressor: anything with `fit` and `predict`; histogram gradient boosting of up to 500 rounds by default.
            Deviances are used where it can minimise them (LightGBM, XGBoost, CatBoost, scikit-learn's boosting and
            trees, alone or at the end of a pipeline). What wraps it to transform the target is taken off.
        target_transforms: T of the GTS candidates, on targets scaled to a mean of 100; the logarithm by default,
            arsinh for targets of both signs.
        powers: powers of the slopes of GTS.
        balance: the last step; None leaves it out.
        budget: the largest number of fits. Candidates that would exceed it are left out and listed in the table. Each
            transform, each loss and each slope costs one fit per fold; the first transform is always fitted. 24 fits
            try every loss that LightGBM knows, and gain little.
        cv: folds, or a splitter whose held-out rows are a partition.
        early_stopping_rounds: LightGBM, XGBoost, CatBoost and scikit-learn's histogram boosting stop after this many
            rounds without improvement on the rows of the fold; CatBoost does so only without weights. None fits all
            rounds.
        n_jobs: the number of fits at the same time.
        random_state: seed of the shuffling into folds.
        verbose: show a progress bar.

    Attributes:
        choice_: the table of candidates with their errors and weights; print it.
        predictors_: the fitted candidates with a positive weight.
        weights_: their weights, which add up to one.
        shares_: the share of each fold in a prediction.
        fold_rows_: the rows that each fold held out.
        balance_: the learned last factor.
        held_out_: the prediction (n,) of each training row by models that were not fitted to it, balanced; per unit of
            exposure after a fit with exposures.
        intervals_: the errors of these predictions, for `predict_interval`.
        cost_: the number of fits.

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X, y = [[0], [1]] * 20, [1.0, 100.0] * 10 + [3.0, 300.0] * 10
    >>> model = UnbiasedRegressor(DecisionTreeRegressor(random_state=0), random_state=0).fit(X, y)
    >>> model.predict([[0], [1]]).round(-1)
    array([  0., 200.])

    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MetaRegressor._parameter_constraints,
        "target_transforms": ["array-like", None],
        "powers": ["array-like"],
        "balance": [Balance, None],
        "budget": [Interval(Real, 0, None, closed="left")],
        "early_stopping_rounds": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        regressor: Any = None,
        *,
        target_transforms: Sequence[Transform] | None = None,
        powers: Sequence[float] = (1.0,),
        balance: Balance | None = Balance(),
        budget: float = 12,
        cv: Any = 4,
        early_stopping_rounds: int | None = 30,
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
        self.early_stopping_rounds = early_stopping_rounds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        exposure: Any = None,
        groups: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit and compare the candidates.

        Args:
            X: features, in any form that the regressor takes.
            y: targets, in their own units.
            sample_weight: weights of the rows, in the fits and in the comparison: a row of weight 2 counts like two
                rows, and its prediction is in the same units as any other.
            exposure: what each amount was collected over, as the years of a policy: a row with twice the exposure is
                expected to have twice the amount, else alike. What is learned is the rate y/exposure, with weights
                exposure (times sample_weight), and a prediction is the rate times the exposure that `predict` is given.
                A weight changes how much a row counts, and never the units of its prediction.
            groups: the group of each row, for the splitter; with a number of folds no group is in two of them.
            fit_params: parameters of the `fit` of every regressor. An evaluation set is refused, since candidates
                differ in the units of their targets, and stop early by the rows of their fold.

        """
        for name in sorted(EVALUATION_PARAMETERS & set(fit_params)):
            raise ValueError(f"UnbiasedRegressor takes no {name}: regressors stop early by the rows of their fold")
        X, target, weight = self._check_exposed_rows(X, y, sample_weight, exposure)
        # Transforms and slopes bend at 1, and libraries have thresholds in their deviances: scale the mean to 100.
        self.unit_ = float(np.average(np.abs(target), weights=weight)) / 100.0 or 1.0
        target = target / self.unit_
        folds = split_rows(self.cv, X, target, self.random_state, groups)
        _require_partition(folds, len(target))
        fitting = self._fittings(weight, fit_params)["regressor"]
        cross_fit = CrossFit(fitting, X, target, weight, folds, self.early_stopping_rounds, self.n_jobs)
        predictors, skipped = self._fit_candidates(cross_fit)
        predictions = np.column_stack([predictor.held_out for predictor in predictors.values()])
        weights = choose_weights(predictions, target, weight)
        self.choice_ = Choice.score(list(predictors), predictions, skipped, weights, target, weight)
        self.weights_ = weights[weights > 0.0]
        self.predictors_ = [each for each, share in zip(predictors.values(), weights, strict=True) if share > 0.0]
        self.shares_, self.fold_rows_ = cross_fit.shares, [held_out for _, held_out in folds]
        self.balance_ = LearnedBalance()
        combined, segments = predictions @ weights, self._segments(X)
        if self.balance is not None:
            self.balance_ = self.balance(combined, target, weight, segments)
        self.held_out_ = self.balance_.apply(combined, segments) * self.unit_
        self.intervals_ = RowIntervals.of(self._to_amounts(self.held_out_, exposure), check_target(y, self))
        return self

    def predict(self, X: Any, exposure: Any = None) -> Floats:
        """Estimates of E[y|x], (n,); after a fit with exposures, of rows with these exposures."""
        rows = NewRows(self._check_features(X))
        return self._to_amounts(self._combine(rows, self.shares_), exposure)

    def composition(self) -> Composition:
        check_is_fitted(self)
        parts = [predictor.composition(self.shares_) for predictor in self.predictors_]
        # Candidates share models, which are to predict once.
        models = {id(model): model for part in parts for model in part.models}
        number = {key: index for index, key in enumerate(models)}
        reads = [[number[id(model)] for model in part.models] for part in parts]
        mixed = Mixed([part.formula for part in parts], reads, self.weights_.tolist())
        by = None if self.balance is None else self.balance.by
        whole = Composition(list(models.values()), mixed, per_exposure=self.by_exposure_)
        return self.balance_.around(whole, by, self.unit_)

    def _fold_teachers(self, X: Any, y: Floats, params: dict[str, Any], cv: Any) -> list[FoldTeacher]:
        """The models of each fold, which have not seen its rows; other folds than these are refits, as elsewhere.

        A target reaches the prediction of its own row only through what is common to all rows: the weights of the
        candidates, their calibration and the balance.
        """
        if cv is not None:
            return super()._fold_teachers(X, y, params, cv)
        if len(y) != len(self.held_out_):
            raise ValueError(f"compact needs the {len(self.held_out_):,} rows of the fit, and was given {len(y):,}")
        rows, every = NewRows(X), np.arange(len(y))
        only_fold = zip(self.fold_rows_, np.eye(len(self.shares_)), strict=True)
        return [
            FoldTeacher(np.setdiff1d(every, held_out), held_out, self._combine(rows, shares))
            for held_out, shares in only_fold
        ]

    def _combine(self, rows: NewRows, shares: Floats) -> Floats:
        """The balanced mixture with these shares of the folds, per unit of exposure."""
        models = zip(self.predictors_, self.weights_, strict=True)
        pred = np.sum([weight * predictor.predict(rows, shares) for predictor, weight in models], axis=0)
        return np.asarray(self.balance_.apply(pred, self._segments(rows.X)) * self.unit_)

    def _fit_candidates(self, cross_fit: CrossFit) -> tuple[dict[str, Predictor], dict[str, str]]:
        """The fitted candidates within the budget by name, and why others were left out."""
        predictors: dict[str, Predictor] = {}
        skipped: dict[str, str] = {}
        failures: dict[str, Exception] = {}
        plan = list(make_candidates(cross_fit, self._transforms(cross_fit.y), self.powers))
        with Progress("candidates", len(plan), self.verbose) as bar:
            for number, candidate in enumerate(plan):
                bar.advance(number, candidate.name)
                cost, left = candidate.cost(cross_fit), self.budget - cross_fit.cost
                if predictors and cost > left:
                    skipped[candidate.name] = f"it takes {cost} fits, and {left:g} of the budget are left"
                    continue
                try:
                    predictors[candidate.name] = candidate.fit(cross_fit)
                except Exception as error:  # each library has its own exceptions for a fold that does not suit a loss
                    failures[candidate.name] = error
        self.cost_ = cross_fit.cost
        if not predictors:
            raise next(iter(failures.values()))
        return predictors, skipped | {name: f"{type(error).__name__}: {error}" for name, error in failures.items()}

    def _inner_regressors(self) -> dict[str, Any]:
        return {"regressor": self._untransformed_regressor()}

    def _default_regressor(self) -> Any:
        return HistGradientBoostingRegressor(max_iter=500)

    def _segments(self, X: Any) -> NDArray[Any] | None:
        return None if self.balance is None else self.balance.segments(X)

    def _transforms(self, y: Floats) -> list[Transform]:
        transforms = self.target_transforms
        if transforms is None:
            transforms = [Log1p() if y.min() >= 0.0 else Asinh()]
        return [prepare_transform(transform, y) for transform in transforms]


def _require_partition(folds: list[Split], rows: int) -> None:
    all_held_out = np.sort(np.concatenate([held_out for _, held_out in folds]))
    if len(folds) < 2 or not np.array_equal(all_held_out, np.arange(rows)):
        raise ValueError("UnbiasedRegressor needs at least 2 folds that hold out every row exactly once")
