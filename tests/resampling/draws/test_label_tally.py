"""Summaries of labels that are all drawn are those of every statistic, and of loops over entries."""

import numpy as np
import pytest

import caltest
from caltest._compiled._label_tally import tally_labels
from caltest.predictions._sample import induce, make_sample
from caltest.predictions._view import LensView
from caltest.resampling.draws._label_tally import LabelTally
from caltest.resampling.draws._labels import OutcomeDraws
from caltest.resampling.engine._evaluation import Evaluation, Question, draw_nulls
from caltest.resampling.engine._run import settle
from tests.reference.cases import mostly_slow
from tests.reference.examples import draw_labels


def flat(n, n_classes, seed=0, concentration=1.0):
    """Predictions whose labels are all drawn."""
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, concentration), size=n)


def with_zeros(n, n_classes):
    prob = np.where(flat(n, n_classes) < 0.1, 0.0, flat(n, n_classes))
    return prob / prob.sum(axis=1, keepdims=True)


PREDICTIONS = {
    "three": flat(300, 3),
    "ten": flat(1_000, 10, concentration=0.5),
    "thirty-two": flat(700, 32),
    "zeros": with_zeros(200, 5),
    "ties": np.repeat([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]], 40, axis=0),
    "one observation": np.array([[0.2, 0.5, 0.3]]),
    "float32": flat(400, 6).astype(np.float32),
}
STATISTICS = (
    caltest.Omnibus(),
    caltest.statistics.ClasswiseKS(),
    caltest.Omnibus((caltest.statistics.ClasswiseKS(), caltest.TemperatureScore())),
    caltest.Omnibus((caltest.ECE(caltest.EqualWidth(3)), caltest.statistics.SCE(), caltest.statistics.ClasswiseKS())),
)


def problem(prob, seed=0):
    prob = np.asarray(prob)
    return draw_labels(prob.astype(float) / prob.sum(axis=1, keepdims=True), np.random.default_rng(seed)), prob


def assert_equal_to_all_labels(statistic, base, n_draws=70):
    """The engine's values, computed together, against every statistic on the labels of the same draws."""
    chosen, draws = settle(statistic, base), OutcomeDraws.of(n_draws, 3)
    evaluation = Evaluation([Question(chosen, LensView(base))], base, draws)
    assert isinstance(evaluation._tally, LabelTally)
    labels = np.concatenate([block for _, block in draws.blocks(base)])
    (found,), expected = evaluation.nulls(draws), chosen.evaluate_components(base, labels)
    for part, one, other in zip(chosen.components, found, expected, strict=True):
        scale = np.abs(other[np.isfinite(other)]).max(initial=1.0)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11 * scale * base.n_samples**0.5, err_msg=str(part))


@pytest.mark.parametrize("name", mostly_slow(PREDICTIONS))
@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
def test_statistics_of_all_labels(name, statistic):
    assert_equal_to_all_labels(statistic, make_sample(*problem(PREDICTIONS[name])))


def test_known_calibration_function():
    y_true, y_prob = problem(PREDICTIONS["ten"])
    null = caltest.Consistency(calibration_function=lambda prob: 0.9 * prob + 0.1 / 10)
    assert_equal_to_all_labels(caltest.Omnibus(), null.under_null(induce(y_prob, y_true)))


@pytest.mark.parametrize(("n", "n_outcomes", "n_replicates"), [(1, 3, 1), (700, 4, 3), (3_000, 30, 2)])
def test_equals_the_naive_twin(n, n_outcomes, n_replicates):
    rng = np.random.default_rng(n)
    labels = rng.integers(n_outcomes, size=(n_replicates, n)).astype(np.uint8)
    joint, block = rng.integers(7, size=(n, n_outcomes)), rng.integers(7, 60_000, size=(n, n_outcomes))
    values, cells = rng.integers(-(2**40), 2**40, size=(n, n_outcomes)), rng.integers(5, size=(7, 2)).astype(np.int32)
    places = (joint | block << 16).astype(np.uint32)
    counts, sums = np.empty((n_replicates, 60_000), dtype=np.int32), np.empty(n_replicates, dtype=np.int64)
    cell_counts = np.empty((n_replicates, 5), dtype=np.int32)
    tally_labels(labels, places.ravel(), values.ravel(), cells, counts, cell_counts, sums)
    for r, drawn in enumerate(labels.tolist()):
        count, cell_count, total = [0] * 60_000, [0] * 5, 0
        for i, label in enumerate(drawn):
            count[joint[i, label]] += 1
            count[block[i, label]] += 1
            total += int(values[i, label])
            for cell in cells[joint[i, label]]:
                cell_count[cell] += 1
        assert counts[r].tolist() == count
        assert cell_counts[r].tolist() == cell_count
        assert int(sums[r]) == total


def test_observed_values_are_those_of_a_draw_with_the_same_labels():
    """In whole numbers equal labels have equal values, so that ties are ties."""
    base = make_sample(*problem(PREDICTIONS["ten"]))
    draws = OutcomeDraws.of(9, 1)
    evaluation = Evaluation([Question(caltest.Omnibus(), LensView(base))], base, draws)
    (nulls,), (labels,) = evaluation.nulls(draws), [block for _, block in draws.blocks(base)]
    for r in range(9):
        np.testing.assert_array_equal(evaluation.of_labels(labels[r])[0], nulls[:, r])


def test_workers_and_blocks_do_not_matter():
    base = make_sample(*problem(PREDICTIONS["three"]))
    asked = [Question(caltest.Omnibus(), LensView(base))]
    expected = draw_nulls(asked, base, OutcomeDraws.of(2_100, 1))[0]
    np.testing.assert_array_equal(draw_nulls(asked, base, OutcomeDraws.of(2_100, 1), workers=3)[0], expected)


def test_what_records_cannot_hold():
    """Other summaries, weights, and labels that are impossible are evaluated one by one."""
    y_true, y_prob = problem(PREDICTIONS["ten"])
    draws, many = OutcomeDraws.of(9, 1), caltest.ECE(caltest.EqualWidth(500))

    def tally(statistic, **options):
        base = make_sample(y_true, y_prob, **options)
        return Evaluation([Question(settle(statistic, base), LensView(base))], base, draws)._tally

    assert tally(caltest.Omnibus()) is not None
    assert tally(caltest.Omnibus(), sample_weight=np.arange(1.0, 1_001.0)) is None
    assert tally(caltest.ECE()) is None
    assert tally(caltest.Omnibus((caltest.statistics.ClasswiseKS(), many, caltest.ECE()))) is None
    y_prob = np.where(np.arange(10) == y_true[:, None], 0.0, y_prob)
    y_prob /= y_prob.sum(axis=1, keepdims=True)
    assert tally(caltest.Omnibus()) is None


def subgroups(base, n_subgroups=3):
    """Views of subgroups that do not overlap, and of one that overlaps with all of them."""
    code = np.random.default_rng(5).integers(0, n_subgroups, base.n_samples)
    members = [code == k for k in range(n_subgroups)] + [np.arange(base.n_samples) % 2 == 0]
    return [LensView(base).take(np.flatnonzero(inside)) for inside in members]


@pytest.mark.parametrize("name", mostly_slow(["three", "ten", "zeros", "ties", "float32"]))
def test_subgroups_have_a_tally_of_their_labels(name):
    y_true, prob = problem(PREDICTIONS[name])
    base, draws = make_sample(y_true, prob), OutcomeDraws.of(2_000, 3)
    views = subgroups(base)
    statistics = caltest.statistics.ClasswiseKS(), caltest.Omnibus()
    asked = [Question(settle(statistic, view.sample), view) for view in views for statistic in statistics]
    evaluation = Evaluation(asked, base, draws)
    assert set(evaluation._of_views) == set(views)
    labels = np.concatenate([block for _, block in draws.blocks(base)])
    nulls, again = evaluation.nulls(draws), evaluation.of_labels(labels)
    for question, found, same in zip(asked, nulls, again, strict=True):
        np.testing.assert_array_equal(found, same)  # as they must be where observed labels are ranked among draws
        expected = question.statistic.evaluate_components(question.sample, labels[:, question.view.base_row])
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * scale * base.n_samples**0.5)


@pytest.mark.slow(few_draws=True)
def test_subgroups_of_what_no_tally_computes():
    y_true, prob = problem(PREDICTIONS["ten"])
    base, draws = make_sample(y_true, prob), OutcomeDraws.of(2_000, 3)
    asked = [Question(settle(caltest.ECE(), view.sample), view) for view in subgroups(base)]
    evaluation = Evaluation(asked, base, draws)
    assert not evaluation._of_views
    labels = np.concatenate([block for _, block in draws.blocks(base)])
    for question, found in zip(asked, evaluation.nulls(draws), strict=True):
        expected = question.statistic.evaluate(question.sample, labels[:, question.view.base_row])
        np.testing.assert_allclose(found[0], expected, rtol=1e-12)
