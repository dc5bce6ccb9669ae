"""Every public name, once: what `from transun import ...` finds."""

from transun import (
    averaging,
    backbones,
    checkpoint,
    corrections,
    data,
    debiasing,
    engine,
    evaluation,
    heads,
    history,
    losses,
    metrics,
    model,
    optimisers,
    schemes,
    tabular,
    training,
    transforms,
)
from transun.averaging import *
from transun.backbones import *
from transun.checkpoint import *
from transun.corrections import *
from transun.data import *
from transun.debiasing import *
from transun.engine import *
from transun.evaluation import *
from transun.heads import *
from transun.history import *
from transun.losses import *
from transun.metrics import *
from transun.model import *
from transun.optimisers import *
from transun.schemes import *
from transun.tabular import *
from transun.training import *
from transun.transforms import *

__all__: list[str] = []
__all__ += averaging.__all__
__all__ += backbones.__all__
__all__ += checkpoint.__all__
__all__ += corrections.__all__
__all__ += data.__all__
__all__ += debiasing.__all__
__all__ += engine.__all__
__all__ += evaluation.__all__
__all__ += heads.__all__
__all__ += losses.__all__
__all__ += metrics.__all__
__all__ += model.__all__
__all__ += optimisers.__all__
__all__ += schemes.__all__
__all__ += history.__all__
__all__ += tabular.__all__
__all__ += training.__all__
__all__ += transforms.__all__
