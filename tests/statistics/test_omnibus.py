"""The default test: which parts it takes, exchanged classes, its level, and what it detects."""

import pickle

import numpy as np
import pytest
from scipy.special import expit

import caltest
from caltest.predictions._sample import make_sample
from tests.hypothesis_tests.problems import codes
from tests.reference.cases import check_refused, mostly_slow


def test_parts():
    over, under = caltest.statistics.OverConfidence(), caltest.statistics.UnderConfidence()
    five = (caltest.ECE(), over, under, caltest.statistics.ClasswiseKS(), caltest.statistics.ConfidenceECE())
    assert caltest.Omnibus().components == five
    assert repr(caltest.Omnibus()) == "Omnibus()"
    cells = caltest.EqualMass(8)
    assert caltest.Omnibus(partition=cells).components == (caltest.ECE(cells), *five[1:])
    assert repr(caltest.Omnibus(partition=cells)) == "Omnibus(partition=EqualMass(8))"
    several = [caltest.ECE(), caltest.MCE()]
    for parts in (several, tuple(several), iter(several)):
        omnibus = caltest.Omnibus(parts)
        assert omnibus.components == omnibus.parts == tuple(several)
    assert repr(omnibus) == "Omnibus(parts=[ECE(), MCE()])"


def test_bad_parts_are_refused():
    few = "`parts` must be at least two statistics other than combinations such as Omnibus, got"
    for parts in ((), (caltest.ECE(),), (caltest.ECE(), caltest.Omnibus()), (caltest.ECE(), caltest.statistics.TCal())):
        check_refused(caltest.Omnibus, ValueError, f"{few} {parts!r}.", parts)
    for parts in (3, caltest.ECE(), (caltest.ECE(), "KS"), "KS", (caltest.ECE(), caltest.KS)):
        message = f"`parts` must be statistics such as (ECE(), ClasswiseKS()), got {parts!r}."
        check_refused(caltest.Omnibus, TypeError, message, parts)

    message = "`partition` is that of the default parts; with `parts` leave it out, got EqualMass(8)."
    several, cells = (caltest.ECE(), caltest.MCE()), caltest.EqualMass(8)
    check_refused(caltest.Omnibus, ValueError, message, several, partition=cells)
    check_refused(caltest.Omnibus, TypeError, "`partition` must be", partition=3)


def test_two_outcomes_have_the_slope_too():
    """Behind every lens with two outcomes; parts that are given stay as they are."""
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(3), 60)
    y_true, slope = rng.integers(3, size=60), caltest.statistics.CoxScore("slope")
    for lens, added in (
        (None, ()),
        (caltest.TopK(2), ()),
        (caltest.Confidence(), (slope,)),
        (caltest.ClassWise(1), (slope,)),
    ):
        for statistic in (caltest.Omnibus(), caltest.Omnibus(partition=caltest.VarianceTree(max_cells=4))):
            result = caltest.calibration_test(y_true, y_prob, lens=lens, statistic=statistic, n_resamples=19, rng=0)
            found = tuple(part.test_statistic for part in result.components)
            assert found == result.test_statistic.components == (*statistic.components, *added), str(lens)
            assert (result.test_statistic, str(result.test_statistic)) == (statistic, str(statistic))
    given = caltest.Omnibus(caltest.Omnibus().components)
    result = caltest.calibration_test(y_true == 1, y_prob[:, 1], statistic=given, n_resamples=19, rng=0)
    assert result.test_statistic.components == given.components
    assert pickle.loads(pickle.dumps(result.test_statistic)).components == given.components


def test_predictions_without_a_slope():
    """Then the part is 0 on every data set: the p-value is that of the others, and no note says that it is constant."""
    rng = np.random.default_rng(1)
    cases = {
        "constant": (rng.random(60) < 0.3, np.full(60, 0.3)),
        "one observation": ([True], [0.3]),
        "certain or equal": (np.arange(60) % 3 == 1, np.tile([0.0, 1.0, 0.4], 20)),
        "groups": (rng.random(60) < 0.3, np.full(60, 0.3), {"groups": np.arange(60) // 3}),
        "weights": (rng.random(60) < 0.3, np.full(60, 0.3), {"sample_weight": rng.random(60)}),
    }
    five = caltest.Omnibus(caltest.Omnibus().components)
    for name, (y_true, y_prob, *more) in cases.items():
        options = {"n_resamples": 99, "rng": 0, **(more[0] if more else {})}
        found, others = (caltest.calibration_test(y_true, y_prob, statistic=s, **options) for s in (None, five))
        slope = found.components[-1]
        assert (slope.statistic, slope.null.std, found.pvalue) == (0, 0, others.pvalue), name
        assert "C202" not in codes(found.notes), name


def test_a_combination_estimates_nothing():
    message = r"combines tests and estimates no error; use calibration_test, or ECE\(\) to estimate"
    for statistic in (caltest.Omnibus(), caltest.statistics.TCal()):
        for function in (caltest.calibration_error, caltest.bootstrap_interval):
            with pytest.raises(ValueError, match=f"`{type(statistic).__name__}` {message}"):
                function([0, 1], [0.25, 0.75], statistic=statistic)
        with pytest.raises(ValueError, match=message):
            statistic.evaluate(None, None)


def test_the_sides_of_the_score_share_one_evaluation(monkeypatch):
    """The values are those of the parts; the score is computed once."""
    rng = np.random.default_rng(0)
    signed, calls = caltest.TemperatureScore.signed, []
    monkeypatch.setattr(
        caltest.TemperatureScore, "signed", lambda self, *some: (calls.append(1), signed(self, *some))[1]
    )
    for n_classes in (2, 4):
        y_prob = rng.dirichlet(np.ones(n_classes), size=60)
        sample = make_sample(rng.integers(n_classes, size=60), y_prob)
        default = caltest.Omnibus().for_sample(sample)
        outcomes = rng.integers(n_classes, size=(2, 3, 60)).astype(np.uint8)
        calls.clear()
        together = default.evaluate_components(sample, outcomes)
        assert len(calls) == 1
        expected = [part.evaluate(sample, outcomes) for part in default.components]
        np.testing.assert_array_equal(together, expected)


EVENTS = {
    "even": lambda rng, n: rng.random(n),
    "two decimals": lambda rng, n: rng.random(n).round(2),
    "edges": lambda rng, n: rng.integers(16, size=n) / 15,
    "rare": lambda rng, n: rng.random(n) * 0.02,
    "zeros and ones": lambda rng, n: np.clip(rng.normal(0.5, 0.6, n), 0, 1),
    "half": lambda rng, n: np.where(rng.random(n) < 0.6, 0.5, rng.random(n)),
}


@pytest.mark.slow
def test_exchanging_the_classes_changes_no_value():
    """The event and its complement on the same labels: every part, on observed and on simulated labels."""
    for name, make in EVENTS.items():
        rng = np.random.default_rng(5)
        event = make(rng, 700)
        y_true = rng.random(700) < event
        drawn = rng.random((20, 700)) < event
        values = []
        for labels, prob, outcomes in ((y_true, event, drawn), (~y_true, 1 - event, ~drawn)):
            sample = make_sample(labels, prob)
            all_labels = np.concatenate([sample.outcome[None], outcomes[:, sample.row].view(np.uint8)])
            values.append(caltest.Omnibus().for_sample(sample).evaluate_components(sample, all_labels))
        assert len(values[0]) == 6
        scale = np.abs(values[0]).max(axis=1, keepdims=True)
        np.testing.assert_allclose(values[0] / scale, values[1] / scale, atol=1e-12, err_msg=name)


def softmax_draw(y_prob, rng):
    return (rng.random((len(y_prob), 1)) >= y_prob.cumsum(axis=1)[:, :-1]).sum(axis=1)


def power(make, n_data_sets, statistic=None, n_resamples=99):
    """The share of data sets that are rejected; ``make(rng)`` returns labels and predictions."""
    rejected = 0
    for seed in range(n_data_sets):
        data = make(np.random.default_rng(seed))
        rejected += (
            caltest.calibration_test(*data, statistic=statistic, n_resamples=n_resamples, rng=seed).pvalue <= 0.05
        )
    return rejected / n_data_sets


@pytest.mark.slow
def test_a_wrong_slope_with_the_right_mean_is_detected_more_often():
    """Risks that are too extreme, right on average; over 300 data sets the gain was .19."""

    def make(rng):
        logit = rng.normal(-1.6, 1.2, 1000)
        return rng.random(1000) < expit(-0.27 + 0.75 * logit), expit(logit)

    five = caltest.Omnibus(caltest.Omnibus().components)
    six_found, five_found = (power(make, 200, statistic) for statistic in (None, five))
    assert six_found >= five_found + 0.08


OLD = caltest.Omnibus((caltest.ECE(), caltest.TemperatureScore(), caltest.statistics.ClasswiseKS()))


@pytest.mark.slow(few_draws=True)
def test_an_error_of_the_confidence_that_changes_its_sign_is_detected():
    """The combination of three parts, the default before, rejects in .03 of such data sets."""

    def make(rng):
        y_prob = rng.dirichlet(np.full(10, 0.5), size=2000)
        row, top = np.arange(2000), y_prob.argmax(axis=1)
        confidence = y_prob[row, top]
        true = np.clip(confidence + 0.14 * np.sin(10 * np.pi * confidence), 0, 1)
        truth = y_prob * ((1 - true) / (1 - confidence))[:, None]
        truth[row, top] = true
        return softmax_draw(truth / truth.sum(axis=1, keepdims=True), rng), y_prob

    assert power(make, 15, n_resamples=199) >= 0.9
    assert power(make, 15, OLD, n_resamples=199) <= 0.4


@pytest.mark.nightly
def test_under_confidence_of_sharp_predictions_is_detected_more_often():
    network = caltest.datasets.load_cifar10_vgg16()[1].astype(float)

    def make(rng):
        y_prob = network[rng.integers(len(network), size=2000)]
        truth = y_prob**1.2
        return softmax_draw(truth / truth.sum(axis=1, keepdims=True), rng), y_prob

    five, three = (power(make, 300, statistic, 199) for statistic in (None, OLD))
    assert five >= three + 0.05


CALIBRATED = {
    "two classes": lambda rng: rng.dirichlet(np.ones(2), size=200),
    "two decimals": lambda rng: np.column_stack([1 - (p := rng.random(200).round(2)), p]),
    "rare": lambda rng: np.column_stack([1 - (p := 0.02 * rng.random(200)), p]),
    "ten classes": lambda rng: rng.dirichlet(np.full(10, 0.5), size=200),
    "three decimals": lambda rng: (p := rng.dirichlet(np.ones(3), size=200).round(3)) / p.sum(axis=1, keepdims=True),
    "one-hot": lambda rng: np.where(
        rng.random((200, 1)) < 0.5, np.eye(3)[rng.integers(3, size=200)], rng.dirichlet(np.ones(3), size=200)
    ),
}


def check_level(kind, n_data_sets):
    def make(rng):
        y_prob = CALIBRATED[kind](rng)
        return softmax_draw(y_prob, rng), y_prob

    standard_error = np.sqrt(0.05 * 0.95 / n_data_sets)
    assert power(make, n_data_sets, n_resamples=99) <= 0.05 + 4 * standard_error, kind


@pytest.mark.parametrize("kind", mostly_slow(CALIBRATED))
def test_level(kind):
    check_level(kind, 10)


@pytest.mark.release
@pytest.mark.parametrize("kind", CALIBRATED)
def test_level_of_many_data_sets(kind):
    check_level(kind, 800)
