"""Models of the features of a mixture: their truth by quadrature, against closed forms, each other and a fine grid."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import caltest
from caltest import ClassWise, Confidence, TopRank
from caltest.predictions import squared_euclidean, total_variation
from caltest.simulation import (
    BentPosterior,
    Bumps,
    Favour,
    GaussianMixture,
    GaussianMixture1D,
    Identity,
    LabelNoise,
    LogisticModel,
    Move,
    RecalibratedModel,
    Shift,
    Temperature,
    TrainedClassifier,
)
from caltest.simulation.models._exact import look
from caltest.simulation.models._maps import inverse

PAPER = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
TWO = GaussianMixture([0.3, 0.3, 0.4], [-2.0, 2.0, 0.5], [0.5, 1.0, 2.0], [0, 0, 1])
THREE = GaussianMixture([0.3, 0.3, 0.2, 0.2], [-2.0, 0.0, 2.0, 1.0], [0.5, 1.0, 0.8, 3.0], [0, 1, 2, 0])
TURN = np.array([[np.cos(0.7), np.sin(0.7)], [-np.sin(0.7), np.cos(0.7)]])
TURNED = GaussianMixture([0.5, 0.5], [-TURN[0], TURN[0]], [TURN.T @ np.diag([1.0, 9.0]) @ TURN] * 2, [0, 1])
"""The mixture of the paper, turned in a plane; the second feature tells nothing."""

UNEVEN = Temperature((1.0, 0.5, 2.0))


def wobble(prob):
    """A user's map that is not one to one."""
    event = prob[:, 1] + 0.9 * np.sin(9 * prob[:, 1]) * prob[:, 1] * prob[:, 0]
    return np.stack([1 - event, event], axis=1)


def on_a_grid(model, lens, n_points=400_000, n_cells=1000, distance=total_variation):
    """Midpoints of the feature, sorted by what the lens shows, averaged in cells of equal mass."""
    _, means, factors, _ = model.distribution.components
    low, high = ((means + sign * 8 * np.abs(factors[:, 0])) for sign in (-1, 1))
    edges = np.linspace(low.min(), high.max(), n_points + 1)
    x = ((edges[1:] + edges[:-1]) / 2)[:, None]
    mass = model.distribution.density(x) * np.diff(edges)
    predicted, true = look(lens, model.predict(x), model.distribution.posterior(x))
    order = np.argsort(predicted[:, 1], kind="stable")
    predicted, true, mass = predicted[order], true[order], mass[order]
    cell = np.minimum((np.cumsum(mass) * n_cells).astype(int), n_cells - 1)
    size = np.bincount(cell, mass)
    means = [
        np.stack([np.bincount(cell, mass * column) / size for column in part.T], axis=1) for part in (predicted, true)
    ]
    return float(size @ distance(*means))


@pytest.mark.slow(few_draws=True)
def test_logistic_models_of_the_paper():
    assert LogisticModel(PAPER, -1, -1).expected_miscalibration() == pytest.approx(0.5637511406, abs=1e-9)
    for beta0, beta1 in ((1, 1), (0.3, -1), (0.3, -8), (0, 0)):
        known, model = GaussianMixture1D(beta0, beta1), LogisticModel(PAPER, -beta0, -beta1)
        softmax = LogisticModel(PAPER, [beta0, 0.0], [beta1, 0.0])
        turned = LogisticModel(TURNED, -beta0, -beta1 * TURN[0])
        x = np.linspace(-3, 3, 7)
        np.testing.assert_allclose(model.predict(x[:, None]), known.predict(x), atol=1e-15)
        np.testing.assert_allclose(softmax.predict(x[:, None]), known.predict(x), atol=1e-15)
        prob = known.predict(x)
        for one in (model, softmax, turned):
            np.testing.assert_allclose(one.calibration_function(prob), known.calibration_function(prob), atol=1e-12)
        for lens in (None, Confidence(), TopRank(2)):
            truth = known.expected_miscalibration(lens, squared_euclidean)
            assert model.expected_miscalibration(lens, squared_euclidean) == pytest.approx(truth, abs=1e-8)
        for one in (softmax, turned):
            assert one.expected_miscalibration() == pytest.approx(known.expected_miscalibration(), abs=1e-8)


def test_a_smooth_distance_in_two_dimensions_is_that_in_one():
    truth = GaussianMixture1D(0, -1).expected_miscalibration(None, squared_euclidean)
    found = BentPosterior(TURNED, Temperature(2.0)).expected_miscalibration(None, squared_euclidean)
    assert found == pytest.approx(truth, abs=1e-8)


@pytest.mark.slow
def test_truth_in_two_dimensions_is_that_in_one():
    for t in (0.5, 2.0):
        truth = GaussianMixture1D(0, -2 / t).expected_miscalibration()
        for lens in (None, ClassWise(0)):
            found = BentPosterior(TURNED, Temperature(t)).expected_miscalibration(lens)
            assert found == pytest.approx(truth, abs=1e-8)
        assert BentPosterior(PAPER, Temperature(t)).expected_miscalibration() == pytest.approx(truth, abs=1e-8)


@pytest.mark.slow
def test_a_narrow_component_in_a_plane_is_not_missed():
    mixture = GaussianMixture([0.49, 0.49, 0.02], [[-1, 0], [1, 0], [0.3, 0.4]], [1.0, 1.0, 1e-4], [0, 1, 0])
    model = BentPosterior(mixture, Temperature(0.5))
    value, error = model.estimate_miscalibration(n_samples=200_000, rng=0)
    assert abs(value - model.expected_miscalibration()) < 4 * error


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    ("model", "lens"),
    [
        pytest.param(*(BentPosterior(TWO, wobble), ClassWise(1)), marks=pytest.mark.slow),
        pytest.param(*(BentPosterior(TWO, Temperature(0.6)), Confidence()), marks=pytest.mark.slow),
        pytest.param(*(BentPosterior(THREE, UNEVEN), ClassWise(2)), marks=pytest.mark.slow),
        (LogisticModel(THREE, [0.0, 0.5, 0.0], [-1.0, 0.0, 1.5]), ClassWise(1)),
    ],
)
def test_level_sets_agree_with_a_fine_grid(model, lens):
    """Cells of a thousandth of the mass lose at most their variation of truth; for a smooth truth its square."""
    exact = model.expected_miscalibration(lens)
    assert on_a_grid(model, lens, n_points=100_000) == pytest.approx(exact, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "lens"),
    [
        (BentPosterior(THREE, Temperature(0.5)), Confidence()),
        (BentPosterior(TWO, LabelNoise(0.2)), Confidence()),
        (LogisticModel(THREE, [0.0, 0.5, 0.0], [-1.0, 0.0, 1.5]), ClassWise(1)),
        (BentPosterior(TWO, Shift(0, 0.5)), ClassWise(1)),
    ],
)
def test_level_sets_agree_with_simulation(model, lens):
    exact = model.expected_miscalibration(lens)
    found = model.estimate_miscalibration(lens, n_samples=400_000, rng=1)
    more_cells = on_a_grid(model, lens, n_cells=74)  # the cells of the simulation, without its noise
    assert abs(found.value - more_cells) < 4 * found.standard_error + found.noise_floor
    assert on_a_grid(model, lens, 2_000_000, 4000) == pytest.approx(exact, abs=1e-3)


def test_maps_of_the_package_have_inverses():
    prob = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    for bend in (Identity(), Temperature(1.7), Shift(1, -0.6), Move(0, 2, 0.3), LabelNoise(0.2), Favour(2, 0.4)):
        np.testing.assert_allclose(inverse(bend)(bend(prob)), prob, atol=1e-12, err_msg=str(bend))
    for bend in (UNEVEN, Move(0, 1, 1), LabelNoise(1), Favour(0, 1), Bumps(40), wobble):
        assert inverse(bend) is None
    model = BentPosterior(THREE, LabelNoise(0.2))
    rows = model.draw_unlabelled(100, np.random.default_rng(1))
    np.testing.assert_allclose(model.calibration_function(rows.y_prob), rows.class_prob, atol=1e-12)
    with pytest.raises(NotImplementedError, match="is not known"):
        BentPosterior(TWO, wobble).calibration_function([[0.5, 0.5]])


def test_an_exact_posterior_is_calibrated_however_it_is_written():
    assert BentPosterior(THREE, Identity()).expected_miscalibration(Confidence()) == 0
    assert LogisticModel(PAPER, 0, 2).expected_miscalibration(Confidence()) == pytest.approx(0, abs=1e-9)


def test_what_quadrature_does_not_reach_is_simulated():
    wide = GaussianMixture([0.5, 0.5], -np.ones((2, 3)) * [[1], [-1]], [1.0, 1.0], [0, 1])
    model = BentPosterior(wide, Temperature(0.5))
    with pytest.raises(NotImplementedError, match="is not known exactly"):
        model.expected_miscalibration()
    value, error = model.estimate_miscalibration(n_samples=20_000, rng=0)
    # Three features with equal means: one feature with means of the root of three.
    line = GaussianMixture([0.5, 0.5], [-np.sqrt(3), np.sqrt(3)], [1.0, 1.0], [0, 1])
    assert abs(value - BentPosterior(line, Temperature(0.5)).expected_miscalibration()) < 4 * error


def test_classifiers_and_recalibration():
    base = TrainedClassifier(THREE, LogisticRegression(C=0.5), n_train=300)
    assert base == TrainedClassifier(THREE, LogisticRegression(C=0.5), n_train=300)
    assert base != TrainedClassifier(THREE, LogisticRegression(C=0.4), n_train=300)
    assert "LogisticRegression(C=0.5)" in repr(base)
    assert pickle.loads(pickle.dumps(base)) == base
    sharp = BentPosterior(PAPER, Temperature(0.3))
    mended = RecalibratedModel(sharp, Temperature(1 / 0.3))
    x = sharp.draw(50, rng=0).x
    np.testing.assert_allclose(mended.predict(x), PAPER.posterior(x), atol=1e-12)
    learned = RecalibratedModel(base, LogisticRegression(), n_train=500)
    assert learned.draw(30, rng=0).y_prob.shape == (30, 3)
    np.testing.assert_array_equal(
        learned.draw(30, rng=0).y_prob, pickle.loads(pickle.dumps(learned)).draw(30, 0).y_prob
    )


def test_odd_parameters_are_refused_in_one_sentence():
    cases = [
        (TypeError, lambda: BentPosterior(3, Identity()), "`distribution` must be a GaussianMixture"),
        (TypeError, lambda: BentPosterior(PAPER, Identity), "`bend` must be a map such as Temperature(1.2)"),
        (ValueError, lambda: BentPosterior(PAPER, lambda p: 2 * p).draw(3, rng=0), "`bend` must return prob"),
        (TypeError, lambda: LogisticModel("x", 0, 1), "`distribution` must be a GaussianMixture"),
        (ValueError, lambda: LogisticModel(PAPER, 0, [1, 2]), "`intercept` must be a number and `slope` shape (1,),"),
        (ValueError, lambda: LogisticModel(THREE, 0, 1), "`intercept` must be 3 numbers and `slope` shape (3, 1), got"),
        (ValueError, lambda: LogisticModel(PAPER, np.inf, 1), "`intercept` must hold finite numbers, got inf."),
        (
            ValueError,
            lambda: LogisticModel(PAPER, "a", 1),
            "`intercept` must hold numbers in rows of one length, got",
        ),
        (TypeError, lambda: RecalibratedModel(GaussianMixture1D(), Identity()), "`base` must be"),
        (TypeError, lambda: RecalibratedModel(PAPER, Identity()), "the exact posterior is BentPosterior"),
        (TypeError, lambda: RecalibratedModel(BentPosterior(PAPER, Identity()), 3), "`recalibrator` must be"),
        (TypeError, lambda: TrainedClassifier(PAPER, LogisticRegression), "`kind` must be"),
    ]
    for kind, make, message in cases:
        with pytest.raises((kind,)) as refused:
            make()
        assert message in str(refused.value)


def test_models_read_back():
    known = {name: getattr(caltest.simulation, name) for name in dir(caltest.simulation)}
    for model in (
        BentPosterior(THREE, UNEVEN),
        LogisticModel(TURNED, 0.5, [1, 2]),
        LogisticModel(THREE, [0, 1, 2], [1, 2, 3]),
        RecalibratedModel(BentPosterior(PAPER, Temperature(2)), Temperature(0.5)),
    ):
        assert eval(repr(model), known) == model
        assert hash(pickle.loads(pickle.dumps(model))) == hash(model)
