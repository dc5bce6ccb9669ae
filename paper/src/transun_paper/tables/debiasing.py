"""Tables that compare a biased method with its repair: TranSUN, post-hoc corrections, and GTS around other methods."""

from transun_paper.tables.findings import Answer, Finding, Side, TestRows, TrainRows, better, either, every, near
from transun_paper.tables.table import (
    ERRORS,
    FIVE,
    OUR_VARIANTS,
    PAPER_METHODS,
    PaperRow,
    PaperTable,
    RowReports,
    leaderboard_row,
)

_TRAIN, _TEST = TrainRows(), TestRows()
# The share of an error that is left after a cut by 70 %.
_LEFT = 0.3

_TRANSFORMS = {"ln(y+1)": "Log", "sqrt(y)": "Sqrt", "arctan(y)": "Arctan"}


def debiasing_claims(reports: RowReports, where: str) -> list[Answer]:
    """Whether TRE and MRE of the training rows fall by 70 %, transform by transform."""
    return [
        Answer.of(
            f"TranSUN cuts the {metric} of its T-MSE by 70 % or more (training rows)",
            f"{where}, {label}",
            better(
                _TRAIN,
                Side("TranSUN", reports["TranSUN", label]),
                Side("T-MSE", reports["T-MSE", label]),
                metric,
                _LEFT,
            ),
        )
        for metric in ("TRE", "MRE")
        for label in _TRANSFORMS
    ]


DEBIASING = PaperTable(
    "debiasing",
    "T-MSE against TranSUN on the training rows",
    ("solve_rb_rw",),
    tuple(
        row
        for label, name in _TRANSFORMS.items()
        for row in (leaderboard_row("T-MSE", label, f"{name}MSE"), leaderboard_row("TranSUN", label, f"{name}SUN"))
    ),
    ("TRE", "MRE"),
    debiasing_claims,
    measured=_TRAIN,
    against={("TranSUN", label): ("T-MSE", label) for label in _TRANSFORMS},
)

_LOG, _SUN = ("LogMSE", "-"), ("LogSUN", "-")
_CORRECTED = {"NTE": "normal theory", "Smearing": "smearing", "SIR": "isotonic"}
# The paper calls .0123 and .0198, or .0439 and .0236, comparable.
_COMPARABLE = 0.02


def posthoc_claims(reports: RowReports, where: str) -> list[Answer]:
    """LogSUN repairs LogMSE, is comparable to corrections that know the residuals, and normal theory is not."""
    corrected = {label: Side(label, reports["LogMSE", label]) for label in _CORRECTED}
    return [
        Answer.of(
            "LogSUN is less biased than LogMSE without a correction (TRE)",
            where,
            better(_TEST, Side("LogSUN", reports[_SUN]), Side("LogMSE", reports[_LOG]), "TRE"),
        ),
        *[
            Answer.of(
                f"LogSUN is comparable to the post-hoc {label}: TRE within 0.02 and NRMSE within 1 %, or better",
                where,
                _comparable(reports, label),
            )
            for label in ("Smearing", "SIR")
        ],
        Answer.of(
            "Normal theory corrects worse than smearing and SIR (TRE)",
            where,
            every([better(_TEST, corrected[label], corrected["NTE"], "TRE") for label in ("Smearing", "SIR")]),
        ),
    ]


def _comparable(reports: RowReports, label: str) -> Finding:
    ours, theirs = Side("LogSUN", reports[_SUN]), Side(label, reports["LogMSE", label])
    return every(
        [
            either(better(_TEST, ours, theirs, "TRE"), near(_TEST, ours, theirs, "TRE", _COMPARABLE)),
            either(better(_TEST, ours, theirs, "NRMSE"), near(_TEST, ours, theirs, "NRMSE", 0.0, share=0.01)),
        ]
    )


POSTHOC = PaperTable(
    "posthoc",
    "LogSUN against post-hoc corrections",
    ("comp_bcm",),
    (
        leaderboard_row(*_LOG, "LogMSE"),
        *(leaderboard_row("LogMSE", label, f"LogMSE + {name}") for label, name in _CORRECTED.items()),
        leaderboard_row(*_SUN, "LogSUN"),
    ),
    ERRORS,
    posthoc_claims,
    against={_SUN: _LOG, **{("LogMSE", label): _SUN for label in _CORRECTED}},
)

_HOSTS = ("WLR", "ZILN", "MDME", "OptDist")
# GTS with κ = 1 learns y itself beside the host, whose jumps then do not reach z.
_UNSLOPED = ("GTS, κ = 1", "MDME")


def extension_claims(reports: RowReports, where: str) -> list[Answer]:
    """TRE and MRE of the host fall by 70 %, NRMSE and NMAE fall, XAUC stays."""
    pairs = {host: (Side("GTS", reports["GTS", host]), Side(host, reports["host", host])) for host in _HOSTS}
    cuts = [
        Answer.of(
            f"GTS cuts the {metric} of its host by 70 % or more",
            f"{where}, {host}",
            better(_TEST, *pair, metric, _LEFT),
        )
        for metric in ("TRE", "MRE")
        for host, pair in pairs.items()
    ]
    falls = [
        Answer.of(f"GTS lowers the {metric} of its host", f"{where}, {host}", better(_TEST, *pair, metric))
        for metric in ("NRMSE", "NMAE")
        for host, pair in pairs.items()
    ]
    stays = [
        Answer.of("GTS leaves the XAUC of its host within 0.002", f"{where}, {host}", near(_TEST, *pair, "XAUC", 0.002))
        for host, pair in pairs.items()
    ]
    jumps = Side("GTS", reports["GTS", "MDME"])
    cure = better(_TEST, Side("κ = 1", reports[_UNSLOPED]), jumps, "NRMSE")
    return [*cuts, *falls, *stays, Answer.of("Around the likeliest bucket κ = 1 is better than TranSUN's", where, cure)]


def _host_rows() -> list[PaperRow]:
    rows = []
    for host in _HOSTS:
        name = PAPER_METHODS[host]
        rows += [leaderboard_row("host", host, name), leaderboard_row("GTS", host, f"GTS of {name}")]
    rows.append(leaderboard_row(*_UNSLOPED, f"GTS of {PAPER_METHODS['MDME']}, κ = 1"))
    for host, label in OUR_VARIANTS.items():
        rows += [leaderboard_row("host", label, host), leaderboard_row("GTS", label, f"GTS of {host}")]
    return rows


EXTENSION = PaperTable(
    "extension",
    "GTS around WLR, ZILN, MDME and OptDist",
    ("apply_to_sota",),
    tuple(_host_rows()),
    FIVE,
    extension_claims,
    against={("GTS", label): ("host", label) for label in (*_HOSTS, *OUR_VARIANTS.values())}
    | {_UNSLOPED: ("GTS", "MDME")},
    remarks=(
        "Hosts are those of the paper: D2Q's threshold, no classifier of zeros, the likeliest bucket. The last "
        "rows are the same methods as we would use them, with GTS around them; claims are about the paper's.",
        "Around the likeliest bucket u jumps where two buckets are about as likely, and y·κ(u) jumps with it, by "
        "the ratio of the two values. A network that is smooth in x cannot jump along, and what z is off is "
        "multiplied by the value of the bucket. The theorem holds for a z that can follow; with κ = 1 the error is "
        "that of least squares on y, whatever u does.",
    ),
)
