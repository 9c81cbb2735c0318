"""Temperature curves agree with other functions of the package, closed forms and slow twins."""

import math

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm

import caltest as ct
from tests.reference.examples import draw_labels


def problem(n=400, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y_prob = rng.dirichlet(np.full(n_classes, 0.7), n)
    return draw_labels(y_prob, rng), y_prob


STATISTICS = [
    ct.statistics.ConfidenceECE(5),
    ct.statistics.UCE(5),
    ct.MMCE() if hasattr(ct, "MMCE") else ct.statistics.MMCE(),
]


def test_errors_floors_and_scores_are_those_of_the_package():
    y_true, y_prob = problem()
    options = {"temperatures": [2.0, 0.5, 1.0], "n_resamples": 199, "rng": 0}
    curve = ct.temperature_curve(y_true, {"a": y_prob, "b": y_prob[::-1]}, statistics=STATISTICS, **options)
    assert curve.temperature.tolist() == [0.5, 1.0, 2.0]
    for m, prob in enumerate((y_prob, y_prob[::-1])):
        for t, temperature in enumerate(curve.temperature):
            tempered = softmax(np.log(prob) / temperature, axis=1)
            assert curve.log_score[m, t] == pytest.approx(ct.estimation.log_score(y_true, tempered))
            for s, statistic in enumerate(STATISTICS):
                error = ct.calibration_error(y_true, tempered, statistic=statistic)
                assert curve.value[s, m, t] == pytest.approx(error, rel=1e-9)
                floor = ct.noise_floor(tempered, statistic=statistic, method="monte-carlo", n_resamples=4999, rng=1)
                assert abs(curve.floor[s, m, t] - floor.mean) < 4 * floor.std * np.sqrt(1 / 199 + 1 / 4999)
                share = floor.null.sf(curve.floor_upper[s, m, t])
                assert abs(share - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 199)
    np.testing.assert_array_equal(curve.best, curve.value.argmin(axis=-1))


def at_temperature(prob, temperature):
    """Loops over lists, as in the papers."""
    powers = [[p ** (1 / temperature) for p in row] for row in prob]
    return [[p / sum(row) for p in row] for row in powers]


def mean_scores(labels, prob):
    """The scores by their formulas; two outcomes have half the sum of squares."""
    half = 1 / 2 if len(prob[0]) == 2 else 1
    pairs = list(zip(labels, prob, strict=True))
    brier = [half * sum((p - (k == y)) ** 2 for k, p in enumerate(row)) for y, row in pairs]
    log = [-math.log(row[y]) for y, row in pairs]
    spherical = [1 - row[y] / math.sqrt(sum(p * p for p in row)) for y, row in pairs]
    return [sum(score) / len(pairs) for score in (brier, log, spherical)]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_are_those_of_loops_and_their_floors_what_predictions_expect_of_themselves(n_classes):
    """Under calibration E Brier is 1 minus the sum of squares, E log the entropy, E spherical the length of p."""
    y_true, y_prob = problem(500, n_classes)
    names, temperatures, n = ["brier", "log", "spherical"], [0.5, 1.0, 2.0], 199
    options = {"temperatures": temperatures, "n_resamples": n, "rng": 0}
    curve = ct.temperature_curve(y_true, y_prob, statistics=[*names, STATISTICS[0]], **options)
    assert curve.statistics[:3] == curve.quantities[:3] == ("Brier score", "log score", "1 - spherical score")
    for t, temperature in enumerate(temperatures):
        prob = at_temperature(y_prob, temperature)
        np.testing.assert_allclose(curve.value[:3, 0, t], mean_scores(y_true, prob), rtol=1e-12)
        p = np.array(prob)
        losses = [np.square(1 - p) if n_classes == 2 else 1 - 2 * p + np.square(p).sum(1)[:, None], -np.log(p)]
        losses.append(1 - p / np.linalg.norm(p, axis=1)[:, None])
        for s, loss in enumerate(losses):
            mean = (p * loss).sum(axis=1)
            variance = (p * np.square(loss)).sum(axis=1) - mean**2
            error = np.sqrt(variance.sum()) / 500
            assert abs(curve.floor[s, 0, t] - mean.mean()) < 4 * error / np.sqrt(n)
            high = (curve.floor_upper[s, 0, t] - mean.mean()) / error
            assert abs(norm.sf(high) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / n)
    np.testing.assert_allclose(curve.value[1], curve.log_score, rtol=1e-12)
    alone = ct.temperature_curve(y_true, y_prob, statistics="brier", **options)
    np.testing.assert_array_equal(alone.value[0], curve.value[0])


@pytest.mark.slow(few_draws=True)
def test_even_at_their_best_temperature_scores_rank_models_by_accuracy():
    """Laves et al., figure 5: Brier score and log score are lower for models of better accuracy, calibrated or not."""
    y_true, y_prob = ct.datasets.load_digits_predictions()
    models = {name: y_prob[name] for name in ("logistic_regression", "random_forest", "neural_network")}
    scores = ct.temperature_curve(y_true, models, statistics=["brier", "log"], n_resamples=1, rng=0).value.min(axis=-1)
    accuracy = [ct.estimation.accuracy(y_true, prob) for prob in models.values()]
    for score in scores:
        assert np.argsort(score).tolist() == np.argsort(accuracy)[::-1].tolist()


def test_scores_of_weighted_observations_and_of_impossible_labels():
    y_true, y_prob = problem(200)
    weight = np.random.default_rng(2).integers(0, 4, 200)
    rows = np.repeat(np.arange(200), weight)
    options = {"statistics": ["brier", "log", "spherical"], "temperatures": [0.5], "n_resamples": 9, "rng": 0}
    weighted = ct.temperature_curve(y_true, y_prob, sample_weight=weight, **options)
    repeated = ct.temperature_curve(y_true[rows], y_prob[rows], **options)
    np.testing.assert_allclose(weighted.value, repeated.value, rtol=1e-12)
    curve = ct.temperature_curve([1, 0], [0.0, 0.5], **options)
    assert curve.value[:, 0, 0].tolist() == [0.625, np.inf, pytest.approx(1 - np.sqrt(0.5) / 2)]
    assert np.isfinite(curve.floor).all()
    assert "log score is infinite at every temperature." in curve.conclusion


def test_the_true_temperature_is_found():
    """Labels at temperature 2 of the predictions: the likelihood is largest at the grid point 2."""
    rng = np.random.default_rng(1)
    y_prob = rng.dirichlet(np.full(3, 0.5), 20_000)
    y_true = draw_labels(softmax(np.log(y_prob) / 2, axis=1), rng)
    curve = ct.temperature_curve(y_true, y_prob, temperatures=[1, 1.41, 2, 2.83, 4], n_resamples=99, rng=0)
    assert curve.temperature[curve.best_log_score] == 2
    assert curve.temperature[curve.best[0]] == 2
    assert "is smallest at temperature 2:" in curve.conclusion
    assert "The minimum is not above what 95 % of calibrated models would have there" in curve.conclusion


def test_logits_are_those_of_the_probabilities_and_keep_what_softmax_loses():
    y_true, y_prob = problem()
    options = {"temperatures": [0.5, 3.0], "n_resamples": 19, "rng": 0}
    one = ct.temperature_curve(y_true, y_prob, **options)
    other = ct.temperature_curve(y_true, logits=np.log(y_prob) + 3.0, **options)
    np.testing.assert_allclose(one.value, other.value, atol=1e-12)
    np.testing.assert_allclose(one.log_score, other.log_score)
    event = np.random.default_rng(0).random(50)
    labels = (np.arange(50) % 2).astype(int)
    two = [
        ct.temperature_curve(labels, event, **options),
        ct.temperature_curve(labels, logits=np.log(event / (1 - event)), **options),
    ]
    np.testing.assert_allclose(two[0].value, two[1].value, atol=1e-12)
    far = ct.temperature_curve([0, 1], logits=[[0.0, -2000.0]] * 2, temperatures=[1.0, 1000.0], n_resamples=9, rng=0)
    assert far.log_score[0].tolist() == pytest.approx(
        [1000.0, np.mean([np.log1p(np.exp(-2)), 2 + np.log1p(np.exp(-2))])]
    )


def test_predictions_of_0_and_1_do_not_change():
    curve = ct.temperature_curve([0, 1, 1], np.eye(2)[[0, 1, 0]], n_resamples=9, rng=0)
    assert np.ptp(curve.value, axis=-1).max() == 0
    assert np.isinf(curve.log_score).all()
    assert "is 0.3333 at every temperature." in curve.conclusion
    mixed = ct.temperature_curve([0, 1], [[0.5, 0.5, 0.0]] * 2, n_resamples=9, rng=0)
    assert np.isfinite(mixed.log_score).all()


@pytest.mark.parametrize(
    ("y_true", "y_prob"),
    [([1], [0.3]), ([0, 1], [0.3, 0.3]), ([3] * 4, np.full((4, 1000), 1e-3)), (np.zeros(9, int), [[0.2, 0.8]] * 9)],
)
def test_odd_data(y_true, y_prob):
    curve = ct.temperature_curve(y_true, y_prob, temperatures=[0.01, 1, 100], n_resamples=9, rng=0)
    for values in (curve.value, curve.floor, curve.floor_upper, curve.log_score):
        assert np.isfinite(values).all()
    assert curve.conclusion


def test_logits_are_matched_to_labels_by_name_and_to_observations_by_index():
    import pandas as pd

    rng = np.random.default_rng(0)
    logits = rng.normal(size=(60, 3))
    label = np.array(["a", "b", "c"])[rng.integers(3, size=60)]
    frame = pd.DataFrame(logits, columns=["a", "b", "c"])
    options = {"temperatures": [1.0], "statistics": ct.statistics.ConfidenceECE(), "n_resamples": 9, "rng": 0}
    plain = ct.temperature_curve(label, logits=logits, classes=["a", "b", "c"], **options)
    for given in (frame[["c", "a", "b"]], {"model": frame[["b", "c", "a"]]}):
        found = ct.temperature_curve(label, logits=given, **options)
        np.testing.assert_array_equal(found.value, plain.value)
        np.testing.assert_array_equal(found.log_score, plain.log_score)
    for given in (frame[::-1], {"model": frame[::-1]}):
        with pytest.raises(ValueError, match="must have the same index"):
            ct.temperature_curve(pd.Series(label), logits=given, **options)
    half = np.array([[0.5, 0.501]] * 4, dtype=np.float16)  # whose sums are no rounded 1
    one = ct.temperature_curve([0, 1, 0, 1], logits=half, **options)
    np.testing.assert_array_equal(
        one.log_score, ct.temperature_curve([0, 1, 0, 1], logits=half.astype(float), **options).log_score
    )


def test_rounded_predictions_have_their_own_error_at_temperature_1():
    rng = np.random.default_rng(0)
    event = rng.integers(0, 21, 500) / 20
    label = (rng.random(500) < event).astype(int)
    for statistic in (ct.ECE(ct.EqualWidth(10)), ct.MCE(ct.EqualWidth(20)), ct.KS()):
        found = ct.temperature_curve(label, event, statistics=statistic, temperatures=[0.5, 1.0], n_resamples=1, rng=0)
        assert found.value[0, 0, 1] == ct.calibration_error(label, event, statistic=statistic)


def test_refusals():
    y_true, y_prob = problem(50)
    for arguments, kind, message in (
        ({"y_prob": None}, TypeError, "needs `y_prob` or `logits`, and not both"),
        ({"logits": y_prob}, TypeError, "needs `y_prob` or `logits`, and not both"),
        ({"y_prob": None, "logits": [[np.nan, 0.0]]}, ValueError, "`logits` must be finite, got nan"),
        ({"y_prob": None, "logits": {"a": [["x", "y"]]}}, ValueError, "a: `logits` must hold real numbers"),
        ({"y_prob": None, "logits": np.zeros((3, 1, 1))}, ValueError, "`logits` must have shape"),
        ({"temperatures": [0.0]}, ValueError, "`temperatures` must be a positive, finite number, got 0.0"),
        ({"temperatures": [1, 1.0]}, ValueError, "`temperatures` must be one or more different numbers"),
        ({"temperatures": []}, ValueError, "`temperatures` must be one or more different numbers"),
        ({"temperatures": 2}, TypeError, "`temperatures` must be a sequence of positive numbers, got 2"),
        ({"statistics": []}, ValueError, "`statistics` must be different statistics"),
        ({"statistics": [ct.ECE(), ct.ECE()]}, ValueError, "`statistics` must be different statistics"),
        ({"statistics": ct.Omnibus()}, ValueError, "`Omnibus` combines tests"),
        ({"statistics": [3]}, TypeError, "`statistic` must be a statistic"),
        (
            {"statistics": ["brier", "brier"]},
            ValueError,
            "must be different statistics, got \\[Brier score, Brier score",
        ),
        ({"n_resamples": 0}, ValueError, "`n_resamples` must be an integer >= 1, got 0"),
    ):
        with pytest.raises(kind, match=message):
            ct.temperature_curve(**{"y_true": y_true, "y_prob": y_prob} | arguments)


@pytest.mark.slow(few_draws=True)
def test_weights_are_repetitions_and_have_no_unit():
    """Errors and scores of repeated observations; noise floors of the package with weights."""
    y_true, y_prob = problem(300)
    weight = np.random.default_rng(2).integers(0, 4, 300)
    rows = np.repeat(np.arange(300), weight)
    options = {
        "statistics": [ct.statistics.ConfidenceECE(5), ct.statistics.UCE(5)],
        "temperatures": [0.5, 2.0],
        "rng": 0,
    }
    weighted = ct.temperature_curve(y_true, y_prob, sample_weight=weight, n_resamples=199, **options)
    scaled = ct.temperature_curve(y_true, y_prob, sample_weight=weight / 8, n_resamples=199, **options)
    repeated = ct.temperature_curve(y_true[rows], y_prob[rows], n_resamples=199, **options)
    np.testing.assert_allclose(weighted.value, repeated.value, atol=1e-12)
    np.testing.assert_allclose(weighted.log_score, repeated.log_score)
    for name in ("value", "floor", "floor_upper", "log_score"):
        np.testing.assert_allclose(getattr(scaled, name), getattr(weighted, name), rtol=1e-9, err_msg=name)
    assert np.all(weighted.floor[0] > repeated.floor[0]), "labels are not repeated"
    rng = np.random.default_rng(3)
    tempered = softmax(np.log(y_prob) / 2, axis=1)
    drawn = [
        ct.calibration_error(
            draw_labels(tempered, rng), tempered, statistic=ct.statistics.ConfidenceECE(5), sample_weight=weight
        )
        for _ in range(300)
    ]
    assert abs(np.mean(drawn) - weighted.floor[0, 0, 1]) < 4 * np.std(drawn) * np.sqrt(1 / 199 + 1 / 300)
