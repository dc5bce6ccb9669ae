"""Every head, scheme and correction as an ONNX graph, on 10,000 random and extreme rows: how far predictions differ.

    python tools/onnx_parity.py            # every head of tests/registry.py
    python tools/onnx_parity.py --every 5  # every fifth

A head is a function of raw outputs, whatever network they come from, so that it is exported alone. Exit code 1 if a
prediction differs by more than 1e-5, relative to itself, or to a tenth of the mean target where it is smaller: in
single precision a difference such as eˣ - 1 has no more digits there.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from registry import all_heads, name, raw_for
from transun.heads import Head
from transun.tables.onnx_graph import torch_to_onnx

TOLERANCE = 1e-5
ROWS = 10_000


class Reading(torch.nn.Module):
    """What a served model reads off the raw outputs: the prediction, and the one before debiasing."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(self, raw: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        """Both predictions (n,)."""
        return {"prediction": self.head(raw), "original": self.head.undebiased(raw)}


def distance(head: Head, rows: int = ROWS) -> float:
    """The largest relative difference between a head in Python and as ONNX, over raw outputs of several sizes."""
    import onnxruntime

    generator = torch.Generator().manual_seed(0)
    y = torch.distributions.LogNormal(0.0, 1.0).icdf(torch.rand(500, generator=generator).clamp(1e-3, 1 - 1e-3))
    head = head.prepare(y).eval()
    batch = torch.export.Dim("batch")
    reading = Reading(head).eval()
    program = torch.export.export(
        reading, (raw_for(head, 8),), dynamic_shapes=(tuple({0: batch} for _ in head.branches),)
    )
    model = torch_to_onnx(program, len(head.branches), ["prediction", "original"])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    largest = 0.0
    for scale in (0.1, 1.0, 5.0, 1e4, 1e12):
        raw = raw_for(head, rows // 5, 1, scale)
        values = {f"column_{number}": part.numpy() for number, part in enumerate(raw)}
        used = {each.name: values[each.name] for each in session.get_inputs()}
        with torch.no_grad():
            expected = reading(raw)
        for made, wanted in zip(session.run(["prediction", "original"], used), expected.values(), strict=True):
            exact = wanted.double().numpy()
            difference = np.abs(made - exact) / np.abs(exact).clip(0.1 * float(y.mean()))
            largest = max(largest, float(difference.max()) if np.isfinite(difference).all() else float("inf"))
    return largest


def main() -> None:
    """Print the distance of every head, and exit with 1 if one is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="take every n-th head")
    parser.add_argument("--from", dest="first", type=int, default=0, help="begin at this head")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    for number, head in list(enumerate(all_heads()))[arguments.first :: arguments.every]:
        try:
            largest = distance(head)
            verdict = f"{largest:.1e}"
        except Exception as error:  # a head that cannot be written is a result too
            largest, verdict = float("inf"), f"{type(error).__name__}: {str(error)[:150]}"
        wrong += not largest <= TOLERANCE
        print(f"{number:4d} {'   ' if largest <= TOLERANCE else '!! '}{verdict:10s} {name(head)}", flush=True)
    print(f"{wrong} heads differ by more than {TOLERANCE:g}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
