"""Operations that torch does not write to ONNX, or not well, against scipy and numpy."""

import importlib
import logging
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import erfc, expit, ndtri

from registry import all_heads, name
from transun.tables.onnx_graph import torch_to_onnx

runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


# Some of the heads; benchmarks/export_parity.py has all of them.
SOME = [head for number, head in enumerate(all_heads()) if number in (1, 12, 15, 60, 98, 117, 124)]


@pytest.fixture
def parity(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    yield importlib.import_module("export_parity")
    for module in ("export_parity", "record"):  # too plain names to leave behind
        sys.modules.pop(module, None)


@pytest.mark.parametrize("head", SOME, ids=name)
def test_a_head_predicts_as_in_python(head, parity):
    assert max(parity.head_parity(head, rows=1000).distances.values()) <= parity.TOLERANCE


class Functions(torch.nn.Module):
    def forward(self, x):
        edges = torch.tensor([-0.5, 0.0, 0.25])
        return {
            "expm1": x.expm1(),
            "log1p": x.log1p(),
            "erfc": (2.0 * x).erfc(),
            "ndtri": torch.special.ndtri(0.5 + 0.999 * x.clamp(-0.5, 0.5)),
            "ndtri to the ends": torch.special.ndtri(x.clamp(0.0, 1.0)),
            "right": torch.searchsorted(edges, x, right=True),
            "left": torch.searchsorted(edges, x),
            "below": x.clamp(max=0.1),
            "sigmoid": (-30.0 * x).sigmoid(),
        }


def test_functions():
    x = np.concatenate([np.linspace(-0.999, 4.5, 4001), [1e-8, -1e-8, 1e-3, -1e-4, 0.0, 20.0, -0.5, 0.25]])
    x = x.astype(np.float32)
    rows = torch.export.Dim("rows")
    program = torch.export.export(Functions(), (torch.zeros(8),), dynamic_shapes=({0: rows},))
    names = ["expm1", "log1p", "erfc", "ndtri", "ndtri to the ends", "right", "left", "below", "sigmoid"]
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    session = runtime.InferenceSession(torch_to_onnx(program, 1, names).SerializeToString())
    assert logger.level == level  # it is the user's
    made = dict(zip(names, session.run(names, {"column_0": x}), strict=True))
    np.testing.assert_allclose(made["expm1"], np.expm1(x.astype(float)), rtol=3e-6)
    np.testing.assert_allclose(made["log1p"], np.log1p(x.astype(float)), rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(made["erfc"], erfc(2.0 * x.astype(float)), rtol=2e-5, atol=1e-37)
    p = (np.float32(0.5) + np.float32(0.999) * x.clip(-0.5, 0.5)).astype(float)
    np.testing.assert_allclose(made["ndtri"], ndtri(p), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(made["ndtri to the ends"], ndtri(x.clip(0.0, 1.0).astype(float)), rtol=1e-4, atol=1e-6)
    edges = np.array([-0.5, 0.0, 0.25])
    assert np.array_equal(made["right"], np.searchsorted(edges, x, side="right"))
    assert np.array_equal(made["left"], np.searchsorted(edges, x))
    assert np.array_equal(made["below"], x.clip(max=np.float32(0.1)))
    np.testing.assert_allclose(made["sigmoid"], expit(np.float32(-30.0) * x.astype(float)), rtol=2e-5, atol=1e-37)
