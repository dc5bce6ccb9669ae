"""The devices that models are trained on."""

import torch

__all__ = ["check_device", "require_device"]


def check_device(name: str | None) -> None:
    """Raise a `ValueError` if this is no name of a device, whether or not this machine has one; None is no demand.

    >>> check_device("cuda:1")
    >>> check_device("gpu")
    Traceback (most recent call last):
    ValueError: there is no kind of device 'gpu': use "cpu", "cuda" for a GPU of NVIDIA or AMD, or "mps" on a Mac
    """
    if name is None:
        return
    try:
        kind = torch.device(name).type
    except (RuntimeError, TypeError):
        kind = None
    # Tensors on "meta" have shapes and no numbers.
    if kind in (None, "meta"):
        raise ValueError(
            f'there is no kind of device {name!r}: use "cpu", "cuda" for a GPU of NVIDIA or AMD, or "mps" on a Mac'
        )


def require_device(name: str | None) -> None:
    """Raise a `ValueError` if this machine has no such device, or its torch cannot use it; call it before long work.

    >>> require_device("cpu")
    >>> require_device("cuda:999")
    Traceback (most recent call last):
    ValueError: this machine cannot train on 'cuda:999' (...): leave the device out to train on the processor
    """
    check_device(name)
    try:
        torch.empty(1, device="cpu" if name is None else name)
    # A torch without the device raises an AssertionError, and one that meets a broken driver a RuntimeError.
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise ValueError(
            f"this machine cannot train on {name!r} ({reason}): leave the device out to train on the processor"
        ) from error
