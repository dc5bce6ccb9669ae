"""The head of a saved model as a person reads it: the parts of a mixture with their shares, without learned numbers.

The text of a mixture has a page of numbers, which files and JSON hold whole. Reading it needs no torch, so that a
command can show a certificate in a moment.
"""

import ast
from collections import defaultdict

__all__ = ["summarise_head"]

# Characters of a head that is printed as it is; a head that a person wrote is shorter.
_LONGEST = 160
# Parts of a mixture that are named, the largest ones.
_MOST_PARTS = 5


def summarise_head(text: str) -> str:
    """The head itself where its text is short; otherwise its parts and their shares.

    Args:
        text: of a head, as `transun.models.spec` writes it.

    >>> summarise_head("GTS(PointHead(Log1p()), shared=1)")
    'GTS(PointHead(Log1p()), shared=1)'
    >>> tree, network = "Scaled(MSE(), 1.643297205662203)", "Scaled(Poisson(1.0000000002), 1.6314456402694666)"
    >>> mixed = f"Blend(Blend({tree}, {network}, 0.5, 0), {tree}, 0.25, shared=0)"
    >>> summarise_head(f"Corrected({mixed}, TotalRatio())")
    'Corrected(mixture, TotalRatio()) of 62 % Scaled(MSE()), 38 % Scaled(Poisson())'

    """
    if len(text) <= _LONGEST:
        return text
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        frame, shares = _without_numbers(tree, "mixture"), _shares(tree)
    except (SyntaxError, ValueError, LookupError, TypeError, RecursionError, MemoryError):
        return _cut(text)  # whoever loads the model reads what is wrong with it
    if len(shares) < 2:
        return _cut(_without_numbers(tree))
    largest = sorted(shares, key=lambda part: -shares[part])[:_MOST_PARTS]
    named = [f"{100 * shares[part]:.0f} % {_cut(part)}" for part in largest]
    others = [f"{len(shares) - _MOST_PARTS} more"] if len(shares) > _MOST_PARTS else []
    return f"{frame} of {', '.join([*named, *others])}"


def _shares(node: ast.expr) -> dict[str, float]:
    """The share of every part in the mixture that a head holds; parts that differ by numbers alone are one."""
    if not isinstance(node, ast.Call) or not _holds_mixture(node):
        return {_without_numbers(node): 1.0}
    if not _is_mixture(node):
        return _shares(node.args[0])
    found: dict[str, float] = defaultdict(float)
    second = float(ast.literal_eval(_argument(node, 2, "share") or ast.Constant(0.5)))
    for part, weight in ((node.args[0], 1.0 - second), (node.args[1], second)):
        for name, share in _shares(part).items():
            found[name] += weight * share
    return found


def _is_mixture(node: ast.expr) -> bool:
    """Whether a head blends two networks; heads of one network, which a blend trains together, share stages of it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "Blend":
        return False
    shared = _argument(node, 3, "shared")
    return isinstance(shared, ast.Constant) and shared.value == 0


def _holds_mixture(node: ast.expr) -> bool:
    return _is_mixture(node) or (isinstance(node, ast.Call) and bool(node.args) and _holds_mixture(node.args[0]))


def _argument(node: ast.Call, position: int, name: str) -> ast.expr | None:
    by_name = {keyword.arg: keyword.value for keyword in node.keywords}
    return node.args[position] if len(node.args) > position else by_name.get(name)


def _without_numbers(node: ast.expr, mixture: str | None = None) -> str:
    """The text of a head without the numbers in it; a mixture is called by a name, if there is one for it."""
    if mixture is not None and _is_mixture(node):
        return mixture
    if not isinstance(node, ast.Call):
        return ast.unparse(node)
    positional = [_without_numbers(each, mixture) for each in node.args if not _is_number(each)]
    named = [f"{each.arg}={ast.unparse(each.value)}" for each in node.keywords if not _is_number(each.value)]
    return f"{ast.unparse(node.func)}({', '.join([*positional, *named])})"


def _is_number(node: ast.expr) -> bool:
    return not isinstance(node, (ast.Call, ast.Name)) and not (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
