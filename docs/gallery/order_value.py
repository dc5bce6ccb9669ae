"""
Order value: find the bias, remove it, prove it
===============================================

A shop predicts the value of orders by a network that is trained on ln(1 + y). The orders are simulated, so that the
true mean of every order is known.
"""

# %%
# The log of orders
# -----------------
# The noise of an order depends on the user and on the item. A model of ln y therefore loses more of some orders than of
# others, and no single factor can repair it.
from transun import LogMSE, LogSUN, Recipe, diagnose, train
from transun.data import OrderLog

log = OrderLog(orders=16_000, users=400, items=200, history=0)
x, y, truth = log.chunk(0, 16_000)
table = {**{name: column.numpy() for name, column in x.items()}, "gmv": y.numpy()}
past = {name: column[:8_000] for name, column in table.items()}
new = {name: column[8_000:] for name, column in table.items()}

# %%
# The usual model
# ---------------
usual = train(past, "gmv", LogMSE(), recipe=Recipe(epochs=4), progress=False)
diagnosis = diagnose(new["gmv"], usual.predict(new), name="orders, trained on ln(1 + y)")
diagnosis

# %%
# The same network with a second branch
# -------------------------------------
# `LogSUN` is the same head with one branch more. Nothing else changes.
debiased = train(past, "gmv", LogSUN(shared=1), recipe=Recipe(epochs=4), progress=False)
print(diagnose(new["gmv"], debiased.predict(new)).verdict.text)

# %%
# Against the true mean
# ---------------------
# Real data never show E[y|x]. Here it is known: drawn is the mean prediction of orders that have the same true mean.
import matplotlib.pyplot as plt
import numpy as np

expected = truth[8_000:].numpy()
edges = np.quantile(expected, np.linspace(0, 1, 11))
group = np.clip(np.searchsorted(edges, expected) - 1, 0, 9)
for name, model in (("LogMSE", usual), ("LogSUN", debiased)):
    predicted = model.predict(new)
    means = [(expected[group == k].mean(), predicted[group == k].mean()) for k in range(10)]
    plt.loglog(*zip(*means, strict=True), "o-", label=name)
plt.loglog(edges[[1, 9]], edges[[1, 9]], "k--", label="right")
for axis in (plt.xticks, plt.yticks):
    axis([20, 50, 100, 200], ["20", "50", "100", "200"])
plt.minorticks_off()
plt.xlabel("true mean of the order value")
plt.ylabel("mean prediction")
_ = plt.legend()
