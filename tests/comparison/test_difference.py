"""What a test of two models prints."""

import numpy as np

import caltest as ct
from tests.comparison.models import temper, two_models
from tests.results.printed import printed

PRINTED = """
Calibration of two models (whole prediction, 899 observations)
Model B is better calibrated than model A: its typical error is 1.2 points, and
that of model A is 15.6 points (p = 0.0001127). Decisions are made at the 5 %
level.

 model    typical error
 model A    15.6 points
 model B     1.2 points

  Typical error: the root of the debiased squared l2 calibration error, in
    percentage points; 0 if calibrated. Differences are tested by the squared
    errors.
  Target: the difference of the squared l2 calibration errors, each within the
    cells (bins) of the model's own partition (the same observations). It is
    0.02403 (95 % interval 0.01184 to 0.03623); z = 3.862, with standard error
    0.00622.
  Null distribution: normal, variance from Hoeffding's decomposition
    (asymptotic, conservative near calibration).
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]
"""
PRINTED_UNPAIRED = """
Calibration of two models (class 8 against the rest, 450 and 449 observations)
Whether model A and model B differ in calibration cannot be told: with 9 draws
no p-value below 0.1 is possible (p = 0.1). Decisions are made at the 5 % level.

 model    typical error
 model A    12.1 points
 model B     1.6 points

  Typical error: the root of the debiased squared l2 calibration error, in
    percentage points; 0 if calibrated. Differences are tested by the squared
    errors.
  Target: the difference of the squared l2 calibration errors, each within the
    cells (bins) of the model's own partition (different observations). It is
    0.01437 (95 % interval -inf to inf); z = 2.504, with standard error 0.00574.
  Null distribution: 9 bootstrap samples of the observations (asymptotic,
    conservative near calibration).
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]

  Note: With 9 bootstrap samples no p-value can be below 0.1, so the 95 %
    interval has no ends. Take 19 bootstrap samples or more. [C205]
"""


def print_paired():
    y_true, models = ct.datasets.load_digits_predictions()
    return ct.paired_test(y_true, models["naive_bayes"], models["neural_network"])


def print_unpaired():
    y_true, models = ct.datasets.load_digits_predictions()
    data_sets = y_true[:450], models["random_forest"][:450], y_true[450:], models["neural_network"][450:]
    return ct.unpaired_test(*data_sets, lens=ct.ClassWise(8), variance="bootstrap", n_resamples=9, rng=0)


def test_what_is_printed():
    assert printed(print_paired()) == PRINTED.strip("\n")
    assert printed(print_unpaired()) == PRINTED_UNPAIRED.strip("\n")


def test_the_better_model_is_named():
    y_true, a, _ = two_models(300, 3, seed=1)
    worse = temper(a, 0.3)
    for pair, words in (((a, worse), "Model A is better calibrated than model B: its "),
                        ((worse, a), "Model B is better calibrated than model A: its ")):  # fmt: skip
        assert ct.paired_test(y_true, *pair).conclusion.startswith(words)
    same = ct.paired_test(y_true, a, a, alpha=0.1)
    words = "No model is shown to be better calibrated: the typical errors are "
    assert same.conclusion.startswith(words)
    words = "(p = 1). This does not prove that they are equally calibrated. Decisions are made at the 10 % level."
    assert same.conclusion.endswith(words)


def test_lens_and_names():
    y_true, a, b = two_models(300, 3, seed=1)
    result = ct.paired_test(np.array(list("xyz"))[y_true], a, b, lens=ct.ClassWise(1), classes=list("xyz"))
    assert (result.lens, result.lens_name) == (ct.ClassWise(1), "class y against the rest")
    assert ct.paired_test(y_true, a, b).lens == ct.Canonical()
    assert result.to_dict()["target"] == result.target
