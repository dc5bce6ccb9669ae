"""What every variant of a one-branch head obeys, beyond the laws that its default is under."""

import torch

from population import population


class VariantLaws:
    """Inherit, and parametrise the class over `head`; the scale and the type of the raw outputs are tried here."""

    def test_finite_everywhere(self, head):
        head = head.prepare(population("RS-G", 1000))
        y = torch.tensor([0.0, 1e-30, 1.0, 1e6, 1e12])
        noise = torch.randn(5, head.branches[0].width, generator=torch.Generator().manual_seed(0))
        for dtype in (torch.float32, torch.bfloat16):
            for scale in (1e4, -1e4):
                raw = (scale * noise).to(dtype).requires_grad_()
                terms = head.loss((raw,), y)
                assert all(term.isfinite().all() and term.shape == (5,) for term in terms.values())
                assert torch.autograd.grad(sum(term.sum() for term in terms.values()), raw)[0].isfinite().all()
                assert head((raw,)).isfinite().all()

    def test_before_prepare_and_without_rows(self, head):
        for rows in (0, 1, 3):
            raw, y = (torch.zeros(rows, head.branches[0].width),), torch.arange(rows) / 2.0
            assert head(raw).shape == (rows,)
            assert head(raw).isfinite().all()
            assert all(term.shape == (rows,) and term.isfinite().all() for term in head.loss(raw, y).values())
