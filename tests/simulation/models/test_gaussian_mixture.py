"""Gaussian mixtures: their posteriors are exact, they read back, and what scikit-learn fits becomes one of them."""

import pickle
import re

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import GaussianMixture as FittedMixture
from sklearn.naive_bayes import GaussianNB

import caltest
from caltest.simulation import GaussianMixture, GaussianMixture1D, RandomMixture, TrainedClassifier

PAPER = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
SMALL = GaussianMixture(
    [0.2, 0.3, 0.1, 0.4],
    [[0, 0], [1, 2], [-2, 0.5], [3, 3]],
    [np.eye(2), [[2, 0.5], [0.5, 1]], 0.1 * np.eye(2), [[1, -0.9], [-0.9, 1]]],
    [1, 0, 2, 1],
)


def random_mixture(n_components, n_features, n_classes, seed):
    rng = np.random.default_rng(seed)
    matrices = rng.standard_normal((n_components, n_features, n_features))
    return GaussianMixture(
        rng.dirichlet(np.ones(n_components)),
        3 * rng.standard_normal((n_components, n_features)),
        matrices @ matrices.swapaxes(1, 2) + 0.1 * np.eye(n_features),
        np.arange(n_components) % n_classes,
    )


def naive_joint(mixture, x):
    """Densities times weights, summed in loops on the scale of the densities."""
    joint = np.zeros((len(x), mixture.n_classes))
    shape = len(mixture.weights), mixture.n_features
    for weight, mean, matrix, k in zip(
        mixture.weights, np.reshape(mixture.means, shape), full_covariances(mixture), mixture.classes, strict=True
    ):
        joint[:, k] += weight * multivariate_normal(mean, matrix).pdf(x)
    return joint


def full_covariances(mixture):
    values = np.asarray(mixture.covariances)
    return values[:, None, None] * np.eye(mixture.n_features) if values.ndim == 1 else values


def test_posterior_and_density_are_those_of_a_loop():
    for mixture in (PAPER, SMALL, random_mixture(7, 3, 3, seed=1)):
        x = mixture.draw_features(200, rng=0)
        joint = naive_joint(mixture, x)
        np.testing.assert_allclose(mixture.posterior(x), joint / joint.sum(axis=1, keepdims=True), atol=1e-12)
        np.testing.assert_allclose(mixture.density(x), joint.sum(axis=1), rtol=1e-10)


def test_the_mixture_of_the_paper():
    x = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(PAPER.posterior(x[:, None]), GaussianMixture1D(0, -2).posterior(x), atol=1e-15)


def test_fifty_features_far_from_every_mean_are_stable():
    """Log densities of -1e9: two equal covariances leave a difference that is linear in x, known in closed form."""
    d = 50
    factor = np.random.default_rng(0).standard_normal((d, d)) / 10 + np.eye(d)
    covariance, mean = factor.T @ factor, np.ones(d)
    mixture = GaussianMixture([0.5, 0.5], [-mean, mean], [covariance, covariance], [0, 1])
    direction = np.linalg.solve(covariance, mean)
    across = np.random.default_rng(1).standard_normal((5, d))
    across -= np.outer(across @ direction, direction) / (direction @ direction)
    x = 1e4 * across + np.linspace(-1, 1, 5)[:, None] * direction / (2 * direction @ direction)
    logit = np.log(mixture.posterior(x)[:, 1]) - np.log(mixture.posterior(x)[:, 0])
    np.testing.assert_allclose(logit, np.linspace(-1, 1, 5), atol=1e-5)  # of terms of 1e9
    found = mixture.posterior(mixture.draw_features(100, rng=0))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)


def test_draws_have_the_moments_of_the_mixture():
    n = 100_000
    x, y_true, _ = SMALL.draw(n, rng=0)
    weights, means = np.asarray(SMALL.weights), np.asarray(SMALL.means)
    mean = weights @ means
    covariance = np.tensordot(weights, full_covariances(SMALL), 1) + (means.T * weights) @ means - np.outer(mean, mean)
    assert (np.abs(x.mean(axis=0) - mean) < 4 * np.sqrt(np.diag(covariance) / n)).all()
    products = ((x - mean)[:, :, None] * (x - mean)[:, None, :]).reshape(n, -1)
    assert (np.abs(products.mean(axis=0) - covariance.ravel()) < 4 * products.std(axis=0) / np.sqrt(n)).all()
    share = np.bincount(SMALL.classes, weights=SMALL.weights)
    assert (np.abs(np.bincount(y_true) / n - share) < 4 * np.sqrt(share * (1 - share) / n)).all()


def test_the_exact_posterior_is_calibrated():
    _, y_true, y_prob = SMALL.draw(2000, rng=1)
    assert SMALL.expected_miscalibration(caltest.Confidence()) == 0
    assert caltest.calibration_test(y_true, y_prob, n_resamples=199, rng=0).pvalue > 0.001
    np.testing.assert_array_equal(SMALL.calibration_function(y_prob), y_prob)


def test_components_in_another_order_make_the_same_model_of_the_world():
    order = [2, 0, 3, 1]
    again = GaussianMixture(*(np.asarray(getattr(SMALL, name))[order] for name in ("weights", "means", "covariances")),
                            np.asarray(SMALL.classes)[order])  # fmt: skip
    x = SMALL.draw_features(50, rng=0)
    np.testing.assert_allclose(again.posterior(x), SMALL.posterior(x), atol=1e-14)
    swapped = GaussianMixture(SMALL.weights, SMALL.means, SMALL.covariances, [(k + 1) % 3 for k in SMALL.classes])
    np.testing.assert_allclose(swapped.posterior(x)[:, [1, 2, 0]], SMALL.posterior(x), atol=1e-14)


def test_equality_and_repr_read_back():
    ways = [
        GaussianMixture((0.5, 0.5), [[-1], [1]], [[[1]], [[1]]], np.array([0, 1])),
        GaussianMixture(np.array([0.5, 0.5]), [-1, 1], [1, 1], [0, 1]),
    ]
    assert [way == PAPER and hash(PAPER) == hash(way) for way in ways] == [True, True]
    assert GaussianMixture([0.5, 0.5], [-1, 1], [1, 2], [0, 1]) != PAPER
    fitted = random_mixture(5, 6, 2, seed=3)  # numbers with all their digits
    for mixture in (PAPER, SMALL, fitted, GaussianMixture([1 / 3, 2 / 3], [[0, 1], [0, 0]], [1, 0.3], [0, 1])):
        again = eval(repr(mixture), {"GaussianMixture": GaussianMixture})
        assert again == mixture
        assert pickle.loads(pickle.dumps(mixture)) == mixture
        np.testing.assert_array_equal(again.draw(20, rng=0).y_prob, mixture.draw(20, rng=0).y_prob)


def test_what_scikit_learn_fits_predicts_the_same():
    x, y, _ = SMALL.draw(400, rng=2)
    new = SMALL.draw_features(100, rng=3)
    classifiers = [
        GaussianNB(),
        QuadraticDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(reg_param=0.1, store_covariance=True, priors=[0.5, 0.25, 0.25]),
    ]
    for classifier in classifiers:
        mixture = GaussianMixture.from_sklearn(classifier.fit(x, y))
        np.testing.assert_allclose(mixture.posterior(new), classifier.predict_proba(new), atol=1e-8)
    for kind in ("full", "tied", "diag", "spherical"):
        clusters = FittedMixture(4, covariance_type=kind, random_state=0).fit(x)
        mixture = GaussianMixture.from_sklearn(clusters)
        np.testing.assert_allclose(mixture.posterior(new), clusters.predict_proba(new), atol=1e-10)
        np.testing.assert_allclose(np.log(mixture.density(new)), clusters.score_samples(new), atol=1e-10)
        paired = GaussianMixture.from_sklearn(clusters, classes=[0, 0, 1, 1])
        pairs = clusters.predict_proba(new).reshape(-1, 2, 2).sum(axis=2)
        np.testing.assert_allclose(paired.posterior(new), pairs, atol=1e-10)


def test_mixtures_can_be_learned_from():
    model = TrainedClassifier(SMALL, "naive Bayes", n_train=200)
    assert model.draw(10, rng=0).y_prob.shape == (10, 3)
    mixture = RandomMixture(2, 3, seed=1)  # is a mixture, and a model, too
    assert mixture.expected_miscalibration() == 0
    np.testing.assert_array_equal(mixture.draw(10, rng=0).y_prob, mixture.posterior(mixture.draw(10, rng=0).x))
    with pytest.raises(TypeError, match="`distribution` must be a GaussianMixture or a RandomMixture, got 3"):
        TrainedClassifier(3, "naive Bayes")


def test_bad_mixtures_are_refused_in_one_sentence():
    good = {"weights": [0.5, 0.5], "means": [-1.0, 1.0], "covariances": [1.0, 1.0], "classes": [0, 1]}
    wide = [[0.0, 0.0], [1.0, 1.0]]
    cases = [
        ({"weights": [0.5, 0.4]}, "`weights` must sum to 1, got the sum 0.9; divide them by it."),
        ({"weights": [1.5, -0.5]}, "`weights` must be a sequence of positive numbers"),
        ({"weights": []}, "`weights` must be a sequence of positive numbers"),
        ({"weights": [np.nan, 0.5]}, "`weights` must hold finite numbers, got nan."),
        ({"weights": [0.2, 0.3, 0.5]}, "must have one entry for each component"),
        ({"means": [[-1.0], [1.0, 2.0]]}, "`means` must hold numbers in rows of one length"),
        ({"means": [1.0]}, "must have one entry for each component"),
        ({"covariances": [1.0, -1.0]}, "positive definite, the smallest eigenvalue of component 1 is -1"),
        ({"covariances": [1.0, 0.0]}, "`covariances` must be positive definite"),
        ({"covariances": [1.0]}, "`covariances` must have shape (2, 1, 1), or (2,)"),
        ({"means": wide, "covariances": [np.eye(2), [[1, 2], [2, 1]]]}, "eigenvalue of component 1 is -1"),
        ({"means": wide, "covariances": [[[1, 0.5], [0, 1]], np.eye(2)]}, "symmetric, that of component 0 differs"),
        ({"means": wide, "covariances": np.eye(2)}, "`covariances` must have shape (2, 2, 2), or (2,)"),
        ({"classes": [0, 0]}, "`classes` must name at least two classes, 0, 1 and so on without a gap, got 1 class."),
        ({"classes": [0, 2]}, "got none for class 1."),
        ({"classes": [0, -1]}, "`classes` must be an integer >= 0, got -1."),
        ({"classes": [0, 1, 1]}, "must have one entry for each component"),
    ]
    for change, message in cases:
        with pytest.raises(ValueError, match=re.escape(message)):
            GaussianMixture(**good | change)
    for change in ({"classes": [0, 0.5]}, {"classes": 3}):
        with pytest.raises(TypeError, match="`classes` must be"):
            GaussianMixture(**good | change)
    with pytest.raises(ValueError, match=r"`x` must have shape \(n_samples, 1\), got \(3,\)."):
        PAPER.posterior([0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="`x` must hold finite numbers, got inf"):
        PAPER.posterior([[np.inf]])
    with pytest.raises(TypeError, match="of scikit-learn, got GaussianMixture1D"):
        GaussianMixture.from_sklearn(GaussianMixture1D())
    with pytest.raises(ValueError, match="must be fitted"):
        GaussianMixture.from_sklearn(GaussianNB())
    with pytest.raises(ValueError, match="`classes` must be None for GaussianNB"):
        GaussianMixture.from_sklearn(GaussianNB().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]), classes=[0, 1])
