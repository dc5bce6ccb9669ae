"""Models: a network and a head, their text form, the folder that they are saved in, and its bias certificate."""

from typing import TYPE_CHECKING

from transun.support.lazy import lazy_names

if TYPE_CHECKING:
    from transun.models.checkpoint import grow, load_model, save_model
    from transun.models.description import Description, describe_model
    from transun.models.network import Model, Network
    from transun.models.user_module import debias

# Descriptions and certificates are read without torch, so that importing this package must not import it.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "transun.models.checkpoint": ("grow", "load_model", "save_model"),
        "transun.models.description": ("Description", "describe_model"),
        "transun.models.network": ("Model", "Network"),
        "transun.models.user_module": ("debias",),
    },
)
