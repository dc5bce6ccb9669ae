"""An interval that stays valid however often one looks at a running test: the asymptotic confidence sequence."""

import math

from transun.support.extras import need

__all__ = ["HORIZON", "always_valid_errors"]

HORIZON = 10_000
"""Users at which the interval is narrowest, by default."""


def always_valid_errors(users: int, level: float = 0.95, horizon: int = HORIZON) -> float:
    """The half width of an always-valid interval after so many users, in standard errors of the estimate.

    √((1 + 1/r) · ln((1 + r) / α²)) with r = users · ρ² and α = 1 - level (Waudby-Smith, Arbour, Sinha, Kennedy and
    Ramdas, arXiv 2103.06476). The usual interval, 1.96 standard errors at 95 %, holds for one look at a
    number of users fixed beforehand; a test that is looked at daily and stopped when this interval excludes 0 is wrong
    far more often. The always-valid interval ever excludes the truth with probability α, as the number of users grows:
    it can be looked at after every user, and the test can be stopped at any time.

    The price is its width: 3.0 standard errors at the horizon, to which ρ² = (-W₋₁(-α²/e) - 1) / horizon fits it, 3.2
    at a third of the users and at ten times as many, 3.8 at a tenth. The horizon must not depend on the data, so it is
    a number that is chosen before the test and stays the same at every look.

    It supposes that users arrive one after another and that a user who was counted does not change later. Where users
    go on buying, count each for the same time, such as a week from the first visit.

    >>> round(always_valid_errors(10_000), 1)
    3.0
    >>> always_valid_errors(1_000) > always_valid_errors(10_000) < always_valid_errors(100_000)
    True
    """
    if users < 1:
        raise ValueError(f"users={users}: an interval needs at least one user")
    if horizon < 1:
        raise ValueError(f"horizon={horizon} must be at least 1: the users that the test is expected to have")
    alpha = 1.0 - level
    fitted = -float(need("scipy.special").lambertw(-(alpha**2) / math.e, -1).real) - 1.0
    r = users * fitted / horizon
    return math.sqrt((1.0 + 1.0 / r) * math.log((1.0 + r) / alpha**2))
