"""
Watch time: a booster on logarithms loses the hours
===================================================

A feed predicts how long a video is watched. Most views are short, a few are long. The usual booster on ln(1 + seconds)
ranks well, and under-predicts the hours that are watched in total.
"""

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.compose import TransformedTargetRegressor

from transun import PGR, XAUC, UnbiasedRegressor, diagnose

# %%
# Simulated views: long videos have a wider spread, because they are either left at once or seen to the end.
rng = np.random.default_rng(0)
rows = 8_000
length = rng.lognormal(4.5, 0.8, rows)
interest = rng.normal(size=rows)
spread = 0.5 + 0.25 * np.log(length / length.min()) / 2
seconds = np.minimum(length, 0.3 * length * np.exp(0.4 * interest + spread * rng.normal(size=rows)))
X = np.column_stack([length, interest, rng.normal(size=rows)])
fitted, new = slice(0, 6_000), slice(6_000, None)

# %%
booster = LGBMRegressor(n_estimators=80, verbose=-1)
usual = TransformedTargetRegressor(booster, func=np.log1p, inverse_func=np.expm1).fit(X[fitted], seconds[fitted])
unbiased = UnbiasedRegressor(booster, random_state=0).fit(X[fitted], seconds[fitted])
for name, model in (("on ln(1 + y)", usual), ("unbiased", unbiased)):
    predicted = model.predict(X[new])
    print(f"{name:14} total {PGR(predicted, seconds[new]):.3f}   order {XAUC(predicted, seconds[new]):.4f}")

# %%
# Which ways to the mean were tried, and what each of them costs out of fold:
print(unbiased.choice_)

# %%
# The diagnosis of the usual booster, by length of the video:
quarter = np.searchsorted(np.quantile(length[new], [0.25, 0.5, 0.75]), length[new])
by = {"length": np.array(["shortest", "short", "long", "longest"])[quarter]}
diagnose(seconds[new], usual.predict(X[new]), by=by, name="watch time")
