"""Internal validation: the numbers of R with R's resamples, cross-validation by loops, and models of known truth."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, multinomial
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from caltest.clinical import _optimism, optimism_corrected
from caltest.predictions._sample import induce
from tests.clinical.test_clinical_calibration_programs import printed, rows
from tests.reference.cases import mostly_slow
from tests.reference.r_random import RRandom

MODEL = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=500)

R_VALIDATE = {  # training, test, index.corrected; C = (1 + Dxy) / 2
    "c_statistic": (0.8823001369, 0.87791764063, 0.877293461376),
    "r2": (0.56450072516, 0.543268153325, 0.535106234460),
    "intercept_of_slope": (0.0, -0.017320640324, -0.017320640324),
    "calibration_slope": (1.0, 0.952148079503, 0.952148079503),
    "discrimination_index": (0.54374231729, 0.514086348242, 0.500948857738),
    "unreliability_index": (-0.01333333333, 0.005076892472, 0.005076892472),
    "quality_index": (0.55707565062, 0.509009455770, 0.495871965266),
    "brier": (0.13186362481, 0.142608610702, 0.148210158679),
}
R_CALIBRATE = [0.20003842763, 0.42769779902, 0.64712504424, 0.80096255777]  # at risks of 0.2, 0.4, 0.6 and 0.8


def patients():
    """The first 150 tumours of scikit-learn's breast cancer data with three features."""
    data = load_breast_cancer()
    return data.data[:150, [1, 4, 8]], (data.target[:150] == 0).astype(int)


def features(name):
    """Three features of 150 patients with diabetes, or of 178 wines, and whether the event happened."""
    found = [[float(row[column]) for column in "yabc"] for row in rows(name, "validation_features.csv")]
    y, *x = np.array(found).T
    return np.column_stack(x), y.astype(int)


def curve_of(name):
    return list(printed(name, "calibrate").values())


class Resamples:
    """Draws resamples as R does."""

    def __init__(self, seed):
        self._random = RRandom(seed)

    def integers(self, n, size):
        assert size == n
        return self._random.indices(n)


@pytest.mark.slow(few_draws=True)
def test_bootstrap_as_in_r(monkeypatch):
    """``set.seed(20); validate(lrm(y ~ a + b + c), B=20)``: rms 6.5.0, R 4.2.2; lrm stops at a tolerance of 1e-7."""
    monkeypatch.setattr(_optimism, "validate_rng", Resamples)
    found = optimism_corrected(MODEL, *patients(), n_resamples=20, rng=20)
    for name, wanted in R_VALIDATE.items():
        one = found[name]
        np.testing.assert_allclose((one.training, one.test, one.corrected), wanted, atol=2e-7)
        assert one.optimism == pytest.approx(one.training - one.test)
        assert one.n_used == 20
    assert found["brier"].apparent == pytest.approx(0.13746517279, abs=1e-9)
    assert found["c_statistic"].apparent == pytest.approx((1 + 0.76335191512) / 2, abs=1e-9)
    assert (found.n_samples, found.n_events, found.n_redrawn) == (150, 83, 0)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("name", mostly_slow(["diabetes", "wine"]))
def test_more_data_as_in_r(name, monkeypatch):
    """``validate`` of rms on patients and wines of scikit-learn, by ``tests/reference/validation.R``."""
    monkeypatch.setattr(_optimism, "validate_rng", Resamples)
    found = optimism_corrected(MODEL, *features(name), n_resamples=20, rng=20)
    names = {"Intercept": "intercept_of_slope", "Slope": "calibration_slope", "R2": "r2", "B": "brier"}
    names |= {"D": "discrimination_index", "U": "unreliability_index", "Q": "quality_index", "Dxy": "c_statistic"}
    columns = [printed(name, f"validate {column}") for column in ("training", "test", "index.corrected")]
    for theirs, ours in names.items():
        one = found[ours]
        values = np.array([one.training, one.test, one.corrected])
        wanted = [column[theirs] for column in columns]
        np.testing.assert_allclose(2 * values - 1 if theirs == "Dxy" else values, wanted, atol=1e-6)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("name", ["breast cancer", "diabetes", "wine"])
def test_the_curve_as_in_r(name):
    """``set.seed(20); calibrate(lrm(...), B=20, predy=c(.2, .4, .6, .8))`` of rms 6.5.0, by its lowess."""
    (x, y), wanted = (patients(), R_CALIBRATE) if name == "breast cancer" else (features(name), curve_of(name))
    (n, _), grid, resamples = x.shape, np.array([0.2, 0.4, 0.6, 0.8]), Resamples(20)

    def deviations(train, test):
        prob = LogisticRegression(**MODEL.get_params()).fit(x[train], y[train]).predict_proba(x[test])
        return _optimism._deviations(induce(prob, y[test]), "lowess", grid)

    everyone, optimism = np.arange(n), []
    for _ in range(20):
        rows = resamples.integers(n, n)
        optimism.append(deviations(rows, rows) - deviations(rows, everyone))
    found = grid + deviations(everyone, everyone) - np.mean(optimism, axis=0)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_distances_are_those_of_the_corrected_curve():
    x, y = patients()
    found = optimism_corrected(MODEL, x, y, n_resamples=3, smoother="lowess", rng=0)
    rng, prob = np.random.default_rng(0), MODEL.fit(x, y).predict_proba(x)
    apparent, optimism = _optimism._deviations(induce(prob, y), "lowess", prob[:, 1]), 0
    for _ in range(3):
        rows = rng.integers(150, size=150)
        new = LogisticRegression(**MODEL.get_params()).fit(x[rows], y[rows]).predict_proba(x)
        for part, sign in ((rows, 1), (np.arange(150), -1)):
            optimism += sign * _optimism._deviations(induce(new[part], y[part]), "lowess", prob[:, 1]) / 3
    distance = np.abs(apparent - optimism)
    assert found["ICI"].corrected == pytest.approx(distance.mean())
    assert found["Emax"].corrected == pytest.approx(distance.max())
    assert found["E90"].corrected == pytest.approx(np.quantile(distance, 0.9), rel=0.05)
    assert found["ICI"].apparent == pytest.approx(np.abs(apparent).mean())


@pytest.mark.slow(few_draws=True)
def test_cross_validation_by_loops():
    x, y = patients()
    label = np.where(y == 1, "yes", "no")
    found = optimism_corrected(MODEL, x, label, validation="cross-validation", n_resamples=2, rng=3)
    rng, values = np.random.default_rng(3), []
    for _ in range(2):
        prob = np.empty(150)
        folds = StratifiedKFold(10, shuffle=True, random_state=int(rng.integers(2**31)))
        for train, held in folds.split(x, y):
            prob[held] = LogisticRegression(**MODEL.get_params()).fit(x[train], y[train]).predict_proba(x[held])[:, 1]
        values.append((roc_auc_score(y, prob), brier_score_loss(y, prob)))
    corrected = [found[name].corrected for name in ("c_statistic", "brier")]
    np.testing.assert_allclose(corrected, np.mean(values, axis=0))
    assert found["c_statistic"].monte_carlo_error == pytest.approx(np.std(values, axis=0, ddof=1)[0] / 2**0.5)
    assert found.validation == "cross-validation"


def test_a_frequency_keeps_one_nth_of_its_optimism():
    """A model that predicts the frequency f of n labels has a Brier score whose optimism is known.

    The mean over all resamples corrects f (1 - f) to f (1 - f) (1 + 2 / n). Among new patients with the risk q, the
    model has q (1 - q) (1 + 1 / n) on average. The mean of corrected values misses that by an nth of the mean optimism.
    """
    n, n_resamples, q = 60, 400, 0.4
    for events in (12, 24):
        y, f = (np.arange(n) < events).astype(int), events / n
        found = optimism_corrected(
            DummyClassifier(strategy="prior"), np.zeros((n, 1)), y, n_resamples=n_resamples, smoother="lowess", rng=1
        )
        possible = np.arange(1, n) / n
        chance = binom.pmf(np.arange(1, n), n, f)
        optimism = possible * (1 - possible) - f * (1 - f) - (possible - f) ** 2
        error = np.sqrt(chance @ (optimism - chance @ optimism) ** 2 / n_resamples)
        brier = found["brier"]
        assert brier.apparent == pytest.approx(f * (1 - f))
        assert abs(brier.corrected - f * (1 - f) * (1 + 2 / n)) < 4 * error
    every, weight = np.arange(n + 1) / n, binom.pmf(np.arange(n + 1), n, q)
    apparent, truth = weight @ (every * (1 - every)), q * (1 - q) * (1 + 1 / n)
    assert weight @ (every * (1 - every)) * (1 + 2 / n) - truth == pytest.approx((apparent - truth) / n)


def test_optimism_is_that_of_all_resamples():
    """A tree with one feature of two values predicts frequencies; every resample of 40 patients has its chance.

    The optimism of c and of the Brier score is within 4 standard errors of the mean over all resamples.
    """
    counts = np.array([8, 12, 13, 7])  # patients by feature 0 and 1, label 0 and 1
    x, y, n, n_resamples = np.repeat([0, 0, 1, 1], counts), np.repeat([0, 1, 0, 1], counts), 40, 400
    model = DecisionTreeClassifier(max_depth=1, random_state=0)
    found = optimism_corrected(model, x[:, None], y, n_resamples=n_resamples, smoother="lowess", rng=2)
    first = np.array(list(combinations(range(n + 3), 3)))  # where four numbers with the sum n end
    drawn = np.diff(first, axis=1, prepend=-1, append=n + 3) - 1
    chance = multinomial.pmf(drawn, n, counts / n)
    low = drawn[:, 1] / np.maximum(drawn[:, 0] + drawn[:, 1], 1)
    high = drawn[:, 3] / np.maximum(drawn[:, 2] + drawn[:, 3], 1)

    def brier(cells):
        of_low = cells[..., 0] * low**2 + cells[..., 1] * (1 - low) ** 2
        return (of_low + cells[..., 2] * high**2 + cells[..., 3] * (1 - high) ** 2) / n

    def c(cells):
        without, events = cells[..., 0] + cells[..., 2], cells[..., 1] + cells[..., 3]
        gap = cells[..., 3] / np.maximum(events, 1) - cells[..., 2] / np.maximum(without, 1)
        return (1 + np.sign(high - low) * gap) / 2

    for name, measured in (("brier", brier), ("c_statistic", c)):
        optimism = measured(drawn) - measured(counts)
        mean = chance @ optimism
        error = np.sqrt(chance @ (optimism - mean) ** 2 / n_resamples)
        assert abs(found[name].optimism - mean) < 4 * error, name
        assert abs(mean) > 4 * error, name


def test_predictions_of_0_and_1_are_counted():
    x, y = patients()
    forest = RandomForestClassifier(10, random_state=0)
    found = optimism_corrected(forest, x, y, n_resamples=3, smoother="lowess", rng=0)
    slope = found["calibration_slope"]
    assert slope.n_used < 3 or np.isfinite(slope.corrected)
    assert found["unreliability_index"].n_used < 3
    assert "Not finite in all resamples" in str(found)
    assert found["c_statistic"].apparent > found["c_statistic"].corrected
    assert "nan" not in str(found)


def test_separated_labels_are_counted_without_warnings():
    x = np.random.default_rng(3).normal(size=(60, 2))
    result = optimism_corrected(LogisticRegression(C=1e6), x, x[:, 0] > 0, n_resamples=3, rng=0)
    assert [result[name].n_used for name in ("calibration_slope", "c_statistic")] == [0, 3]


def test_the_label_of_the_event_is_printed():
    """Of "case" and "control" the event is "control", which a reader may not expect."""
    x, y = patients()
    result = optimism_corrected(LogisticRegression(), x, np.where(y, "case", "control"), n_resamples=2, rng=0)
    assert (result.event, result.n_events) == ("control", int((y == 0).sum()))
    assert "Events are the labels 'control', the larger one of two." in str(result)
    assert "Events are" not in str(optimism_corrected(LogisticRegression(), x, y == 1, n_resamples=2, rng=0))


def test_resamples_of_one_label_are_drawn_again(monkeypatch):
    x, y = patients()

    class Unlucky:
        def __init__(self, _):
            self._rng, self._first = np.random.default_rng(0), True

        def integers(self, n, size):
            if self._first:
                self._first = False
                return np.full(size, int(np.flatnonzero(y == 0)[0]))
            return self._rng.integers(n, size=size)

    wanted = optimism_corrected(MODEL, x, y, n_resamples=2, smoother="lowess", rng=0)
    monkeypatch.setattr(_optimism, "validate_rng", Unlucky)
    found = optimism_corrected(MODEL, x, y, n_resamples=2, smoother="lowess", rng=0)
    assert found.n_redrawn == 1
    assert "1 resample without events, or with events only: drawn again." in " ".join(str(found).split())
    assert found["brier"].corrected == wanted["brier"].corrected


def test_frames_names_and_iteration():
    import pandas as pd

    x, y = patients()
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    found = optimism_corrected(MODEL, frame, pd.Series(y), n_resamples=2, smoother="lowess", rng=0)
    plain = optimism_corrected(MODEL, x, y, n_resamples=2, smoother="lowess", rng=0)
    np.testing.assert_allclose(found.to_frame()["corrected"], plain.to_frame()["corrected"], atol=1e-9)
    assert [one.name for one in found] == found.to_frame()["name"].tolist()
    assert found.conclusion.startswith(
        "On new patients like these, a model that is made in the same way is expected to have a c"
    )


@pytest.mark.parametrize(
    ("y", "more", "words"),
    [
        (np.arange(150) % 3, {}, "`y` must hold two labels, with an event and without, got 3"),
        (np.where(np.arange(150) == 3, np.nan, np.arange(150) % 2), {}, "`y`: 1 label is missing, of 150"),
        (np.arange(150) < 9, {}, "`y` must have 10 events and 10 observations without at least, got 9 and 141"),
        (np.arange(150) % 2, {"validation": "jackknife"}, "`validation`"),
        (np.arange(150) % 2, {"n_resamples": 0}, "`n_resamples`"),
        (np.arange(150) % 2, {"smoother": "kernel"}, "`smoother`"),
        (np.arange(149) % 2, {}, "inconsistent numbers of samples"),
    ],
)
def test_bad_values(y, more, words):
    with pytest.raises(ValueError, match=words):
        optimism_corrected(MODEL, patients()[0], y, **more)


def test_an_estimator_without_probabilities():
    with pytest.raises(TypeError, match="`estimator` must have `predict_proba`"):
        optimism_corrected(LinearSVC(), *patients())


def test_frames_whose_rows_are_in_another_order_are_refused():
    x, y = pd.DataFrame({"age": np.arange(40.0)}), pd.Series(np.arange(40) % 2, index=np.arange(40)[::-1])
    with pytest.raises(ValueError, match="`X` and `y` must have the same index"):
        optimism_corrected(LogisticRegression(), x, y, n_resamples=1)
