"""LogSUN against corrections of a trained LogMSE: normal theory, smearing, smooth isotonic regression."""

from transun_paper.tables.judge import Answer, Finding, TestRows, answers, either, every, less, near
from transun_paper.tables.table import ERRORS, Found, PaperTable, listed

_TEST = TestRows()
_LOG, _SUN = ("LogMSE", "-"), ("LogSUN", "-")
_CORRECTED = {"NTE": "normal theory", "Smearing": "smearing", "SIR": "isotonic"}
# The paper calls .0123 and .0198, or .0439 and .0236, comparable.
_MARGIN = 0.02


def claims(found: Found, where: str) -> list[Answer]:
    """LogSUN repairs LogMSE, is comparable to what knows the residuals, and normal theory is not."""
    corrected = {label: found["LogMSE", label] for label in _CORRECTED}
    comparable = "LogSUN is comparable to the post-hoc {}: TRE within 0.02 and NRMSE within 1 %, or better"
    return [
        *answers(
            "LogSUN is less biased than LogMSE without a correction (TRE)",
            [(where, less(_TEST, found[_SUN], found[_LOG], "TRE"))],
        ),
        *[
            answer
            for label in ("Smearing", "SIR")
            for answer in answers(comparable.format(label), [(where, _comparable(found, label))])
        ],
        *answers(
            "Normal theory corrects worse than smearing and SIR (TRE)",
            [(where, every([less(_TEST, corrected[label], corrected["NTE"], "TRE") for label in ("Smearing", "SIR")]))],
        ),
    ]


def _comparable(found: Found, label: str) -> Finding:
    ours, theirs = found[_SUN], found["LogMSE", label]
    return every(
        [
            either(less(_TEST, ours, theirs, "TRE"), near(_TEST, ours, theirs, "TRE", _MARGIN)),
            either(less(_TEST, ours, theirs, "NRMSE"), near(_TEST, ours, theirs, "NRMSE", 0.0, share=0.01)),
        ]
    )


POSTHOC = PaperTable(
    "posthoc",
    "LogSUN against post-hoc corrections",
    ("comp_bcm",),
    (
        listed(*_LOG, "LogMSE"),
        *(listed("LogMSE", label, f"LogMSE + {name}") for label, name in _CORRECTED.items()),
        listed(*_SUN, "LogSUN"),
    ),
    ERRORS,
    claims,
    against={_SUN: _LOG, **{("LogMSE", label): _SUN for label in _CORRECTED}},
)
