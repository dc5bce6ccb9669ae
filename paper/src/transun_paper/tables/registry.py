"""Every real-data table and every figure of the paper, by the name of its report."""

from transun_paper.online.drift import DRIFT
from transun_paper.tables import (
    ablations,
    comparison,
    curves,
    debiasing,
    figures,
    industrial,
    online,
    sgd,
    techniques,
    variance,
)
from transun_paper.tables.table import GpuPart, Part

_TABLES: tuple[Part, ...] = (
    debiasing.DEBIASING,
    debiasing.POSTHOC,
    ablations.SCHEME_TABLE,
    debiasing.EXTENSION,
    comparison.COMPARISON,
    comparison.RANKING,
    ablations.INSTANCE_TABLE,
    ablations.SHARING_TABLE,
    variance.VARIANCE,
    techniques.TECHNIQUES,
    sgd.BY_SGD,
    industrial.INDUSTRIAL_CPU,
    online.ONLINE,
)
_FIGURES: tuple[Part, ...] = (
    curves.TRAINING,
    curves.SCHEME_CURVES,
    curves.ITERATIONS,
    figures.BINS,
    figures.EPSILON,
    figures.DENSITIES,
    DRIFT,
)
TABLES: dict[str, Part] = {part.name: part for part in _TABLES}
FIGURES: dict[str, Part] = {part.name: part for part in _FIGURES}
GPU_TABLES: tuple[GpuPart, ...] = (industrial.INDUSTRIAL,)
GPU_FIGURES: tuple[GpuPart, ...] = (industrial.INDUSTRIAL_BINS,)
