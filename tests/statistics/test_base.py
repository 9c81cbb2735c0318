"""The contract that every statistic keeps: it equals its loops, is a specification, and is all that a new one needs."""

import importlib
import json
import math
import pickle
import pkgutil
import re
from collections.abc import Iterable
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import caltest
from caltest.predictions import Sample
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import CellSums, cells_of
from caltest.resampling.draws._summaries import CellCounts
from caltest.resampling.engine._evaluation import null_values
from caltest.resampling.engine._run import settle
from caltest.statistics import Statistic
from caltest.statistics._base import default_lens
from tests.reference import examples, naive
from tests.reference.cases import check_refused, failures, mostly_slow
from tests.reference.examples import STATISTICS, VIEWS, View, counted, draw_labels
from tests.statistics.problems import PROFILE, event_problems, problems

EXACT = {"rtol": 1e-12, "atol": 1e-12}

EVERY = pytest.mark.parametrize("kind", STATISTICS, ids=lambda kind: kind.__name__)
"""One test for each statistic of the package."""

FITTED = caltest.statistics.GiViTI
FITTED_LAST = pytest.mark.parametrize(
    "kinds", mostly_slow([[kind for kind in STATISTICS if kind is not FITTED], [FITTED]]), ids=["usual", "fitted"]
)
"""All statistics, those whose fits to separated labels take long in a slow test."""


def of_kind(kind: type[Statistic]) -> list[Statistic]:
    """A statistic with its defaults, or a small one with a partition and a distance of a user."""
    small = {
        caltest.MCE: caltest.MCE(examples.thirds, examples.hellinger),
        caltest.statistics.TCal: caltest.statistics.TCal(3),
    }
    return [kind(), *([small[kind]] if kind in small else [])]


def simple(kinds: Iterable[type[Statistic]] = STATISTICS) -> list[Statistic]:
    """Small statistics that have a value on one data set: those above, components instead of combinations."""
    return [part for kind in kinds for found in of_kind(kind) for part in found.components[:3]]


@cache
def sample_of(view: View, weighted: bool) -> Sample:
    """The sample behind a view; what is derived from it serves all tests."""
    weight = view.problem.weight if weighted else None
    return make_sample(view.y_true, view.y_prob, lens=view.lens, sample_weight=weight)


@cache
def different_views() -> list[View]:
    """The views of which none shows the same as another."""
    shown = {(view.problem.name, *(array.tobytes() for array in view.induced)): view for view in reversed(VIEWS)}
    return [view for view in VIEWS if view in shown.values()]


def samples(statistic: Statistic) -> dict[str, tuple[View, bool, Sample]]:
    """Every problem through every lens that the statistic can judge, with and without weights, by name."""
    return {
        f"{statistic} on {view}{' weighted' * weighted}": (view, weighted, sample_of(view, weighted))
        for view in different_views()
        for weighted in (False, True)
        if statistic.n_outcomes in {None, view.induced[0].shape[1]}
    }


def all_weigh_nothing(statistic: Statistic, view: View) -> bool:
    """Whether a weight on the probability scale is 0 for all predictions of a view, which is refused."""
    name = getattr(statistic, "scale_weight", None)
    return name is not None and not any(naive.SCALE_WEIGHTS[name](p) for p in view.induced[0][:, 1].tolist())


def value(statistic: Statistic, sample: Sample) -> float:
    """What `calibration_error` returns, of a sample that many statistics share."""
    return float(settle(statistic, sample).evaluate(sample, sample.outcome))


# Every statistic is exported, has an example and a twin.


def test_every_statistic_is_exported_and_has_an_example_and_a_twin():
    for module in pkgutil.iter_modules(caltest.statistics.__path__):  # also those that no export names
        importlib.import_module(f"caltest.statistics.{module.name}")
    found = examples.subclasses(Statistic)
    assert caltest.ECE in found
    for kind in found:
        assert kind.__name__ in caltest.statistics.__all__, f"{kind.__name__} needs a line in statistics/__init__.pyi"
        assert kind in STATISTICS, f"{kind.__name__} needs an example in tests/reference/examples.py"
        assert kind in naive.STATISTICS or len(kind().components) > 1, f"{kind.__name__} needs a twin in naive.py"


# Values.


@pytest.mark.parametrize("share", [45, pytest.param(1, marks=pytest.mark.slow)])
@EVERY
def test_equals_the_loops(kind, share):
    """On every problem, lens and weight if slow; by default on a 15th of them, other options on a 45th."""

    def check(case):
        statistic, (view, weighted, sample) = case
        if all_weigh_nothing(statistic, view):
            with pytest.raises(ValueError, match="positive for some prediction"):
                statistic.evaluate(sample, sample.outcome)
            return
        expected = naive.evaluate(statistic, *counted(*view.induced, view.problem.weight if weighted else None))
        found = float(statistic.evaluate(sample, sample.outcome))
        assert math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12), f"{found} instead of {expected}"

    every = STATISTICS[kind]()
    assert every or len(kind().components) > 1
    cases = {}
    for number, statistic in enumerate(every):
        step = max(share // 3, 1) if statistic == kind() else share
        chosen = slice(number % step, None, step)
        cases |= {name: (statistic, case) for name, case in [*samples(statistic).items()][chosen]}
    assert failures(cases, check) == {}


SHARES = pytest.mark.parametrize("share", [11, pytest.param(1, marks=pytest.mark.slow)])
"""All cases are slow; every eleventh one is run by default, an odd share, so that half of those are weighted."""


def some_samples(statistic: Statistic, share: int, weighted: tuple[bool, ...] = (False, True)) -> dict[str, Sample]:
    """One of so many samples that the statistic can judge, by name."""
    every = {name: sample for name, (_, weights, sample) in samples(statistic).items() if weights in weighted}
    return {name: every[name] for name in [*every][::share]}


@SHARES
@EVERY
def test_leading_axes_are_replicates_and_components_are_statistics(kind, share):
    def check(case):
        statistic, sample = case
        outcomes = np.random.default_rng(4).integers(
            sample.n_outcomes, size=(2, 3, sample.n_samples), dtype=sample.outcome.dtype
        )
        together = statistic.evaluate_components(sample, outcomes)
        assert together.shape == (len(statistic.components), 2, 3)
        for part, values in zip(statistic.components, together, strict=True):
            alone = [[part.evaluate(sample, outcomes[i, j]) for j in range(3)] for i in range(2)]
            assert np.shape(alone[0][0]) == ()
            np.testing.assert_allclose(values, alone, **EXACT)

    cases = {
        name: (settle(statistic, sample), sample)
        for statistic in of_kind(kind)
        for name, sample in some_samples(statistic, share).items()
    }
    assert cases
    assert failures(cases, check) == {}


@SHARES
@EVERY
def test_counts_serve_as_well_as_labels(kind, share):
    """What a statistic makes of the counts that it asks for is what it makes of the labels."""

    def check(case):
        statistic, sample = case
        draws = caltest.Consistency().draws(20, rng=5)
        [(_, outcomes)] = draws.blocks(sample)
        expected = statistic.evaluate(sample, outcomes)
        summary = statistic.summary(sample)
        if isinstance(summary, CellCounts):
            counted = CellSums.of(sample, cells_of(sample, summary.partition), outcomes)
            np.testing.assert_allclose(statistic.evaluate_summary(sample, counted), expected, **EXACT)
            if sample.n_outcomes == 2:  # counts are then drawn from their own distributions
                return
        np.testing.assert_allclose(null_values(statistic, sample, draws), expected, **EXACT)

    cases = {
        name: (part, sample)
        for statistic in of_kind(kind)
        for name, sample in some_samples(statistic, share, weighted=(False,)).items()
        for part in settle(statistic, sample).components[:3]
    }
    assert failures(cases, check) == {}


@FITTED_LAST
@PROFILE
@given(problem=problems(), data=st.data())
def test_row_order_does_not_matter(problem, data, kinds):
    y_true, y_prob = problem
    order = data.draw(st.permutations(range(len(y_true))))
    weight = np.arange(1.0, len(y_true) + 1)

    pairs = {
        lens: [
            [
                make_sample(y_true[rows], y_prob[rows], lens=lens, sample_weight=None if w is None else w[rows])
                for rows in (slice(None), order)
            ]
            for w in (None, weight)
        ]
        for lens in (caltest.Canonical(), caltest.Confidence())
    }

    def check(statistic):
        for samples_of_one in pairs[default_lens(statistic, y_prob.shape[1])]:
            one, other = (value(statistic, sample) for sample in samples_of_one)
            assert math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12), f"{one}, {other}, {samples_of_one[0]}"

    assert failures({str(part): part for part in simple(kinds)}, check) == {}


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(problem=problems(), data=st.data())
def test_names_of_the_classes_do_not_matter(problem, data):
    y_true, y_prob = problem
    order = data.draw(st.permutations(range(y_prob.shape[1])))
    names = data.draw(st.permutations("abcd"))[: y_prob.shape[1]]
    plain, named, permuted = (
        make_sample(y_true, y_prob),
        make_sample([names[k] for k in y_true], y_prob, classes=names),
        make_sample(np.argsort(order)[y_true], y_prob[:, order]),
    )
    for statistic in [
        *(kind(caltest.EqualWidth(10, axes="all"), examples.hellinger) for kind in (caltest.ECE, caltest.MCE)),
        *(caltest.ECE(caltest.EqualWidth(10, axes="all"), distance) for distance in naive.DISTANCES),
        caltest.TemperatureScore(),
        caltest.statistics.ClasswiseKS(),
    ]:
        one = value(statistic, plain)
        assert value(statistic, named) == one
        other = value(statistic, permuted)
        if y_prob.shape[1] > 2 or isinstance(statistic, caltest.TemperatureScore):
            np.testing.assert_allclose(one, other, **EXACT, err_msg=str(statistic))


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(problem=problems(), data=st.data())
def test_a_whole_weight_is_a_repeated_row(problem, data):
    y_true, y_prob = problem
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(y_true), max_size=len(y_true)).filter(any))
    fixed = caltest.EqualWidth(4)  # equal mass and trees count observations, not weights
    for statistic in (
        caltest.ECE(fixed),
        caltest.MCE(fixed),
        caltest.statistics.ConvexECE(fixed),
        caltest.KS(),
        caltest.statistics.Kuiper(),
        caltest.statistics.IsotonicError(),
        caltest.SmoothECE(0.2, n_points=100),
        caltest.statistics.SmoothCalibrationError(),
        caltest.statistics.KDEError(0.1, reference="mean"),
    ):
        weighted = caltest.calibration_error(y_true, y_prob, statistic=statistic, sample_weight=times)
        repeated = caltest.calibration_error(
            np.repeat(y_true, times), np.repeat(y_prob, times, axis=0), statistic=statistic
        )
        np.testing.assert_allclose(weighted, repeated, **EXACT, err_msg=str(statistic))


@FITTED_LAST
@PROFILE
@given(problem=problems())
def test_two_columns_and_one_are_the_same_problem(problem, kinds):
    y_true, y_prob = problem
    event = y_prob[:, 1]
    two = make_sample((y_true == 1).astype(int), np.column_stack([1 - event, event]))
    one = make_sample(y_true == 1, event)
    for kind in kinds:
        for statistic in kind().components[:3]:
            assert value(statistic, one) == value(statistic, two), statistic


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(problem=event_problems(), inside=st.booleans())
def test_the_other_event_is_the_same_problem(problem, inside):
    """Statistics without cells, and with cells whose ends no prediction touches; with certainties or without."""
    y_true, y_prob = problem
    prob = 7 / 8 * y_prob + 1 / 16 if inside else y_prob  # multiples of 1/64: the complement is exact
    for statistic in (
        caltest.ECE(caltest.EqualWidth(3)),
        caltest.SquaredL2(caltest.EqualWidth(3)),
        caltest.statistics.Kuiper(),
        caltest.statistics.IsotonicError(),
        caltest.SmoothECE(),
        caltest.SmoothECE(0.1),
        caltest.statistics.SmoothCalibrationError(),
        caltest.statistics.KDEError(0.1, reference="mean"),
        caltest.SKCE(),
        caltest.statistics.MMCE(),
        caltest.TemperatureScore(),
        caltest.statistics.Spiegelhalter(),
        caltest.statistics.CoxScore(),
        caltest.statistics.Bridge(),
        caltest.HosmerLemeshow(caltest.EqualWidth(3)),
    ):
        one = caltest.calibration_error(y_true, prob, statistic=statistic)
        other = caltest.calibration_error(1 - y_true, 1 - prob, statistic=statistic)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=str(statistic))


@EVERY
def test_residuals_are_centred_on_a_known_calibration_function(kind):
    """Values are those of the loops under this hypothesis, of two and of three outcomes."""
    rng = np.random.default_rng(5)
    for n_classes in (2, 3):
        prob = rng.dirichlet(np.ones(n_classes), size=40)
        truth = np.square(prob) / np.square(prob).sum(axis=1, keepdims=True)
        scheme = caltest.Consistency(
            calibration_function=lambda p: np.square(p) / np.square(p).sum(axis=1, keepdims=True)
        )
        y_true = draw_labels(truth, rng)
        sample = scheme.under_null(make_sample(y_true, prob))
        for statistic in STATISTICS[kind]() or kind().components[:3]:
            if statistic.n_outcomes in {None, n_classes}:
                value = statistic.evaluate(sample, sample.outcome)
                expected = naive.evaluate(statistic, prob, y_true, expected=truth.tolist())
                np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12, err_msg=str(statistic))


@pytest.mark.slow(few_draws=True)
def test_a_region_leaves_observations_out():
    """It is a region of what the lens shows; weights go with their observations."""
    rng = np.random.default_rng(6)
    y_prob, y_true, weight = rng.dirichlet(np.ones(3), size=80), rng.integers(3, size=80), rng.random(80)

    def check(statistic):
        for lens in [caltest.Confidence(), *([caltest.Canonical()] if statistic.n_outcomes is None else [])]:
            inside = (y_prob.max(axis=1) if lens == caltest.Confidence() else y_prob[:, 1]) > 0.4
            options = {"lens": lens, "statistic": statistic}
            one = caltest.calibration_error(
                y_true, y_prob, region=lambda p: p[:, 1] > 0.4, sample_weight=weight, **options
            )
            other = caltest.calibration_error(y_true[inside], y_prob[inside], sample_weight=weight[inside], **options)
            assert one == other, lens

    assert failures({str(part): part for part in simple()}, check) == {}


# Null distributions.


@pytest.mark.slow(few_draws=True)
def test_limits_are_those_of_large_samples():
    """Every limit that is offered, against simulated labels; and the statistics that must offer one."""
    rng = np.random.default_rng(0)
    event = rng.beta(0.8, 0.8, size=4000)
    sample, n_resamples = make_sample(rng.random(4000) < event, event), 1000
    offered = set()
    for kind in STATISTICS:
        limit = kind().asymptotic_distribution(sample)
        if limit is None:
            continue
        offered.add(kind)
        null = null_values(kind(), sample, caltest.Consistency().draws(n_resamples, rng=1))
        for q in (0.5, 0.9, 0.95):
            error = 4 * np.sqrt(q * (1 - q) / n_resamples)
            assert np.mean(null >= limit.quantile(q)) == pytest.approx(1 - q, abs=error), (kind, q)
    assert offered >= {
        caltest.KS,
        caltest.statistics.Kuiper,
        caltest.statistics.ClasswiseKS,
        caltest.statistics.Bridge,
        caltest.statistics.Spiegelhalter,
        caltest.HosmerLemeshow,
        caltest.statistics.CoxScore,
    }


@pytest.mark.slow(few_draws=True)
def test_derived_numbers_reach_the_result():
    """Of a test by simulated labels and of one with a computed distribution; and they print."""
    rng = np.random.default_rng(2)
    y_prob = rng.dirichlet(np.ones(3), size=60)
    y_true = draw_labels(y_prob, rng)
    sample = make_sample(y_true, y_prob, lens=caltest.Confidence())
    names = set()

    def check(kind):
        for method in ("monte-carlo", "auto"):
            result = caltest.calibration_test(
                y_true, y_prob, lens=caltest.Confidence(), statistic=kind(), method=method, n_resamples=19, rng=0
            )
            text = " ".join(str(result).split()) if any(part.derived for part in result.components) else ""
            for part in result.components:
                expected = part.test_statistic.derived(sample, part.statistic, part.null)
                np.testing.assert_equal(part.derived, expected)
                for name, value in part.derived.items():
                    assert np.isfinite(value).all()
                    assert np.ndim(value) or f"{name.replace('_', ' ')} {value:.4g}" in text
                    names.add(name)
            assert result.derived == (result.components[0].derived if len(result.components) == 1 else {})
            plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))["derived"]
            np.testing.assert_equal(plain, {name: np.asarray(value).tolist() for name, value in result.derived.items()})

    assert failures({kind.__name__: kind for kind in STATISTICS}, check) == {}
    assert names >= {"root", "null_std", "mean", "shape", "degrees_of_freedom", "observed"}


# Specifications.

NAMES = {
    **{name: getattr(room, name) for room in (caltest.predictions, caltest.statistics) for name in room.__all__},
    **{f.__name__: f for f in (examples.thirds, examples.hellinger, examples.inner_product_kernel)},
}


def test_statistics_are_frozen_and_comparable_and_read_back_as_code():
    def check(statistic):
        assert str(statistic) == repr(statistic)
        for same in (replace(statistic), eval(repr(statistic), NAMES), pickle.loads(pickle.dumps(statistic))):
            assert same == statistic
            assert hash(same) == hash(statistic)
        with pytest.raises((FrozenInstanceError, TypeError)):
            statistic.partition = None

    for kind in STATISTICS:
        assert repr(kind()) == f"{kind.__name__}()"
        assert failures({str(found): found for found in [*of_kind(kind), *STATISTICS[kind]()]}, check) == {}


class Unhashable:
    """A function that cannot be a key."""

    __hash__ = None

    def __call__(self, *arrays):
        return np.zeros(len(arrays[0]), dtype=int)


def wrong_values(kind: type[Statistic]) -> dict[str, tuple[str, Any, type[Exception]]]:
    """Values that each parameter of a statistic must refuse, found from its default; and how."""
    found = []
    for field in (one for one in fields(kind) if one.init):
        default = field.default_factory() if field.default is MISSING else field.default
        found += [(field.name, wrong, TypeError) for wrong in (object(), [object()], 3j)]
        if isinstance(default, str):
            found += [(field.name, word, ValueError) for word in ("", "no such word")]
        elif isinstance(default, bool):
            found += [(field.name, wrong, TypeError) for wrong in (1, None, "True")]
        elif isinstance(default, int | float):
            found += [(field.name, wrong, TypeError) for wrong in (True, None, "3")]
            found += [(field.name, wrong, ValueError) for wrong in (-1, -0.5 if isinstance(default, float) else -7)]
        elif field.name in {"partition", "distance", "kernel"}:
            found += [(field.name, wrong, TypeError) for wrong in (3, "x", dict, Unhashable())]
            found += [(field.name, None, TypeError)] if default is not None else []
    return {f"{kind.__name__}({name}={wrong!r})": (name, wrong, error) for name, wrong, error in found}


def test_constructors_refuse_wrong_types_and_words():
    """Found from the parameters: no one has to list them."""

    def check(case):
        kind, (name, value, error) = case
        with pytest.raises(error, match=rf"`{name}` must .*, got ") as caught:
            kind(**{name: value})
        assert caught.type is error

    cases = {name: (kind, case) for kind in STATISTICS for name, case in wrong_values(kind).items()}
    assert len(cases) > 150
    assert failures(cases, check) == {}


def test_what_is_no_statistic_is_refused():
    message = "`statistic` must be a statistic such as ECE() or Omnibus(), or its name, got"
    for wrong in (caltest.ECE, "EqualWidth(3)", caltest.predictions.total_variation, 3):
        for function in (caltest.calibration_error, caltest.calibration_test):
            check_refused(function, TypeError, f"{message} {wrong!r}.", [0, 1], [0.25, 0.75], statistic=wrong)


@pytest.mark.slow(few_draws=True)
def test_the_default_lens_and_the_outcomes_that_a_statistic_can_judge():
    problem = [0, 1, 2, 0], np.full((4, 3), 1 / 3)
    refused = pytest.raises(ValueError, match=r"needs a two-outcome lens such as Confidence\(\), got 3 outcomes")

    def check(statistic):
        result = caltest.calibration_test(*problem, statistic=statistic, n_resamples=9, rng=0)
        assert result.lens == (caltest.Canonical() if statistic.n_outcomes is None else caltest.Confidence())
        assert statistic.n_outcomes in {None, 2}
        if statistic.n_outcomes == 2:
            with refused:
                caltest.calibration_test(*problem, lens=caltest.Canonical(), statistic=statistic)
            if statistic.components == (statistic,):  # a scale of T-Cal alone can judge any number of outcomes
                with refused:
                    caltest.calibration_error(*problem, lens=caltest.TopK(2), statistic=statistic)

    for kind in STATISTICS:
        assert failures({str(found): found for found in [kind(), *STATISTICS[kind]()]}, check) == {}


# A new statistic is one class with `evaluate`.


class MeanGap(Statistic):
    """A user's statistic: the difference of frequency and mean prediction of the last outcome."""

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        return np.abs((outcomes == sample.n_outcomes - 1).mean(axis=-1) - sample.null_prob[:, -1].mean())


@dataclass(frozen=True, repr=False)
class Gap(MeanGap):
    """The same with a parameter, for one probability."""

    power: int = 1

    n_outcomes = 2

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        return super().evaluate(sample, outcomes) ** self.power


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("statistic", [MeanGap(), Gap(2)], ids=str)
def test_a_new_statistic_is_one_class_with_evaluate(statistic):
    """Nothing else has to be touched for it to work everywhere."""
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(3), size=200)
    y_true = draw_labels(y_prob, rng)
    options = {"statistic": statistic, "n_resamples": 99, "rng": 1}
    score, event = y_prob[:, 2], y_true == 2
    if statistic.n_outcomes == 2:
        score, event = y_prob.max(axis=1), y_prob.argmax(axis=1) == y_true
    expected = abs(event.mean() - score.mean()) ** getattr(statistic, "power", 1)

    result = caltest.calibration_test(y_true, y_prob, **options)
    assert result.statistic == pytest.approx(expected, rel=1e-12)
    assert result.statistic == caltest.calibration_error(y_true, y_prob, statistic=statistic)
    assert result.pvalue == naive.pvalue(result.statistic, result.null_distribution.tolist())
    assert result.test_statistic == statistic
    assert repr(statistic) in str(result)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["test_statistic"] == repr(statistic)
    assert eval(repr(statistic), {"MeanGap": MeanGap, "Gap": Gap}).__class__ is type(statistic)

    floor = caltest.noise_floor(y_prob, **options)
    assert floor.mean == result.noise_floor
    assert repr(statistic) in str(floor)
    table = caltest.calibration_table(y_true, y_prob, lenses=[caltest.Confidence(), caltest.ClassWise(0)], **options)
    assert set(table.to_frame()["test_statistic"]) == {repr(statistic)}
    interval = caltest.bootstrap_interval(y_true, y_prob, **options)
    assert interval.estimate == result.statistic
    both = caltest.calibration_test(
        y_true, y_prob, lens=caltest.Confidence(), statistic=caltest.Omnibus((statistic, caltest.ECE())), n_resamples=99
    )
    assert both.components[0].test_statistic == statistic
    study = caltest.simulation.size_study(
        caltest.simulation.DirichletModel(3), statistic, 50, 10, n_resamples=19, rng=0, levels=(0.05,)
    )
    assert len(study.pvalues) == 10
    assert repr(statistic) in str(study)
    for found in (result, floor, table, interval, both, study):
        assert "Gap(" in json.dumps(found.to_dict(), allow_nan=False)
        assert type(statistic).__name__ in found._repr_html_()


def test_an_exact_distribution_carries_derived_numbers_too():
    class Rooted(caltest.ECE):
        """A user's statistic with an exact distribution."""

        def derived(self, sample, value, null):
            return {"root": value**0.5, "floor": null.mean}

    rng = np.random.default_rng(0)
    event = rng.random(50)
    result = caltest.calibration_test(
        rng.random(50) < event, event, statistic=Rooted(caltest.EqualWidth(5)), method="exact"
    )
    assert result.method == "exact"
    assert result.derived == {"root": result.statistic**0.5, "floor": result.noise_floor}
    assert (result.root, result.floor) == tuple(result.derived.values())


def test_short_names():
    for kind, make in STATISTICS.items():
        for statistic in make():
            assert statistic.name == kind.__name__ == str(statistic).partition("(")[0]


def test_statistics_by_name():
    y_true, y_prob = caltest.datasets.load_digits_predictions()
    prob = y_prob["neural_network"]
    lens = caltest.Confidence()
    named = {"ECE": caltest.ECE(), "ECE(EqualWidth(15))": caltest.ECE(caltest.EqualWidth(15)), " KS ": caltest.KS()}
    for name, statistic in named.items():
        found = caltest.calibration_error(y_true, prob, statistic=name, lens=lens)
        assert found == caltest.calibration_error(y_true, prob, statistic=statistic, lens=lens)
    test = caltest.calibration_test(y_true, prob, statistic="KS", lens=caltest.Confidence(), n_resamples=99, rng=0)
    assert test.test_statistic == caltest.KS()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ece", "`statistic` 'ece': there is no ece; did you mean ECE?"),
        ("brier", "`statistic` 'brier' is a name of other packages; use brier_score for its value, and Spiegelhalter"),
        (
            "l2",
            "`statistic` 'l2' is a name of other packages; use RMSCE(15, \"equal-width\") of the confidence, or",
        ),
        ("Hosmer-Lemeshow", "is a name of other packages; use HosmerLemeshow()."),
        ("logloss", "use log_score for its value, and TemperatureScore() for a test of it."),
        ("ECE(", "`statistic` 'ECE(' is not a Python expression such as ECE(EqualWidth(15))."),
        ("ECE(EqualWidth(0))", '`n_cells` must be an integer >= 1, "sqrt" or'),
        ("print(3)", "there is no print"),
        ("ECE().evaluate", "is neither a name, a call of one, a list nor a literal"),
    ],
)
def test_other_texts_are_refused(name, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        caltest.calibration_error([0, 1], [0.2, 0.7], statistic=name)


def test_what_answers_the_names_of_other_packages_is_there():
    from caltest.statistics._base import _ELSEWHERE

    rooms = caltest.statistics, caltest.estimation, caltest.predictions
    for answer in _ELSEWHERE.values():
        for name in {*re.findall(r"\b([A-Za-z_]\w+)\(", answer), *re.findall(r"\b\w+_s(?:core|lope)\b", answer)}:
            assert name == "roc_auc_score" or any(hasattr(room, name) for room in rooms), name


def test_the_distance_that_is_estimated():
    """Of two and of three outcomes: ECE and its relatives have their distance, SquaredL2 counts one event once."""
    assert caltest.ECE(distance=caltest.predictions.euclidean).target is caltest.predictions.euclidean
    assert caltest.statistics.KDEError().target is caltest.predictions.total_variation
    assert caltest.MCE().target is None
    squared = caltest.SquaredL2().target
    assert squared(np.array([0.5, 0.5]), np.array([0.25, 0.75])) == 1 / 16
    assert squared(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25])) == 1 / 8
