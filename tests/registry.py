"""Every exported object of a concept, found by walking the exports: a new one is under the laws at once."""

import inspect

import torch

from transun import corrections, heads, losses, schemes, transforms
from transun.heads import GTS, Corrected, Head, Ranked, Scaled, ThresholdFusion, Wrapper
from transun.schemes import Scheme
from transun.tables.plan import parse_head, recommend, summarise_target
from transun.transforms import Affine, BoxCox, Compose, Log1p, Power, Transform


def _constructible(room, concept, abstract):
    for name in room.__all__:
        value = getattr(room, name)
        if inspect.isclass(value) and issubclass(value, concept) and value not in abstract:
            needed = [p for p in inspect.signature(value).parameters.values() if p.default is inspect.Parameter.empty]
            if not needed:
                yield value()


# Defaults, and the settings that behave differently from them.
TRANSFORMS: list[Transform] = [
    *_constructible(transforms, Transform, {Transform}),
    Affine(0.5, 2.0),
    Power(2.0),
    Power(1.0),
    Log1p(lower=-0.5, upper=1e4),
    BoxCox(0.0),
    BoxCox(0.3, shift=2.0),
    BoxCox(-0.5),
    BoxCox(2.0),
    Compose(Affine(0.1), Log1p()),
    Compose(Power(0.5), Affine(3.0, -1.0)),
]
SCHEMES: list[Scheme] = [
    *_constructible(schemes, Scheme, {Scheme, schemes.Slope}),
    schemes.PowerVariance(0.0),
    schemes.PowerVariance(2.0, eps=0.1),
    schemes.ReciprocalTarget(eps=1e-3),
]
SLOPES = [scheme for scheme in SCHEMES if isinstance(scheme, schemes.Slope)]
LOSSES = [
    getattr(losses, name)() if inspect.isclass(getattr(losses, name)) else getattr(losses, name)
    for name in losses.__all__
    if name != "PointLoss"
]


CORRECTIONS = list(_constructible(corrections, corrections.Correction, {corrections.Correction}))


def leaf_heads() -> list[Head]:
    """Every exported head that wraps no other, and PointHead under every transform and loss."""
    leaves = [leaf for leaf in _constructible(heads, Head, {Head}) if not isinstance(leaf, Wrapper)]
    named = [getattr(heads, name) for name in heads.__all__ if inspect.isfunction(getattr(heads, name))]
    # A function may build a head of heads, which is no leaf.
    leaves += [head for build in named if not isinstance(head := build(), (Wrapper, heads.Blend))]
    leaves += [heads.PointHead(transform) for transform in TRANSFORMS]
    leaves += [heads.PointHead(Log1p(), loss) for loss in LOSSES]
    return leaves


def all_heads() -> list[Head]:
    """Leaves, and every wrapper around some of them, one of them twice."""
    leaves = leaf_heads()
    wrapped = [GTS(leaf) for leaf in leaves]
    some = heads.LogSUN()
    return [
        *leaves,
        *wrapped,
        *[GTS(heads.LogMSE(), scheme) for scheme in SCHEMES],
        heads.SqrtSUN(),
        GTS(some),
        Scaled(heads.MSE()),
        Scaled(some, 3.0),
        GTS(Scaled(heads.LogMSE())),
        Ranked(some),
        Ranked(some, on=("bias",), strength=0.5),
        Ranked(heads.MSE()),
        heads.Blend((heads.MSE(), heads.Poisson())),
        heads.Blend((heads.Poisson(), some), (0.3, 0.7), (1.0, 0.0), costs=(1.0, 0.1)),
        parse_head(recommend(summarise_target(torch.tensor([0.0, 0.0, 0.0, 9.0])))[0]),
        heads.PoissonSUN(),
        heads.AutoSUN(),
        heads.RankPreserving(some),
        GTS(heads.AutoSUN(shared=1)),
        heads.Blend((heads.Poisson(), some), (0.7, 0.3), shared=0),
        ThresholdFusion(some, 2.0),
        ThresholdFusion(Scaled(some), 2.0),
        *[Corrected(heads.LogMSE(), correction) for correction in CORRECTIONS],
        Corrected(heads.MSE(), CORRECTIONS[0]),
        Corrected(heads.ZILN(), corrections.TotalRatio()),
        Corrected(some, corrections.TotalRatio()),
        heads.ProbabilisticGTS(heads.LogMSE()),
        heads.Multicalibrated(),
        heads.Credible(heads.Multicalibrated(), credibility=0.4, factor=1.3),
        heads.Adjusted(heads.Poisson(), heads.Poisson()),
        heads.Adjusted(some, heads.Poisson()),
    ]


def raw_for(head: Head, rows: int, seed: int = 0, scale: float = 1.0):
    """Random raw outputs of the right widths."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(scale * torch.randn(rows, branch.width, generator=generator) for branch in head.branches)


def name(value) -> str:
    """A readable test id."""
    from transun.models.spec import dumps

    return dumps(value)
