"""
A deployed PyTorch model: a second branch beside frozen weights
===============================================================

The module is in production, and nobody wants to train it again. `debias` freezes a copy of it and trains a small branch
z beside it, so that z / κ(f) has the right mean. The old output stays available for comparison.
"""

import torch
from torch import nn

from transun import Custom, Dataset, Log1p, Recipe, debias, evaluate, fit
from transun.losses import squared

# %%
# The deployed module
# -------------------
# It takes a batch of columns and predicts ln(1 + y).
torch.manual_seed(0)
x = torch.randn(9_000, 6)
spread = 0.5 + 0.4 * (x[:, 1] > 0)
y = torch.exp(1.0 + x[:, 0] + spread * torch.randn(9_000))


def columns(rows):
    """A batch as the data sets of the library have it: columns by name."""
    return {f"x{index}": rows[:, index] for index in range(6)}


class Deployed(nn.Module):
    """Two layers, trained on ln(1 + y)."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Sequential(nn.Linear(6, 32), nn.ReLU())
        self.out = nn.Linear(32, 1)

    def features(self, batch):
        """The last hidden layer."""
        return self.dense(torch.stack(list(batch.values()), 1))

    def forward(self, batch):
        """An estimate of ln(1 + y)."""
        return self.out(self.features(batch))


deployed = Deployed()
optimiser = torch.optim.Adam(deployed.parameters(), 0.01)
for _ in range(200):
    optimiser.zero_grad()
    (deployed(columns(x[:4_000])).squeeze(1) - torch.log1p(y[:4_000])).square().mean().backward()
    optimiser.step()
with torch.no_grad():
    old = torch.expm1(deployed(columns(x[7_000:])).squeeze(1))
print(f"deployed: predicted / actual total {float(old.sum() / y[7_000:].sum()):.3f}")

# %%
# The branch
# ----------
# It reuses the features that the module computes; rows that the module was not trained on teach it the bias.
model = debias(
    deployed,
    squared,
    transform=Log1p(),
    features=Deployed.features,
    backbone=Custom(lambda: nn.Sequential(nn.Linear(32, 16), nn.ReLU()), 16),
)
fit(model, Dataset(columns(x[4_000:7_000]), y[4_000:7_000]), Recipe(epochs=10))
new = Dataset(columns(x[7_000:]), y[7_000:])
print(f"debiased: predicted / actual total {evaluate(model, new)['PGR']:.3f}")

# %%
# For an A/B test
# ---------------
# Old and new prediction come from one forward pass.
with torch.no_grad():
    raw = model.raw(columns(x[7_000:7_003]))
    print("old", model.head.undebiased(raw).numpy().round(2))
    print("new", model.head(raw).numpy().round(2))
