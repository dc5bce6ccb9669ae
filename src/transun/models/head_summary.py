"""The head of a saved model as a person reads it: the parts of a mixture with their shares, without learned numbers.

The text of a mixture has a page of numbers, which files and JSON hold whole. Reading it needs no torch, so that a
command can show a certificate in a moment.
"""

import ast
from typing import NamedTuple

__all__ = ["summarise_head"]

# Characters of a head that is printed as it is; a head that a person wrote is shorter.
_LONGEST = 160
# Parts of a mixture that are named, the largest ones.
_MOST_PARTS = 5


class _Share(NamedTuple):
    """What a part counts for where amounts are large, and where they are small."""

    large: float
    small: float

    def __str__(self) -> str:
        large, small = (f"{100 * share:.0f} %" for share in self)
        return large if large == small else f"{large} (of small amounts {small})"


def summarise_head(text: str) -> str:
    """The head itself where its text is short; otherwise its parts and their shares.

    Args:
        text: of a head, as `transun.models.spec` writes it.

    >>> summarise_head("GTS(PointHead(Log1p()), shared=1)")
    'GTS(PointHead(Log1p()), shared=1)'
    >>> tree, network = "Scaled(MSE(), 1.643297205662203)", "Scaled(Poisson(1.0000000002), 1.6314456402694666)"
    >>> mixed = f"Blend(({tree}, {network}, {tree}), (0.5, 0.25, 0.25), (0.25, 0.25, 0.5), 1.6374203, 0)"
    >>> summarise_head(f"Corrected({mixed}, TotalRatio())")
    'Corrected(mixture, TotalRatio()) of 75 % Scaled(MSE()), 25 % Scaled(Poisson())'

    """
    if len(text) <= _LONGEST:
        return text
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        frame, shares = _without_numbers(tree, "mixture"), _shares(tree)
    except (SyntaxError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError, MemoryError):
        return _cut(text)  # whoever loads the model reads what is wrong with it
    if len(shares) < 2:
        return _cut(_without_numbers(tree))
    largest = sorted(shares, key=lambda part: -sum(shares[part]))[:_MOST_PARTS]
    named = [f"{shares[part]} {_cut(part)}" for part in largest]
    others = [f"{len(shares) - _MOST_PARTS} more"] if len(shares) > _MOST_PARTS else []
    return f"{frame} of {', '.join([*named, *others])}"


def _shares(node: ast.expr) -> dict[str, _Share]:
    """The shares of every part in the mixture that a head holds; parts that differ by numbers alone are one."""
    if not isinstance(node, ast.Call) or not _holds_mixture(node):
        return {_without_numbers(node): _Share(1.0, 1.0)}
    if not _is_mixture(node):
        return _shares(node.args[0])
    heads = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else []
    large = _numbers(_argument(node, 1, "shares")) or [1.0 / len(heads)] * len(heads)
    small = _numbers(_argument(node, 2, "small")) or large
    small = [weight / (sum(small) or 1.0) for weight in small]  # without the factor that makes the total right
    found: dict[str, _Share] = {}
    for head, *own in zip(heads, large, small, strict=True):
        for name, share in _shares(head).items():
            before = found.get(name, _Share(0.0, 0.0))
            found[name] = _Share(before.large + own[0] * share.large, before.small + own[1] * share.small)
    return found


def _is_mixture(node: ast.expr) -> bool:
    """Whether a head blends networks; heads of one network, which a blend trains together, share stages of it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "Blend":
        return False
    shared = _argument(node, 4, "shared")
    return isinstance(shared, ast.Constant) and shared.value == 0


def _holds_mixture(node: ast.expr) -> bool:
    return _is_mixture(node) or (isinstance(node, ast.Call) and bool(node.args) and _holds_mixture(node.args[0]))


def _argument(node: ast.Call, position: int, name: str) -> ast.expr | None:
    by_name = {keyword.arg: keyword.value for keyword in node.keywords}
    return node.args[position] if len(node.args) > position else by_name.get(name)


def _numbers(node: ast.expr | None) -> list[float]:
    """The numbers of an argument; none where it is left out."""
    value = None if node is None else ast.literal_eval(node)
    return [] if value is None else [float(number) for number in value]


def _without_numbers(node: ast.expr, mixture: str | None = None) -> str:
    """The text of a head without the numbers in it; a mixture is called by a name, if there is one for it."""
    if mixture is not None and _is_mixture(node):
        return mixture
    if isinstance(node, ast.Tuple):
        return f"({', '.join(_without_numbers(each, mixture) for each in node.elts)})"
    if not isinstance(node, ast.Call):
        return ast.unparse(node)
    positional = [_without_numbers(each, mixture) for each in node.args if not _is_number(each)]
    named = [f"{each.arg}={ast.unparse(each.value)}" for each in node.keywords if not _is_number(each.value)]
    return f"{ast.unparse(node.func)}({', '.join([*positional, *named])})"


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_number, node.elts))
    return not isinstance(node, (ast.Call, ast.Name)) and not (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
