"""
An A/B test: did the debiased model sell more?
==============================================

Half of the users see a ranking by the old model, half by the new one. A few large orders decide the mean of each arm,
so that two equal arms can differ by several per cent. What a user bought before takes away much of that noise.
"""

from importlib.util import find_spec

import numpy as np

from transun.experiments import LogColumns

# %%
# The log of the test: a row a user. The new arm sells 8 % more.
rng = np.random.default_rng(7)
users = 12_000
arm = np.where(rng.random(users) < 0.5, "old", "new")
taste = rng.lognormal(0.0, 1.0, users)
log = {
    "user": np.arange(users),
    "arm": arm,
    "gmv": taste * rng.exponential(10.0, users) * np.where(arm == "new", 1.08, 1.0),
    "gmv_before": taste * rng.exponential(10.0, users),
}

# %%
# Analysed with what users bought before (CUPED). The extra `ab` installs the library that computes the tests.
if find_spec("tea_tasting"):
    from transun.experiments import abtest
    from transun.report.experiment import verdict_on

    test = abtest(log, LogColumns("user", "gmv", arm="arm", before="gmv_before"), control="old")
    print(verdict_on(test, test.decisive[0]))
else:
    print("tea-tasting is not installed: pip install 'transun[ab]'")

# %%
# How many users would a test need that should find 2 %?
if find_spec("tea_tasting"):
    from transun.experiments import plan_abtest

    for plan in plan_abtest(log, LogColumns("user", "gmv", before="gmv_before"), 0.02):
        print(f"{plan.outcome}, {plan.how}: {plan.users_needed:,} users in both arms together")
