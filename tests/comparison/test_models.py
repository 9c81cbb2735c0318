"""Models side by side: every number is that of its own function, every sentence has its reason."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.stats import binom, norm
from statsmodels.stats.multitest import multipletests

import caltest
from caltest.cli import main
from caltest.comparison._u_statistics import Differences, PairTerms, critical_value, largest_deviations, resample
from caltest.predictions._sample import induce
from tests.reference import naive
from tests.reference.examples import draw_labels

Y_TRUE, MODELS = caltest.datasets.load_digits_predictions()
NAMES = list(MODELS)
PAIRS = [(a, b) for i, a in enumerate(NAMES) for b in NAMES[i + 1 :]]


@pytest.fixture(scope="module")
def digits():
    return caltest.compare_models(MODELS, Y_TRUE, rng=0)


def test_rows_are_those_of_the_single_functions(digits):
    for model, prob in zip(digits.models, MODELS.values(), strict=True):
        test = caltest.calibration_test(Y_TRUE, prob, n_resamples=999, rng=0)
        assert model.test.pvalue == test.pvalue
        assert model.plain.statistic == caltest.calibration_error(Y_TRUE, prob)
        assert model.plain.noise_floor == test.components[0].noise_floor
        assert model.excess == model.plain.statistic - model.plain.noise_floor
        assert model.accuracy == caltest.accuracy(Y_TRUE, prob)
        assert model.brier == caltest.score_decomposition(Y_TRUE, prob, lens=caltest.Confidence())
        assert model.log == caltest.score_decomposition(Y_TRUE, prob, lens=caltest.Confidence(), score="log")
        assert model.miscalibration.to_dict() == caltest.l2_interval(Y_TRUE, prob).to_dict()
    single = [model.test.pvalue for model in digits.models]
    corrected = [model.pvalue_corrected for model in digits.models]
    assert corrected == pytest.approx(multipletests(single, method="holm")[1])


def test_the_noise_floor_is_that_of_the_predictions_alone(digits):
    for model, prob in zip(digits.models, MODELS.values(), strict=True):
        floor = caltest.noise_floor(prob, n_resamples=999, rng=1)
        error = np.sqrt(2) * floor.std / np.sqrt(999)
        assert abs(model.plain.noise_floor - floor.mean) < 4 * error


@pytest.mark.parametrize("method", ["hoeffding", "bootstrap"])
def test_pairs_are_paired_tests(method):
    lens, partition = caltest.Confidence(), caltest.EqualMass(8)
    common = {"lens": lens, "partition": partition, "method": method, "confidence_level": 0.9}
    found = caltest.compare_models(MODELS, Y_TRUE, n_resamples=199, rng=0, **common)
    assert [(pair.a, pair.b) for pair in found.pairs] == PAIRS
    for pair in found.pairs:
        expected = caltest.paired_test(Y_TRUE, MODELS[pair.a], MODELS[pair.b], n_resamples=199, rng=0, **common)
        for name in ("difference", "standard_error", "statistic"):
            assert getattr(pair.test, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
        for name in ("lens", "n_samples", "null_law", "confidence_level", "target", "paired"):
            assert getattr(pair.test, name) == getattr(expected, name), name
        if method == "hoeffding":
            assert (pair.test.pvalue, pair.test.high) == pytest.approx((expected.pvalue, expected.high), rel=1e-9)
    assert found.models[0].plain.name == str(caltest.ECE(partition))
    assert found.models[0].brier.lens == "Confidence()"


def test_models_on_their_own_rows_are_unpaired():
    half = {"random_forest": slice(0, 450), "neural_network": slice(450, 899)}
    models = {name: (Y_TRUE[rows], MODELS[name][rows]) for name, rows in half.items()}
    found = caltest.compare_models(models, n_resamples=99, rng=0)
    (pair,) = found.pairs
    expected = caltest.unpaired_test(*models["random_forest"], *models["neural_network"])
    assert pair.test == expected
    assert not found.paired
    assert "each on its own rows (449 to 450)" in str(found)


def test_two_models_that_are_one():
    prob = MODELS["neural_network"]
    found = caltest.compare_models({"a": prob, "b": prob, "c": MODELS["naive_bayes"]}, Y_TRUE, n_resamples=199, rng=0)
    same, one, other = found.pairs
    assert (same.test.pvalue, same.pvalue_simultaneous, same.low_simultaneous, same.high_simultaneous) == (1, 1, 0, 0)
    assert same.verdict == "both indistinguishable from perfect"
    assert one.pvalue_simultaneous == other.pvalue_simultaneous
    assert one.better == "a"
    alone = caltest.compare_models({"a": prob, "b": prob}, Y_TRUE, n_resamples=99, rng=0)
    assert alone.pairs[0].pvalue_simultaneous == 1


# All pairs at once.


def test_simultaneous_pvalues_are_those_of_the_largest_difference(digits):
    for pair in digits.pairs:
        assert pair.pvalue_simultaneous >= pair.test.pvalue
        assert pair.low_simultaneous <= pair.test.low < pair.test.high <= pair.high_simultaneous
        assert (pair.low_simultaneous > 0 or pair.high_simultaneous < 0) == (pair.better is not None)
    z = [abs(pair.test.statistic) for pair in digits.pairs]
    adjusted = [pair.pvalue_simultaneous for pair in digits.pairs]
    assert np.all(np.diff(np.array(adjusted)[np.argsort(z)]) <= 0)


@pytest.mark.parametrize("seed", range(8))
def test_a_single_pair_is_no_more_certain_than_its_own_test(seed):
    rows = np.random.default_rng(seed).choice(len(Y_TRUE), 150, replace=False)
    models = {name: MODELS[name][rows] for name in ("logistic_regression", "random_forest")}
    found = caltest.compare_models(models, Y_TRUE[rows], statistic=caltest.ECE(), n_resamples=199, rng=seed)
    (pair,) = found.pairs
    assert pair.pvalue_simultaneous >= pair.test.pvalue
    assert pair.low_simultaneous <= pair.test.low
    assert pair.high_simultaneous >= pair.test.high


def test_more_models_make_larger_pvalues():
    few = caltest.compare_models({name: MODELS[name] for name in NAMES[:2]}, Y_TRUE, rng=0).pairs[0]
    many = caltest.compare_models(MODELS, Y_TRUE, rng=0).pairs[0]
    assert few.test.pvalue == many.test.pvalue
    assert few.pvalue_simultaneous < many.pvalue_simultaneous


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
        else:  # each is over-confident on its own rows
            sharp = truth**2 / np.square(truth).sum(axis=1, keepdims=True)
            models.append(np.where(np.arange(n)[:, None] % 4 == k, sharp, truth))
    return draw_labels(truth, rng), models


@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("same_rows", [True, False])
@pytest.mark.parametrize("kind", ["calibrated", "over-confident"])
def test_any_false_verdict_is_rare(kind, same_rows, many):
    rng = np.random.default_rng(0)
    n_data_sets, false = (200 if many else 30), 0
    for i in range(n_data_sets):
        y_true, models = four_models(kind, 400, rng)
        samples = [induce(model, y_true) for model in models]
        if not same_rows:
            others = [four_models(kind, 400, rng) for _ in range(4)]
            samples = [induce(several[k], y) for k, (y, several) in enumerate(others)]
        terms = [PairTerms.of(sample, caltest.VarianceTree()) for sample in samples]
        differences = Differences.of(terms, same_rows=same_rows)
        both = list(zip(samples, terms, strict=True))
        drawn = resample(both, differences, same_rows=same_rows, n_resamples=99, rng=i)
        apart = np.triu_indices(4, 1)
        z = np.subtract.outer(differences.estimate, differences.estimate)[apart] / np.sqrt(differences.variance[apart])
        false += critical_value(largest_deviations(differences, drawn), np.abs(z).max(), 0.95)[0] <= 0.05
    assert false <= binom.ppf(1 - FALSE_ALARM / 8, n_data_sets, 0.05)


# Verdicts and sentences.


@pytest.mark.parametrize(
    ("difference", "pvalue", "calibrated", "verdict"),
    [
        (0.1, 0.05, True, "better calibrated: b"),
        (-0.1, 0.01, False, "better calibrated: a"),
        (0.1, 0.06, True, "both indistinguishable from perfect"),
        (0.1, 0.06, False, "no evidence of a difference"),
    ],
)
def test_the_verdict_on_a_pair(digits, difference, pvalue, calibrated, verdict):
    pair = digits.pairs[0]
    test = replace(pair.test, difference=difference)
    found = replace(pair, a="a", b="b", test=test, pvalue_simultaneous=pvalue, calibrated=calibrated)
    assert found.verdict == verdict


def test_calibrated_pairs_are_those_of_two_models_that_are_not_rejected(digits):
    corrected = {model.name: model.pvalue_corrected for model in digits.models}
    for pair in digits.pairs:
        assert pair.calibrated == (min(corrected[pair.a], corrected[pair.b]) > 0.05)


def misleading(seed=0):
    """A vague model, calibrated, with a high noise floor, and a sharp one, over-confident, with a low one."""
    rng = np.random.default_rng(seed)
    y_true = rng.integers(10, size=300)
    right = rng.random(300) < 0.95
    shown = np.where(right, y_true, (y_true + 1 + rng.integers(9, size=300)) % 10)
    sharp = np.full((300, 10), 0.001 / 9)
    sharp[np.arange(300), shown] = 0.999
    vague = rng.dirichlet(np.full(10, 0.5), 300)
    order = np.array([rng.choice(10, p=p) for p in vague])
    rows, place = np.arange(300), vague[np.arange(300), order].copy()
    vague[rows, order], vague[rows, y_true] = vague[rows, y_true], place  # the drawn one is what happened
    return y_true, {"vague": vague, "sharp": sharp}


def test_plain_estimates_that_mislead_are_flagged():
    y_true, models = misleading()
    found = caltest.compare_models(models, y_true, rng=0)
    vague, sharp = found.models
    assert vague.plain.statistic > sharp.plain.statistic
    assert vague.pvalue_corrected > 0.05 >= sharp.pvalue_corrected
    (flag,) = [flag for flag in found.flags if "misleads" in flag]
    assert flag.startswith("The plain estimate misleads: ECE() is larger for vague (")
    assert "yet only sharp is rejected as miscalibrated" in flag
    assert flag in str(found).replace("\n  ", " ")


def test_an_order_that_the_test_of_the_difference_reverses_is_flagged(digits):
    low, high = sorted(digits.models[:2], key=lambda model: model.plain.statistic)
    pair = next(pair for pair in digits.pairs if {pair.a, pair.b} == {low.name, high.name})
    assert pair.better == low.name
    assert not [flag for flag in digits.flags if "misleads" in flag]
    turned = replace(pair, test=replace(pair.test, difference=-pair.test.difference))
    found = replace(digits, pairs=(turned,))
    (flag,) = [flag for flag in found.flags if "misleads" in flag]
    assert f"yet {high.name} is better calibrated by the test of their difference" in flag


def test_a_model_that_says_nothing_is_flagged():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 2000)
    y_true = draw_labels(truth, rng)
    mean = np.full((2000, 3), 1 / 3)
    nearly = 0.95 * mean + 0.05 * truth
    found = caltest.compare_models({"truth": truth, "mean": mean, "nearly": nearly}, y_true, n_resamples=99, rng=0)
    assert [model.variation for model in found.models] == pytest.approx([0.25, 0, 0.25 * 0.05**2], rel=0.05, abs=1e-12)
    silent = [flag.split()[0] for flag in found.flags if "says almost nothing" in flag]
    assert silent == ["mean", "nearly"]


def test_variation_is_the_discrimination_of_a_calibrated_model():
    """Of the Brier score of the whole prediction: what it gains on the mean prediction, as a share of that one's."""
    rng = np.random.default_rng(1)
    prob = rng.dirichlet(np.ones(3), 20_000)
    y_true = draw_labels(prob, rng)
    (model, _) = caltest.compare_models({"a": prob, "b": prob}, y_true, statistic=caltest.ECE(), n_resamples=9).models
    unvaried = caltest.brier_score(y_true, np.tile(prob.mean(axis=0), (20_000, 1)))
    gain = 1 - caltest.brier_score(y_true, prob) / unvaried
    assert abs(model.variation - gain) < 4 / np.sqrt(20_000)


def test_notes_name_the_models_that_they_are_about(digits):
    excluded = [flag for flag in digits.flags if "probability 0" in flag]
    assert [flag.split(":")[0] for flag in excluded] == ["naive_bayes"]
    for_all = [flag for flag in digits.flags if "more than two outcomes" in flag]
    assert len(for_all) == 1
    assert for_all[0].startswith("interval: ")


def test_too_few_draws_are_said():
    found = caltest.compare_models(MODELS, Y_TRUE, n_resamples=39, rng=0)
    assert any("39 draws are too few: take 80 or more" in flag for flag in found.flags)
    enough = caltest.compare_models(MODELS, Y_TRUE, n_resamples=80, rng=0)
    assert not [flag for flag in enough.flags if "too few" in flag]


# Real networks.

ORDER = ("googlenet", "densenet121", "vgg19_bn", "resnet_orig")
SQUARED = {
    "vgg19_bn": 0.000531582493165,
    "densenet121": 0.000347782446137,
    "googlenet": 0.000039853633499,
    "resnet_orig": 0.000807775092590,
}
VERDICTS = {
    ("vgg19_bn", "densenet121"): "no evidence of a difference",
    ("vgg19_bn", "googlenet"): "better calibrated: googlenet",
    ("vgg19_bn", "resnet_orig"): "no evidence of a difference",
    ("densenet121", "googlenet"): "no evidence of a difference",
    ("densenet121", "resnet_orig"): "no evidence of a difference",
    ("googlenet", "resnet_orig"): "better calibrated: googlenet",
}


@pytest.fixture(scope="module")
def networks(request):
    folder = request.getfixturevalue("shared_data_folder")
    loaded = {name: np.load(folder / f"cifar10_{name}.npz") for name in SQUARED}
    return loaded["googlenet"]["labels"], {name: data["probs"] for name, data in loaded.items()}


@pytest.fixture(scope="module")
def shared_data_folder():
    from tests.reference.examples import SHARED

    if not SHARED.is_dir():
        pytest.skip(f"real predictions that are not bundled: {SHARED} is absent")
    return SHARED


def test_verdicts_on_four_networks(networks):
    y_true, models = networks
    found = caltest.compare_models(models, y_true, rng=0)
    assert found.ranking == ORDER
    assert {model.name: model.miscalibration.estimate for model in found.models} == pytest.approx(SQUARED, rel=1e-9)
    assert {(pair.a, pair.b): pair.verdict for pair in found.pairs} == VERDICTS
    assert all(model.pvalue_corrected <= 0.05 for model in found.models)


@pytest.mark.slow
def test_verdicts_on_four_networks_from_all_pairs_of_rows(networks):
    """Debiased estimates, their order and the verdicts, Holm's correction in the place of the bootstrap."""
    y_true, models = networks
    twins = {}
    for name, prob in models.items():
        sample = induce(np.asarray(prob, dtype=float), y_true)
        residual = (np.eye(10)[sample.outcome] - sample.prob)[np.argsort(sample.row)]
        twins[name] = residual, sample.cells(caltest.VarianceTree()).index[np.argsort(sample.row)]
    nothing = np.zeros((len(y_true), 10)), np.arange(len(y_true))
    alone = {name: naive.difference(twin, nothing) for name, twin in twins.items()}
    assert {name: estimate for name, (estimate, _) in alone.items()} == pytest.approx(SQUARED, rel=1e-9)
    assert tuple(sorted(alone, key=lambda name: alone[name][0])) == ORDER
    rejected = {name for name, (estimate, variance) in alone.items() if estimate / np.sqrt(variance) > norm.isf(0.0125)}
    z = {}
    for a, b in VERDICTS:
        difference, variance = naive.difference(twins[a], twins[b])
        z[a, b] = difference / np.sqrt(variance)
    corrected = multipletests([2 * norm.sf(abs(value)) for value in z.values()], method="holm")[1]
    for pair, pvalue in zip(z, corrected, strict=True):
        if pvalue <= 0.05:
            verdict = f"better calibrated: {pair[1] if z[pair] > 0 else pair[0]}"
        else:
            verdict = "no evidence of a difference" if rejected & set(pair) else "both indistinguishable from perfect"
        assert verdict == VERDICTS[pair]


# What a comparison looks like.


def test_the_report(digits):
    text = str(digits)
    assert text.startswith("Calibration of 4 models, the same 899 rows, Canonical()")
    for name in NAMES:
        assert text.count(f"\n{name} ") >= 2
    for part in ("p (holm)", "p (all pairs)", "better calibrated: neural_network", "not an estimate of miscalibration"):
        assert part in text
    tables, _, words = text.partition("\n\nNote")
    assert max(map(len, words.splitlines())) <= 100
    assert max(map(len, tables.splitlines())) <= 140
    assert "inf" in text  # log score of a label that was excluded
    assert "-0.0000" not in text
    html = digits._repr_html_()
    assert html.count("<table>") == 3
    assert "better calibrated: neural_network" in html


def test_plain_objects(digits):
    found = json.loads(json.dumps(digits.to_dict(), allow_nan=False))
    assert [model["model"] for model in found["models"]] == NAMES
    assert found["models"][1]["log_mean_score"] is None
    assert found["models"][0]["test"]["pvalue"] == digits.models[0].test.pvalue
    assert [pair["verdict"] for pair in found["pairs"]] == [pair.verdict for pair in digits.pairs]
    assert found["ranking"][0] == "neural_network"
    frame, pairs = digits.to_frame(), digits.pairs_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.index) == NAMES
    assert frame.loc["random_forest", "l2"] == digits.models[2].miscalibration.root
    assert pairs.loc[PAIRS[0], "difference"] == digits.pairs[0].test.difference


def test_workers_and_the_generator(digits):
    again = caltest.compare_models(list(MODELS.items()), Y_TRUE, workers=3, rng=np.random.default_rng(0))
    assert str(again) == str(digits)


def test_other_statistics_and_corrections():
    found = caltest.compare_models(
        MODELS, Y_TRUE, statistic=caltest.SCE(), correction="fdr_by", n_resamples=199, rng=0, lens=caltest.TopK(2)
    )
    assert found.models[0].plain.name == "SCE()"
    single = [model.test.pvalue for model in found.models]
    corrected = multipletests(single, method="fdr_by")[1]
    assert [model.pvalue_corrected for model in found.models] == pytest.approx(corrected)
    assert found.models[0].brier.lens == "Confidence()"
    assert "p (fdr_by)" in str(found)


def test_two_classes_and_their_names():
    happened = np.where(Y_TRUE % 2, "odd", "even")
    models = {name: prob[:, 1::2].sum(axis=1).clip(0, 1) for name, prob in MODELS.items()}
    found = caltest.compare_models(models, happened, classes=["even", "odd"], n_resamples=99, rng=0)
    assert found.models[0].brier.lens == "Canonical()"
    event = caltest.compare_models(models, Y_TRUE % 2, n_resamples=99, rng=0)
    assert str(event) == str(found)


# Bad input.


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"a": MODELS["naive_bayes"]}, "`models` must hold at least two models, got 1"),
        ({}, "`models` must hold at least two models, got 0"),
        ([("a", 1), ("a", 2)], "names of `models` must differ, got 'a' twice"),
        ({"a": 1, 2: 3}, "names of `models` must be strings that are not empty, got 2"),
        ({"a": 1, "": 3}, "names of `models` must be strings that are not empty, got ''"),
        (MODELS["naive_bayes"], "`models` must map names to predictions, .*, got ndarray"),
        ([1, 2], "`models` must map names to predictions, .*, got list"),
        (
            {"a": MODELS["naive_bayes"], "b": MODELS["naive_bayes"][1:]},
            r"same rows and classes, got .*: a \(899, 10\), b",
        ),
        ({"a": MODELS["naive_bayes"], "b": np.full((899, 9), 1 / 9)}, r"b \(899, 9\)"),
        ({"a": MODELS["naive_bayes"], "b": MODELS["naive_bayes"] * 2}, "b: `y_prob` must lie in"),
    ],
)
def test_bad_models_are_refused(models, message):
    with pytest.raises(ValueError, match=message):
        caltest.compare_models(models, Y_TRUE)


PAIR = (Y_TRUE, MODELS["naive_bayes"])


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"a": PAIR, "b": MODELS["naive_bayes"]}, r"must be a pair \(y_true, y_prob\), got ndarray for 'b'"),
        ({"a": PAIR, "b": (Y_TRUE, np.full((899, 9), 1 / 9))}, "model 'b': `y_true` must hold class indices 0 to 8"),
        (
            {"a": PAIR, "b": (Y_TRUE % 9, np.full((899, 9), 1 / 9))},
            r"the same classes, got \{'a': 10, 'b': 9\}",
        ),
    ],
)
def test_bad_data_sets_are_refused(models, message):
    with pytest.raises(ValueError, match=message):
        caltest.compare_models(models)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"correction": "tukey"}, "`correction` must be one of 'holm', .*, got 'tukey'"),
        ({"method": "wald"}, "`method` must be one of"),
        ({"confidence_level": 1}, "`confidence_level` must lie strictly between 0 and 1, got 1"),
        ({"n_resamples": 1.5}, "`n_resamples` must be an integer >= 1, got 1.5"),
        ({"statistic": "ece"}, "`statistic` must be a Statistic"),
        ({"rng": -1}, "`rng` must be None"),
        ({"workers": 0}, "`workers` must be"),
        ({"classes": list("abc")}, "`classes` must name 10 classes"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        caltest.compare_models(MODELS, Y_TRUE, **options)


# The picture.


def test_the_picture_shows_the_comparison(digits):
    axes = Figure(layout="constrained").subplots(1, 3)
    assert caltest.plot_comparison(digits, axes) is axes
    plain, size, pairs = axes

    def points(ax):
        return sorted(tuple(xy) for line in ax.get_lines() if line.get_marker() == "o" for xy in line.get_xydata())

    def bars(ax):
        return [tuple(segment[:, 0]) for c in ax.collections for segment in c.get_segments()]

    models = digits.models
    assert points(plain) == sorted((m.plain.statistic, i) for i, m in enumerate(models))
    assert bars(plain) == [m.plain.noise_interval for m in models]
    assert points(size) == sorted((m.miscalibration.root, i) for i, m in enumerate(models))
    assert bars(size) == [(m.miscalibration.root_low, m.miscalibration.root_high) for m in models]
    assert points(pairs) == sorted((p.test.difference, i) for i, p in enumerate(digits.pairs))
    assert bars(pairs) == [(p.low_simultaneous, p.high_simultaneous) for p in digits.pairs]
    assert [label.get_text() for label in plain.get_yticklabels()] == NAMES
    assert [label.get_text() for label in pairs.get_yticklabels()] == [f"{a} - {b}" for a, b in PAIRS]
    filled = [line for line in pairs.get_lines() if line.get_marker() == "o" and line.get_markerfacecolor() != "white"]
    assert sum(len(line.get_xdata()) for line in filled) == sum(p.better is not None for p in digits.pairs)


def test_a_picture_of_something_else_is_refused(digits):
    with pytest.raises(ValueError, match="`comparison` must be a ModelComparison from compare_models"):
        caltest.plot_comparison(Y_TRUE)
    with pytest.raises(ValueError, match="`axes` must be three axes, got 2"):
        caltest.plot_comparison(digits, Figure().subplots(1, 2))


# The command line.


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    paths = []
    for name, prob in MODELS.items():
        frame = pd.DataFrame(prob, columns=[f"p_{k}" for k in range(10)]).assign(digit=Y_TRUE)
        paths.append(folder / f"{name}.csv")
        frame.to_csv(paths[-1], index=False)
    return [str(path) for path in paths]


def run(capsys, *arguments):
    code = main(["compare", *arguments])
    return code, *capsys.readouterr()


def test_the_command_says_what_the_function_says(files, digits, capsys):
    code, out, err = run(capsys, *files)
    assert (code, err) == (0, "")
    assert out == f"{digits}\n"
    code, out, _ = run(capsys, *files[:2], "--label", "digit", "--json", "--lens", "confidence", "--resamples", "99")
    assert code == 0
    expected = caltest.compare_models(
        {name: MODELS[name] for name in NAMES[:2]}, Y_TRUE, lens=caltest.Confidence(), n_resamples=99, rng=0
    )
    assert json.loads(out) == json.loads(json.dumps(expected.to_dict()))


def test_the_command_compares_data_sets_and_draws(files, tmp_path, capsys):
    picture = tmp_path / "forest.png"
    code, out, err = run(capsys, *files[:2], "--unpaired", "--resamples", "99", "--plot", str(picture))
    assert code == 0
    assert "each on its own rows (899 to 899)" in out
    assert err == f"forest plot written to {picture}\n"
    assert picture.stat().st_size > 10_000


def test_the_command_refuses_what_it_cannot_compare(files, tmp_path, capsys):
    frame = pd.read_csv(files[0])
    shorter, other, fewer = (str(tmp_path / f"{name}.csv") for name in ("shorter", "other", "fewer"))
    frame.iloc[1:].to_csv(shorter, index=False)
    frame.assign(digit=frame["digit"][::-1].to_numpy()).to_csv(other, index=False)
    frame.rename(columns={"p_9": "p_10"}).to_csv(fewer, index=False)
    same = str(tmp_path / "naive_bayes.csv")
    frame.to_csv(same, index=False)
    cases = [
        ([files[0]], "`models` must hold at least two models, got 1"),
        ([files[0], files[0]], "files must differ"),
        ([files[0], shorter], "shorter: 898 rows where others have 899; for other data sets --unpaired"),
        ([files[0], other], "other: label"),
        ([files[0], fewer], "fewer: the classes are"),
        ([files[0], "absent.csv"], "no such file"),
        ([*files[:2], "--correction", "tukey"], "`correction` must be one of"),
        ([*files[:2], "--plot", "forest.xyz"], "--plot must name a picture"),
    ]
    for arguments, message in cases:
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert message in err
    code, out, _ = run(capsys, files[1], same, "--resamples", "99")
    assert code == 0
    assert same in out  # files of one name are told apart by their folders


def test_critical_value_of_no_draws_that_suffice():
    assert critical_value(np.ones(9), 2.0, 0.95) == (0.1, np.inf)
