"""Every public name, once: what `from transun import ...` finds."""

from transun import (
    backbones,
    corrections,
    data,
    heads,
    losses,
    metrics,
    models,
    schemes,
    tables,
    training,
    transforms,
)
from transun.backbones import *
from transun.corrections import *
from transun.data import *
from transun.heads import *
from transun.losses import *
from transun.metrics import *
from transun.models import *
from transun.schemes import *
from transun.tables import *
from transun.training import *
from transun.transforms import *

__all__: list[str] = []
__all__ += backbones.__all__
__all__ += corrections.__all__
__all__ += data.__all__
__all__ += heads.__all__
__all__ += losses.__all__
__all__ += metrics.__all__
__all__ += models.__all__
__all__ += schemes.__all__
__all__ += tables.__all__
__all__ += training.__all__
__all__ += transforms.__all__
