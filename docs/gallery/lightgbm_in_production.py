"""
LightGBM in production: one booster in place of twelve
======================================================

`UnbiasedRegressor` averages the models of its folds. Where a service takes one booster only, `compact` trains one that
imitates the mixture, says how far it is from it, and keeps the total.
"""

import numpy as np
from lightgbm import LGBMRegressor

from transun import PGR, UnbiasedRegressor, diagnose

# %%
rng = np.random.default_rng(4)
X = rng.normal(size=(9_000, 4))
y = np.exp(1.0 + 0.6 * X[:, 0] + 0.3 * X[:, 1] + (0.5 + 0.3 * (X[:, 3] > 0)) * rng.normal(size=9_000))
fitted, new = slice(0, 6_000), slice(6_000, None)
model = UnbiasedRegressor(LGBMRegressor(n_estimators=80, verbose=-1), random_state=0).fit(X[fitted], y[fitted])

# %%
# One booster
# -----------
small = model.compact(X[fitted], y[fitted])
print(small.agreement)

# %%
# The file that a service of LightGBM loads, and the factor beside it:
text = small.regressor.booster_.model_to_string()
print(f"{len(text) // 1000} kB of trees, and the factor {small.balance.factor:.4f}")

# %%
# A gate before it is published
# -----------------------------
# The interval is that of the new rows. What the training rows leave open comes on top, hence the tolerance of 5 %.
diagnosis = diagnose(y[new], small.predict(X[new]), name="candidate for release")
total = diagnosis.metric("PGR")
print(diagnosis.verdict.text)
print("publish" if total.low <= 1.05 and total.high >= 0.95 else "do not publish")

# %%
# The number that a dashboard needs every day is the ratio of the sums:
day = np.arange(3_000) // 300
predicted = small.predict(X[new])
print([round(PGR(predicted[day == k], y[new][day == k]), 2) for k in range(10)])
