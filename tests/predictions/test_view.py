"""Lenses on simulated labels: the outcome of every class, in closed form and by calling a user's lens."""

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions._user_functions import outcomes_of_classes
from caltest.predictions._view import LensView, push_forward
from caltest.predictions.inputs._validation import validate_problem
from tests.reference.cases import check_refused, failures
from tests.reference.examples import LENSES, PROBLEMS, VIEWS, View, reverse

ALL_VIEWS = {str(view): view for view in VIEWS}


def called_once_per_class(lens, prob):
    """The outcome of every class by definition, ``(n_samples, n_classes)``."""
    return np.stack([lens(prob, np.full(len(prob), k))[1] for k in range(prob.shape[1])], axis=1)


class Counted:
    """A user's lens that counts its calls."""

    def __init__(self, lens):
        self.lens, self.calls = lens, 0

    def __call__(self, prob, outcome):
        self.calls += 1
        return self.lens(prob, outcome)


def view_of(view: View, lens=None):
    base = make_sample(view.y_true, view.y_prob)
    prob, outcome = validate_problem(view.y_true, view.y_prob)
    return base, LensView.of(view.lens if lens is None else lens, prob, outcome, base)


def test_closed_forms_equal_a_call_for_every_class():
    def check(view):
        prob = view.y_prob.astype(float)
        found, expected = outcomes_of_classes(view.lens, prob), called_once_per_class(view.lens, prob)
        assert found.dtype.kind == "u"
        assert found.shape in {expected.shape, (1, expected.shape[1])}
        np.testing.assert_array_equal(np.broadcast_to(found, expected.shape), expected)

    assert failures(ALL_VIEWS, check) == {}


def test_induced_prediction_is_the_distribution_of_the_induced_outcome():
    """Section 3.1: the induced probability of j is the sum of the probabilities of the classes with outcome j."""
    for name, view in ALL_VIEWS.items():
        prob = view.y_prob.astype(float)
        induced, _ = view.induced
        pushed = push_forward(outcomes_of_classes(view.lens, prob), prob, induced.shape[1])
        by_loop = [
            [sum(p for p, k in zip(row, outcomes, strict=True) if k == j) for j in range(induced.shape[1])]
            for row, outcomes in zip(prob.tolist(), called_once_per_class(view.lens, prob).tolist(), strict=True)
        ]
        np.testing.assert_allclose(pushed, by_loop, rtol=0, atol=1e-12, err_msg=name)
        # Rows of float32 miss 1 by some 1e-7, and "the rest" is 1 minus the others.
        np.testing.assert_allclose(induced, pushed, rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.slow(few_draws=True)
def test_drawn_labels_through_a_lens():
    """As if the lens were called with the drawn labels, in the row order of its sample."""

    def check(view):
        base, behind = view_of(view)
        assert behind.is_base == (view.lens == caltest.Canonical())
        drawn = np.concatenate([block for _, block in caltest.Consistency().draws(6, 0).blocks(base)])
        found = behind.outcomes(drawn)
        assert found.dtype == behind.sample.outcome.dtype
        for labels, outcomes in zip(drawn, found, strict=True):
            in_order = np.empty(base.n_samples, dtype=np.int64)
            in_order[base.row] = labels
            expected = make_sample(in_order, view.y_prob, lens=view.lens)
            np.testing.assert_array_equal(expected.row, behind.sample.row)
            np.testing.assert_array_equal(outcomes, expected.outcome)
        np.testing.assert_array_equal(behind.outcomes(base.outcome[None])[0], behind.sample.outcome)

    assert failures(ALL_VIEWS, check) == {}


def test_part_of_a_view():
    """The outcomes of some observations are those of the whole view at their places."""

    def check(view):
        base, behind = view_of(view)
        drawn = np.concatenate([block for _, block in caltest.Consistency().draws(5, 1).blocks(base)])
        whole = behind.outcomes(drawn)
        n = behind.sample.n_samples
        for position in (np.arange(0, n, 2), np.arange(n), np.array([n - 1])):
            part = behind.take(position)
            assert not part.is_base
            np.testing.assert_array_equal(part.outcomes(drawn), whole[:, position])
            np.testing.assert_array_equal(part.sample.prob, behind.sample.prob[position])
            again = part.take(np.array([0]))
            np.testing.assert_array_equal(again.outcomes(drawn), whole[:, position[:1]])

    assert failures(ALL_VIEWS, check) == {}


def test_a_users_lens_is_called_once_for_each_class():
    problem = next(problem for problem in PROBLEMS if problem.n_classes == 10)
    view = View(problem, reverse)
    counted = Counted(reverse)
    prob = problem.y_prob.astype(float)
    np.testing.assert_array_equal(outcomes_of_classes(counted, prob), called_once_per_class(reverse, prob))
    assert counted.calls == 10
    counted = Counted(reverse)
    view_of(view, counted)
    assert counted.calls == 12  # and twice with labels, of which some are changed
    counted = Counted(reverse)
    caltest.calibration_table(problem.y_true, problem.y_prob, lenses=[counted, caltest.Confidence()], n_resamples=99)
    assert counted.calls == 12
    counted = Counted(reverse)
    caltest.calibration_test(problem.y_true, problem.y_prob, lens=counted, n_resamples=99)
    assert counted.calls == 2


def test_lenses_of_the_package_are_not_called_for_every_class(monkeypatch):
    prob = np.random.default_rng(0).dirichlet(np.ones(4), size=5)
    for lens in (lens for make in LENSES.values() for lens in make(4)):
        monkeypatch.setattr(type(lens), "__call__", lambda *_: pytest.fail("called"))
        assert outcomes_of_classes(lens, prob).shape[1] == 4, lens


def peeking_at_probabilities(prob, outcome):
    """Makes the probability of the label larger: it would seem calibrated."""
    return 0.5 * prob + 0.5 * np.eye(prob.shape[1])[outcome], outcome


def peeking_at_other_labels(prob, outcome):
    """The outcome of an observation is the label of another."""
    return prob, np.roll(outcome, 1)


def test_a_users_lens_that_depends_on_labels_is_refused():
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(3), size=30)
    y_true = rng.integers(3, size=30)
    from_predictions = "`lens` must make its probabilities from predictions alone, but they change with the labels"
    from_one_label = "`lens` must make the outcome of an observation from its prediction and its own label alone"
    for lens, message in ((peeking_at_probabilities, from_predictions), (peeking_at_other_labels, from_one_label)):
        options = {"lenses": [lens, caltest.Confidence()], "n_resamples": 99}
        check_refused(caltest.calibration_table, ValueError, message, y_true, y_prob, **options)
        options = {"lens": lens, "subgroup": y_prob[:, 0] > 0.3, "n_resamples": 99}
        check_refused(caltest.subgroup_tests, ValueError, message, y_true, y_prob, **options)
    check_refused(outcomes_of_classes, ValueError, from_predictions, peeking_at_probabilities, y_prob)


@pytest.mark.slow(few_draws=True)
def test_lenses_of_observations_with_weight_zero_left_out():
    """The view is that of the other observations, whose rows keep the numbers that the caller gave them."""

    def check(view):
        weight = np.ones(len(view.y_true))
        weight[::3], weight[1] = 0, 2
        kept = np.flatnonzero(weight)
        views = []
        for rows in (slice(None), kept):
            y_true, y_prob = view.y_true[rows], view.y_prob[rows]
            base = make_sample(y_true, y_prob, sample_weight=weight[rows])
            views.append(LensView.of(view.lens, *validate_problem(y_true, y_prob), base))
            drawn = np.stack([base.outcome, np.roll(base.outcome, 1)])
            views.append(views[-1].outcomes(drawn))
        whole, seen, few, of_few = views
        np.testing.assert_array_equal(whole.sample.row, kept[few.sample.row])
        np.testing.assert_array_equal(whole.sample.weight, few.sample.weight)
        np.testing.assert_array_equal(whole.sample.given, few.sample.given)
        np.testing.assert_array_equal(seen, of_few)

    assert failures({name: view for name, view in ALL_VIEWS.items() if len(view.y_true) > 5}, check) == {}
