import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_predict
from sklearn.tree import DecisionTreeRegressor

from estimators.world import world
from transun import Power
from transun.estimators.cross_fitting import CrossFit, OutOfFold, predict_1d, split_rows
from transun.estimators.fitting import Fitting
from transun.estimators.target import prepare_transform

TREE = DecisionTreeRegressor(random_state=0, min_samples_leaf=20)
DATA = world(300, seed=5)


class TestOutOfFold:
    def test_predictions_are_those_of_scikit_learn(self):
        folds = list(KFold(4, shuffle=True, random_state=0).split(DATA.X))
        out_of_fold = OutOfFold.fit(Fitting(TREE), DATA.X, DATA.y, folds, None)
        assert (out_of_fold.rows == np.arange(300)).all()
        assert out_of_fold.predictions == pytest.approx(cross_val_predict(TREE, DATA.X, DATA.y, cv=folds))

    def test_rows_may_be_held_out_twice_or_never(self):
        folds = list(ShuffleSplit(3, test_size=0.4, random_state=0).split(DATA.X))
        out_of_fold = OutOfFold.fit(Fitting(TREE), DATA.X, DATA.y, folds, None)
        assert (out_of_fold.rows == np.sort(np.concatenate([held_out for _, held_out in folds]))).all()
        assert out_of_fold.shares() == pytest.approx([1 / 3] * 3)

    def test_shares_follow_the_weights(self):
        out_of_fold = OutOfFold([None, None], [np.array([0, 1]), np.array([2])], [np.zeros(2), np.zeros(1)])
        assert out_of_fold.shares() == pytest.approx([2 / 3, 1 / 3])
        assert out_of_fold.shares(np.array([1.0, 1.0, 6.0])) == pytest.approx([0.25, 0.75])


class TestCrossFit:
    def test_points_are_fitted_once_to_the_transformed_target(self):
        small = CrossFit(Fitting(TREE), DATA.X, DATA.y, None, list(KFold(3).split(DATA.X)))
        transform = prepare_transform(Power(0.5), DATA.y)
        assert small.points(transform) is small.points(transform)
        expected = cross_val_predict(TREE, DATA.X, np.sqrt(DATA.y), cv=KFold(3))
        assert small.points(transform).predictions == pytest.approx(expected)


class TestSplitRows:
    def test_a_number_means_shuffled_folds(self):
        folds = split_rows(5, DATA.X, DATA.y, random_state=0)
        assert np.sort(np.concatenate([held_out for _, held_out in folds])).tolist() == list(range(300))
        assert any(np.diff(np.sort(held_out)).max() > 1 for _, held_out in folds)

    def test_a_splitter_is_used_as_it_is(self):
        for mine, theirs in zip(split_rows(KFold(3), DATA.X, DATA.y, None), KFold(3).split(DATA.X), strict=True):
            assert (mine[1] == theirs[1]).all()


class TestPredict1d:
    def predict(self, values):
        return predict_1d(type("Model", (), {"predict": lambda self, X: values})(), [[0.0]] * len(values))

    def test_a_single_column_becomes_a_vector(self):
        assert self.predict([[1], [2]]).tolist() == [1.0, 2.0]

    def test_two_columns_are_refused(self):
        with pytest.raises(ValueError, match=r"Model predicts an array of shape \(1, 2\)"):
            self.predict([[1.0, 2.0]])

    def test_predictions_must_be_finite(self):
        with pytest.raises(ValueError, match="Model predicts nan for row 1"):
            self.predict([1.0, float("nan")])
