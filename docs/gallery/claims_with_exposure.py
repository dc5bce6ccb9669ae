"""
Claims with exposure: a policy of three months is not a quarter as interesting
==============================================================================

Insurers know the cost of claims of each policy and how long it ran. The cost is proportional to that time, the
*exposure*; the rate per year is what a tariff needs.
"""

import numpy as np
from lightgbm import LGBMRegressor

from transun import PGR, UnbiasedRegressor

# %%
rng = np.random.default_rng(2)
rows = 6_000
age, power = rng.uniform(18, 80, rows), rng.integers(4, 12, rows)
years = rng.uniform(0.05, 1.0, rows)
frequency = 0.12 * np.exp(0.03 * power + 0.8 * (age < 25))
claims = rng.poisson(frequency * years)
cost = np.array([rng.lognormal(6.5, 1.0, n).sum() for n in claims])
X = np.column_stack([age, power])
fitted, new = slice(0, 4_500), slice(4_500, None)
print(f"{np.mean(cost == 0):.0%} of the policies have no claim; pure premium {cost.sum() / years.sum():.0f} a year")

# %%
# With `exposure=` the model learns the cost per year, with the years as weights, and `predict` gives rates or, with the
# exposure of new policies, amounts.
booster = LGBMRegressor(n_estimators=30, num_leaves=7, verbose=-1)
model = UnbiasedRegressor(booster, random_state=0).fit(X[fitted], cost[fitted], exposure=years[fitted])
predicted = model.predict(X[new], exposure=years[new])
print(f"predicted / actual cost {PGR(predicted, cost[new]):.2f}")

# %%
# Without the exposure, the model learns the cost of the average policy. The total is about right, and every single
# policy is wrong: those that ran for a month are charged like those that ran for a year.
blind = UnbiasedRegressor(booster, random_state=0).fit(X[fitted], cost[fitted])
short = years[new] < 0.25
for name, values in (("with exposure", predicted), ("without", blind.predict(X[new]))):
    print(f"{name:14} short policies {values[short].sum():8.0f} of {cost[new][short].sum():8.0f}")
