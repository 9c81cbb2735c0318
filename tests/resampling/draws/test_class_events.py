"""Summaries of classes against the rest are those of every statistic behind the lens, and of loops over labels."""

import numpy as np
import pytest

import caltest
from caltest._compiled._label_tally import tally_events
from caltest.predictions._sample import make_sample
from caltest.predictions._view import LensView
from caltest.resampling.draws._labels import OutcomeDraws
from caltest.resampling.engine._evaluation import Evaluation, Question
from caltest.resampling.engine._run import settle
from tests.resampling.draws.test_label_tally import PREDICTIONS, problem


def evaluated(name, lenses, statistic, draws):
    """Questions of a statistic behind lenses, and their evaluation; the first lens is canonical."""
    y_true, y_prob = problem(PREDICTIONS[name])
    base = make_sample(y_true, y_prob)
    views = [LensView.of(lens, y_prob, y_true, base) for lens in (caltest.Canonical(), *lenses)]
    questions = [Question(settle(statistic, view.sample), view) for view in views]
    return questions, base, Evaluation(questions, base, draws)


def assert_equal_to_all_labels(questions, base, evaluation, draws):
    labels = np.concatenate([block for _, block in draws.blocks(base)])
    for question, found in zip(questions, evaluation.nulls(draws), strict=True):
        expected = question.statistic.evaluate_components(question.sample, question.view.outcomes(labels))
        for part, one, other in zip(question.statistic.components, found, expected, strict=True):
            scale = np.abs(other[np.isfinite(other)]).max(initial=1.0)
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-11 * scale * base.n_samples**0.5, err_msg=str(part))


@pytest.mark.parametrize("name", ["three", "ten", "zeros", "ties", "one observation", "float32"])
def test_classes_against_the_rest(name):
    draws, k = OutcomeDraws.of(70, 3), PREDICTIONS[name].shape[1]
    lenses = [caltest.ClassWise(j) for j in range(k)]
    lenses += [caltest.Confidence(), caltest.TopRank(2), caltest.ClassGroups([list(range(1, k)), [0]])]
    questions, base, evaluation = evaluated(name, lenses, caltest.Omnibus(), draws)
    assert_equal_to_all_labels(questions, base, evaluation, draws)
    known = [pairs is not None for pairs in evaluation._known]
    assert known[0]
    assert all(known[1 : k + 1]) or name == "float32"  # of which complements are rounded
    assert not any(known[k + 1 : k + 3])


def test_some_classes_and_parts():
    """Parts without cells or without a sum, a class that is asked for twice, and classes that nobody asks for."""
    draws, lenses = OutcomeDraws.of(40, 1), (caltest.ClassWise(2), caltest.ClassWise(2), caltest.ClassWise(0))
    for parts in (
        (caltest.statistics.ClasswiseKS(), caltest.TemperatureScore()),
        (caltest.statistics.ClasswiseKS(), caltest.ECE(caltest.EqualWidth(5))),
    ):
        questions, base, evaluation = evaluated("ten", lenses, caltest.Omnibus(parts), draws)
        assert_equal_to_all_labels(questions, base, evaluation, draws)


def test_observed_values_are_those_of_a_draw_with_the_same_labels():
    draws = OutcomeDraws.of(5, 1)
    _, base, evaluation = evaluated("ten", [caltest.ClassWise(j) for j in range(10)], caltest.Omnibus(), draws)
    (labels,) = [block for _, block in draws.blocks(base)]
    for r in range(5):
        for own, null in zip(evaluation.of_labels(labels[r]), evaluation.nulls(draws), strict=True):
            np.testing.assert_array_equal(own, null[:, r])


@pytest.mark.parametrize(("n", "n_outcomes", "n_replicates"), [(1, 3, 1), (700, 4, 3), (3_000, 30, 2)])
def test_equals_the_naive_twin(n, n_outcomes, n_replicates):
    rng = np.random.default_rng(n)
    labels = rng.integers(n_outcomes, size=(n_replicates, n)).astype(np.uint8)
    joint = rng.integers(7, size=(n, n_outcomes)).astype(np.uint16)
    first, second = rng.integers(-(2**40), 2**40, size=(2, n, n_outcomes))
    cells = rng.integers(5, size=(7, 2)).astype(np.int32)
    counts, sums = np.empty((n_replicates, 5), np.int32), np.empty((n_replicates, 2, n_outcomes), np.int64)
    tally_events(labels, joint.ravel(), first.ravel(), second.ravel(), cells, counts, sums)
    for r, drawn in enumerate(labels.tolist()):
        count, total = [0] * 5, [[0] * n_outcomes for _ in range(2)]
        for i, label in enumerate(drawn):
            for cell in cells[joint[i, label]]:
                count[cell] += 1
            total[0][label] += int(first[i, label])
            total[1][label] += int(second[i, label])
        assert counts[r].tolist() == count
        assert sums[r].tolist() == total
