"""A head is a plain module without parameters, and so trains inside a TorchRec model; Lightning is in the gallery."""

import warnings

import pytest
import torch
from torch import nn

from transun import LogSUN

ITEMS, ROWS = 5, 2_000


@pytest.fixture(scope="module")
def data():
    """Ids with amounts whose means are known: e^(i/2 + s²/2) for the item i."""
    generator = torch.Generator().manual_seed(0)
    item = torch.randint(0, ITEMS, (ROWS,), generator=generator)
    y = torch.exp(0.5 * item + 0.8 * torch.randn(ROWS, generator=generator))
    return item, y


def start_at_constants(output, head, y):
    """Output biases at the best constants, so that the first prediction has the right total."""
    with torch.no_grad():
        output.bias.copy_(torch.cat(head.initial_outputs(y)))


def assert_total(pred, y):
    """Within 10 %, where least squares of ln(1 + y) alone would be a quarter too low, 1 - e^(-s²/2)."""
    assert float(pred.sum() / y.sum()) == pytest.approx(1.0, abs=0.1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # TorchRec about torch
def test_in_a_torchrec_model(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchRec about parts of fbgemm that a CPU does not have
        reason = "torchrec is not installed, or for another torch"
        torchrec = pytest.importorskip("torchrec", reason=reason, exc_type=Exception)
    item, y = data
    torch.manual_seed(0)
    head = LogSUN().prepare(y)
    config = torchrec.EmbeddingBagConfig(
        name="item_vectors", embedding_dim=8, num_embeddings=ITEMS, feature_names=["item"]
    )
    tables = torchrec.EmbeddingBagCollection([config])
    output = nn.Linear(8, 2)
    start_at_constants(output, head, y)

    def raw(ids):
        lengths = torch.ones(len(ids), dtype=torch.int64)
        features = torchrec.KeyedJaggedTensor.from_lengths_sync(["item"], ids, lengths)
        return output(tables(features).values()).split(1, dim=1)

    optimiser = torch.optim.Adam([*tables.parameters(), *output.parameters()], 0.02)
    for _ in range(4):
        for rows in torch.randperm(ROWS).split(100):
            optimiser.zero_grad()
            sum(term.mean() for term in head.loss(raw(item[rows]), y[rows]).values()).backward()
            optimiser.step()
    with torch.no_grad():
        assert_total(head(raw(item)), y)
