"""What a comparison concludes, which cautions it gives, and what it prints."""

import json
from dataclasses import replace

import numpy as np
import pytest

import caltest as ct
from caltest.results._models_verdict import typical_error
from tests.reference.examples import draw_labels
from tests.results.printed import printed

Y_TRUE, MODELS = ct.datasets.load_digits_predictions()
NAMES = list(MODELS)


@pytest.fixture(scope="module")
def digits():
    return ct.compare_models(Y_TRUE, MODELS, n_resamples=199, rng=0)


def misleading():
    """A vague model, calibrated, with a high noise floor, and a sharp one, over-confident, with a low one."""
    rng = np.random.default_rng(0)
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


def texts(comparison, code):
    return [note.text for note in comparison.notes if note.code == code]


# --- decisions


def test_the_decision_on_a_pair(digits):
    its = "its typical error is 2.1 points, and that of"
    for difference, pvalue, calibrated, better, words in (
        (0.1, 0.05, True, "b", f"b is better calibrated than a: {its} a is 4.5 points (adjusted p = 0.05)."),
        (-0.1, 0.01, False, "a", f"a is better calibrated than b: {its} b is 4.5 points (adjusted p = 0.01)."),
        (0.1, 0.06, True, None, "a and b cannot be told apart in calibration (adjusted p = 0.06)."),
    ):
        order = 1 if difference < 0 else -1
        roots = (0.021, 0.0452)[::order]
        errors = tuple(map(typical_error, "ab", roots))
        test = replace(digits.pairs[0].test, difference=difference, estimate_a=roots[0] ** 2, estimate_b=roots[1] ** 2)
        changed = {"pvalue_adjusted": pvalue, "calibrated": calibrated, "errors": errors}
        pair = replace(digits.pairs[0], a="a", b="b", test=test, **changed)
        size = pair.finding.difference
        assert size.estimate == pytest.approx(2.42 if better else 2.42 * order)
        assert size.interval.low <= size.estimate <= size.interval.high
        assert (pair.better, pair.conclusion) == (better, words)


def test_calibrated_pairs_are_those_of_two_models_that_are_not_rejected(digits):
    adjusted = {model.name: model.pvalue_adjusted for model in digits.models}
    assert len({pair.calibrated for pair in digits.pairs}) == 1
    one = replace(digits, models=tuple(replace(model, pvalue_adjusted=0.5) for model in digits.models))
    for pair in digits.pairs:
        assert pair.calibrated == (min(adjusted[pair.a], adjusted[pair.b]) > 0.05)
    words = f"No miscalibration is found in {', '.join(NAMES[:3])} and {NAMES[3]}. This does not prove that they are"
    assert words in one.conclusion


def test_undecided_pairs_are_named_if_they_are_few(digits):
    def decided(n_pairs):
        pairs = [replace(pair, pvalue_adjusted=1.0 if i < n_pairs else 0.01) for i, pair in enumerate(digits.pairs)]
        return replace(digits, pairs=tuple(pairs)).conclusion

    apart = "logistic_regression and {} cannot be told apart in calibration ("
    assert "told apart" not in decided(0)
    assert apart.format("naive_bayes") in decided(1)
    assert apart.format("random_forest") in decided(2)
    assert "5 of the 6 pairs cannot be told apart in calibration." in decided(5)
    everyone = replace(digits, models=tuple(replace(model, pvalue_adjusted=0.01) for model in digits.models))
    assert f"Calibration is rejected for {', '.join(NAMES[:3])} and {NAMES[3]}. " in everyone.conclusion


# --- cautions


def test_plain_estimates_that_mislead_are_noted():
    y_true, models = misleading()
    found = ct.compare_models(y_true, models, n_resamples=199, rng=0)
    vague, sharp = found.models
    assert vague.plain.statistic > sharp.plain.statistic
    assert vague.pvalue_adjusted > 0.05 >= sharp.pvalue_adjusted
    (text,) = texts(found, "C701")
    assert text.startswith("The plain estimate misleads: ECE() is larger for vague (")
    assert f"but calibration is rejected for sharp only (adjusted p = {sharp.pvalue_adjusted:.2g}, and " in text


def test_an_order_that_the_test_of_the_difference_reverses_is_noted(digits):
    low, high = sorted(digits.models[:2], key=lambda model: model.plain.statistic)
    pair = next(pair for pair in digits.pairs if {pair.a, pair.b} == {low.name, high.name})
    assert pair.better == low.name
    assert not texts(digits, "C701")
    turned = replace(pair, test=replace(pair.test, difference=-pair.test.difference))
    (text,) = texts(replace(digits, pairs=(turned,)), "C701")
    assert text.endswith(f"but {high.name} is better calibrated (adjusted p = {pair.pvalue_adjusted:.2g}).")


def test_models_without_discrimination_are_noted():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 2000)
    y_true = draw_labels(truth, rng)
    mean = np.full((2000, 3), 1 / 3)
    nearly = 0.95 * mean + 0.05 * truth
    found = ct.compare_models(y_true, {"truth": truth, "mean": mean, "nearly": nearly}, n_resamples=99, rng=0)
    assert [model.variation for model in found.models] == pytest.approx([0.25, 0, 0.25 * 0.05**2], rel=0.05, abs=1e-12)
    silent = [text.split('"')[1] for text in texts(found, "C702")]
    assert silent == ["mean", "nearly"]


def test_notes_name_the_models_that_they_are_about(digits):
    (impossible,) = texts(digits, "C201")
    assert impossible.startswith("naive_bayes: 17 labels")
    (for_all,) = texts(digits, "C406")
    assert for_all.startswith("With more than two outcomes")
    certain = {"a": np.ones(8), "b": np.ones(8)}
    (of_a_pair,) = texts(ct.compare_models(np.ones(8, int), certain, n_resamples=99, rng=0), "C408")[-1:]
    assert of_a_pair == "a - b: No two observations of a cell show any variance, so the interval has no ends."


# --- what is printed

PRINTED = """
Calibration of 3 models (whole prediction, the same 899 observations)
network and logistic are better calibrated than bayes: their typical errors are
at most 2.9 and 4.4 points, and that of bayes is 15.6 points (largest adjusted p
= 0.01). logistic and network cannot be told apart in calibration (adjusted p =
0.065). Calibration is rejected for logistic and bayes, but not for network.
Decisions are made at the 5 % level, adjusted for the numbers of models and of
pairs.

 model     typical error (95 % interval)  calibration   adjusted p
 logistic        4.4 points (2.7 to 6.0)  rejected          0.0200
 bayes        15.6 points (12.2 to 19.0)  rejected          0.0150
 network                up to 2.9 points  not rejected      0.6900

 pair                           errors differ by  adjusted p  better calibrated
 logistic and bayes    11.2 points (4.1 to 19.6)      0.0100  logistic
 network and bayes     14.3 points (7.6 to 20.0)      0.0100  network
 logistic and network           up to 6.0 points      0.0650

         accurac           noise
 model         y     ECE   floor   Brier     MCB     DSC     log     MCB     DSC
 logist   0.9600  0.0480  0.0464  0.0421  0.0153  0.0116  0.1598  0.0724  0.0807
 ic
 bayes    0.8343  0.1171  0.0097  0.1534  0.0526  0.0375     inf     inf  0.1199
 networ   0.9700  0.0228  0.0210  0.0233  0.0017  0.0076  0.0842  0.0090  0.0596
 k

  Typical error: the root of the debiased squared l2 calibration error, in
    percentage points; 0 if calibrated. Differences are tested by the squared
    errors.
  Tests of calibration: Omnibus(), 199 Monte Carlo draws of the labels,
    predictions fixed (valid at every sample size); p-values adjusted by Holm's
    correction.
  Differences: of the squared errors, normal, variance from Hoeffding's
    decomposition (asymptotic, conservative near calibration); p-values, and
    intervals in `pairs_frame()`, are adjusted for all pairs with 199 bootstrap
    samples.
  Noise floor: the average of ECE() if the model is calibrated. ECE() minus its
    noise floor does not estimate the miscalibration; the typical error does.
  Scores: of the confidence. MCB is what isotonic recalibration gains, DSC what
    that gains on the base rate.
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]

  Note: With more than two outcomes the coverage of the l2 interval is not
    proven; docs/how-much.md reports its simulated coverage. [C406]
  Note: bayes: 17 labels (observations 56, 61, 124, 143, 215, ...) had been
    given probability 0 through this lens. That is impossible under the null
    hypothesis, so the p-value is the smallest possible. Check whether the zero
    was meant or came from rounding. [C201]
"""
PRINTED_MODEL = """
logistic (whole prediction, 899 observations)

The model is under-confident: its confidence is 87.4 % on average, 96.0 % of its
predictions are right. Calibration is rejected at the 5 % level (p = 0.01).
ECE 0.04799; a calibrated model with these predictions has 0.04638 on average
and at most 0.05479 in 95 % of data sets.

 accuracy minus confidence  +8.5 points (+6.9 to       0 if calibrated
                            +9.8)
 typical error              4.4 points (2.7 to 6.0)    0 if calibrated; chance
                                                       alone shows up to 2.6

In brackets: what is compatible with these data, with 95 % confidence.
What to do: Do not use these predictions as they are.
`caltest.recalibration_study(y_true, y_prob)` recalibrates them and shows on
held-out folds what is left.

 statistic            value  under calibration (5 % to 95 %)  p-value
 ECE()              0.04799     0.04638 (0.03929 to 0.05479)   0.3350
 OverConfidence()    -212.2         0.6562 (-46.77 to 43.97)   1.0000
 UnderConfidence()    212.2        -0.6562 (-43.97 to 46.77)   0.0050
 ClasswiseKS()         2.49           2.114 (1.454 to 2.965)   0.2150
 ConfidenceECE()    0.08659     0.02498 (0.01654 to 0.03456)   0.0050

  Hypothesis: labels follow the predicted probabilities, P(Y = . | g(X)) = g(X),
    behind the lens.
  Null distribution: 199 Monte Carlo draws of the labels, predictions fixed
    (valid at every sample size); numerical error of p 0.01.
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]
"""
PRINTED_PAIR = """
logistic and bayes (whole prediction, 899 observations)
logistic is better calibrated than bayes: its typical error is 4.4 points, and
that of bayes is 15.6 points (adjusted p = 0.01).

 model                  typical error
 logistic     4.4 points (2.7 to 6.0)
 bayes     15.6 points (12.2 to 19.0)

  Typical error: the root of the debiased squared l2 calibration error, in
    percentage points; 0 if calibrated. Differences are tested by the squared
    errors.
  Target: the difference of the squared l2 calibration errors, each within the
    cells (bins) of the model's own partition (the same observations). It is
    -0.02227 (95 % interval -0.03826 to -0.006276); z = -3.543, with standard
    error 0.00628.
  Null distribution: normal, variance from Hoeffding's decomposition
    (asymptotic, conservative near calibration).
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]
"""
PRINTED_UNPAIRED = """
Calibration of 2 models (confidence, 449 to 450 observations each)
network is better calibrated than forest: its typical error is at most 3.4
points, and that of forest is 29.5 points (adjusted p = 0.01). Calibration is
rejected for forest, but not for network. Decisions are made at the 5 % level,
adjusted for the numbers of models and of pairs.

 model    typical error (95 % interval)  calibration   adjusted p
 forest      29.5 points (27.2 to 31.8)  rejected          0.0200
 network               up to 3.4 points  not rejected      0.8800

 pair                          errors differ by  adjusted p  better calibrated
 network and forest  29.5 points (26.2 to 32.5)      0.0100  network

         accurac           noise
 model         y     ECE   floor   Brier     MCB     DSC     log     MCB     DSC
 forest   0.9778  0.2512  0.0425  0.1053  0.0891  0.0055  0.3487  0.2953  0.0531
 networ   0.9666  0.0049  0.0087  0.0214  0.0030  0.0138  0.0818  0.0142  0.0788
 k

  Typical error: the root of the debiased squared l2 calibration error, in
    percentage points; 0 if calibrated. Differences are tested by the squared
    errors.
  Tests of calibration: Omnibus(), 99 Monte Carlo draws of the labels,
    predictions fixed (valid at every sample size); p-values adjusted by
    Benjamini-Hochberg's correction.
  Differences: of the squared errors, normal, variance from Hoeffding's
    decomposition (asymptotic, conservative near calibration); p-values, and
    intervals in `pairs_frame()`, are adjusted for all pairs with 99 bootstrap
    samples.
  Noise floor: the average of ECE() if the model is calibrated. ECE() minus its
    noise floor does not estimate the miscalibration; the typical error does.
  Scores: of the confidence. MCB is what isotonic recalibration gains, DSC what
    that gains on the base rate.
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]

  Note: network: ConfidenceECE() is below the 1 % quantile of its null
    distribution. The labels vary less than predicted: the model is
    under-confident, the observations are not independent, or it is chance (1 in
    100). [C203]
"""


def print_it():
    models = {"logistic": MODELS["logistic_regression"], "bayes": MODELS["naive_bayes"]}
    return ct.compare_models(Y_TRUE, models | {"network": MODELS["neural_network"]}, n_resamples=199, rng=0)


def print_unpaired():
    models = {"forest": (Y_TRUE[:450], MODELS["random_forest"][:450])}
    models["network"] = Y_TRUE[450:], MODELS["neural_network"][450:]
    return ct.compare_models(None, models, lens=ct.Confidence(), correction="fdr_bh", n_resamples=99, rng=0)


def test_what_is_printed():
    found = print_it()
    assert printed(found) == PRINTED.strip("\n")
    assert printed(found.models[0]) == PRINTED_MODEL.strip("\n")
    assert printed(found.pairs[0]) == PRINTED_PAIR.strip("\n")
    assert printed(print_unpaired()) == PRINTED_UNPAIRED.strip("\n")


def test_html(digits):
    html = digits._repr_html_()
    assert html.count("<table>") == 3
    assert "neural_network and logistic_regression are better calibrated than" in html
    assert "-0.0000" not in html + str(digits)


def test_plain_objects(digits):
    found = json.loads(json.dumps(digits.to_dict(), allow_nan=False))
    assert [model["model"] for model in found["models"]] == NAMES
    assert found["models"][1]["log_mean_score"] is None
    assert found["models"][0]["test"]["pvalue"] == digits.models[0].test.pvalue
    assert [pair["conclusion"] for pair in found["pairs"]] == [pair.conclusion for pair in digits.pairs]
    assert found["ranking"][0] == "neural_network"
    assert (found["scores_of"], found["target"]) == ("confidence", digits.pairs[0].test.target)


def test_three_groups_cannot_decide():
    """The conclusion said "rejected for none" and "no difference is shown", where no p-value could have rejected."""
    rng = np.random.default_rng(0)
    p, site = rng.random(300), np.arange(300) % 3
    y_true = (rng.random(300) < p).astype(int)
    found = ct.compare_models(y_true, {"a": p, "b": p**1.5}, groups=site, n_resamples=99, rng=0)
    words = "Whether a and b are calibrated cannot be told: with 3 groups no adjusted p-value below 0.5 is possible."
    assert words in found.conclusion
    assert found.conclusion.startswith("Whether a and b differ in calibration cannot be told: with 3 groups no ")
    assert "not rejected" not in found.conclusion
    assert "told apart" not in found.conclusion
    assert "rejected for none" not in found.conclusion
