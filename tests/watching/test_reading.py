"""Tables that cannot be joined are refused with the reason, and not watched as if nothing had come."""

import datetime

import pytest

from transun.watching.reading import WatchColumns, join_arrivals

pa = pytest.importorskip("pyarrow")

DAYS = [datetime.date(2025, 1, 1) + datetime.timedelta(day) for day in range(40)]
COLUMNS = WatchColumns("day", "id", "pred", "gmv", "paid")


def predicted(**changes):
    return pa.table({"id": range(40), "day": DAYS, "pred": [1.0] * 40} | changes)


def actual(**changes):
    return pa.table({"id": range(40), "gmv": [2.0] * 40, "paid": DAYS} | changes)


def test_rows_are_counted_in_periods():
    rows, calendar, skipped = join_arrivals(predicted(), actual(), COLUMNS, "week")
    assert rows.period.tolist() == [(day.toordinal() - 1) // 7 - (DAYS[0].toordinal() - 1) // 7 for day in DAYS]
    assert (calendar.name(0), skipped) == ("2024-12-30", ())


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            (predicted(day=[*DAYS[:-1], datetime.date(2099, 1, 1)]), actual()),
            "'day' has no time between 2025-02-08 and 2099-01-01, .* as in row 39",
        ),
        (
            (predicted(day=[datetime.date(1, 1, 1), *DAYS[1:]]), actual()),
            "'day' has no time between 0001-01-01 and 2025-01-02, .* as in row 0",
        ),
        ((predicted(id=[None, *range(1, 40)]), actual()), "'id', row 0 of the predictions has no id"),
        ((predicted(), actual(paid=[datetime.date(2024, 1, 1)] * 40)), "every amount came before its prediction"),
        ((predicted(), actual(gmv=[1.0, -3.0] + [1.0] * 38)), "'gmv', row 1 is -3, .* not negative: correct it"),
        ((predicted(), actual(gmv=[1.0] * 39 + [1e300])), "the value of 'gmv' of row 39 is 1e.300, too large"),
        ((predicted(), actual(gmv=[1e-300] * 40)), "the largest value of 'gmv' is 1e-300, too small"),
    ],
)
def test_mistakes_are_named(tables, message):
    with pytest.raises(ValueError, match=message):
        join_arrivals(*tables, COLUMNS, "day")


def test_segments_are_not_rows():
    columns = WatchColumns("day", "id", "pred", "gmv", "paid", by=("shop",))
    coarse, fine = (predicted(shop=[row % size for row in range(40)]) for size in (12, 40))
    codes, titles = join_arrivals(coarse, actual(), columns, "day")[0].segments["shop"]
    assert len(titles) == codes.max() + 1 == 11  # the ten commonest, and the others
    with pytest.raises(ValueError, match="'shop' has 40 different values in 40 rows: these name rows, not segments"):
        join_arrivals(fine, actual(), columns, "day")


def test_a_prediction_a_month_has_no_gap_if_counted_by_day():
    months = [datetime.date(2024 + month // 12, month % 12 + 1, 1) for month in range(20)]
    table = pa.table({"id": range(20), "day": months, "pred": [1.0] * 20})
    assert join_arrivals(table, actual(), COLUMNS, "day")[0].period.max() == (months[-1] - months[0]).days
