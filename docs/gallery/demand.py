"""
Demand: the sum over stores is what is ordered
==============================================

Sales of a product in a store are small counts. Each prediction may be off; their sum over stores decides what the
warehouse orders, and there a bias of a few per cent is money.
"""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from transun import PGR, BalancedRegressor
from transun.estimators import Balance

# %%
rng = np.random.default_rng(3)
rows = 12_000
store, weekday = rng.integers(0, 30, rows), rng.integers(0, 7, rows)
promotion = rng.random(rows) < 0.15
level = np.exp(0.8 + 0.5 * np.sin(store) + 0.3 * (weekday >= 5) + 0.7 * promotion)
sold = rng.negative_binomial(2.0, 2.0 / (2.0 + level))
X = np.column_stack([store, weekday, promotion]).astype(float)
fitted, new = slice(0, 9_000), slice(9_000, None)

# %%
# Least squares on the root of the sales, the usual choice for counts, under-predicts:
root = HistGradientBoostingRegressor(max_iter=80).fit(X[fitted], np.sqrt(sold[fitted]))
print(f"on the root: {PGR(root.predict(X[new]) ** 2, sold[new]):.3f} of the actual total")

# %%
# Poisson deviance has the mean as its optimum. `BalancedRegressor` makes its out-of-fold total exact, and that of every
# store as far as the rows of a store can tell: where stores differ by no more than noise, it leaves them alone.
poisson = HistGradientBoostingRegressor(loss="poisson", max_iter=80)
balanced = BalancedRegressor(poisson, balance=Balance(by=0), random_state=0).fit(X[fitted], sold[fitted].astype(float))
poisson.fit(X[fitted], sold[fitted])
for name, model in (("Poisson", poisson), ("balanced", balanced)):
    predicted = model.predict(X[new])
    stores = [PGR(predicted[X[new][:, 0] == k], sold[new][X[new][:, 0] == k]) for k in range(30)]
    print(f"{name:9} total {PGR(predicted, sold[new]):.3f}, stores from {min(stores):.2f} to {max(stores):.2f}")
