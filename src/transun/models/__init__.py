"""What a model is: a network and a head, their text form, a folder they are saved in, and what it promises."""

from typing import TYPE_CHECKING

from transun.support.lazy import lazy_names

if TYPE_CHECKING:
    from transun.models.checkpoint import grow, load_model, save_model
    from transun.models.description import Description, describe_model
    from transun.models.network import Model, Network
    from transun.models.user_module import debias

__all__ = ["Description", "Model", "Network", "debias", "describe_model", "grow", "load_model", "save_model"]

# Certificates are read without torch, so that importing this package must not import it.
__getattr__, __dir__ = lazy_names(
    __name__,
    __all__,
    (
        "transun.models.description",
        "transun.models.network",
        "transun.models.checkpoint",
        "transun.models.user_module",
    ),
)
