"""Comparisons of several models: every number is that of its own function."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm
from statsmodels.stats.multitest import multipletests

import caltest as ct
from caltest.comparison._u_statistics import Differences, PairTerms, critical_value, largest_deviations, resample
from caltest.predictions._sample import induce
from caltest.predictions.cells._cells import cells_of
from caltest.results import CalibrationWarning
from tests.reference import naive
from tests.reference.cases import mostly_nightly
from tests.reference.examples import NOT_DISTRIBUTED, SHARED, draw_labels

Y_TRUE, MODELS = ct.datasets.load_digits_predictions()
NAMES = list(MODELS)
PAIRS = [(a, b) for i, a in enumerate(NAMES) for b in NAMES[i + 1 :]]


@pytest.fixture(scope="module")
def digits():
    return ct.compare_models(Y_TRUE, MODELS, rng=0)


def test_models_have_the_numbers_of_the_single_functions(digits):
    for model, prob in zip(digits, MODELS.values(), strict=True):
        test = ct.calibration_test(Y_TRUE, prob, n_resamples=999, rng=0)
        assert model.test.pvalue == test.pvalue
        assert model.plain.statistic == ct.calibration_error(Y_TRUE, prob)
        assert model.plain.noise_floor == test.components[0].noise_floor
        assert model.accuracy == ct.estimation.accuracy(Y_TRUE, prob)
        for score, found in (("brier", model.brier), ("log", model.log)):
            expected = ct.score_decomposition(Y_TRUE, prob, lens=ct.Confidence(), score=score)
            assert found.to_dict() == expected.to_dict()
        assert model.miscalibration.to_dict() == ct.l2_interval(Y_TRUE, prob).to_dict()
    single = [model.test.pvalue for model in digits.models]
    adjusted = [model.pvalue_adjusted for model in digits.models]
    assert adjusted == pytest.approx(multipletests(single, method="holm")[1])


def test_the_noise_floor_is_that_of_the_predictions_alone(digits):
    for model, prob in zip(digits.models, MODELS.values(), strict=True):
        floor = ct.noise_floor(prob, n_resamples=999, rng=1)
        error = np.sqrt(2) * floor.std / np.sqrt(999)
        assert abs(model.plain.noise_floor - floor.mean) < 4 * error


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("variance", ["asymptotic", "bootstrap"])
def test_pairs_are_paired_tests(variance):
    lens, partition = ct.Confidence(), ct.EqualMass(8)
    common = {"lens": lens, "partition": partition, "variance": variance, "alpha": 0.1}
    found = ct.compare_models(Y_TRUE, MODELS, n_resamples=199, rng=0, **common)
    assert [(pair.a, pair.b) for pair in found.pairs] == PAIRS
    for pair in found.pairs:
        expected = ct.paired_test(Y_TRUE, MODELS[pair.a], MODELS[pair.b], n_resamples=199, rng=0, **common)
        for name in ("difference", "standard_error", "statistic"):
            assert getattr(pair.test, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
        for name in ("lens", "lens_name", "n_samples", "method", "origin", "confidence_level", "target", "paired"):
            assert getattr(pair.test, name) == getattr(expected, name), name
        if variance == "asymptotic":
            numbers = [(test.pvalue, *test.confidence_interval) for test in (pair.test, expected)]
            assert numbers[0] == pytest.approx(numbers[1], rel=1e-9)
    assert found.models[0].plain.test_statistic == ct.ECE(partition)
    assert found.models[0].brier.lens == ct.Confidence()


def test_models_on_their_own_observations_are_unpaired():
    half = {"random_forest": slice(0, 450), "neural_network": slice(450, 899)}
    models = {name: (Y_TRUE[rows], MODELS[name][rows]) for name, rows in half.items()}
    found = ct.compare_models(None, models, n_resamples=99, rng=0)
    (pair,) = found.pairs
    expected = ct.unpaired_test(*models["random_forest"], *models["neural_network"])
    assert pair.test.to_dict() == expected.to_dict()
    assert not found.paired


def test_two_models_that_are_one():
    prob = MODELS["neural_network"]
    found = ct.compare_models(Y_TRUE, {"a": prob, "b": prob, "c": MODELS["naive_bayes"]}, n_resamples=199, rng=0)
    same, one, other = found.pairs
    assert (same.test.pvalue, same.pvalue_adjusted, *same.simultaneous_interval) == (1, 1, 0, 0)
    assert same.better is None
    assert same.calibrated
    assert one.pvalue_adjusted == other.pvalue_adjusted
    assert one.better == "a"
    alone = ct.compare_models(Y_TRUE, {"a": prob, "b": prob}, n_resamples=99, rng=0)
    assert alone.pairs[0].pvalue_adjusted == 1


# --- all pairs at once


def test_adjusted_pvalues_are_those_of_the_largest_difference(digits):
    for pair in digits.pairs:
        assert pair.pvalue_adjusted >= pair.test.pvalue
        (low, high), single = pair.simultaneous_interval, pair.test.confidence_interval
        assert low <= single.low < single.high <= high
        assert (low > 0 or high < 0) == (pair.better is not None)
    z = [abs(pair.test.statistic) for pair in digits.pairs]
    adjusted = [pair.pvalue_adjusted for pair in digits.pairs]
    assert np.all(np.diff(np.array(adjusted)[np.argsort(z)]) <= 0)


@pytest.mark.slow(few_draws=True)
def test_a_single_pair_is_no_more_certain_than_its_own_test():
    for seed in range(8):
        rows = np.random.default_rng(seed).choice(len(Y_TRUE), 150, replace=False)
        models = {name: MODELS[name][rows] for name in ("logistic_regression", "random_forest")}
        found = ct.compare_models(Y_TRUE[rows], models, statistic=ct.ECE(), n_resamples=199, rng=seed)
        (pair,) = found.pairs
        assert pair.pvalue_adjusted >= pair.test.pvalue, seed
        assert pair.simultaneous_interval.low <= pair.test.confidence_interval.low, seed
        assert pair.simultaneous_interval.high >= pair.test.confidence_interval.high, seed


def test_more_models_make_larger_pvalues(digits):
    few = ct.compare_models(Y_TRUE, {name: MODELS[name] for name in NAMES[:2]}, rng=0).pairs[0]
    many = digits.pairs[0]
    assert few.test.pvalue == many.test.pvalue
    assert few.pvalue_adjusted < many.pvalue_adjusted


FALSE_ALARM = 1e-3


def four_models(kind, n, rng):
    """Labels and four models that are equally miscalibrated."""
    truth = rng.dirichlet(np.full(3, 0.5), n)
    models = []
    for k in range(4):
        if kind == "calibrated":  # each knows more than the one before
            models.append(truth)
            drawn = rng.standard_gamma(10 * truth)
            truth = drawn / drawn.sum(axis=1, keepdims=True)
        else:  # each is over-confident on its own observations
            sharp = truth**2 / np.square(truth).sum(axis=1, keepdims=True)
            models.append(np.where(np.arange(n)[:, None] % 4 == k, sharp, truth))
    return draw_labels(truth, rng), models


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.release)])
@pytest.mark.parametrize("paired", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", mostly_nightly(["calibrated", "over-confident"]))
def test_any_false_decision_is_rare(kind, paired, many):
    rng = np.random.default_rng(0)
    n_data_sets, false = (200 if many else 15), 0
    for i in range(n_data_sets):
        y_true, models = four_models(kind, 400, rng)
        samples = [induce(model, y_true) for model in models]
        if not paired:
            others = [four_models(kind, 400, rng) for _ in range(4)]
            samples = [induce(several[k], y) for k, (y, several) in enumerate(others)]
        terms = [PairTerms.of(sample, ct.VarianceTree()) for sample in samples]
        differences = Differences.of(terms, paired=paired)
        drawn = resample(terms, differences, paired=paired, n_resamples=99, rng=i)
        upper = np.triu_indices(4, 1)
        z = np.subtract.outer(differences.estimate, differences.estimate)[upper] / np.sqrt(differences.variance[upper])
        false += critical_value(largest_deviations(differences, drawn), np.abs(z).max(), 0.95)[0] <= 0.05
    assert false <= binom.ppf(1 - FALSE_ALARM / 8, n_data_sets, 0.05)


# --- options


@pytest.mark.slow(few_draws=True)
def test_workers_the_generator_and_progress(digits):
    seen = []
    options = {"rng": np.random.default_rng(0), "progress": lambda *parts: seen.append(parts)}
    again = ct.compare_models(Y_TRUE, list(MODELS.items()), workers=3, **options)
    assert str(again) == str(digits)
    assert seen == sorted(seen)
    assert seen[-1] == (5 * 999, 5 * 999)  # the tests of four models, and the bootstrap


def test_other_statistics_and_corrections():
    found = ct.compare_models(
        Y_TRUE, MODELS, statistic=ct.statistics.SCE(), correction="fdr_by", n_resamples=199, rng=0, lens=ct.TopK(2)
    )
    assert found.models[0].plain.test_statistic == ct.statistics.SCE()
    single = [model.test.pvalue for model in found.models]
    adjusted = multipletests(single, method="fdr_by")[1]
    assert [model.pvalue_adjusted for model in found.models] == pytest.approx(adjusted)
    assert found.models[0].brier.lens == ct.Confidence()
    assert "Benjamini-Yekutieli" in str(found)
    assert ct.compare_models(Y_TRUE, MODELS, statistic=ct.KS(), n_resamples=99).lens == ct.Confidence()


@pytest.mark.slow(few_draws=True)
def test_two_classes_and_their_names():
    happened = np.where(Y_TRUE % 2, "odd", "even")
    models = {name: prob[:, 1::2].sum(axis=1).clip(0, 1) for name, prob in MODELS.items()}
    found = ct.compare_models(happened, models, classes=["even", "odd"], n_resamples=99, rng=0)
    assert found.models[0].brier.lens == ct.Canonical()
    event = ct.compare_models(Y_TRUE % 2, models, n_resamples=99, rng=0)
    assert str(event) == str(found)


def test_variation_is_the_discrimination_of_a_calibrated_model():
    """The gain of the Brier score of the whole prediction over that of the mean prediction, as a share of it."""
    rng = np.random.default_rng(1)
    prob = rng.dirichlet(np.ones(3), 20_000)
    y_true = draw_labels(prob, rng)
    options = {"statistic": ct.KS(), "lens": ct.Confidence(), "n_resamples": 39}
    (model, _) = ct.compare_models(y_true, {"a": prob, "b": prob}, **options).models
    unvaried = ct.estimation.brier_score(y_true, np.tile(prob.mean(axis=0), (20_000, 1)))
    gain = 1 - ct.estimation.brier_score(y_true, prob) / unvaried
    assert abs(model.variation - gain) < 4 / np.sqrt(20_000)


@pytest.mark.slow(few_draws=True)
def test_too_few_draws_are_noted_and_warned_of_before_the_work():
    with pytest.warns(CalibrationWarning, match="Take 80 draws or more") as caught:
        found = ct.compare_models(Y_TRUE, MODELS, n_resamples=39, rng=0)
    assert [warning.filename for warning in caught] == [__file__]
    (note,) = [note for note in found.notes if note.code == "C205"]
    assert note.text == (
        "With 39 draws and 4 models no adjusted p-value of calibration can be below 0.1. Take 80 draws or more."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enough = ct.compare_models(Y_TRUE, MODELS, n_resamples=80, rng=0)
        computed = ct.compare_models(
            Y_TRUE, MODELS, n_resamples=39, lens=ct.Confidence(), statistic=ct.ECE(ct.EqualWidth(10)), rng=0
        )
    assert {model.test.method for model in computed.models} == {"exact", "upper-bound"}
    assert not [note for note in (*enough.notes, *computed.notes) if note.code == "C205"]


# --- bad input

BAYES = MODELS["naive_bayes"]


def test_bad_models_are_refused():
    named = "names of `models` must"
    mapped = "`models` must map names to predictions, .*, got"
    for error, models, message in (
        (ValueError, {"a": BAYES}, "`models` must hold at least two models, got 1"),
        (ValueError, {}, "`models` must hold at least two models, got 0"),
        (ValueError, [("a", 1), ("a", 2)], f"{named} differ, got 'a' twice"),
        (TypeError, {"a": 1, 2: 3}, f"{named} be strings, got 2"),
        (ValueError, {"a": 1, "": 3}, f"{named} not be empty, got ''"),
        (TypeError, BAYES, f"{mapped} ndarray"),
        (TypeError, [1, 2], f"{mapped} list"),
        (ValueError, {"a": BAYES, "b": BAYES[1:]}, r"same observations and classes, got .*: a \(899, 10\), b"),
        (ValueError, {"a": BAYES, "b": np.full((899, 9), 1 / 9)}, r"b \(899, 9\)"),
        (ValueError, {"a": BAYES, "b": BAYES * 2}, "b: `y_prob` must lie in"),
    ):
        with pytest.raises(error, match=message):
            ct.compare_models(Y_TRUE, models)


def test_bad_data_sets_are_refused():
    pair, ninths = (Y_TRUE, BAYES), np.full((899, 9), 1 / 9)
    for models, message in (
        ({"a": pair, "b": BAYES}, r"must be a pair \(y_true, y_prob\), got ndarray for 'b'"),
        ({"a": pair, "b": (Y_TRUE, ninths)}, "model 'b': `y_true` must hold class indices 0 to 8"),
        ({"a": pair, "b": (Y_TRUE % 9, ninths)}, r"the same classes, got \{'a': 10, 'b': 9\}"),
    ):
        with pytest.raises(ValueError, match=message):
            ct.compare_models(None, models)


def test_bad_options_are_refused():
    both = (TypeError, ValueError)
    for error, options, message in (
        (ValueError, {"correction": "tukey"}, "`correction` must be one of 'holm', .*, got 'tukey'"),
        (ValueError, {"variance": "wald"}, "`variance` must be one of 'asymptotic', 'bootstrap', got 'wald'"),
        (TypeError, {"confidence_level": 0.9}, r"compare_models\(\) has no `confidence_level`; use alpha=1 - 0.9"),
        (TypeError, {"method": "bootstrap"}, r"compare_models\(\) has no `method`; use variance='bootstrap'"),
        (ValueError, {"alpha": 1}, "`alpha` must lie strictly between 0 and 1, got 1"),
        (both, {"n_resamples": 1.5}, "`n_resamples` must be an integer >= 1, got 1.5"),
        (TypeError, {"statistic": 3}, "`statistic` must be a statistic"),
        (ValueError, {"rng": -1}, "`rng` must be None"),
        (ValueError, {"workers": 0}, "`workers` must be"),
        (ValueError, {"classes": list("abc")}, "`classes` must name 10 classes"),
        (TypeError, {"progress": "bar"}, "`progress` must be True, False or a function"),
    ):
        with pytest.raises(error, match=message):
            ct.compare_models(Y_TRUE, MODELS, **options)


# --- real networks

ORDER = ("googlenet", "densenet121", "vgg19_bn", "resnet_orig")
SQUARED = {
    "vgg19_bn": 0.000531582493165,
    "densenet121": 0.000347782446137,
    "googlenet": 0.000039853633499,
    "resnet_orig": 0.000807775092590,
}
BETTER = {
    ("vgg19_bn", "densenet121"): None,
    ("vgg19_bn", "googlenet"): "googlenet",
    ("vgg19_bn", "resnet_orig"): None,
    ("densenet121", "googlenet"): None,
    ("densenet121", "resnet_orig"): None,
    ("googlenet", "resnet_orig"): "googlenet",
}


@pytest.fixture(scope="module")
def networks():
    if not SHARED.is_dir():
        pytest.skip(NOT_DISTRIBUTED)
    loaded = {name: np.load(SHARED / f"cifar10_{name}.npz") for name in SQUARED}
    return loaded["googlenet"]["labels"], {name: data["probs"] for name, data in loaded.items()}


@pytest.mark.slow
def test_decisions_on_four_networks(networks):
    y_true, models = networks
    found = ct.compare_models(y_true, models, rng=0)
    assert found.ranking == ORDER
    assert {model.name: model.miscalibration.estimate for model in found.models} == pytest.approx(SQUARED, rel=1e-9)
    assert {(pair.a, pair.b): pair.better for pair in found.pairs} == BETTER
    assert all(model.pvalue_adjusted <= 0.05 for model in found.models)
    assert not any(pair.calibrated for pair in found.pairs)


@pytest.mark.slow
def test_decisions_on_four_networks_from_all_pairs_of_observations(networks):
    """Debiased estimates, their order and the decisions, Holm's correction in the place of the bootstrap."""
    y_true, models = networks
    twins = {}
    for name, prob in models.items():
        sample = induce(np.asarray(prob, dtype=float), y_true)
        residual = (np.eye(10)[sample.outcome] - sample.prob)[np.argsort(sample.row)]
        twins[name] = residual, cells_of(sample, ct.VarianceTree()).index[np.argsort(sample.row)]
    nothing = np.zeros((len(y_true), 10)), np.arange(len(y_true))
    alone = {name: naive.difference(twin, nothing) for name, twin in twins.items()}
    assert {name: estimate for name, (estimate, _) in alone.items()} == pytest.approx(SQUARED, rel=1e-9)
    assert tuple(sorted(alone, key=lambda name: alone[name][0])) == ORDER
    rejected = {name for name, (estimate, variance) in alone.items() if estimate / np.sqrt(variance) > norm.isf(0.0125)}
    z = {}
    for a, b in BETTER:
        difference, variance = naive.difference(twins[a], twins[b])
        z[a, b] = difference / np.sqrt(variance)
    adjusted = multipletests([2 * norm.sf(abs(value)) for value in z.values()], method="holm")[1]
    for pair, pvalue in zip(z, adjusted, strict=True):
        assert BETTER[pair] == ((pair[1] if z[pair] > 0 else pair[0]) if pvalue <= 0.05 else None)
        assert rejected & set(pair)


def test_frames(digits):
    frame, pairs = digits.to_frame(), digits.pairs_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.index) == NAMES
    assert frame.loc["random_forest", "l2"] == digits.models[2].miscalibration.root
    assert frame.loc["naive_bayes", "log_mean_score"] == np.inf
    assert pairs.loc[PAIRS[0], "difference"] == digits.pairs[0].test.difference
    assert [better if isinstance(better, str) else None for better in pairs["better"]] == [
        pair.better for pair in digits.pairs
    ]
