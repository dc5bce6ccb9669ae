"""Requirements on metrics as text, such as `abs(stre) <= 0.02 and pgr >= 0.9`: parsed, never executed."""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from transun.support.suggest import did_you_mean

__all__ = ["Requirement", "RequirementResult"]

_LONGEST = 1000
_OPERATORS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
}
_FORM = "write comparisons of metrics with numbers, such as 'abs(stre) <= 0.02 and pgr >= 0.9'"


@dataclass(frozen=True)
class RequirementResult:
    """Whether a requirement holds, and if not, which comparisons fail and by how much."""

    text: str
    holds: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Requirement:
    """A condition on metrics: comparisons (`<= < >= >`, also chained) joined by `and` and `or`.

    The sides are numbers, names of metrics, their `abs`, and negatives. A comparison with NaN does not hold.

    >>> Requirement("abs(stre) <= 0.02").check({"stre": -0.05})
    RequirementResult(text='abs(stre) <= 0.02', holds=False, reasons=('abs(stre) is 0.05, 0.03 above 0.02',))
    >>> Requirement("0.9 <= pgr <= 1.1 or xauc > 0.8").check({"pgr": 1.0, "xauc": 0.7}).holds
    True
    >>> Requirement("__import__('os')")
    Traceback (most recent call last):
    ValueError: the requirement "__import__('os')" cannot be read: write comparisons of metrics with numbers, such ...

    """

    text: str

    def __post_init__(self) -> None:
        self._failures(lambda name: math.nan)

    def check(self, values: Mapping[str, float]) -> RequirementResult:
        """Whether the condition holds for these metrics by name."""
        holds, failures = self._failures(lambda name: values[_known(name, list(values))])
        return RequirementResult(self.text, holds, () if holds else tuple(dict.fromkeys(failures)))

    def require_names(self, names: Sequence[str]) -> None:
        """Raise a `ValueError` for a name that is none of these, before anything is computed."""
        self.check(dict.fromkeys(names, math.nan))

    def _failures(self, value_of: Callable[[str], float]) -> tuple[bool, list[str]]:
        """Whether the condition holds, and every comparison that does not; all of the text is checked on the way."""
        if len(self.text) > _LONGEST:
            raise ValueError(f"a requirement of {len(self.text)} characters is too long: {_FORM}")
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ValueError(f"the requirement {self.text!r} cannot be read: {_FORM}") from None
        failures: list[str] = []
        return _holds(tree, value_of, failures), failures

    def __str__(self) -> str:
        return self.text


def _holds(node: ast.expr, value_of: Callable[[str], float], failures: list[str]) -> bool:
    # Lists, not generators: `all` and `any` must not stop before every part is checked and every failure is noted.
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return all([_holds(part, value_of, failures) for part in parts])
        case ast.BoolOp(values=parts):
            return any([_holds(part, value_of, failures) for part in parts])
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _OPERATORS for op in ops):
            sides = [(side, _value(side, value_of)) for side in (left, *others)]
            pairs = zip(pairwise(sides), ops, strict=True)
            return all([_compare(a, _OPERATORS[type(op)], b, failures) for (a, b), op in pairs])
    raise _unreadable(node)


def _value(node: ast.expr, value_of: Callable[[str], float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, value_of)
        case ast.Call(func=ast.Name(id="abs"), args=[argument], keywords=[]):
            return abs(_value(argument, value_of))
        case ast.Name(id=name):
            return value_of(name)
    raise _unreadable(node)


def _compare(
    left: tuple[ast.expr, float],
    compare: Callable[[float, float], bool],
    right: tuple[ast.expr, float],
    failures: list[str],
) -> bool:
    if compare(left[1], right[1]):
        return True
    # The sentence begins with the metric, whichever side of the comparison it is on.
    (shown, value), (bound, limit) = (right, left) if isinstance(left[0], ast.Constant) else (left, right)
    name = ast.unparse(shown)
    if math.isnan(value) or math.isnan(limit):
        failures.append(f"{name} is not a number for these rows")
    elif value == limit:
        failures.append(f"{name} is {value:.6g}, exactly the limit")
    else:
        side = "above" if value > limit else "below"
        failures.append(f"{name} is {value:.6g}, {abs(value - limit):.6g} {side} {ast.unparse(bound)}")
    return False


def _known(name: str, names: Sequence[str]) -> str:
    if name in names:
        return name
    metrics = ", ".join(each for each in names if not each.endswith(("_low", "_high")))
    hint = f"{did_you_mean(name, names)} There are {metrics}".lstrip()
    raise ValueError(
        f"a requirement names {name!r}, which is no metric here: {hint}, and with _low or _high the ends of their "
        "intervals"
    )


def _unreadable(node: ast.expr) -> ValueError:
    return ValueError(f'the requirement "{ast.unparse(node)[:80]}" cannot be read: {_FORM}')
