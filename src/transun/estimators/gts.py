"""Generalized TranSUN around any regressor, cross-fitted, with a guard against the amplification of errors."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from transun.estimators.composition import Composition
from transun.estimators.cross_fitting import predict_1d
from transun.estimators.fitting import takes_weights, with_deviance
from transun.estimators.meta_regressor import FitWarning, TransformedTargetBase
from transun.estimators.target import prepare_transform, slope_at, to_tensor
from transun.estimators.wrapped import transforms_target
from transun.schemes import PowerVariance, Slope
from transun.support.arrays import Flags, Floats
from transun.transforms import Log1p, Transform

# A bin of the guard has enough rows for a stable mean and range, and there are enough bins to follow the level.
_MIN_ROWS_PER_BIN, _MAX_BINS = 50, 20

# A larger share of replaced ratios than this is news: some rows at the edges of their bins are always replaced.
_NOTABLE_SHARE = 0.01


class AmplificationWarning(FitWarning):
    """More than 1 % of the ratios z / κ lie outside the targets of the training rows of similar slope.

    `fit` says so, once, when something can be done about it; `predict` applies the same rule and is silent.
    """


@dataclass(frozen=True)
class RatioGuard:
    """The smallest and largest target, and the mean of y·κ, among training rows of similar slope.

    ŷ = z / κ divides: where κ is small, a small error of z becomes a large one of ŷ. A mean of targets lies between
    the smallest and the largest of them, so a ratio outside the targets of the training rows in the same bin of κ
    cannot be a mean that the data support. There z is replaced by its mean over the rows of the bin - which is smearing
    by level - and the result is kept within the targets of the bin.

    Args:
        edges: edges of the bins of κ, which hold equally many rows.
        smallest: the smallest target in each bin.
        largest: the largest target in each bin.
        mean_z: the mean of y·κ in each bin.

    """

    edges: Floats
    smallest: Floats
    largest: Floats
    mean_z: Floats

    @classmethod
    def learn(cls, slope: Floats, y: Floats, weight: Floats | None = None) -> "RatioGuard":
        """The guard of the slopes and targets of training rows.

        >>> RatioGuard.learn(np.array([0.5, 0.5]), np.array([2.0, 6.0])).mean_z.tolist()
        [2.0]
        """
        bins = int(np.clip(len(y) // _MIN_ROWS_PER_BIN, 1, _MAX_BINS))
        # Bins begin at slopes of rows that are larger than the smallest slope, so that no bin is empty.
        starts = np.unique(np.quantile(slope, np.arange(1, bins) / bins, method="lower"))
        slopes = np.unique(slope)
        at = np.searchsorted(slopes, starts[starts > slopes[0]])
        # Edges are half-way to the next smaller slope: in single precision, as served elsewhere, a slope is in the
        # same bin.
        edges = 0.5 * (slopes[at - 1] + slopes[at])
        bin_of_row = np.searchsorted(edges, slope, side="right")
        members = [bin_of_row == index for index in range(len(edges) + 1)]
        weight = np.ones_like(y) if weight is None else weight
        z = y * slope
        return cls(
            edges,
            np.array([y[rows].min() for rows in members]),
            np.array([y[rows].max() for rows in members]),
            np.array([np.average(z[rows], weights=weight[rows] + np.finfo(float).tiny) for rows in members]),
        )

    def divide(self, z: Floats, slope: Floats) -> tuple[Floats, Flags]:
        """Predictions z / κ by the rule above, and for each row whether its ratio was replaced.

        >>> guard = RatioGuard.learn(np.array([0.5, 0.5]), np.array([2.0, 6.0]))
        >>> guard.divide(np.array([2.5, 3.5]), np.array([0.5, 0.5]))  # 3.5 / 0.5 is above 6; the mean of z is 2
        (array([5., 4.]), array([False,  True]))
        """
        pred, outside = self.formula()(to_tensor(z), to_tensor(slope))
        return np.asarray(pred.numpy()), np.asarray(outside.numpy())

    def formula(self) -> "GuardedRatio":
        """The same with tensors, for a graph."""
        return GuardedRatio(*map(to_tensor, (self.edges, self.smallest, self.largest, self.mean_z)))


class GuardedRatio(nn.Module):
    """The division of a `RatioGuard`, whose arguments are those here."""

    def __init__(self, edges: Tensor, smallest: Tensor, largest: Tensor, mean_z: Tensor) -> None:
        super().__init__()
        # The first bin has no lower edge; so the list of edges is never empty.
        below = torch.full((1,), -torch.inf, dtype=edges.dtype)
        values = {"starts": torch.cat((below, edges)), "smallest": smallest, "largest": largest, "mean_z": mean_z}
        for name, value in values.items():
            self.register_buffer(name, value)

    def forward(self, z: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
        """Predictions (n,), and whether each ratio was replaced."""
        bin_of_row = (slope.unsqueeze(-1) >= self.get_buffer("starts")).to(slope.dtype).sum(-1).long() - 1
        low, high, mean = (self.get_buffer(name)[bin_of_row] for name in ("smallest", "largest", "mean_z"))
        pred = z / slope
        # Rounding must not count as leaving the range; boosters compute in single precision.
        margin = 1e-6 * (high.abs() + low.abs())
        outside = (pred < low - margin) | (pred > high + margin)
        return torch.where(outside, torch.minimum(torch.maximum(mean / slope, low), high), pred), outside


def mean_slope(slopes: Any, shares: Any, emphasis: float) -> Any:
    """κ̄ = Σ s_k κ_k^(1-e) / Σ s_k κ_k^-e over models k with shares s: what z learns at x, divided by E[y|x].

    At x, z learns the mean of y·κ_k over rows of every fold with the weights κ_k^-e, which is E[y|x] times this mean:
    the arithmetic mean of κ for e = 0, and the harmonic mean for e = 1.

    Args:
        slopes: κ (models, n), an array or a tensor.
        shares: the shares of the models, which add up to one.
        emphasis: e.

    >>> slopes, shares = np.array([[1.0], [0.25]]), np.array([0.5, 0.5])
    >>> mean_slope(slopes, shares, 0.0), mean_slope(slopes, shares, 1.0)
    (array([0.625]), array([0.4]))

    """
    return shares @ slopes ** (1.0 - emphasis) / (shares @ slopes**-emphasis)


class RatioFormula(nn.Module):
    """z̄ / κ̄ with the guard, from the points of some models and the z of others.

    Args:
        transform: T.
        slope: κ.
        shares: of the models of T(y).
        bias_shares: of the models of z.
        emphasis: see `GTSRegressor`.
        guard: the rule for ratios that the training targets do not support.

    """

    def __init__(
        self,
        transform: Transform,
        slope: Slope,
        shares: Sequence[float] | Floats,
        bias_shares: Sequence[float] | Floats,
        emphasis: float,
        guard: RatioGuard,
    ) -> None:
        super().__init__()
        self.transform, self.slope, self.emphasis, self.guard = transform, slope, emphasis, guard.formula()
        self.register_buffer("shares", to_tensor(np.asarray(shares, np.float64)))
        self.register_buffer("bias_shares", to_tensor(np.asarray(bias_shares, np.float64)))

    def forward(self, predictions: Tensor) -> Tensor:
        shares, bias_shares = self.get_buffer("shares"), self.get_buffer("bias_shares")
        points, z = predictions.split_with_sizes([len(shares), len(bias_shares)])
        slope = mean_slope(self.slope.kappa(points, self.transform), shares, self.emphasis)
        ratio: Tensor = self.guard(bias_shares @ z, slope)[0]
        return ratio


class GTSRegressor(TransformedTargetBase):
    """ŷ(x) = z(x) / κ̄(x): one regressor learns T(y), a second one y·κ(u), and the ratio estimates E[y|x].

    A regressor trained on T(y) and inverted predicts too little (or too much), by Jensen's inequality. Here its
    point u only sets the scale κ(u) on which a second regressor learns y itself, so the noise is tame and the mean is
    kept. u must not depend on the y that it scales: the rows are split into folds, u comes from models of the other
    folds, and a prediction divides by the mean over those models of κ(u_k(x)), weighted as the rows are when z is
    fitted (`mean_slope`). In the population that is exactly unbiased, because E[y·κ(u_k(x)) | x] = E[y|x]·κ(u_k(x)) for
    every fold; with u from its own training rows it is not.

    Args:
        regressor: anything with `fit` and `predict`; histogram gradient boosting by default.
        bias_regressor: the regressor that learns y·κ. By default it is a copy of `regressor` that learns by Poisson
            deviance, where it can and no target is negative: see `emphasis`. Of a `TransformedTargetRegressor` it is
            the regressor inside.
        target_transform: T. `Identity()` with ``cv="prefit"`` for a model that predicts in units of the target.
        slope: κ; `PowerVariance(1.0)` by default. A larger power evens out noise that grows with the amount, and
            amplifies errors of z where u is large: on heavy tails 2 can double the error, 0 is plain least squares.
        emphasis: each row has the weight κ^-emphasis when z is fitted. 0 is the published method; 1 with a bias
            regressor of Poisson deviance makes it the deviance of y itself with κ as an offset, which keeps totals; 2
            with squares is plain least squares. Above 0 the bias regressor must take `sample_weight`. None is 1 where
            the default bias regressor learns by Poisson deviance, and else 0; 0 keeps the published method everywhere.
        cv: folds, a splitter or an iterable of splits; one fit of the regressor each, and one of the bias regressor.
            None takes u from the training rows: two fits in all, and biased by what u has memorised.
            "prefit": `regressor` is trained already, on other rows; `fit` only trains the bias regressor.
        n_jobs: the number of folds fitted at the same time.
        random_state: seed of the shuffling into folds.

    Attributes:
        regressors_: the models of T(y), one per fold.
        shares_: the weight of each of them in κ̄.
        bias_regressor_: the model of y·κ.
        transform_: T with its bounds learned from the targets.
        guard_: the `RatioGuard` against amplification.
        replaced_: the share of training rows whose ratio it replaces; `fit` warns if it is above 1 %.

    >>> X, y = [[0]] * 4 + [[1]] * 4, [1.0, 1.0, 9.0, 9.0] + [25.0, 25.0, 81.0, 81.0]
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> GTSRegressor(DecisionTreeRegressor(), target_transform=Power(0.5), cv=None).fit(X, y).predict([[0], [1]])
    array([ 5., 53.])

    Without z the same tree would predict the squares of mean roots, 4 and 49.

    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TransformedTargetBase._parameter_constraints,
        "bias_regressor": [HasMethods(["fit", "predict"]), None],
        "slope": [Slope, None],
        "emphasis": [Interval(Real, None, None, closed="neither"), None],
    }

    # Whether z is learned by Poisson deviance; `fit` decides.
    _by_deviance: bool = False

    def __init__(
        self,
        regressor: Any = None,
        bias_regressor: Any = None,
        *,
        target_transform: Transform = Log1p(),
        slope: Slope | None = None,
        emphasis: float | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.regressor = regressor
        self.bias_regressor = bias_regressor
        self.target_transform = target_transform
        self.slope = slope
        self.emphasis = emphasis
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        eval_set: Any = None,
        exposure: Any = None,
        groups: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the models of T(y), then the model of y·κ.

        Args:
            X: features, in any form that the regressors take.
            y: targets, in their own units.
            sample_weight: weights of the rows, for both regressors.
            eval_set: a pair (X, y) or a list of pairs in units of y, for regressors with early stopping. Each regressor
                gets the targets in the units that it learns.
            exposure: what each amount was collected over; see `UnbiasedRegressor.fit`.
            groups: the group of each row, for the splitter; with a number of folds no group is in two of them.
            fit_params: parameters of the `fit` of both regressors, or routed by scikit-learn's metadata routing.

        """
        if self.bias_regressor is not None and transforms_target(self.bias_regressor):
            raise ValueError(
                f"bias_regressor is a {type(self.bias_regressor).__name__}, which transforms its target, so that z "
                "would be biased: pass the regressor inside it"
            )
        X, target, weight = self._check_exposed_rows(X, y, sample_weight, exposure)
        if exposure is not None and eval_set is not None:
            raise ValueError("an eval_set has no exposures: use one of eval_set and exposure")
        self.transform_ = prepare_transform(self.target_transform, target)
        self._by_deviance = self._can_learn_by_deviance(target)
        fittings = self._fittings(weight, fit_params)
        evaluation = self._check_evaluation(eval_set)
        points = self._fit_points(fittings["regressor"], X, target, evaluation, groups)
        self.regressors_, self.shares_ = list(points.models), points.shares(weight)
        rows, slopes = points.rows, self._slope_at(points.predictions)
        scaled = [(features, values * self._mean_slope(features)) for features, values in evaluation]
        fit_bias = fittings["bias_regressor"].with_evaluation(scaled)
        emphasis = slopes**-self._emphasis
        self.bias_regressor_ = fit_bias(X, target[rows] * slopes, rows, emphasis if self._emphasis else None)
        counts = emphasis if weight is None else emphasis * weight[rows]
        self.guard_ = RatioGuard.learn(slopes, target[rows], counts)
        self.replaced_ = self._replaced_share(X)
        self.intervals_ = None  # z has seen every row
        if self.replaced_ > _NOTABLE_SHARE:
            warnings.warn(
                f"{self.replaced_:.0%} of the ratios z/κ lie outside the training targets seen at their slope; they "
                "are replaced by the mean ratio there. Use a slope of smaller power, such as PowerVariance(0.5), or "
                "UnbiasedRegressor",
                AmplificationWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any, exposure: Any = None) -> Floats:
        """Estimates of E[y|x], (n,); after a fit with exposures, of rows with these exposures."""
        X = self._check_features(X)
        pred, _ = self.guard_.divide(predict_1d(self.bias_regressor_, X), self._mean_slope(X))
        return self._to_amounts(pred, exposure)

    def _replaced_share(self, X: Any) -> float:
        """The share of rows whose ratio is replaced."""
        _, outside = self.guard_.divide(predict_1d(self.bias_regressor_, X), self._mean_slope(X))
        return float(outside.mean())

    def _slope_at(self, point: Floats) -> Floats:
        return slope_at(point, PowerVariance(1.0) if self.slope is None else self.slope, self.transform_)

    def _mean_slope(self, X: Any) -> Floats:
        """κ̄(x), the mean of κ over the models."""
        slopes = np.stack([self._slope_at(predict_1d(model, X)) for model in self.regressors_])
        return np.asarray(mean_slope(slopes, self.shares_, self._emphasis))

    def composition(self) -> Composition:
        check_is_fitted(self)
        slope = PowerVariance(1.0) if self.slope is None else self.slope
        formula = RatioFormula(self.transform_, slope, self.shares_, [1.0], self._emphasis, self.guard_)
        return Composition([*self.regressors_, self.bias_regressor_], formula, per_exposure=self.by_exposure_)

    @property
    def _emphasis(self) -> float:
        return float(self._by_deviance) if self.emphasis is None else self.emphasis

    def _can_learn_by_deviance(self, target: Floats) -> bool:
        """Whether z is learned by Poisson deviance: nobody chose otherwise, and regressor and targets allow it."""
        base = self._untransformed_regressor()
        chosen = self.bias_regressor is not None or self.emphasis is not None
        if chosen or target.min() < 0.0 or not target.any() or with_deviance(base, "poisson") is None:
            return False
        return takes_weights(base)

    def _inner_regressors(self) -> dict[str, Any]:
        base = self._base_regressor()
        bias = self._untransformed_regressor() if self.bias_regressor is None else self.bias_regressor
        if self._by_deviance:
            bias = with_deviance(bias, "poisson")
        return {"regressor": base, "bias_regressor": bias}
