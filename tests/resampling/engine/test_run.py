"""The engine: one question or several, drawn or computed, and statistics of users that only define `evaluate`."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs._validation import validate_problem
from caltest.resampling.distributions._base import SMALLEST_PVALUE, Distribution, Tail
from caltest.resampling.engine._evaluation import Question, draw_nulls, null_values
from caltest.resampling.engine._run import joint_error, monte_carlo_error, run, settle
from caltest.statistics import Statistic
from tests.hypothesis_tests.problems import calibrated
from tests.reference import naive
from tests.reference.cases import check_refused, failures
from tests.reference.examples import PROBLEMS
from tests.resampling.checks import LABELS, ROWS, problem


@dataclass(frozen=True, repr=False)
class Surprise(Statistic):
    """A user's statistic that implements `evaluate` alone: the average probability that was not predicted."""

    def evaluate(self, sample, outcomes):
        observed = np.take_along_axis(sample.prob[None], np.atleast_2d(outcomes)[..., None].astype(int), axis=-1)
        return (1 - observed[..., 0]).mean(axis=-1).reshape(outcomes.shape[:-1])


@dataclass(frozen=True)
class Known(Distribution):
    """A distribution with a given tail."""

    probability: float
    error: float
    mean: ClassVar[float] = 0.5
    std: ClassVar[float] = 0.1

    def sf(self, x):
        return self.probability

    def quantile(self, q):
        return q

    def tail(self, x):
        return Tail(self.probability, self.error, "known")


@dataclass(frozen=True, repr=False)
class Computed(Surprise):
    """A user's statistic with computed distributions."""

    exact: Any = None
    limit: Any = None

    def exact_distribution(self, sample):
        return self.exact

    def asymptotic_distribution(self, sample):
        return self.limit


@dataclass(frozen=True, repr=False)
class Pair(Statistic):
    """A user's combination of two statistics."""

    parts: tuple = field(default_factory=lambda: (Surprise(), caltest.ECE(caltest.EqualWidth(3))))

    @property
    def components(self):
        return self.parts

    def evaluate(self, sample, outcomes):
        raise NotImplementedError


def ask(statistic, y_true, y_prob, null=LABELS, n_resamples=60, **options):
    """The finding of one question."""
    sample = null.under_null(make_sample(y_true, y_prob))
    question = Question(statistic, LensView(sample))
    (finding,) = run([question], sample, null, n_resamples=n_resamples, **{"rng": 1, **options}).answers
    return finding


# One question.


def test_a_statistic_that_only_evaluates():
    """Observed value, null distribution and p-value by their definitions, for every problem and scheme."""

    def check(name):
        case = next(case for case in PROBLEMS if case.name == name)
        for null in (LABELS, ROWS):
            sample = make_sample(case.y_true, case.y_prob)
            finding = ask(Surprise(), case.y_true, case.y_prob, null)
            values = [
                Surprise().evaluate(drawn, outcome)
                for drawn, outcomes in null.draws(60, 1).blocks(sample)
                for outcome in outcomes
            ]
            np.testing.assert_allclose(finding.null.values, values, rtol=1e-12)
            assert finding.value == pytest.approx(1 - sample.prob[np.arange(len(sample.prob)), sample.outcome].mean())
            observed = math.inf if sample.impossible.size else finding.value
            assert finding.pvalue == naive.pvalue(observed, values)
            assert (finding.method, finding.tail, finding.draws.n_resamples) == ("monte-carlo", None, 60)
            assert len(finding.ranked) == 61
            assert finding.ranked[0] == finding.pvalue

    assert failures([case.name for case in PROBLEMS], check) == {}


def test_it_serves_the_public_functions():
    y_true, y_prob = problem(60, 3)
    options = {"statistic": Surprise(), "n_resamples": 60, "rng": 1}
    result = caltest.calibration_test(y_true, y_prob, **options)
    finding = ask(Surprise(), y_true, y_prob)
    assert (result.statistic, result.pvalue) == (finding.value, finding.pvalue)
    assert "Surprise" in str(result)
    assert caltest.calibration_error(y_true, y_prob, statistic=Surprise()) == finding.value
    floor = caltest.noise_floor(y_prob, **options)
    assert floor.mean == finding.null.mean
    lenses = [caltest.Canonical(), caltest.Confidence(), caltest.ClassWise(2)]
    table = caltest.calibration_table(y_true, y_prob, lenses=lenses, **options)
    assert table[0].pvalue == finding.pvalue
    assert len(caltest.subgroup_tests(y_true, y_prob, subgroup=y_prob[:, 0] > 0.3, **options)) == 2


def test_combinations_are_ranked_on_the_same_draws():
    """-log10 of the smallest p-value of the components, each data set ranked among all of them."""
    y_true, y_prob = problem(60, 3)
    finding = ask(Pair(), y_true, y_prob)
    assert len(finding.component_nulls) == 2
    alone = [ask(part, y_true, y_prob) for part in Pair().parts]
    values = [[one.value, *one.null.values] for one in alone]
    ranks = [naive.tail_pvalues(row) for row in values]
    np.testing.assert_allclose([null.values for null in finding.component_nulls], [v[1:] for v in values], rtol=1e-12)
    assert finding.component_values.tolist() == [v[0] for v in values]
    assert finding.component_pvalues.tolist() == [row[0] for row in ranks]
    assert finding.pvalue == naive.combine_pvalues(ranks)[0]
    np.testing.assert_allclose(
        [finding.value, *finding.null.values], [-np.log10(min(pair)) for pair in zip(*ranks, strict=True)], atol=1e-12
    )


# Computed distributions.

METHODS = {
    # statistic, method -> method of the finding, p-value
    "exact": (Computed(exact=Known(0.25, 1e-12)), "exact", "exact", 0.25),
    "auto takes an exact one": (Computed(exact=Known(0.25, 1e-12)), "auto", "exact", 0.25),
    "auto takes a bound far in the tail": (Computed(exact=Known(1e-9, math.inf)), "auto", "upper-bound", 1e-9),
    "exact takes a bound": (Computed(exact=Known(0.25, math.inf)), "exact", "upper-bound", 0.25),
    "auto draws instead of a rough one": (Computed(exact=Known(0.25, 0.06)), "auto", "monte-carlo", None),
    "auto draws instead of an unknown error": (Computed(exact=Known(0.25, math.nan)), "auto", "monte-carlo", None),
    "auto draws where none is known": (Computed(), "auto", "monte-carlo", None),
    "auto takes no limit": (Computed(limit=Known(0.25, math.nan)), "auto", "monte-carlo", None),
    "monte-carlo": (Computed(exact=Known(0.25, 1e-12)), "monte-carlo", "monte-carlo", None),
    "asymptotic": (Computed(limit=Known(0.25, math.nan)), "asymptotic", "asymptotic", 0.25),
    "never 0": (Computed(exact=Known(0.0, 1e-12)), "exact", "exact", SMALLEST_PVALUE),
    "never above 1": (Computed(exact=Known(1 + 1e-9, 1e-12)), "exact", "exact", 1.0),
}


def test_how_a_null_distribution_is_found():
    y_true, y_prob = problem(30, 3)

    def check(case):
        statistic, method, found, pvalue = case
        finding = ask(statistic, y_true, y_prob, method=method)
        assert finding.method == found
        assert finding.value == ask(Surprise(), y_true, y_prob).value
        if pvalue is None:
            assert (finding.tail, finding.draws.n_resamples) == (None, 60)
        else:
            assert finding.pvalue == pvalue
            assert finding.component_pvalues.tolist() == [pvalue]
            assert finding.component_values.tolist() == [finding.value]
            assert finding.component_nulls == (finding.null,)
            assert (finding.draws, finding.ranked, finding.tail.method) == (None, None, "known")

    assert failures(METHODS, check) == {}


def test_resampled_predictions_are_always_drawn():
    y_true, y_prob = problem(30, 3)
    both = Computed(exact=Known(0.25, 1e-12), limit=Known(0.25, math.nan))
    assert ask(both, y_true, y_prob, ROWS, method="auto").method == "monte-carlo"
    for method in ("exact", "asymptotic"):
        message = "predictions fixed; got"
        check_refused(ask, ValueError, message, both, y_true, y_prob, ROWS, method=method)


def test_what_is_not_known_is_refused():
    y_true, y_prob = problem(30, 3)
    message = (
        'method="exact" needs ECE, MCE, ConfidenceECE or HosmerLemeshow behind a two-outcome lens such as '
        "Confidence(), predictions fixed; got Surprise() with 3 outcomes, Consistency()."
    )
    check_refused(ask, ValueError, message, Surprise(), y_true, y_prob, method="exact")
    message = (
        'method="asymptotic" needs a statistic whose limit is known (KS, Kuiper, ClasswiseKS of two outcomes, '
        "Bridge, Spiegelhalter, HosmerLemeshow or CoxScore), predictions fixed; got Surprise(), Consistency()."
    )
    check_refused(ask, ValueError, message, Surprise(), y_true, y_prob, method="asymptotic")


def test_impossible_labels_have_the_smallest_pvalue():
    y_true, y_prob = [2, 0, 1], [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.25, 0.5, 0.25]]
    assert ask(Surprise(), y_true, y_prob).pvalue == 1 / 61
    assert ask(Pair(), y_true, y_prob).component_pvalues.tolist() == [1 / 61] * 2
    exact = Computed(exact=Known(0.25, 1e-12))
    assert ask(exact, y_true, y_prob, method="exact").pvalue == SMALLEST_PVALUE


# Several questions.


def several(y_true, y_prob, lenses, statistics):
    base = make_sample(y_true, y_prob)
    prob, outcome = validate_problem(y_true, y_prob)
    views = [LensView.of(lens, prob, outcome, base) for lens in lenses]
    return base, [Question(statistic, view) for statistic, view in zip(statistics, views, strict=True)]


@pytest.mark.parametrize("workers", [1, 2])
def test_several_questions_share_their_draws(workers):
    y_true, y_prob = problem(60, 4)
    lenses = [caltest.Canonical(), caltest.Confidence(), caltest.ClassWise(1), caltest.Confidence()]
    statistics = [Surprise(), caltest.KS(), Pair(), Surprise()]
    base, questions = several(y_true, y_prob, lenses, statistics)
    found = run(questions, base, LABELS, n_resamples=60, rng=1, workers=workers)
    drawn = np.concatenate([block for _, block in LABELS.draws(60, 1).blocks(base)])
    for question, finding in zip(questions, found.answers, strict=True):
        outcomes, sample = question.view.outcomes(drawn), question.sample
        for part, null in zip(question.statistic.components, finding.component_nulls, strict=True):
            np.testing.assert_allclose(null.values, part.evaluate(sample, outcomes), rtol=1e-12)
        observed = question.statistic.evaluate_components(sample, sample.outcome)
        np.testing.assert_array_equal(finding.component_values, observed)
        rows = [[first, *null.values] for first, null in zip(observed, finding.component_nulls, strict=True)]
        ranks = naive.combine_pvalues([naive.tail_pvalues(row) for row in rows])
        np.testing.assert_allclose(finding.ranked, ranks, atol=1e-14)
        assert finding.pvalue == finding.ranked[0]
    expected = naive.combine_pvalues([finding.ranked.tolist() for finding in found.answers])[0]
    assert found.pvalue == pytest.approx(expected, abs=1e-14)


def test_the_global_pvalue_of_one_question_is_its_own():
    y_true, y_prob = problem(40, 3)
    base, questions = several(y_true, y_prob, [caltest.Canonical()], [Surprise()])
    found = run(questions, base, LABELS, n_resamples=60, rng=1)
    assert found.pvalue == found.answers[0].pvalue
    impossible = [2, 0, 1], [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.25, 0.5, 0.25]]
    base, questions = several(*impossible, [caltest.Canonical(), caltest.ClassWise(0)], [Surprise(), Surprise()])
    found = run(questions, base, LABELS, n_resamples=60, rng=1)
    assert found.pvalue == found.answers[0].pvalue == 1 / 61


def test_several_questions_are_drawn():
    """Nothing else is shared: "auto" draws, and other methods are refused."""
    y_true, y_prob = problem(40, 2)
    exact = caltest.ECE(caltest.EqualWidth(3))
    base, questions = several(y_true, y_prob, [caltest.Canonical(), caltest.ClassWise(0)], [exact, exact])
    call = partial(run, questions, base, LABELS, n_resamples=60, rng=1)
    one, other = call(method="auto"), call()
    assert [f.method for f in one.answers] == ["monte-carlo"] * 2
    np.testing.assert_array_equal([f.pvalue for f in one.answers], [f.pvalue for f in other.answers])
    for method in ("exact", "asymptotic"):
        message = f'method="{method}" answers one question, several share their draws; got 2 questions.'
        check_refused(call, ValueError, message, method=method)


def test_lenses_and_resampled_predictions_exclude_each_other():
    y_true, y_prob = problem(40, 3)
    base, questions = several(y_true, y_prob, [caltest.Canonical(), caltest.Confidence()], [Surprise(), Surprise()])
    message = "several lenses or subgroups need fixed predictions, Consistency(); got Consistency(resample_predictions"
    check_refused(run, ValueError, message, questions, base, ROWS, n_resamples=9)
    # Several statistics of the same sample may share resampled observations.
    found = run(
        [Question(Surprise(), LensView(base)), Question(Pair(), LensView(base))], base, ROWS, n_resamples=9, rng=1
    )
    alone = ask(Surprise(), y_true, y_prob, ROWS, 9)
    np.testing.assert_array_equal(found.answers[0].null.values, alone.null.values)


def test_a_view_must_be_of_the_base():
    y_true, y_prob = problem(40, 3)
    question = Question(Surprise(), LensView(make_sample(y_true, y_prob)))
    message = "a view without a lens must be a view of `base`"
    check_refused(run, ValueError, message, [question], make_sample(y_true, y_prob), LABELS, n_resamples=9)


# What a statistic must be.


def test_numbers_of_outcomes_that_a_statistic_is_not_defined_for():
    two = " needs a two-outcome lens such as Confidence(), got 3 outcomes."

    class Triple(Surprise):
        n_outcomes = 3

    cases = {
        "`KS`" + two: caltest.KS(),
        "`EqualMass`" + two: caltest.ECE(caltest.EqualMass(3)),
        "`Edges`" + two: caltest.HosmerLemeshow(caltest.Edges([0.5])),
        "`Kuiper`" + two: Pair((Surprise(), caltest.statistics.Kuiper())),
        "`TCal`" + two: caltest.statistics.TCal(),
    }
    sample = make_sample(*problem(30, 3))
    for message, statistic in cases.items():
        check_refused(settle, ValueError, message, statistic, sample)
    assert settle(Triple(), sample) == Triple()
    message = "`Triple` needs a lens with 3 outcomes such as TopK(2), got 2 outcomes."
    check_refused(settle, ValueError, message, Triple(), make_sample([0, 1], [0.5, 0.5]))
    y_true, y_prob = problem(30, 3)
    check_refused(ask, ValueError, "`KS`" + two, caltest.KS(), y_true, y_prob)


def test_a_statistic_for_a_sample():
    class Growing(Surprise):
        def for_sample(self, sample):
            return Computed() if sample.n_samples > 10 else self

    assert type(settle(Growing(), make_sample(*problem(11, 3)))) is Computed
    assert type(ask(Growing(), *problem(11, 3)).statistic) is Computed
    assert type(ask(Growing(), *problem(10, 3)).statistic) is Growing


def test_what_evaluate_must_return():
    @dataclass(frozen=True, repr=False)
    class Wrong(Statistic):
        returned: Any = None

        def evaluate(self, sample, outcomes):
            return self.returned(outcomes)

    shape = "`Wrong.evaluate` must reduce the last axis of outcomes (..., n_samples): expected shape "
    cases = {
        "all axes": (lambda y: y.mean(), shape + "(60,) of outcomes (60, 40), got ()."),
        "no axis": (lambda y: y, shape + "() of outcomes (40,), got (40,)."),
        "another": (lambda y: np.zeros((*y.shape[:-1], 2)), shape + "() of outcomes (40,), got (2,)."),
        "NaN": (lambda y: np.full(y.shape[:-1], np.nan), "`Wrong.evaluate` must return numbers, got nan."),
        "NaN on draws": (
            lambda y: np.where(np.arange(len(y)) > 3, np.nan, 0.0) if y.ndim > 1 else 0.0,
            "`Wrong.evaluate` must return numbers, got nan.",
        ),
    }
    for returned, message in cases.values():
        check_refused(ask, ValueError, message, Wrong(returned), *problem(40, 3))
    sample = make_sample(*problem(40, 3))
    assert null_values(Wrong(lambda y: y.sum(axis=-1)), sample, LABELS.draws(5, 0)).shape == (5,)


def test_wrong_options_are_refused_before_the_work():
    y_true, y_prob = problem(20, 2)
    exact = caltest.ECE(caltest.EqualWidth(3))
    message = "`workers` must be an integer >= 1, or -1 for all processors, got 0."
    check_refused(ask, ValueError, message, exact, y_true, y_prob, method="exact", workers=0)
    message = "`n_resamples` must be an integer >= 1, got 0."
    check_refused(ask, ValueError, message, exact, y_true, y_prob, method="exact", n_resamples=0)


def test_progress_is_reported_for_shared_draws():
    calls = []
    y_true, y_prob = problem(40, 3)
    base, questions = several(y_true, y_prob, [caltest.Canonical(), caltest.Confidence()], [Surprise(), Surprise()])
    nulls = draw_nulls(questions, base, LABELS.draws(100, 0), 1, lambda done, total: calls.append((done, total)))
    assert [null.shape for null in nulls] == [(1, 100)] * 2
    assert calls[-1] == (100, 100)


def test_monte_carlo_error():
    assert monte_carlo_error(0.2, 400) == pytest.approx(0.02)
    assert monte_carlo_error(0.2, 0) == 0.0
    assert monte_carlo_error(0.2, 400, [0.2]) == pytest.approx(0.02)  # no combination
    assert monte_carlo_error(1.0, 400, [0.5, 0.7]) == 0.0
    assert joint_error(1 - 0.9**7, 0.1, 0.01) == pytest.approx(7 * 0.9**6 * 0.01)  # seven independent tests
    assert (joint_error(1.0, 0.5, 0.1), joint_error(0.3, 1.0, 0.1)) == (0.0, 0.0)


@pytest.mark.slow
def test_the_error_of_a_combination_is_that_of_other_seeds():
    """The error of one proportion alone was half of it."""
    y_true, y_prob = calibrated(300, 2)
    seeds, four_se = 100, 4.0
    found = [caltest.calibration_test(y_true, y_prob, n_resamples=499, rng=seed) for seed in range(seeds)]
    spread = np.std([result.pvalue for result in found], ddof=1)
    chance = four_se / np.sqrt(2 * (seeds - 1))  # of a standard deviation of about normal values
    printed = np.mean([result.numerical_error for result in found])
    alone = np.mean([np.sqrt(result.pvalue * (1 - result.pvalue) / 499) for result in found])
    assert alone * (1 + chance) < spread < printed * (1 + chance)
    assert printed < 1.5 * spread * (1 + chance)


def copies(prob, n_groups, size):
    """Return labels in groups that are copies, three in ten groups of them class 1, and no other surprise."""
    happened = np.arange(n_groups) % 10 < 3
    return (
        np.repeat(happened, size).astype(int),
        np.tile(prob, (n_groups * size, 1)),
        np.arange(n_groups * size) // size,
    )


def test_a_class_that_no_group_shows_is_tested_with_groups_that_are_copies():
    label, prob, group = copies([0.696, 0.3, 0.004], 200, 3)
    table = caltest.calibration_table(label, prob, groups=group, n_resamples=199, rng=0)
    found = dict(zip(table.labels, table.tests, strict=True))["class 2 against the rest"]
    chance = 0.996**200  # of a calibrated model
    assert found.method == "alike-labels"
    assert found.pvalue >= chance - 4 * math.sqrt(chance * (1 - chance) / 199)
    assert found.decision == "undecidable"


def test_a_subgroup_without_surprises_is_tested_with_groups_that_are_copies_and_others_are_as_they_were():
    label, prob, group = copies([0.7, 0.3], 200, 3)
    few = group >= 197  # groups 197 to 199 have no surprise
    parts = np.where(few, "few", "most")
    tests = caltest.subgroup_tests(label, prob[:, 1], subgroup=parts, groups=group, n_resamples=199, rng=0)
    found = dict(zip(tests.subgroups, tests.tests, strict=True))
    chance = 0.7**3  # of a calibrated model
    assert found["few"].pvalue >= chance - 4 * math.sqrt(chance * (1 - chance) / 199)
    assert found["most"].method != "alike-labels"
