import pytest

from transun.metrics import MRE, NDCG, PGR, STANDARD, TRE, XAUC, Meter, TopXAUC
from transun.metrics.relative import MeanRelativeError


def test_sample_metrics_share_one_copy_of_the_rows():
    meter = Meter(XAUC, NDCG, TopXAUC(), TRE)
    meter.update([1.0, 2.0], [1.0, 2.0])
    assert len(meter._summaries) == 2


def test_empty_batches_and_batches_of_weight_zero_are_fine_in_between():
    meter = Meter(*STANDARD)
    meter.update([], [])
    meter.update([5.0], [1.0], [0.0])
    meter.update([1.0, 1.0], [1.0, 3.0])
    assert meter.compute()["TRE"] == 1.0
    assert meter.compute()["XAUC"] == 0.5


@pytest.mark.parametrize("metric", [TRE, XAUC])
def test_no_rows_is_an_error(metric):
    with pytest.raises(ValueError, match="`y` has no rows"):
        Meter(metric).compute()
    with pytest.raises(ValueError, match="`y` has no rows"):
        Meter(metric).standard_errors()


def test_merge_leaves_the_other_as_it_was():
    a, b = Meter(TRE, XAUC), Meter(TRE, XAUC)
    a.update([1.0, 1.0], [1.0, 3.0])
    b.update([2.0, 3.0], [2.0, 3.0])
    before = b.compute()
    a.merge(b)
    a.update([9.0], [1.0])
    assert b.compute() == before
    assert a.compute()["TRE"] == pytest.approx(abs(16 - 10) / 16)


def test_merging_an_unused_meter_changes_nothing():
    a = Meter(TRE)
    a.update([1.0], [2.0])
    a.merge(Meter(TRE))
    assert a.compute() == {"TRE": 1.0}


def test_merging_other_metrics_is_an_error():
    with pytest.raises(ValueError, match="cannot merge a meter of PGR into one of TRE"):
        Meter(TRE).merge(Meter(PGR))


def test_names_carry_what_differs_from_the_default():
    assert MRE.name == "MRE"
    assert MeanRelativeError(floor=0.5).name == "MRE(floor=0.5)"
    assert Meter(MRE, MeanRelativeError(floor=0.5)).metrics[0] is MRE


def test_a_name_twice_or_no_metric_is_an_error():
    with pytest.raises(ValueError, match="repeats \\['TRE'\\]"):
        Meter(TRE, PGR, TRE)
    with pytest.raises(ValueError, match="empty"):
        Meter()
