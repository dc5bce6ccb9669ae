"""
Customer value: most customers buy nothing
==========================================

The value of a customer over the next year is zero for most, and has a heavy tail for the rest. A two-part model that
multiplies a probability by a log-trained amount has retransformation bias in its second part.
"""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from transun import PGR, UnbiasedRegressor

# %%
rng = np.random.default_rng(1)
rows = 16_000
X = np.column_stack([rng.poisson(2.0, rows), rng.exponential(50.0, rows), rng.normal(size=rows)])
buys = rng.random(rows) < 1 / (1 + np.exp(2.0 - 0.6 * X[:, 0]))
value = np.where(buys, np.exp(3.0 + 0.3 * X[:, 0] + (0.6 + 0.1 * X[:, 0]) * rng.normal(size=rows)), 0.0)
fitted, new = slice(0, 6_000), slice(6_000, None)
best = np.sort(value)[-rows // 100 :].sum() / value.sum()
print(f"{np.mean(value == 0):.0%} of the customers buy nothing; the best 1 % bring {best:.0%} of the value")

# %%
# The usual two-part model
# ------------------------
classifier = HistGradientBoostingClassifier(max_iter=60).fit(X[fitted], buys[fitted])
positive = X[fitted][buys[fitted]]
amount = HistGradientBoostingRegressor(max_iter=60).fit(positive, np.log(value[fitted][buys[fitted]]))
two_part = classifier.predict_proba(X[new])[:, 1] * np.exp(amount.predict(X[new]))
print(f"two-part model: predicted / actual total {PGR(two_part, value[new]):.3f}")

# %%
# One model of the mean
# ---------------------
# Zeros are amounts like others: nothing has to be modelled apart.
model = UnbiasedRegressor(HistGradientBoostingRegressor(max_iter=60), random_state=0).fit(X[fitted], value[fitted])
predicted = model.predict(X[new])
print(f"UnbiasedRegressor: predicted / actual total {PGR(predicted, value[new]):.3f}")

# %%
# Value by decile of the prediction, which is what a marketing budget is spent by:
import matplotlib.pyplot as plt

decile = np.argsort(np.argsort(predicted)) * 10 // len(predicted)
actual_means = [value[new][decile == k].mean() for k in range(10)]
for name, values in (("two-part", two_part), ("unbiased", predicted)):
    plt.plot(range(1, 11), [values[decile == k].mean() for k in range(10)], "o-", label=name)
plt.plot(range(1, 11), actual_means, "k--", label="actual")
plt.yscale("log")
plt.xlabel("decile of the prediction")
plt.ylabel("mean value")
_ = plt.legend()
