"""T-MSE against TranSUN under three transforms: how well the totals of the training rows are fitted."""

from transun_paper.tables.judge import Answer, TrainRows, answers, less
from transun_paper.tables.table import Found, PaperTable, listed

_TRANSFORMS = {"ln(y+1)": "Log", "sqrt(y)": "Sqrt", "arctan(y)": "Arctan"}
_TRAIN = TrainRows()
# What is left of an error that was cut by 70 %.
LEFT = 0.3


def claims(found: Found, where: str) -> list[Answer]:
    """Whether TRE and MRE fall by 70 %, transform by transform."""
    return [
        answer
        for metric in ("TRE", "MRE")
        for answer in answers(
            f"TranSUN cuts the {metric} of its T-MSE by 70 % or more (training rows)",
            [
                (f"{where}, {label}", less(_TRAIN, found["TranSUN", label], found["T-MSE", label], metric, LEFT))
                for label in _TRANSFORMS
            ],
        )
    ]


DEBIASING = PaperTable(
    "debiasing",
    "T-MSE against TranSUN on the training rows",
    ("solve_rb_rw",),
    tuple(
        row
        for label, name in _TRANSFORMS.items()
        for row in (listed("T-MSE", label, f"{name}MSE"), listed("TranSUN", label, f"{name}SUN"))
    ),
    ("TRE", "MRE"),
    claims,
    looked_at=_TRAIN,
    against={("TranSUN", label): ("T-MSE", label) for label in _TRANSFORMS},
)
