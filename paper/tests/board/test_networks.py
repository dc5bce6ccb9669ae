import numpy as np
import pytest

from transun_paper.board.methods import METHODS
from transun_paper.board.networks import Train
from transun_paper.board.trees import ConstantRate, rmse

FAST = {"head": "Scaled(MSE())", "backbone": "embedding_mlp", "recipe": {"epochs": 5}}


def test_arguments_and_heads_that_this_version_lacks_are_named():
    assert Train("t", {"telepathy": True}).missing() == "train takes no argument 'telepathy'"
    assert Train("t", {"head": "Telepathy()"}).missing() == "there is no 'Telepathy' in transun"
    assert Train("t", FAST).missing() is None
    assert METHODS["default"].missing() is None
    assert METHODS["tabm_poisson"].missing() is None


def test_the_seed_decides_the_result(split):
    first, second, other = (Train("t", FAST).fit_predict(split, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.test, second.test)
    assert not np.array_equal(first.test, other.test)
    constant = ConstantRate("c").fit_predict(split, 0)
    assert rmse(first.test, split.y_test) < rmse(constant.test, split.y_test)


def test_the_first_seed_chooses_the_rate_for_all(split):
    """A rate of 1e-9 learns nothing, so that the other one is chosen; a later seed takes it as it is."""
    method = Train("t", FAST, rates=(1e-9, 1e-2))
    assert method.needs(0) is None
    assert method.needs(3) == ("t", 0)
    first = method.fit_predict(split, 0)
    assert first.details == {"rate": 1e-2}
    given = method.taken_from({"details": first.details})
    again = method.fit_predict(split, 0, given)
    np.testing.assert_array_equal(first.test, again.test)
    assert method.fit_predict(split, 0, {"rate": 1e-9}).details == {"rate": 1e-9}


def test_without_rates_nothing_is_needed_first():
    assert Train("t", FAST).needs(4) is None


@pytest.mark.parametrize("backbone", ["embedding_mlp", "tabm"])
def test_backbones_are_named_by_text(backbone, split):
    recipe = {"epochs": 1}
    result = Train("t", FAST | {"backbone": backbone, "recipe": recipe}).fit_predict(split, 0)
    assert np.isfinite(result.test).all()
