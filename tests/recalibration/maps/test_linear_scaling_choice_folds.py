"""Random folds for a choice within a fit: balanced, repeatable, and the same for permuted data."""

import numpy as np

from caltest.recalibration.maps._linear_scaling import N_FOLDS, observation_order, stratified_folds
from tests.recalibration.maps.test_base import over_confident


def test_folds_are_balanced_and_do_not_depend_on_the_order():
    prob, y_true = over_confident(203, 4)
    y_true[y_true == 2] = 1
    y_true[7] = 2  # a class with one observation
    logits, weight = np.log(prob), np.random.default_rng(1).random(203)
    fold = stratified_folds(logits, y_true, weight, 0)
    assert fold[7] == -1
    for k in (0, 1, 3):
        sizes = np.bincount(fold[y_true == k], minlength=N_FOLDS)
        assert sizes.max() - sizes.min() <= 1
    rng = np.random.default_rng(0)
    rows, classes = rng.permutation(203), rng.permutation(4)
    np.testing.assert_array_equal(stratified_folds(logits[rows], y_true[rows], weight[rows], 0), fold[rows])
    np.testing.assert_array_equal(stratified_folds(logits[:, classes], np.argsort(classes)[y_true], weight, 0), fold)
    assert (stratified_folds(logits, y_true, weight, 1) != fold).any()


def test_a_held_out_fold_is_no_copy_of_the_others():
    """Of neighbours in the order of the observations 1 in 5 share a fold by chance; dealt out in turn none did."""
    prob, _ = over_confident(2_000, 2)
    logits, zeros = np.log(prob), np.zeros(2_000, dtype=np.int64)
    order = observation_order(logits, zeros)
    fold = stratified_folds(logits, zeros, None, 0)[order]
    same = (fold[1:] == fold[:-1]).mean()
    assert abs(same - 1 / N_FOLDS) < 4 * np.sqrt(0.2 * 0.8 / 1_999)
