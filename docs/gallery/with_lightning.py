"""
Lightning: a head in a loop that is not ours
============================================

A head declares raw outputs, their cost and their meaning, and is a plain module without parameters. Any training loop
can use it: here that of Lightning. Where Lightning is not installed, the same steps run in a loop of five lines.
"""

import logging
from importlib.util import find_spec

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from transun import LogSUN

# %%
# A network with two outputs, f and z, for the two branches of the head.
torch.manual_seed(0)
x = torch.randn(15_000, 4)
y = torch.exp(1.0 + x[:, 0] + 0.8 * torch.randn(15_000))
head = LogSUN().prepare(y[:5_000])
assert len(head.branches) == 2
network = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
with torch.no_grad():  # output biases start at the best constants, so that the first prediction has the right total
    network[2].bias.copy_(torch.cat(head.initial_outputs(y[:5_000])))


def outputs(batch):
    """The raw outputs as the head wants them: one column a branch."""
    return tuple(network(batch).split(1, dim=1))


def cost(batch, target):
    """The sum of the named terms, averaged over the rows."""
    return sum(term.mean() for term in head.loss(outputs(batch), target).values())


loader = DataLoader(TensorDataset(x[:5_000], y[:5_000]), batch_size=500, shuffle=True)

# %%
if find_spec("lightning"):
    import lightning

    class Debiased(lightning.LightningModule):
        """The head in the loop of Lightning."""

        def __init__(self):
            super().__init__()
            self.network, self.head = network, head

        def training_step(self, batch, index):
            """The cost of a batch."""
            return cost(*batch)

        def configure_optimizers(self):
            """Adam."""
            return torch.optim.Adam(self.parameters(), 0.01)

    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    trainer = lightning.Trainer(
        max_epochs=5,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    trainer.fit(Debiased(), loader)
    print(f"{trainer.global_step} steps by Lightning {lightning.__version__}")
else:
    print("Lightning is not installed: the same steps in a plain loop")
    optimiser = torch.optim.Adam(network.parameters(), 0.01)
    for batch, target in (row for _ in range(5) for row in loader):
        optimiser.zero_grad()
        cost(batch, target).backward()
        optimiser.step()

# %%
with torch.no_grad():
    predicted = head(outputs(x[5_000:]))
print(f"predicted / actual total {float(predicted.sum() / y[5_000:].sum()):.3f}")
