"""Requirements on metrics as text, such as `abs(stre) <= 0.02 and pgr >= 0.9`: parsed, never executed."""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from transun.support.suggest import did_you_mean

__all__ = ["Requirement", "Verdict"]

_LONGEST = 1000
_SIGNS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
}
_FORM = "write comparisons of metrics with numbers, such as 'abs(stre) <= 0.02 and pgr >= 0.9'"


@dataclass(frozen=True)
class Verdict:
    """Whether a requirement holds, and if not, which comparisons fail and by how much."""

    text: str
    holds: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Requirement:
    """A condition on metrics: comparisons (`<= < >= >`, also chained) joined by `and` and `or`.

    The sides are numbers, names of metrics, their `abs`, and negatives. A value that is not a number holds nothing.

    >>> Requirement("abs(stre) <= 0.02").judge({"stre": -0.05})
    Verdict(text='abs(stre) <= 0.02', holds=False, reasons=('abs(stre) is 0.05, 0.03 above 0.02',))
    >>> Requirement("0.9 <= pgr <= 1.1 or xauc > 0.8").judge({"pgr": 1.0, "xauc": 0.7}).holds
    True
    >>> Requirement("__import__('os')")
    Traceback (most recent call last):
    ValueError: the requirement "__import__('os')" cannot be read: write comparisons of metrics with numbers, such ...

    """

    text: str

    def __post_init__(self) -> None:
        _walk(self._tree(), None)

    def judge(self, values: Mapping[str, float]) -> Verdict:
        """Whether the condition holds for metrics by name."""
        failed: list[str] = []
        tree = self._tree()
        holds = _Judge(self.text, values, failed).truth(tree)
        return Verdict(self.text, holds, () if holds else tuple(dict.fromkeys(failed)))

    def require_names(self, names: Sequence[str]) -> None:
        """Raise a `ValueError` for a name that is none of these, before anything is computed."""
        _walk(self._tree(), names)

    def _tree(self) -> ast.expr:
        if len(self.text) > _LONGEST:
            raise ValueError(f"a requirement of {len(self.text)} characters is too long: {_FORM}")
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ValueError(f"the requirement {self.text!r} cannot be read: {_FORM}") from None

    def __str__(self) -> str:
        return self.text


def _walk(node: ast.expr, names: Sequence[str] | None) -> None:
    """Check the form of a condition, and its names where they are given."""
    match node:
        case ast.BoolOp(values=values):
            for value in values:
                _walk(value, names)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _SIGNS for op in ops):
            for side in (left, *others):
                _walk_side(side, names)
        case _:
            raise _unreadable(node)


def _walk_side(node: ast.expr, names: Sequence[str] | None) -> None:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _walk_side(operand, names)
        case ast.Call(func=ast.Name(id="abs"), args=[one], keywords=[]):
            _walk_side(one, names)
        case ast.Name(id=name):
            if names is not None and name not in names:
                shown = ", ".join(each for each in names if not each.endswith(("_low", "_high")))
                hint = f"{did_you_mean(name, names)} There are {shown}".lstrip()
                raise ValueError(
                    f"a requirement names {name!r}, which is no metric here: {hint}, and with _low or _high the ends "
                    "of their intervals"
                )
        case _:
            raise _unreadable(node)


def _unreadable(node: ast.expr) -> ValueError:
    return ValueError(f'the requirement "{ast.unparse(node)[:80]}" cannot be read: {_FORM}')


@dataclass(frozen=True)
class _Judge:
    text: str
    values: Mapping[str, float]
    failed: list[str]

    def truth(self, node: ast.expr) -> bool:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return all([self.truth(value) for value in values])  # all of them, to tell every broken one
            case ast.BoolOp(values=values):
                return any([self.truth(value) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=others):
                pairs = zip((left, *others[:-1]), ops, others, strict=True)
                return all([self._compare(a, type(op), b) for a, op, b in pairs])
        raise _unreadable(node)

    def _compare(self, left: ast.expr, op: type[ast.cmpop], right: ast.expr) -> bool:
        a, b = self._number(left), self._number(right)
        if _SIGNS[op](a, b):
            return True
        # Told from the side of the metric, whichever side of the sign it stands on.
        swap = isinstance(left, ast.Constant)
        shown, value, limit, bound = (right, b, a, left) if swap else (left, a, b, right)
        name = ast.unparse(shown)
        if math.isnan(value) or math.isnan(limit):
            self.failed.append(f"{name} is not a number for these rows")
        elif value == limit:
            self.failed.append(f"{name} is {value:.6g}, exactly the limit")
        else:
            side = "above" if value > limit else "below"
            self.failed.append(f"{name} is {value:.6g}, {abs(value - limit):.6g} {side} {ast.unparse(bound)}")
        return False

    def _number(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=value) if isinstance(value, (int, float)):
                return float(value)
            case ast.UnaryOp(operand=operand):
                return -self._number(operand)
            case ast.Call(args=[one]):
                return abs(self._number(one))
            case ast.Name(id=name) if name in self.values:
                return self.values[name]
        _walk_side(node, list(self.values))
        raise _unreadable(node)
