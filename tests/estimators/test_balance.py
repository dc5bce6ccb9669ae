import numpy as np
import pytest

from transun.estimators import Balance

RNG = np.random.default_rng(0)


class TestOverall:
    def test_the_total_is_exact(self):
        pred, y = RNG.uniform(1.0, 2.0, 500), RNG.lognormal(1.0, 1.0, 500)
        assert Balance()(pred, y).apply(pred).sum() == pytest.approx(y.sum())

    def test_weighted_totals(self):
        pred, y, weight = RNG.uniform(1.0, 2.0, 500), RNG.lognormal(1.0, 1.0, 500), RNG.uniform(0.0, 3.0, 500)
        assert weight @ Balance()(pred, y, weight).apply(pred) == pytest.approx(weight @ y)

    def test_signed_targets_get_a_shift(self):
        pred, y = RNG.standard_normal(500), RNG.standard_normal(500) + 0.5
        balanced = Balance()(pred, y)
        assert balanced.factor == 1.0
        assert balanced.apply(pred).sum() == pytest.approx(y.sum())

    def test_targets_that_are_all_zero(self):
        assert (Balance()(np.ones(3), np.zeros(3)).apply(np.ones(3)) == 0.0).all()


class TestSegments:
    def draw(self, factors, rows, seed=0):
        rng = np.random.default_rng(seed)
        segment = np.repeat(np.arange(len(factors)), rows)
        pred = rng.uniform(5.0, 15.0, len(segment))
        return pred, pred * np.asarray(factors)[segment] * rng.gamma(4.0, 0.25, len(segment)), segment

    def test_true_differences_are_found_and_the_total_stays_exact(self):
        true = [0.5, 1.0, 2.0, 4.0]
        pred, y, segment = self.draw(true, 4_000)
        balanced = Balance(by="g")(pred, y, segment=segment)
        # sd of a ratio of totals: 0.5/√4000 = 0.8 %
        assert [balanced.segments[k] for k in range(4)] == pytest.approx(true, rel=0.04)
        assert balanced.apply(pred, segment).sum() == pytest.approx(y.sum())

    def test_noise_is_shrunk_away(self):
        """500 segments of ten rows without true differences: plain ratios scatter by 16 %, shrunk ones hardly."""
        pred, y, segment = self.draw([1.0] * 500, 10)
        balanced = Balance(by="g")(pred, y, segment=segment)
        plain = np.bincount(segment, y) / np.bincount(segment, pred)
        assert np.std(list(balanced.segments.values())) < 0.35 * plain.std()

    def test_shrinkage_beats_no_pooling_and_full_pooling(self):
        rng = np.random.default_rng(1)
        true = np.exp(0.15 * rng.standard_normal(300))
        pred, y, segment = self.draw(true, 12, seed=2)
        shrunk = np.array([Balance(by="g")(pred, y, segment=segment).segments[k] for k in range(300)])
        plain = np.bincount(segment, y) / np.bincount(segment, pred)
        pooled = np.full(300, y.sum() / pred.sum())
        errors = [np.mean((factors - true) ** 2) for factors in (shrunk, plain, pooled)]
        assert errors[0] < min(errors[1:])

    def test_new_segments_get_the_overall_factor(self):
        pred, y, segment = self.draw([0.5, 2.0], 1_000)
        balanced = Balance(by="g")(pred, y, segment=segment)
        assert balanced.apply(np.array([1.0]), np.array([99])) == pytest.approx([y.sum() / pred.sum()])

    def test_a_segment_without_targets_keeps_close_to_the_others(self):
        pred, y, segment = self.draw([1.0, 1.0, 0.0], 200)
        balanced = Balance(by="g")(pred, y, segment=segment)
        assert balanced.apply(pred, segment).sum() == pytest.approx(y.sum())
        assert balanced.segments[2] > 0.0

    def test_signed_targets_are_refused(self):
        with pytest.raises(ValueError, match="Balance by segment needs targets that are not negative"):
            Balance(by="g")(np.ones(2), np.array([-1.0, 1.0]), segment=np.array([0, 1]))
