"""Models with known truth: their data sets follow what they state, and what they state is true."""

import inspect
import json
import pickle
from dataclasses import FrozenInstanceError, fields
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import betaln, expit, xlogy
from scipy.stats import beta, norm
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import caltest
from caltest import Canonical, ClassGroups, ClassWise, Confidence, TopK, TopRank, WithinTop
from caltest.predictions import squared_euclidean, total_variation
from caltest.simulation import (
    BentPosterior,
    Bumps,
    DirichletModel,
    Favour,
    GaussianMixture,
    GaussianMixture1D,
    Identity,
    LabelNoise,
    LogisticModel,
    Model,
    Move,
    Permutation,
    RandomMixture,
    RecalibratedModel,
    ResampledPredictions,
    Shift,
    Temperature,
    TrainedClassifier,
    posocco_mixtures,
)
from caltest.simulation.models import _maps as maps
from caltest.simulation.models import _trained as trained
from caltest.simulation.models._exact import cell_estimate, integrate, look
from tests.reference import naive
from tests.reference.cases import mostly_nightly, mostly_slow
from tests.reference.examples import defined_in, distances, reverse, subclasses

LIMIT = 4.0
"""Monte Carlo tolerance in standard errors."""

EXAMPLE_1 = list(permutations([0.1, 0.3, 0.6]))
TABLE_1 = [(0.2, 0.2, 0.6), (0.0, 0.7, 0.3), (0.2, 0.2, 0.6), (0.4, 0.5, 0.1), (0.7, 0.0, 0.3), (0.5, 0.4, 0.1)]
TABLE_1_PREDICTIONS = [
    (0.1, 0.3, 0.6),
    (0.1, 0.6, 0.3),
    (0.3, 0.1, 0.6),
    (0.3, 0.6, 0.1),
    (0.6, 0.1, 0.3),
    (0.6, 0.3, 0.1),
]


def cubic(prob):
    """A user's calibration function."""
    weight = prob**3 + 0.1
    return weight / weight.sum(axis=1, keepdims=True)


def lopsided(predicted, observed):
    """A user's distance: no metric, not symmetric in the outcomes, and rough."""
    gap = observed - predicted
    return np.maximum(gap[..., 0], 0.0) + 0.25 * np.square(gap[..., 1]) + 0.1 * (gap[..., 0] < -0.3)


MAPS = {
    Identity: [(Identity(), 3)],
    Temperature: [(Temperature(1.3), 4), (Temperature(0.5), 2), (Temperature((2, 0.5, 1)), 3)],
    Shift: [(Shift(1, -0.4), 3), (Shift(0, 800.0), 2), (Shift(0, -800.0), 2)],
    Move: [(Move(2, 0, 0.3), 3), (Move(0, 1, 1), 2)],
    LabelNoise: [(LabelNoise(0.03), 5), (LabelNoise(1), 2)],
    Favour: [(Favour(0, 0.5), 4), (Favour(1, 1), 2)],
    Permutation: [(Permutation(), 3), (Permutation(0.5), 5)],
    Bumps: [(Bumps(40), 2), (Bumps(3, smoothness=1.0, scale=30.0), 2)],
}

MIXTURE = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])

MODELS = {
    GaussianMixture1D: [
        GaussianMixture1D(),
        GaussianMixture1D(1, 1),
        GaussianMixture1D(-0.5, 2.5),
        GaussianMixture1D(0, 0),
        GaussianMixture1D(1.5, 0),
        GaussianMixture1D(0.3, -8),
    ],
    GaussianMixture: [
        MIXTURE,
        GaussianMixture([0.2, 0.3, 0.5], [[0, 0], [1, 2], [-2, 0.5]], [1.0, 0.5, 2.0], [1, 0, 1]),
    ],
    RandomMixture: [RandomMixture(3, 2, seed=4)],
    BentPosterior: [BentPosterior(MIXTURE, Temperature(1.5)), BentPosterior(MIXTURE, LabelNoise(0.2))],
    LogisticModel: [LogisticModel(MIXTURE, 0.5, -2.0)],
    RecalibratedModel: [RecalibratedModel(BentPosterior(MIXTURE, Temperature(0.5)), Shift(0, 1.0))],
    DirichletModel: [
        DirichletModel(2),
        DirichletModel(3, [0.5, 1.0, 3.0], cubic),
        *(DirichletModel(n, 0.7, example) for several in MAPS.values() for example, n in several),
    ],
    ResampledPredictions: [
        ResampledPredictions(EXAMPLE_1, Permutation(), name="example 1"),
        ResampledPredictions(np.random.default_rng(0).dirichlet(np.ones(5), 200), Temperature(1.5)),
    ],
    TrainedClassifier: [
        TrainedClassifier(RandomMixture(2, 3, seed=1), "logistic regression"),
        TrainedClassifier(RandomMixture(3, 2, seed=0), "naive Bayes", n_train=100),
        TrainedClassifier(RandomMixture(2, 2, seed=2), "support vector"),
        TrainedClassifier(RandomMixture(2, 2, seed=0), "random forest", seed=5),
    ],
}
EVERY_MODEL = [model for several in MODELS.values() for model in several]
KNOWN = [model for model in EVERY_MODEL if not isinstance(model, TrainedClassifier | RecalibratedModel)]


def stated(model, lens=None, distance=total_variation):
    """The exact expected miscalibration, or None."""
    try:
        return model.expected_miscalibration(lens, distance)
    except NotImplementedError:
        return None


# What every model promises.


def test_every_model_and_map_has_an_example():
    assert set(subclasses(Model)) == set(MODELS)
    assert set(defined_in(maps, inspect.isclass)) == set(MAPS)
    assert len({str(model) for model in EVERY_MODEL}) == len(EVERY_MODEL)


def test_every_model_draws_a_problem():
    for model in EVERY_MODEL:
        x, y_true, y_prob = model.draw(60, rng=0)
        assert len(x) == len(y_true) == len(y_prob) == 60, model
        assert (y_true.dtype, y_prob.dtype) == (np.int64, np.float64), model
        assert y_prob.shape == (60, model.n_classes), model
        assert (y_prob >= 0).all(), model
        np.testing.assert_allclose(y_prob.sum(axis=1), 1, rtol=1e-12, err_msg=str(model))
        assert 0 <= y_true.min() <= y_true.max() < model.n_classes, model


def test_one_seed_gives_one_data_set():
    for model in EVERY_MODEL:
        first, same, other = (model.draw(40, rng=seed) for seed in (3, np.random.default_rng(3), 4))
        for a, b in zip(first, same, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=str(model))
        seen, unseen = (np.column_stack([drawn.x, drawn.y_true]) for drawn in (first, other))
        assert not np.array_equal(seen, unseen), model


def test_models_are_frozen_and_hashable_and_survive_pickling():
    for model in EVERY_MODEL:
        copy = pickle.loads(pickle.dumps(model))
        assert copy == model
        assert (hash(copy), str(copy)) == (hash(model), str(model))
        for a, b in zip(copy.draw(20, rng=1), model.draw(20, rng=1), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=str(model))
        with pytest.raises(FrozenInstanceError):
            setattr(model, fields(model)[0].name, None)


def test_models_and_maps_show_the_code_that_makes_them():
    """All but predictions that were given as an array: these show their shape and a digest."""
    known = {
        **vars(caltest.simulation),
        **{name: getattr(caltest.simulation, name) for name in dir(caltest.simulation)},
    }
    things = [*EVERY_MODEL, *(example for several in MAPS.values() for example, _ in several), *posocco_mixtures()]
    for thing in things:
        if isinstance(thing, ResampledPredictions):
            assert repr(thing).startswith(f"ResampledPredictions(<{len(thing.y_prob)} x {thing.n_classes} array ")
        else:
            assert eval(repr(thing), {**known, "cubic": cubic}) == thing
        assert str(thing) == repr(thing)
    assert repr(DirichletModel(3, [0.5, 1, 3], Temperature((1, 2, 3)))) == (
        "DirichletModel(3, concentration=[0.5, 1.0, 3.0], truth=Temperature([1.0, 2.0, 3.0]))"
    )
    model = ResampledPredictions([[0.5, 0.5]], Shift(0, 1.0), name="fair")
    assert repr(model) == f"ResampledPredictions(<1 x 2 array {model.digest}>, truth=Shift(0, 1.0), name='fair')"


@pytest.mark.slow
def test_classes_follow_the_true_probabilities():
    """Residuals in cells of the features' own truth and of the predictions."""
    n = 20_000
    for model in EVERY_MODEL:
        rows = model.draw_unlabelled(n, np.random.default_rng(0))
        _, y_true, y_prob = model.draw(n, rng=0)
        np.testing.assert_array_equal(rows.y_prob, y_prob, err_msg=str(model))
        for k in range(model.n_classes):
            residual = (y_true == k) - rows.class_prob[:, k]
            variance = rows.class_prob[:, k] * (1 - rows.class_prob[:, k])
            for by in (rows.class_prob[:, k], y_prob[:, k]):
                for cell in np.array_split(np.argsort(by), 5):
                    if variance[cell].sum() > 5:  # enough for a normal distribution
                        assert abs(residual[cell].sum()) < LIMIT * np.sqrt(variance[cell].sum()), (model, k)


@pytest.mark.slow
def test_the_calibration_function_is_the_mean_truth_of_equal_predictions():
    for model in KNOWN:
        rows = model.draw_unlabelled(20_000, np.random.default_rng(1))
        said = model.calibration_function(rows.y_prob)
        np.testing.assert_allclose(model.deviation(rows.y_prob), said - rows.y_prob, atol=1e-15, err_msg=str(model))
        np.testing.assert_allclose(said.sum(axis=1), 1, rtol=1e-12, err_msg=str(model))
        values, level = np.unique(rows.y_prob, axis=0, return_inverse=True)
        if len(values) == len(said):
            np.testing.assert_allclose(said, rows.class_prob, atol=1e-9, err_msg=str(model))
            continue
        for i in range(len(values)):  # predictions repeat: of a constant, of few rows, or rounded to 0 and 1
            true = rows.class_prob[level == i]
            error = true.std(axis=0) / np.sqrt(len(true))
            assert (np.abs(true.mean(axis=0) - said[level == i][0]) <= LIMIT * error + 1e-9).all(), model


@pytest.mark.slow
@pytest.mark.parametrize("distance", [total_variation, squared_euclidean, lopsided])
def test_expected_miscalibration_is_the_mean_over_draws(distance):
    """Through lenses that distinguish all predictions, where no truth is averaged."""
    checked = 0
    for model, lens in product(KNOWN, (None, ClassWise(1), reverse)):
        exact = stated(model, lens, distance)
        if exact is None or (model.n_classes > 2 and lens is not None):
            assert model.n_classes > 2, model
            continue
        checked += 1
        y_prob = model.draw(20_000, rng=2).y_prob
        distances = distance(*look(lens, y_prob, model.calibration_function(y_prob)))
        assert abs(distances.mean() - exact) <= LIMIT * distances.std() / np.sqrt(20_000) + 1e-9, (model, lens)
        if lens is None:
            value, error = model.estimate_miscalibration(lens, distance, n_samples=20_000, rng=3)
            assert abs(value - exact) <= LIMIT * error + 1e-9, model
    assert checked > 40


@pytest.mark.slow
@pytest.mark.parametrize("distance", mostly_nightly([total_variation, squared_euclidean]))
def test_expected_miscalibration_agrees_with_averages_over_cells(distance):
    """Through the confidence, which confuses predictions; cells lose less to smoothing than to noise."""
    checked = 0
    for model in KNOWN:
        exact = stated(model, Confidence(), distance)
        rough = isinstance(getattr(model, "truth", None), Bumps)
        if exact is None or rough:
            assert rough or model.n_classes > 2, model
            continue
        checked += 1
        found = model.estimate_miscalibration(Confidence(), distance, n_samples=40_000, rng=2)
        assert abs(found.value - exact) <= LIMIT * found.standard_error + found.noise_floor + 1e-9, model
    assert checked > 14


def test_cells_do_not_detect_bumps_that_are_narrower():
    model = DirichletModel(2, 1.0, Bumps(40))
    found = model.estimate_miscalibration(ClassWise(1), n_samples=20_000, rng=0)
    assert found.value < model.expected_miscalibration() / 2
    assert "averaged over EqualMass(27)" in found.target


@pytest.mark.slow
def test_two_classes_look_alike_through_all_lenses_of_one_kind():
    """Lenses that distinguish the two classes have one miscalibration, lenses that confuse them another one."""
    telling = [Canonical(), ClassWise(0), ClassWise(1), ClassGroups([[0], [1]]), ClassGroups([[1], [0]]), reverse]
    confusing = [Confidence(), TopK(1), TopRank(1), TopRank(2), WithinTop(1)]
    for model in [model for model in EVERY_MODEL if model.n_classes == 2]:
        if isinstance(model, TrainedClassifier | RecalibratedModel):
            assert stated(model) is None, model
            continue
        whole, top = model.expected_miscalibration(), model.expected_miscalibration(Confidence())
        assert top <= whole + 1e-12, model
        for lens in telling:
            assert model.expected_miscalibration(lens) == pytest.approx(whole, abs=1e-10), (model, lens)
        for lens in confusing:
            assert model.expected_miscalibration(lens) == pytest.approx(top, abs=1e-10), (model, lens)


# The Gaussian mixture of Vaicenavicius et al.


def roots(function):
    """Where a function of (0, 1) changes its sign: there a distance has its kinks."""
    grid = np.linspace(1e-6, 1 - 1e-6, 99)
    value = [function(p) for p in grid]
    return [brentq(function, grid[i], grid[i + 1]) for i in range(98) if value[i] * value[i + 1] < 0]


def gaussian(beta0, beta1):
    """Density of g_0 and its truth."""

    def feature(p):
        return (np.log(p) - np.log1p(-p) - beta0) / beta1

    def density(p):
        if not 0 < p < 1:
            return 0.0
        x = feature(p)
        return (norm.pdf(x + 1) + norm.pdf(x - 1)) / 2 / (abs(beta1) * p * (1 - p))

    return density, lambda p: float(expit(-2 * feature(p)))


@pytest.mark.slow(few_draws=True)
def test_the_uncalibrated_model_of_the_paper():
    """Section 5.1: "approximately 0.56"."""
    model = GaussianMixture1D(1, 1)
    assert model.expected_miscalibration() == pytest.approx(0.5637511406, abs=1e-9)
    x = np.linspace(-12, 12, 2_000_001)
    gap = np.abs(expit(1 + x) - expit(-2 * x)) * (norm.pdf(x + 1) + norm.pdf(x - 1)) / 2
    assert np.trapezoid(gap, x) == pytest.approx(0.5637511406, abs=1e-9)


def test_the_calibrated_models_of_the_paper():
    models, lenses = (GaussianMixture1D(0, -2), GaussianMixture1D(0, 0)), (None, Confidence(), ClassWise(1), TopRank(2))
    for model, lens, distance in product(models, lenses, distances()):
        found = model.expected_miscalibration(lens, distance)
        assert found == pytest.approx(0, abs=1e-15), (model, lens, distance)


@pytest.mark.parametrize("parameters", mostly_slow([((0.3, -1),), ((1, 1),)]))
def test_quadrature_of_the_gaussian_mixture(parameters):
    density, truth = map(cache, gaussian(*parameters))
    kinks = {0.5, *roots(lambda p: truth(p) - p), *roots(lambda p: abs(truth(p) - p) - 0.3)}
    model = GaussianMixture1D(*parameters)
    views = ((None, None), (Confidence(), "top"), (TopRank(2), "bottom"))
    for distance, (lens, event) in product([*distances(), lopsided], views):
        expected = naive.two_class_miscalibration(density, truth, distance, kinks, event)
        tolerance = 1e-4 if distance is lopsided else 1e-7  # quad stumbles over a step
        found = model.expected_miscalibration(lens, distance)
        assert found == pytest.approx(expected, abs=tolerance), (distance, lens)


def test_the_density_of_predictions():
    model = GaussianMixture1D(1, 1)
    assert quad(model.density, 0, 1)[0] == pytest.approx(1, abs=1e-7)
    share = quad(model.density, 0.2, 0.7)[0]
    y_prob = model.draw(100_000, rng=0).y_prob[:, 0]
    assert abs(((y_prob > 0.2) & (y_prob < 0.7)).mean() - share) < LIMIT * np.sqrt(share * (1 - share) / 100_000)
    with pytest.raises(ValueError, match="constant and have no density"):
        GaussianMixture1D(1, 0).density(0.5)


def test_predictions_that_round_to_certainty_stand_for_all_beyond():
    """exp(300 x) overflows from x = 2.37 on: the truth there is that of the upper tail."""
    said = GaussianMixture1D(0, 300).calibration_function([[1.0, 0.0], [0.0, 1.0]])
    edge = 1024 * np.log(2.0) / 300
    share = norm.sf(edge + 1) / (norm.sf(edge + 1) + norm.sf(edge - 1))
    np.testing.assert_allclose(said, [[share, 1 - share], [1 - share, share]], rtol=1e-9)
    x, _, y_prob = GaussianMixture1D(0, 300).draw(200_000, rng=0)
    true = GaussianMixture1D().posterior(x[y_prob[:, 0] == 1])[:, 0]  # 0.9999... is 1 in doubles from x = 0.12 on
    beyond = GaussianMixture1D().posterior(x[y_prob[:, 1] == 0])[:, 0]
    assert len(true) > 2 * len(beyond) > 1000
    assert abs(beyond.mean() - share) < LIMIT * beyond.std() / np.sqrt(len(beyond))
    np.testing.assert_allclose(GaussianMixture1D().calibration_function([[1.0, 0.0]]), [[1.0, 0.0]], atol=1e-300)


def test_a_single_column_is_the_positive_class():
    model = GaussianMixture1D(1, 1)
    np.testing.assert_array_equal(
        model.calibration_function([0.25, 0.5]), model.calibration_function([[0.75, 0.25], [0.5, 0.5]])
    )


# Known maps.


@given(
    weight=hnp.arrays(float, (6, 5), elements=st.floats(0, 1).map(lambda w: w if w > 1e-200 else 0.0)),
    amount=st.floats(0, 1),
)
@pytest.mark.slow
def test_maps_return_probabilities_and_leave_their_argument(weight, amount):
    weight[:, 0] += weight.sum(axis=1) == 0
    prob = weight / weight.sum(axis=1, keepdims=True)
    several = [
        *(example for kind in MAPS for example, n in MAPS[kind] if n == 5),
        *(Temperature(amount + 0.05), Shift(2, 20 * amount), Move(4, 1, amount), LabelNoise(amount)),
        *(Favour(3, amount), Permutation(amount)),
    ]
    for apply in several:
        given_prob = prob.copy()
        true = apply(given_prob)
        np.testing.assert_array_equal(given_prob, prob)
        assert (true >= -1e-15).all()
        np.testing.assert_allclose(true.sum(axis=1), 1, rtol=1e-12)


def test_temperature_above_one_means_over_confident():
    _, y_true, y_prob = DirichletModel(4, 0.5, Temperature(1.5)).draw(20_000, rng=0)
    result = caltest.calibration_test(y_true, y_prob, n_resamples=199, rng=0)
    assert result.direction == "over-confident"
    _, y_true, y_prob = DirichletModel(4, 0.5, Temperature(1 / 1.5)).draw(20_000, rng=0)
    assert caltest.calibration_test(y_true, y_prob, n_resamples=199, rng=0).direction == "under-confident"


def test_example_1_of_the_paper():
    np.testing.assert_allclose(Permutation()(np.array(TABLE_1_PREDICTIONS)), TABLE_1, atol=1e-15)
    model = ResampledPredictions(TABLE_1_PREDICTIONS, Permutation())
    assert model.expected_miscalibration() == pytest.approx(0.1, abs=1e-12)
    for lens in (Confidence(), ClassWise(0), ClassWise(1), ClassWise(2)):
        assert model.expected_miscalibration(lens) == pytest.approx(0, abs=1e-12)


def test_the_permutation_is_hidden_among_exchangeable_classes():
    model = DirichletModel(4, 0.5, Permutation())
    for lens in (Confidence(), ClassWise(0), ClassWise(1), ClassWise(3)):
        found = model.estimate_miscalibration(lens, n_samples=50_000, rng=0)
        assert found.value < 2 * found.noise_floor + 1e-12, lens  # what cells show of a calibrated model, and some
    assert model.estimate_miscalibration(n_samples=2000, rng=0).value > 0.03


@pytest.mark.slow
def test_the_models_of_widmann():
    """The expected calibration error that their code, src/model.jl, computes."""
    for m, a, share in product((2, 10, 100), (0.1, 1.0), (0.5, 1.0)):
        first = DirichletModel(m, a, Favour(0, share)).expected_miscalibration()
        assert first == pytest.approx(share * (m - 1) / m, rel=1e-10), (m, a, share)
        every = DirichletModel(m, a, LabelNoise(share)).expected_miscalibration()
        formula = share / a * np.exp(a * (xlogy(m - 1, m - 1) - xlogy(m, m)) - betaln(a, (m - 1) * a))
        assert every == pytest.approx(formula, rel=1e-10), (m, a, share)


def test_a_moved_share_has_a_closed_form():
    """Total variation: the share times the mean probability of its source."""
    model = DirichletModel(3, [1.0, 2.0, 5.0], Move(1, 2, 0.3))
    value, error = model.estimate_miscalibration(n_samples=50_000, rng=0)
    assert abs(value - 0.3 * 2 / 8) < LIMIT * error
    assert stated(model) is None


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("parameters", [(1.0, 1.0), (0.6, 2.5)])
def test_quadrature_of_the_beta_distribution(parameters):
    density = cache(beta(*parameters).pdf)
    for truth in (Temperature(1.4), Shift(0, -0.4), Move(1, 0, 0.2), LabelNoise(0.3), cubic):

        @cache
        def of_first(p, truth=truth):
            return float(truth(np.array([[p, 1 - p]]))[0, 0])

        kinks = {0.5, *roots(lambda p, of_first=of_first: of_first(p) - p)}
        model = DirichletModel(2, parameters, truth)
        for lens, event in ((None, None), (Confidence(), "top"), (TopRank(2), "bottom")):
            for distance in (total_variation, squared_euclidean):
                expected = naive.two_class_miscalibration(density, of_first, distance, kinks, event)
                found = model.expected_miscalibration(lens, distance)
                assert found == pytest.approx(expected, abs=3e-7), (truth, lens, distance)


def test_very_sharp_and_very_blunt_predictions():
    """Half of the events at random: E |p - 1/2| / 2 is 1/4 for certain predictions, and 0 for constant ones."""
    assert DirichletModel(2, 1e-4, LabelNoise(0.5)).expected_miscalibration() == pytest.approx(0.25, abs=1e-4)
    assert DirichletModel(2, 1e6, LabelNoise(0.5)).expected_miscalibration() == pytest.approx(
        0.5 * np.sqrt(2 / np.pi) / np.sqrt(4 * (2e6 + 1)), rel=1e-5
    )


def test_the_bumps_of_tcal():
    """The norm 0.0098 that their code multiplies with rho m^-s; half of the predictions are calibrated."""
    model = DirichletModel(2, 1.0, Bumps(40, smoothness=0.6, scale=100))
    squared = model.expected_miscalibration(distance=squared_euclidean) / 2
    assert np.sqrt(2 * squared) / (100 * 40**-0.6) == pytest.approx(0.0098, abs=5e-5)
    area = quad(lambda u: np.exp(-1 / (u * (1 - u))), 0, 1)[0]
    assert model.expected_miscalibration() == pytest.approx(100 * 40**-0.6 * area / 2, rel=1e-9)
    assert Bumps(40).height == pytest.approx(100 * 40**-0.6 * np.exp(-4))
    first = 0.25 + 0.25 / 40  # the middles of the first two bumps
    prob = np.array([[1 - first, first], [1 - first - 0.5 / 40, first + 0.5 / 40], [0.75, 0.25], [0.25, 0.75]])
    gap = (Bumps(40)(prob) - prob)[:, 1] / Bumps(40).height
    np.testing.assert_allclose(gap, [1, -1, 0, 0], atol=1e-12)


def test_a_finite_model_is_a_plain_mean():
    prob = np.array([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]])
    model = ResampledPredictions(prob, Shift(0, 1.0))
    true = Shift(0, 1.0)(prob)
    assert model.expected_miscalibration() == pytest.approx(np.abs(true - prob).sum() / 2 / 4, abs=1e-14)
    right = np.array([true[[0, 3, 1], [0, 0, 1]].mean(), true[2, 2]])  # confidences 0.5, 0.5, 0.6, 0.5
    expected = 0.75 * abs(right[0] - 0.5) + 0.25 * abs(right[1] - 0.6)
    assert model.expected_miscalibration(Confidence()) == pytest.approx(expected, abs=1e-14)


def test_predictions_that_sum_to_1_up_to_rounding_stay_as_they_are():
    model = ResampledPredictions(EXAMPLE_1)
    assert np.sum(EXAMPLE_1, axis=1).min() < 1
    np.testing.assert_array_equal(model.y_prob, EXAMPLE_1)
    np.testing.assert_array_equal(Temperature(1.0)(model.y_prob), EXAMPLE_1)
    rounded = np.float32([[0.1, 0.3, 0.6]]).astype(float)
    np.testing.assert_array_equal(ResampledPredictions(rounded).y_prob, rounded / rounded.sum())


def test_resampled_predictions_are_distinguished_by_their_values():
    a, b = np.array([[0.25, 0.75]]), np.array([[0.5, 0.5]])
    given_prob = a.copy()
    model = ResampledPredictions(given_prob)
    given_prob[:] = b  # the caller's array stays the caller's
    assert model == ResampledPredictions(a)
    assert model != ResampledPredictions(b)
    assert model != ResampledPredictions(a, Temperature(2.0))
    assert str(model) != str(ResampledPredictions(b))


def test_a_map_that_writes_is_refused():
    def spoil(prob):
        prob[:] = 0.5
        return prob

    with pytest.raises(ValueError, match="must not write to its arguments"):
        DirichletModel(2, 1.0, spoil).draw(20, rng=0)


# Lenses and distances of users.


def test_a_lens_that_shows_one_certain_outcome_has_nothing_to_find():
    def blind(prob, outcome):
        return np.column_stack([np.ones(len(prob)), np.zeros(len(prob))]), np.zeros(len(prob), dtype=int)

    assert GaussianMixture1D(1, 1).expected_miscalibration(blind) == pytest.approx(0, abs=1e-15)
    assert ResampledPredictions(EXAMPLE_1, Permutation()).expected_miscalibration(blind) == pytest.approx(0, abs=1e-15)


def test_a_user_may_write_the_confidence_himself():
    def top(prob, outcome):
        best = prob.max(axis=1)
        return np.column_stack([best, 1 - best]), (outcome != prob.argmax(axis=1)).astype(int)

    for model in (GaussianMixture1D(1, 1), DirichletModel(2, 0.4, Shift(0, 1.0))):
        exact = model.expected_miscalibration(Confidence())
        assert model.expected_miscalibration(top) == pytest.approx(exact, abs=1e-10)


def test_what_is_not_a_lens_is_refused():
    """One predicts something else than its outcome, one looks at labels."""
    wrong = {
        "the probabilities of its outcomes": lambda prob, outcome: (np.full(prob.shape, 0.5), outcome),
        "from predictions alone": lambda prob, outcome: (np.where(outcome[:, None] == 0, prob, prob[:, ::-1]), outcome),
    }
    models = (GaussianMixture1D(1, 1), DirichletModel(2, truth=cubic), ResampledPredictions([[0.3, 0.7]]))
    for model, (words, lens) in product(models, wrong.items()):
        with pytest.raises(ValueError, match=words):
            model.expected_miscalibration(lens)


def test_look_pushes_the_truth_through_the_lens():
    rng = np.random.default_rng(0)
    prob, true = rng.dirichlet(np.ones(4), size=(2, 50))
    for lens in (Confidence(), TopK(2), WithinTop(3), ClassGroups([[0, 3], [1, 2]]), reverse):
        induced, pushed = look(lens, prob, true)
        for i in range(50):
            expected = np.zeros(induced.shape[1])
            for k in range(4):
                expected[lens(prob[[i]], np.array([k]))[1][0]] += true[i, k]
            np.testing.assert_allclose(pushed[i], expected, atol=1e-14)
        np.testing.assert_allclose(induced, lens(prob, np.zeros(50, dtype=int))[0], atol=1e-14)


def test_integrals_of_rough_functions():
    assert integrate(lambda t: np.abs(t - 1 / 3), [0, 1]) == pytest.approx(5 / 18, abs=1e-13)
    assert integrate(lambda t: (t > 1 / 3).astype(float), [0, 1]) == pytest.approx(2 / 3, abs=1e-12)
    assert integrate(np.exp, [-1, 0.3, 2]) == pytest.approx(np.exp(2) - np.exp(-1), rel=1e-14)
    with pytest.raises(ValueError, match="too rough"):
        integrate(lambda t: np.modf(1e6 * np.sin(1e12 * t))[0], [0, 1])


# Estimates.


def test_averages_over_cells_equal_the_loops():
    for distance in (total_variation, squared_euclidean, lopsided):
        rng = np.random.default_rng(0)
        predicted, seen = rng.dirichlet(np.ones(2), size=(2, 300))
        label = rng.integers(-3, 4, size=300)
        found = cell_estimate(predicted, seen, label, distance, "")
        expected = naive.cell_miscalibration(predicted, seen, label, distance)
        assert found.value == pytest.approx(expected, rel=1e-12), distance
        kept = [np.arange(300) % 20 != fold for fold in range(20)]
        left_out = [naive.cell_miscalibration(predicted[k], seen[k], label[k], distance) for k in kept]
        assert found.standard_error == pytest.approx(np.sqrt(19 * np.var(left_out)), rel=1e-9), distance
        assert found.n_cells == 7


@pytest.mark.slow(few_draws=True)
def test_the_noise_floor_is_what_a_calibrated_model_shows():
    """Cells of outcomes that follow the predictions: the value is the noise, and the floor says so."""
    model = DirichletModel(2, 1.0)
    values, floors = [], []
    for seed in range(60):
        _, y_true, y_prob = model.draw(4000, rng=seed)
        label = (y_prob[:, 1] * 10).astype(int)
        found = cell_estimate(y_prob, np.eye(2)[y_true], label, total_variation, "")
        values.append(found.value)
        floors.append(found.noise_floor)
    error = np.hypot(np.std(values), np.std(floors)) / np.sqrt(60)
    assert abs(np.mean(values) - np.mean(floors)) < LIMIT * error


@pytest.mark.slow(few_draws=True)
def test_standard_errors_are_those_of_repetition():
    """200 estimates: their standard deviation is known to 5 %, the jackknife's error of each to about 16 %."""
    model = DirichletModel(3, 0.5, Shift(0, 1.0))
    found = [model.estimate_miscalibration(Confidence(), n_samples=1000, rng=seed) for seed in range(200)]
    spread = np.std([value for value, _ in found], ddof=1)
    assert np.mean([error for _, error in found]) == pytest.approx(
        spread, rel=LIMIT * np.hypot(0.05, 0.16 / np.sqrt(200))
    )


def test_estimates_describe_themselves():
    known = DirichletModel(3, truth=Temperature(2.0)).estimate_miscalibration(n_samples=500, rng=0)
    assert "the calibration function being known" in known.target
    assert (known.n_cells, known.noise_floor, known.n_samples) == (0, 0.0, 500)
    assert "noise floor" not in str(known)
    seen = GaussianMixture1D(1, 1).estimate_miscalibration(Confidence(), n_samples=1000, rng=0)
    assert "through Confidence(), true probabilities averaged over EqualMass(10)" in seen.target
    assert seen.target in " ".join(str(seen).split())
    assert str(seen).splitlines()[1] == seen.conclusion
    assert f"{seen.value:.3f} (standard error {seen.standard_error:.2g})" in seen.conclusion
    assert 0.01 < seen.standard_error < 0.1, "so that the third decimal is the last that means something"
    assert "noise floor" in str(seen)
    assert "Where the deviation changes its sign within a cell, the value is too small" in " ".join(str(seen).split())
    nothing = MIXTURE.estimate_miscalibration(Confidence(), n_samples=1000, rng=0)
    assert nothing.conclusion == "The expected miscalibration is 0 (standard error 0)."
    assert json.loads(json.dumps(seen.to_dict(), allow_nan=False)) == {
        **{name: getattr(seen, name) for name in ("value", "standard_error", "noise_floor", "target", "n_samples")},
        **{name: getattr(seen, name) for name in ("n_cells", "conclusion")},
    }
    few = ResampledPredictions(EXAMPLE_1).estimate_miscalibration(Confidence(), n_samples=1000, rng=0)
    assert "observations of equal predictions" in few.target
    with pytest.raises(NotImplementedError, match="averaged over equal predictions only"):
        DirichletModel(4).estimate_miscalibration(TopK(2), n_samples=1000, rng=0)


def test_more_than_two_outcomes_where_predictions_repeat():
    model = ResampledPredictions(EXAMPLE_1, Permutation())
    value, error = model.estimate_miscalibration(TopK(2), n_samples=4000, rng=0)
    assert abs(value - model.expected_miscalibration(TopK(2))) < LIMIT * error + 1e-12


# Mixtures and trained classifiers.


@pytest.mark.slow(few_draws=True)
def test_posteriors_follow_bayes():
    for numbers in ((2, 1, 0), (3, 2, 1), (5, 4, 2)):
        mixture = RandomMixture(*numbers)
        x = mixture.draw_features(20, rng=0)
        posterior = mixture.posterior(x)
        for row, true in zip(x, posterior, strict=True):
            np.testing.assert_allclose(true, naive.gaussian_posterior(mixture, row), atol=1e-7, err_msg=str(mixture))
        np.testing.assert_array_equal(mixture.posterior(x), RandomMixture(*numbers).posterior(x))
        assert np.isfinite(mixture.posterior(x + 1000)).all(), mixture


def test_features_have_the_moments_of_the_mixture():
    mixture, n = RandomMixture(3, 2, seed=4), 50_000
    x = mixture.draw_features(n, rng=0)
    mean = mixture.means.mean(axis=(0, 1))
    second = np.mean(
        [
            np.outer(m, m) + a.T @ a
            for m, a in zip(mixture.means.reshape(-1, 2), mixture.matrices.reshape(-1, 2, 2), strict=True)
        ],
        axis=0,
    )
    assert (np.abs(x.mean(axis=0) - mean) < LIMIT * x.std(axis=0) / np.sqrt(n)).all()
    products = x[:, :, None] * x[:, None, :]
    assert (np.abs(products.mean(axis=0) - second) < LIMIT * products.std(axis=0) / np.sqrt(n)).all()
    posterior = mixture.posterior(x)
    assert (np.abs(posterior.mean(axis=0) - 1 / 3) < LIMIT * posterior.std(axis=0) / np.sqrt(n)).all()


def test_the_45_distributions_of_posocco():
    mixtures = posocco_mixtures()
    assert len(set(mixtures)) == 45
    assert {(m.n_classes, m.n_features) for m in mixtures} == {(k, d) for k in (2, 5, 7) for d in (2, 5, 7)}
    assert mixtures[-1].means.shape == (7, 4, 7)
    radii = [(np.abs(m.means).max(), np.abs(m.matrices).max()) for m in mixtures]
    assert 0.99 < max(radius for radius, _ in radii) <= 1
    assert 0.299 < max(radius for _, radius in radii) <= 0.3


@pytest.mark.slow(few_draws=True)
def test_training_twice_gives_the_same():
    for model in MODELS[TrainedClassifier]:
        x = np.random.default_rng(0).normal(size=(30, model.distribution.n_features))
        first = model.predict(x)
        assert trained.trained(model) is trained.trained(pickle.loads(pickle.dumps(model)))  # once in a process
        trained.trained.cache_clear()
        np.testing.assert_array_equal(model.predict(x), first, err_msg=str(model))


def test_the_large_sample_estimate_is_that_of_2000_cells():
    model = MODELS[TrainedClassifier][1]
    report = model.truth(n_samples=5000, rng=0)
    rng = np.random.default_rng(0)
    _, y_prob, class_prob = model.draw_unlabelled(5000, rng)
    y_true = trained.draw_classes(class_prob, rng)
    ece = caltest.ECE(caltest.EqualWidth(2000))
    lenses = [Confidence(), *(ClassWise(k) for k in range(3))]
    expected = [caltest.calibration_error(y_true, y_prob, lens=lens, statistic=ece) for lens in lenses]
    expected.append(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.SCE(2000)))
    np.testing.assert_allclose([found.value for found in report.large_sample], expected, rtol=1e-9)
    assert report.lens_names == ("Confidence()", "ClassWise(0)", "ClassWise(1)", "ClassWise(2)", "mean over classes")


@pytest.mark.slow(few_draws=True)
def test_both_truths_agree_within_their_errors():
    model = MODELS[TrainedClassifier][3]
    report = model.truth(n_samples=40_000, rng=0)
    for large, level in zip(report.large_sample, report.level_set, strict=True):
        error = LIMIT * np.hypot(large.standard_error, level.standard_error)
        assert -error - level.noise_floor < large.value - level.value < error + large.noise_floor
        assert level.noise_floor < large.noise_floor
        assert level.value > 3 * level.noise_floor  # there is something to agree on
    frame = report.to_frame()
    assert list(frame["estimate"][:2]) == ["large sample", "level set"]
    assert len(frame) == 2 * len(report.lens_names)
    assert "mean over classes" in str(report)
    assert "mean over classes" in report._repr_html_()
    gaps = [abs(large.value - level.value) for large, level in zip(report.large_sample, report.level_set, strict=True)]
    assert f"differ most for {report.lens_names[int(np.argmax(gaps))]}" in report.conclusion
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert told["model"] == str(model)
    assert [part["value"] for part in told["level_set"]] == [found.value for found in report.level_set]
    (only,) = model.truth([Confidence()], n_samples=2000, rng=0).lens_names
    assert only == "Confidence()"


@pytest.mark.slow(few_draws=True)
def test_an_estimator_without_a_seed_is_the_same_in_every_process():
    """A process that trains it again must not find another classifier, also not within a pipeline."""
    forest = RandomForestClassifier(5)
    for estimator in (forest, make_pipeline(StandardScaler(), forest)):
        model = TrainedClassifier(MIXTURE, estimator, 100, seed=3)
        found = []
        for _ in range(2):
            trained.trained.cache_clear()
            found.append(model.draw(50, 0).y_prob)
        np.testing.assert_array_equal(*found)
        same = TrainedClassifier(MIXTURE, clone(estimator).set_params(**seeds(estimator, 3)), 100, seed=3)
        np.testing.assert_array_equal(same.draw(50, 0).y_prob, found[0])
        chosen = TrainedClassifier(MIXTURE, clone(estimator).set_params(**seeds(estimator, 4)), 100, seed=3)
        assert (chosen.draw(50, 0).y_prob != found[0]).any(), "a seed that is given is kept"
    assert forest.random_state is None, "the estimator itself is not changed"


def seeds(estimator, seed):
    return {name: seed for name in estimator.get_params() if name.endswith("random_state")}


@pytest.mark.slow(few_draws=True)
def test_a_forest_repeats_its_predictions_and_is_known_through_the_whole():
    model = MODELS[TrainedClassifier][3]
    found = model.estimate_miscalibration(n_samples=20_000, rng=0)
    assert "observations of equal predictions" in found.target
    with pytest.raises(NotImplementedError, match=r"calibration function of this TrainedClassifier is not known"):
        model.calibration_function([[0.5, 0.5]])
    with pytest.raises(NotImplementedError, match="see `estimate_miscalibration`"):
        model.expected_miscalibration()


WRONG_TYPES = [
    (lambda: GaussianMixture1D(0, "1"), "`beta1` must be a finite number, got '1'."),
    (lambda: GaussianMixture1D().expected_miscalibration(distance=3), "`distance` must be a function"),
    (lambda: GaussianMixture1D().expected_miscalibration(lens=3), "`lens` must be a lens"),
    (lambda: DirichletModel(3, truth=Temperature), "`truth` must be a map such as Temperature(1.2)"),
    (lambda: DirichletModel(3, truth=0.5), "`truth` must be a map such as Temperature(1.2)"),
    (lambda: ResampledPredictions([[0.5, 0.5]], truth="sharp"), "`truth` must be a map such as Temperature(1.2)"),
    (
        lambda: TrainedClassifier("digits", "naive Bayes"),
        "`distribution` must be a GaussianMixture or a RandomMixture, got 'digits'.",
    ),
]


WRONG_VALUES = [
    (lambda: GaussianMixture1D(np.nan, 1), "`beta0` must be a finite number, got nan."),
    (lambda: GaussianMixture1D().draw(0), "`n_samples` must be an integer >= 1, got 0."),
    (lambda: GaussianMixture1D().draw(5, rng=-1), "`rng` must be None, an integer >= 0"),
    (lambda: GaussianMixture1D().calibration_function([[0.2, 0.3, 0.5]]), "`y_prob` must have 2 columns"),
    (lambda: GaussianMixture1D().estimate_miscalibration(n_samples=5), "`n_samples` must be an integer >= 20"),
    (lambda: DirichletModel(1), "`n_classes` must be an integer >= 2, got 1."),
    (lambda: DirichletModel(2, 0), "`concentration` must be a positive, finite number, got 0."),
    (lambda: DirichletModel(3, [1, 2]), "`concentration` must be one number or 3, one for each class, got 2."),
    (lambda: DirichletModel(2, truth=np.sqrt).draw(5, rng=0), "`truth` must return probabilities that sum to 1"),
    (lambda: DirichletModel(3, truth=lambda p: p[:, :2]).draw(5), "`truth` must return shape (5, 3), got (5, 2)."),
    (lambda: ResampledPredictions([[0.5, 0.6]]), "rows of `y_prob` must sum to 1"),
    (lambda: RandomMixture(1, 2, 0), "`n_classes` must be an integer >= 2, got 1."),
    (lambda: RandomMixture(2, 2, 0, mean_radius=0), "`mean_radius` must be a positive, finite number, got 0."),
    (lambda: RandomMixture(2, 2, 0).posterior([1.0, 2.0]), "`x` must have shape (n_samples, 2), got (2,)."),
    (lambda: RandomMixture(2, 2, 0).draw_features(0), "`n_samples` must be an integer >= 1, got 0."),
    (lambda: TrainedClassifier(RandomMixture(2, 2, 0), "tree"), "`kind` must be one of 'logistic regression', "),
    (lambda: TrainedClassifier(RandomMixture(2, 2, 0), "tree"), "or an estimator with `fit` and `predict_proba`"),
    (
        lambda: TrainedClassifier(RandomMixture(5, 2, 0), "naive Bayes", n_train=20).draw(5),
        "`n_train` must give every class at least 5 training observations, class",
    ),
    (
        lambda: MODELS[TrainedClassifier][1].truth([Canonical()], n_samples=100, rng=0),
        "`lenses` must have two outcomes each, Canonical() has 3.",
    ),
    (lambda: Temperature(0), "`t` must be a positive, finite number, got 0."),
    (lambda: Temperature((1, 2))(np.ones((1, 3)) / 3), "`t` must hold one temperature or 3, one for each class"),
    (lambda: Shift(-1, 1.0), "`k` must be an integer >= 0, got -1."),
    (lambda: Shift(3, 1.0)(np.ones((1, 3)) / 3), "`k` must be a class index 0 to 2, got 3."),
    (lambda: Move(1, 1, 0.5), "`source` and `target` must be two classes, got 1 twice."),
    (lambda: Move(0, 1, 1.5), "`share` must be a finite number from 0 to 1, got 1.5."),
    (lambda: Move(0, 3, 0.5)(np.ones((1, 3)) / 3), "`target` must be a class index 0 to 2, got 3."),
    (lambda: LabelNoise(-0.1), "`share` must be a finite number from 0 to 1, got -0.1."),
    (lambda: Favour(2, 0.5)(np.ones((1, 2)) / 2), "`k` must be a class index 0 to 1, got 2."),
    (lambda: Permutation()(np.ones((1, 2)) / 2), "Permutation() needs at least three classes, got 2."),
    (lambda: Bumps(40)(np.ones((1, 3)) / 3), "Bumps() needs two classes, got 3."),
    (lambda: Bumps(1), "the bumps must be at most 1/4 high"),
    (lambda: Bumps(40, smoothness=-1), "`smoothness` must be a positive, finite number, got -1."),
]


def test_bad_parameters_are_refused_in_one_sentence():
    for kind, cases in ((TypeError, WRONG_TYPES), (ValueError, WRONG_VALUES)):
        for make, message in cases:
            with pytest.raises(kind) as refused:
                make()
            assert message in str(refused.value)
