"""Summaries of departures are those of all labels, for every statistic, lens and kind of predictions."""

import numpy as np
import pytest

import caltest
from caltest._compiled._points import tally_departures, tally_lines
from caltest.predictions._sample import induce, make_sample
from caltest.predictions._view import LensView
from caltest.resampling import EntryCounts, EntrySums
from caltest.resampling.draws._labels import OutcomeDraws
from caltest.resampling.draws._points import Points
from caltest.resampling.draws._tally import EntryLists, Tally
from caltest.resampling.engine._evaluation import Evaluation, Question, draw_nulls
from caltest.resampling.engine._run import settle
from caltest.statistics import Statistic
from tests.reference.cases import mostly_slow
from tests.reference.examples import draw_labels
from tests.resampling.draws.test_points import PREDICTIONS, however_many_depart, sharp  # noqa: F401

STATISTICS = (
    caltest.Omnibus(),
    caltest.ECE(caltest.EqualWidth(4)),
    caltest.statistics.MCE(),
    caltest.SquaredL2(),
    caltest.statistics.SCE(),
    caltest.TemperatureScore(),
    caltest.statistics.ClasswiseKS(),
    caltest.statistics.ConfidenceECE(5),
)
EVENTS = caltest.KS(), caltest.statistics.Kuiper(), caltest.statistics.ACE(4)


def problem(prob, seed=0):
    prob = np.asarray(prob)
    return draw_labels(prob.astype(float) / prob.sum(axis=1, keepdims=True), np.random.default_rng(seed)), prob


def assert_equal_to_all_labels(questions, base, n_draws=70):
    """The engine's values against every statistic on the labels of the same draws."""
    draws = OutcomeDraws.of(n_draws, 3)
    assert base.once(Points.of) is not None
    found = draw_nulls(questions, base, draws)
    labels = np.concatenate([block for _, block in draws.blocks(base)])
    for question, values in zip(questions, found, strict=True):
        seen = labels if question.view.is_base else question.view.outcomes(labels)
        expected = question.statistic.evaluate_components(question.sample, seen)
        for part, one, other in zip(question.statistic.components, values, expected, strict=True):
            scale = np.abs(other[np.isfinite(other)]).max(initial=1.0)
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-11 * scale * base.n_samples**0.5, err_msg=str(part))


@pytest.mark.parametrize("name", mostly_slow(PREDICTIONS))
def test_statistics_of_all_labels(name):
    y_true, y_prob = problem(PREDICTIONS[name])
    base = make_sample(y_true, y_prob)
    asked = [*STATISTICS, *(EVENTS if base.n_outcomes == 2 else ())]
    view = LensView(base)
    assert_equal_to_all_labels([Question(settle(each, base), view) for each in asked], base)


@pytest.mark.parametrize("name", mostly_slow(["three", "ten", "zeros", "tenths", "one-hot", "one observation", "two"]))
def test_behind_lenses(name):
    y_true, y_prob = problem(PREDICTIONS[name])
    base = make_sample(y_true, y_prob)
    k = base.n_outcomes
    lenses = [caltest.Canonical(), caltest.Confidence(), *(caltest.ClassWise(j) for j in range(k))]
    if k > 2:
        lenses += [caltest.TopRank(2), caltest.WithinTop(2), caltest.ClassGroups([[0, 1], list(range(2, k))])]
        lenses += [caltest.TopK(2)]
    questions = []
    for lens in lenses:
        view = LensView.of(lens, y_prob, y_true, base)
        chosen = [*STATISTICS, *(EVENTS if view.sample.n_outcomes == 2 else ())]
        questions += [Question(settle(each, view.sample), view) for each in chosen]
    assert_equal_to_all_labels(questions, base, 40)


def test_subgroups():
    y_true, y_prob = problem(sharp(300, 4))
    base = make_sample(y_true, y_prob)
    views = [LensView(base).take(np.flatnonzero(np.arange(300) % 3 == j)) for j in range(3)]
    assert_equal_to_all_labels([Question(caltest.Omnibus(), view) for view in views], base)


def test_single_statistic_is_that_of_the_omnibus():
    """The same draws serve one question and many."""
    y_true, y_prob = problem(sharp(300, 4))
    base = make_sample(y_true, y_prob)
    view = LensView(base)
    parts = caltest.Omnibus().components
    together = draw_nulls([Question(caltest.Omnibus(), view)], base, OutcomeDraws.of(50, 1))[0]
    for part, expected in zip(parts, together, strict=True):
        alone = draw_nulls([Question(part, view)], base, OutcomeDraws.of(50, 1))[0][0]
        np.testing.assert_array_equal(alone, expected)


def test_contradicted_class():
    """A class without variance whose label happened is infinite evidence in every draw of its own path only."""
    prob = np.column_stack([np.full(50, 0.95), np.full(50, 0.05), np.zeros(50)])
    y_true = np.zeros(50, dtype=int)
    y_true[3] = 2
    result = caltest.calibration_test(y_true, prob, statistic=caltest.statistics.ClasswiseKS(), n_resamples=99, rng=0)
    assert result.statistic == np.inf
    assert result.pvalue == 0.01
    assert np.isfinite(result.null.values).all()


class OddLabels(Statistic):
    """Own statistics of users have no summary, and are evaluated on labels."""

    def evaluate(self, sample, outcomes):
        return (outcomes % 2).mean(axis=-1)


class OwnSummaries(OddLabels):
    def summary(self, sample):
        return sample.once(odd_entries)

    def evaluate_summary(self, sample, counted):
        return counted[:, 1] / sample.n_samples


def odd_entries(sample):
    return EntryCounts(np.tile(np.arange(sample.n_outcomes, dtype=np.uint16) % 2, (sample.n_samples, 1)), n_cells=2)


def test_own_statistics_among_those_of_the_package():
    y_true, y_prob = problem(sharp(200, 5))
    base = make_sample(y_true, y_prob)
    view = LensView(base)
    mixed = caltest.Omnibus((caltest.ECE(), OddLabels(), OwnSummaries()))
    assert_equal_to_all_labels([Question(mixed, view), Question(caltest.Omnibus(), view)], base)
    _, odd, own = draw_nulls([Question(mixed, view)], base, OutcomeDraws.of(50, 1))[0]
    np.testing.assert_array_equal(odd, own)


def test_sums_behind_a_lens_with_three_outcomes():
    y_true, y_prob = problem(sharp(200, 5))
    base = make_sample(y_true, y_prob)
    view = LensView.of(caltest.ClassGroups([[0], [1, 2], [3, 4]]), y_prob, y_true, base)
    term = np.random.default_rng(0).normal(size=(200, 3))
    draws = OutcomeDraws.of(30, 2)
    pair = view, EntrySums(term)
    found = draws.tallied(Tally(base.once(Points.of), [pair]))[pair]
    labels = np.concatenate([view.outcomes(block) for _, block in draws.blocks(base)])
    np.testing.assert_allclose(found, term[np.arange(200), labels].sum(axis=1), rtol=0, atol=1e-10)


@pytest.mark.slow(few_draws=True)
def test_many_tables_beyond_sixteen_bits():
    """More than 65,536 counters need longer numbers."""
    y_true, y_prob = problem(sharp(400, 3))
    base = make_sample(y_true, y_prob)
    cell = np.arange(1200, dtype=np.uint32).reshape(400, 3) * 100
    pair = LensView(base), EntryCounts(cell, 120_000)
    draws = OutcomeDraws.of(9, 2)
    found = draws.tallied(Tally(base.once(Points.of), [pair]))[pair]
    labels = np.concatenate([block for _, block in draws.blocks(base)])
    expected = np.zeros((9, 120_000), dtype=int)
    for r in range(9):
        np.add.at(expected[r], cell[np.arange(400), labels[r]], 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("n_counters", "n_sums"), [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_lines_are_tallied_as_lists_are(n_counters, n_sums):
    """A counter that nobody reads, the last one, fills what is shorter, and a sum may be in any column."""
    rng = np.random.default_rng(n_counters + 2 * n_sums)
    n, n_outcomes, shift, first_path, nowhere = 50, 3, 2, 12, 20
    place = rng.integers(0, nowhere + 1, (n * n_outcomes, n_counters + n_sums)).astype(np.uint16)
    place[:, n_counters:] = rng.permuted(np.tile(np.arange(n_sums), (len(place), 1)), axis=1)
    value = rng.integers(-(2**60), 2**60, (len(place), n_sums))
    lists = EntryLists(place, value, np.array([n_counters, n_sums] * 2), first_path)
    usual, row = rng.integers(0, n_outcomes, n), np.sort(rng.integers(0, n, 60))
    departed = (row << shift | rng.integers(0, n_outcomes, 60)).astype(np.uint32)
    start = rng.integers(0, 9, nowhere + 1).astype(np.int32), rng.integers(-9, 9, n_sums)
    found = [(np.empty((2, nowhere + 1), np.int32), np.empty((2, n_sums), np.int64)) for _ in range(2)]
    where = departed, np.array([0, 25, 60]), shift, usual
    tally_departures(*where, *lists.arrays, *start, *found[0])
    tally_lines(*where, lists.lines(n_sums, nowhere), first_path, *start, *found[1])
    np.testing.assert_array_equal(found[0][0][:, :nowhere], found[1][0][:, :nowhere])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_lists_that_do_not_fit_into_lines():
    place, none = np.zeros((6, 4), dtype=np.uint32), np.empty((6, 0), dtype=np.int64)
    assert EntryLists(place, none, np.array([4, 0, 4, 0]), 9).lines(0, 9) is None
    two = EntryLists(place, np.zeros((6, 1), dtype=np.int64), np.array([3, 1, 3, 1]), 9)
    assert two.lines(1, 2**21) is None
    assert two.lines(3, 9) is None
    assert two.lines(1, 9).shape == (6, 2)


def test_workers_and_blocks_do_not_matter(monkeypatch):
    y_true, y_prob = problem(sharp(300, 4))
    base = make_sample(y_true, y_prob)
    asked = [Question(caltest.Omnibus(), LensView(base))]
    expected = draw_nulls(asked, base, OutcomeDraws.of(2_100, 1))[0]
    np.testing.assert_array_equal(draw_nulls(asked, base, OutcomeDraws.of(2_100, 1), workers=2)[0], expected)
    monkeypatch.setattr("caltest.resampling.draws._labels._BLOCK_BYTES", 2**14)
    np.testing.assert_array_equal(draw_nulls(asked, base, OutcomeDraws.of(2_100, 1), workers=3)[0], expected)


def test_known_calibration_function():
    y_true, y_prob = problem(sharp(300, 4))
    null = caltest.Consistency(calibration_function=lambda prob: 0.97 * prob + 0.03 / 4)
    base = null.under_null(induce(y_prob, y_true))
    assert_equal_to_all_labels([Question(caltest.Omnibus(), LensView(base))], base)


# Ties: data sets with the same labels, or with labels of equal value, have the same statistic.


def test_no_label_departs():
    """Nearly every draw has the labels that were observed: no statistic is extreme."""
    prob = np.column_stack([np.full(1_000, 3e-5), np.full(1_000, 1 - 3e-5)])
    for lens in (None, caltest.Confidence(), caltest.ClassWise(0)):
        result = caltest.calibration_test(np.ones(1_000, dtype=int), prob, lens=lens, n_resamples=999, rng=0)
        assert result.pvalue > 0.9
        assert min(part.pvalue for part in result.components) > 0.9
    table = caltest.calibration_table(np.ones(1_000, dtype=int), prob, n_resamples=999, rng=0)
    assert table.pvalue > 0.9


@pytest.mark.parametrize("n_departures", mostly_slow([0, 1, 4, 9]))
@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_equal_predictions_are_ranked_by_the_number_of_departures(n_departures, n_classes):
    """For equal predictions the temperature score depends on the number of wrong labels alone, and so do its ties."""
    n, chance = 20_000, 2e-4
    prob = np.full((n, n_classes), chance / (n_classes - 1))
    prob[:, 1] = 1 - chance
    y_true = np.ones(n, dtype=int)
    y_true[:n_departures] = 0
    base = make_sample(y_true, prob)
    draws = OutcomeDraws.of(999, 5)
    number = np.concatenate([(block != base.once(Points.of).usual).sum(axis=1) for _, block in draws.blocks(base)])
    looks = [caltest.Canonical(), caltest.Confidence()]
    for statistic, extreme in (
        (caltest.statistics.OverConfidence(), np.greater_equal),
        (caltest.statistics.UnderConfidence(), np.less_equal),
    ):
        found = [
            caltest.calibration_test(y_true, prob, lens=lens, statistic=statistic, n_resamples=999, rng=5)
            for lens in looks
        ]
        for test in found:
            shared = test.lens_name == "whole prediction"
            expected = (1 + extreme(number, n_departures).sum()) / 1_000
            assert test.pvalue == pytest.approx(expected, abs=1e-12 if shared else 4 * np.sqrt(0.25 / 999))


@pytest.mark.slow
def test_level_without_equal_predictions():
    """Few departures among predictions that all differ: calibrated models are not rejected more often than they may."""
    rng = np.random.default_rng(0)
    n, n_sets = 2_000, 60
    rejected = 0
    for _ in range(n_sets):
        p = rng.uniform(0, 4e-4, n)
        y_true = (rng.random(n) < p).astype(int)
        rejected += caltest.calibration_test(y_true, p, n_resamples=99, rng=rng).pvalue <= 0.05
    assert rejected <= n_sets * 0.05 + 4 * np.sqrt(n_sets * 0.05 * 0.95)


@pytest.mark.parametrize("smallest", [1e-20, 1e-120, 5e-324])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_chances_that_no_draw_meets(smallest, n_classes):
    prob = np.full((9, n_classes), smallest)
    prob[:, 0] = 1.0
    result = caltest.calibration_test(np.zeros(9, dtype=int), prob, n_resamples=99, rng=0)
    assert result.pvalue == 1.0


class NotANumber(caltest.statistics.UnderConfidence):
    def evaluate_summary(self, sample, counted):
        return np.full(counted.shape, np.nan)


class OneNumber(caltest.statistics.UnderConfidence):
    def evaluate_summary(self, sample, counted):
        return np.float64(1.0)


def test_wrong_summaries_are_refused():
    y_true, y_prob = problem(sharp(100, 3))
    for statistic, message in (
        (NotANumber(), "evaluate_summary` must return numbers"),
        (OneNumber(), "each replicate"),
    ):
        for asked in (statistic, caltest.Omnibus((statistic, caltest.ECE()))):
            with pytest.raises(ValueError, match=message):
                caltest.calibration_test(y_true, y_prob, statistic=asked, n_resamples=19, rng=0)


def test_subgroups_are_counted_where_few_of_their_own_labels_depart(monkeypatch):
    """The tables of the others have no labels from which few depart."""
    monkeypatch.setattr("caltest.resampling.draws._points.LARGEST_DEPARTURE", 0.13)
    y_true, y_prob = problem(np.concatenate([sharp(380, 4), np.full((20, 4), 0.25)]))
    base = make_sample(y_true, y_prob)
    rows = np.arange(0, 380, 2), np.arange(1, 380, 2), np.arange(380, 400)
    questions = [Question(caltest.Omnibus(), LensView(base).take(some)) for some in rows]
    evaluation = Evaluation(questions, base, OutcomeDraws.of(9, 0))
    assert [known is not None for known in evaluation._known] == [True, True, False]
    assert_equal_to_all_labels(questions, base)
