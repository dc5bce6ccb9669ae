"""Predictions of all rows, whatever asks for them: of a trained model alone, and of some rows at a time."""

from functools import partial

import pytest
import torch

from transun import Dataset, LogSUN, Model, TabM
from transun.corrections import Smearing
from transun.training import balance, calibrate, fuse, shrink
from transun.training.evaluation import measure, predict, predict_with_kappa

MEMBERS = 4
ROWS = 5000
DATA = Dataset({"a": torch.linspace(-1.0, 1.0, ROWS)}, torch.linspace(1.0, 9.0, ROWS))


def debiased():
    return Model(TabM(numeric=("a",), hidden=(4,), members=MEMBERS), LogSUN()).prepare(DATA.y)


EVERY_LOOK = pytest.mark.parametrize(
    "look",
    [predict, predict_with_kappa, measure, balance, partial(calibrate, correction=Smearing()), shrink, fuse],
    ids=lambda look: getattr(look, "__name__", "calibrate"),
)


@EVERY_LOOK
def test_a_model_that_was_never_trained_is_refused(look):
    with pytest.raises(ValueError, match="never trained: fit it first"):
        look(Model(TabM(numeric=("a",), hidden=(4,), members=MEMBERS), LogSUN()), DATA)


@EVERY_LOOK
def test_a_network_of_several_members_gets_fewer_rows_at_a_time(look, monkeypatch):
    seen, raw = [], Model.raw

    def counted(self, batch):
        seen.append(len(batch["a"]))
        return raw(self, batch)

    monkeypatch.setattr(Model, "raw", counted)
    look(debiased(), DATA)
    assert sum(seen) == ROWS
    # 2,048 rows of four members are as much for the layers as 8,192 rows of a network with one.
    assert seen == [2048, 2048, 904]


def test_predictions_do_not_depend_on_the_rows_at_a_time():
    model = debiased()
    torch.nn.init.normal_(model.network.outputs[0].weight, std=0.3, generator=torch.Generator().manual_seed(0))
    together = predict(model, DATA, batch_size=ROWS)
    assert float(together.std()) > 0.01
    # Sums of a few numbers in single precision, in an order that the size of a matrix may decide.
    torch.testing.assert_close(predict(model, DATA), together, rtol=1e-5, atol=0.0)
