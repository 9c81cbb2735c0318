"""Shift curves: closed forms, a slow twin of the AUROC, and simulated batches."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import brentq
from scipy.stats import mannwhitneyu, moment, norm
from sklearn.metrics import roc_auc_score

import caltest as ct


def predictions(n=500, sharpness=0.3, seed=0, n_classes=4):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, sharpness), n)


def entropy(prob):
    return -np.where(prob > 0, prob * np.log(np.where(prob > 0, prob, 1)), 0).sum(axis=1) / np.log(prob.shape[1])


def test_means_are_straight_lines_and_auroc_is_that_of_others():
    home, foreign = predictions(), predictions(300, 2.0, 1)
    curve = ct.shift_curve(home, foreign, rng=0)
    for measure, of in (("entropy", entropy), ("confidence", lambda prob: 1 - prob.max(axis=1))):
        near, far = of(home), of(foreign)
        rows = curve.entries("", measure)
        share = curve.share[rows]
        np.testing.assert_allclose(share, np.arange(11) / 10)
        np.testing.assert_allclose(curve.mean[rows], (1 - share) * near.mean() + share * far.mean(), atol=1e-9)
        labels = np.repeat([0, 1], [500, 300])
        assert curve.auroc["", measure] == pytest.approx(roc_auc_score(labels, np.append(near, far)))
        assert curve.auroc["", measure] == pytest.approx(mannwhitneyu(far, near).statistic / (500 * 300))


def test_ranges_and_detection_are_those_of_normal_batches():
    """Means of 200 predictions, normal but for their skewness, whose term is Edgeworth's: 4 errors of 4,000 batches."""
    home, foreign = predictions(5000), predictions(5000, 0.5, 1)
    curve = ct.shift_curve(home, foreign, uncertainty="entropy", batch_size=200, n_resamples=4000, rng=0)
    near, far = entropy(home), entropy(foreign)
    scale = np.sqrt(((1 - curve.share) * near.var() + curve.share * far.var()) / 200)
    third = (1 - curve.share) * moment(near, 3) + curve.share * moment(far, 3)
    skewness = third / 200**2 / scale**3

    def below(z):
        return norm.cdf(z) - skewness / 6 * (z**2 - 1) * norm.pdf(z)

    for end, q in ((curve.lower, 0.05), (curve.upper, 0.95)):
        assert np.all(np.abs(below((end - curve.mean) / scale) - q) < 4 * np.sqrt(0.05 * 0.95 / 4000))
    limit = curve.mean[0] + brentq(lambda z: below(z)[0] - 0.95, 0, 3) * scale[0]
    power = 1 - below((limit - curve.mean) / scale)
    slope = norm.pdf((limit - curve.mean) / scale) * scale[0] / scale * (np.sqrt(0.0475 / 4000) / norm.pdf(1.645))
    assert np.all(np.abs(curve.detection - power) < 4 * np.sqrt(power * (1 - power) / 4000 + slope**2))


def test_the_same_data_are_not_detected():
    home = predictions()
    curve = ct.shift_curve(home, home, n_resamples=4000, rng=0)
    assert np.all(np.abs(curve.detection - 0.05) < 4 * np.sqrt(2 * 0.05 * 0.95 / 4000))
    assert set(curve.auroc.values()) == {0.5}
    assert "no share of foreign data raises the mean normalised entropy detectably" in curve.conclusion


def test_models_share_batches():
    home, foreign = predictions(), predictions(300, 2.0, 1)
    one = ct.shift_curve(home, foreign, uncertainty="entropy", rng=0)
    both = ct.shift_curve({"a": home, "b": home}, {"a": foreign, "b": foreign}, uncertainty="entropy", rng=0)
    for name in ("a", "b"):
        np.testing.assert_array_equal(both.lower[both.entries(name, "entropy")], one.lower)
    assert both.curves == (("a", "entropy"), ("b", "entropy"))


@pytest.mark.parametrize(
    ("home", "foreign"),
    [([0.3], [0.5]), (np.eye(5), np.eye(5)), (np.full((4, 1000), 1e-3), np.eye(1000)[:3]), ([0.2] * 9, [0.2] * 9)],
)
def test_odd_data(home, foreign):
    curve = ct.shift_curve(home, foreign, shares=[0, 1], batch_size=1, n_resamples=19, rng=0)
    assert np.isfinite(curve.to_frame().select_dtypes("number").to_numpy()).all()
    assert curve.share.tolist() == [0, 1, 0, 1]
    assert curve.conclusion


def test_refusals():
    home, foreign = predictions(20), predictions(10)
    for arguments, kind, message in (
        ({"y_prob": {"a": home}}, ValueError, "must be of the same models, got"),
        (
            {"y_prob_foreign": foreign[:, :2] / foreign[:, :2].sum(1)[:, None]},
            ValueError,
            "must predict the same classes",
        ),
        ({"y_prob": home * 2}, ValueError, "`y_prob` must lie in"),
        ({"shares": [2]}, ValueError, "`shares` must be a finite number from 0 to 1, got 2"),
        ({"shares": [0.1, 0.1001]}, ValueError, "`shares` must be one or more different numbers of 100 predictions"),
        ({"shares": 0.5}, TypeError, "`shares` must be a sequence of numbers from 0 to 1"),
        ({"batch_size": 0}, ValueError, "`batch_size` must be an integer >= 1"),
    ):
        with pytest.raises(kind, match=message):
            ct.shift_curve(**{"y_prob": home, "y_prob_foreign": foreign} | arguments)
    two = {"a": home, "b": home[:5]}
    with pytest.raises(ValueError, match="all models must predict the same observations"):
        ct.shift_curve(two, {"a": foreign, "b": foreign})


def test_what_may_be_passed_elsewhere_may_be_passed_for_both():
    """Foreign predictions, and those of several models, were not read as all others are."""
    near, far = predictions(60, n_classes=3), predictions(60, 2.0, 1, n_classes=3)
    options = {"batch_size": 10, "n_resamples": 20, "rng": 0}
    expected = ct.shift_curve(near, far, **options).mean
    lazy = [pl.DataFrame(prob).lazy() for prob in (near, far)]
    np.testing.assert_array_equal(ct.shift_curve(*lazy, **options).mean, expected)
    np.testing.assert_array_equal(ct.shift_curve(*({"one": prob} for prob in lazy), **options).mean, expected)
    named = [pd.DataFrame(prob, columns=list("abc")).iloc[:, ::-1] for prob in (near, far)]
    np.testing.assert_array_equal(ct.shift_curve(*named, **options).mean, expected)
    np.testing.assert_array_equal(ct.shift_curve(named[0], far, **options).mean, expected)
    single = [prob[:, [0]] for prob in (near, far)]
    np.testing.assert_array_equal(
        ct.shift_curve(*single, **options).mean,
        ct.shift_curve(*(prob[:, 0] for prob in single), **options).mean,
    )
    half = ct.shift_curve({"one": near.astype(np.float16)}, {"one": far.astype(np.float16)}, **options)
    np.testing.assert_allclose(half.mean, expected, atol=0.002)
    assert "y_prob_foreign['one']`: rows do not sum to 1" in str(half).replace("\n    ", " ")
