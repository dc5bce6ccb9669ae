"""How new rows differ from those of training: ids that it has not seen, missing values, numbers beyond its range.

A network answers whatever it is asked: an id in lower case, or a year after the last one, changes its predictions and
raises no error. So every prediction counts what training has not seen.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from transun.data.saving import Serialisable
from transun.support.counting import verb

__all__ = ["Profile", "Shift", "TableShift"]

# Examples that are kept of the ids of a column that training has not seen.
_EXAMPLES = 3
# A share of rows from which on a difference is worth a sentence.
_NOTABLE = 0.01


@dataclass(frozen=True)
class Profile(Serialisable):
    """What the training rows of a column were like.

    Args:
        missing: the share of rows without a value.
        unseen: the share of ids without an index of their own, because they were rarer than `min_count`.
        smallest: the smallest number; None for columns that hold none.
        largest: the largest number.

    """

    missing: float = 0.0
    unseen: float = 0.0
    smallest: float | None = None
    largest: float | None = None

    def __post_init__(self) -> None:
        for name in ("missing", "unseen"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"the share {name!r} of a profile is not a number from 0 to 1")


@dataclass(frozen=True)
class Shift:
    """How some rows of a column differ from those of training, in counts: shifts of parts of a table add up.

    Args:
        rows: how many there are.
        missing: rows without a value.
        values: ids, several in a row of a bag.
        unseen: ids that have no index of their own.
        examples: a few of these.
        hints: for ids that differ from known ones in case or blanks only, which they are.
        below: numbers below the smallest of training.
        above: numbers above the largest of training.

    >>> Shift(rows=2, unseen=1, examples=("a",)) + Shift(rows=3, unseen=2, examples=("a", "b"))
    Shift(rows=5, missing=0, values=0, unseen=3, examples=('a', 'b'), hints=(), below=0, above=0)

    """

    rows: int = 0
    missing: int = 0
    values: int = 0
    unseen: int = 0
    examples: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    below: int = 0
    above: int = 0

    @property
    def unseen_share(self) -> float:
        """The share of ids that training has not seen."""
        return self.unseen / self.values if self.values else 0.0

    def __add__(self, other: "Shift") -> "Shift":
        counts = ("rows", "missing", "values", "unseen", "below", "above")
        return Shift(
            **{name: getattr(self, name) + getattr(other, name) for name in counts},
            examples=tuple(dict.fromkeys((*self.examples, *other.examples)))[:_EXAMPLES],
            hints=tuple(dict.fromkeys((*self.hints, *other.hints)))[:_EXAMPLES],
        )

    def sentences(self, name: str, training: Profile) -> list[str]:
        """What is worth saying about the column `name`; nothing where the rows are like those of training.

        >>> Shift(rows=4, values=4, unseen=1, examples=("de",), hints=("'de' is 'DE'",)).sentences("land", Profile())
        ["column 'land': 1 of 4 values (25.0 %) was not seen in training, such as 'de'; 'de' is 'DE' there"]
        """
        sentences = []
        if self.unseen_share > training.unseen + _NOTABLE or self.hints:
            before = f" (there {100 * training.unseen:.1f} % were too rare)" if training.unseen else ""
            examples = ", ".join(map(repr, self.examples))
            hints = f"; {', '.join(self.hints)} there" if self.hints else ""
            were = verb(self.unseen, "was", "were")
            sentences.append(
                f"{self.unseen:,} of {self.values:,} values ({100 * self.unseen_share:.1f} %) {were} not seen in "
                f"training{before}, such as {examples}{hints}"
            )
        if self.missing and not training.missing:
            have = verb(self.missing, "has", "have")
            sentences.append(
                f"{self.missing:,} of {self.rows:,} rows {have} no value, and in training every row had one"
            )
        for count, side, bound in (
            (self.below, "below", training.smallest),
            (self.above, "above", training.largest),
        ):
            if bound is not None and count > _NOTABLE * self.rows:
                end = "smallest" if side == "below" else "largest"
                are = verb(count, "is", "are")
                sentences.append(f"{count:,} of {self.rows:,} numbers {are} {side} {bound:g}, the {end} in training")
        return [f"column {name!r}: {sentence}" for sentence in sentences]


@dataclass(frozen=True)
class TableShift:
    """How the rows of a table differ from those of training, column by column.

    Args:
        columns: name -> its shift.
        training: name -> its profile.

    """

    columns: Mapping[str, Shift]
    training: Mapping[str, Profile]

    def __add__(self, other: "TableShift") -> "TableShift":
        return TableShift({name: shift + other.columns[name] for name, shift in self.columns.items()}, self.training)

    def sentences(self) -> list[str]:
        """What is worth saying, one sentence each."""
        return [text for name, shift in self.columns.items() for text in shift.sentences(name, self.training[name])]

    def above(self, limit: float) -> list[str]:
        """The columns of which a larger share than `limit` of the ids was not seen in training.

        >>> TableShift({"item": Shift(values=4, unseen=1)}, {"item": Profile()}).above(0.2)
        ['item']
        """
        return [name for name, shift in self.columns.items() if shift.unseen_share > limit]

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The counts of every column beside the profile of its training rows, for JSON."""
        return {name: asdict(shift) | {"training": asdict(self.training[name])} for name, shift in self.columns.items()}
