"""Is one model better calibrated than another? A test and an interval for the difference of their miscalibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.comparison._difference import DifferenceResult, difference_result
from caltest.comparison._u_statistics import Differences, PairTerms, resample
from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._lenses import Lens
from caltest.predictions._partitions import Partition
from caltest.predictions._sample import Sample, induce, make_sample
from caltest.predictions._validation import (
    SeedLike,
    validate_choice,
    validate_count,
    validate_level,
    validate_outcome,
    validate_prob,
)
from caltest.predictions._variance_tree import VarianceTree

METHODS = ("hoeffding", "bootstrap")


def paired_test(
    y_true: ArrayLike,
    prob_a: ArrayLike,
    prob_b: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    partition: Partition | Any = None,
    confidence_level: float = 0.95,
    method: str = "hoeffding",
    n_resamples: int = 999,
    workers: int = 1,
    rng: SeedLike = None,
) -> DifferenceResult:
    r"""Test whether two models are equally miscalibrated, on the same rows.

    With the debiased squared l2 miscalibration T of each model (`SquaredL2`), its residuals :math:`e_i` and its own
    cells,

    .. math:: D = T_A - T_B = \frac1n \sum_{i \ne j} H_{ij}, \qquad
              H_{ij} = \frac{1\{a_i = a_j\}\, e^A_i \cdot e^A_j}{n_{a_i} - 1}
                     - \frac{1\{b_i = b_j\}\, e^B_i \cdot e^B_j}{n_{b_i} - 1}

    and, with :math:`g_i = \sum_j H_{ij}` and :math:`Q = \sum_{i \ne j} H_{ij}^2`,

    .. math:: \mathrm{Var}(D) = \frac{2 Q}{n^2} + \max\Bigl(0, \frac{4}{n^2} \Bigl[\sum_i (g_i - \bar g)^2
              - Q\Bigr]\Bigr), \qquad z = D / \sqrt{\mathrm{Var}(D)}.

    The first term is what is left where both models are calibrated, the second one what is left far from it. That two
    models are equally miscalibrated does not fix the law of the outcomes given both predictions, so that nothing can be
    redrawn from it, and signs may not be flipped: p-value and interval are asymptotic. Near calibration they are
    conservative; elsewhere at most 7 % of simulated data sets with equally miscalibrated models were rejected at level
    0.05, from 60 rows on (docs/comparing-models.md). Outcomes that nearly all came as expected show no variance: where
    fewer than ten rows of a model fell to a rare outcome of their cell, :math:`\mathrm{Var}(D)` is at least
    :math:`(s_A + s_B)^2`, of the deviations that the predictions of each model state.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    prob_a, prob_b : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities of each model for these rows.
    classes : sequence, optional
        The label of each column of the predictions.
    lens : lens, optional
        What to look at, in each model by its own predictions; the whole prediction by default.
    partition : Partition or callable, optional
        Cells, fitted to the predictions of each model; ``VarianceTree()`` by default.
    confidence_level : float
        Level of the interval.
    method : {"hoeffding", "bootstrap"}
        "hoeffding" takes z for normal. "bootstrap" draws rows with replacement, the same for both models, cells fixed;
        a row meets no copy of itself, and the sum over rows is scaled to its variance above.
    n_resamples : int
        Number of bootstrap samples.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness of the bootstrap.

    Returns
    -------
    DifferenceResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    W. Hoeffding (1948), A class of statistics with asymptotically normal distribution, The Annals of Mathematical
    Statistics.
    M. A. Arcones and E. Giné (1992), On the bootstrap of U and V statistics, The Annals of Statistics.
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.3.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> result = caltest.paired_test(y_true, y_prob["naive_bayes"], y_prob["neural_network"])
    >>> round(result.difference, 4), round(result.statistic, 1)
    (0.0231, 3.7)
    >>> caltest.paired_test(y_true, y_prob["random_forest"], y_prob["random_forest"]).pvalue
    1.0
    """
    outcome, probs = validate_models(y_true, {"prob_a": prob_a, "prob_b": prob_b}, classes)
    samples = [induce(prob, outcome, lens=lens) for prob in probs]
    options = _validated(partition, confidence_level, method, n_resamples)
    return _compare(samples, *options, paired=True, workers=workers, rng=rng, lens=lens_text(lens, classes))


def unpaired_test(
    y_true_a: ArrayLike,
    prob_a: ArrayLike,
    y_true_b: ArrayLike,
    prob_b: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    partition: Partition | Any = None,
    confidence_level: float = 0.95,
    method: str = "hoeffding",
    n_resamples: int = 999,
    workers: int = 1,
    rng: SeedLike = None,
) -> DifferenceResult:
    r"""Test whether two models are equally miscalibrated, on independent data sets.

    As `paired_test`, without terms in common: with :math:`L = \frac{4}{n^2} [\sum_i (g_i - \bar g)^2 - Q]` of each
    model,

    .. math:: \mathrm{Var}(T_A - T_B) = \frac{2 Q_A}{n_A^2} + \frac{2 Q_B}{n_B^2} + \max(0, L_A + L_B).

    Data sets that share rows need the paired test: their estimates are dependent.

    Parameters
    ----------
    y_true_a, prob_a, y_true_b, prob_b : array-like
        Labels and predicted probabilities of each model for the rows of its own data set, as in `paired_test`.
    classes : sequence, optional
        The label of each column of the predictions.
    lens : lens, optional
        What to look at; the whole prediction by default.
    partition : Partition or callable, optional
        Cells, fitted to the predictions of each model; ``VarianceTree()`` by default.
    confidence_level : float
        Level of the interval.
    method : {"hoeffding", "bootstrap"}
        As in `paired_test`; rows are drawn from each data set apart.
    n_resamples : int
        Number of bootstrap samples.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness of the bootstrap.

    Returns
    -------
    DifferenceResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> half = slice(None, 450), slice(450, None)
    >>> bayes, network = y_prob["naive_bayes"][half[0]], y_prob["neural_network"][half[1]]
    >>> round(caltest.unpaired_test(y_true[half[0]], bayes, y_true[half[1]], network).statistic, 1)
    3.1
    """
    problems = (y_true_a, prob_a), (y_true_b, prob_b)
    samples = [_named_sample(*problem, classes, lens, name) for problem, name in zip(problems, "ab", strict=True)]
    outcomes = [sample.n_outcomes for sample in samples]
    if outcomes[0] != outcomes[1]:
        msg = f"both models must predict the same classes, got {outcomes[0]} and {outcomes[1]}."
        raise ValueError(msg)
    options = _validated(partition, confidence_level, method, n_resamples)
    return _compare(samples, *options, paired=False, workers=workers, rng=rng, lens=lens_text(lens, classes))


def _named_sample(
    y_true: ArrayLike, y_prob: ArrayLike, classes: Sequence[Any] | None, lens: Lens | None, name: str
) -> Sample:
    """Return the sample of a model on its own rows; errors say which."""
    try:
        return make_sample(y_true, y_prob, classes=classes, lens=lens)
    except ValueError as error:
        msg = f"`y_true_{name}`, `prob_{name}`: {error}"
        raise ValueError(msg) from None


def validate_models(
    y_true: ArrayLike, models: dict[str, ArrayLike], classes: Sequence[Any] | None
) -> tuple[NDArray[np.int64], list[NDArray[np.float64]]]:
    """Return outcomes and the predictions of every model for the same rows and classes; errors name the model."""
    probs = {}
    for name, y_prob in models.items():
        try:
            probs[name] = validate_prob(y_prob)
        except ValueError as error:
            msg = f"{name}: {error}"
            raise ValueError(msg) from None
    shapes = {name: prob.shape for name, prob in probs.items()}
    if len(set(shapes.values())) > 1:
        shown = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        msg = f"all models must predict the same rows and classes, got (n_samples, n_classes): {shown}."
        raise ValueError(msg)
    n_samples, n_classes = next(iter(shapes.values()))
    outcome = validate_outcome(y_true, n_classes, classes)
    if len(outcome) != n_samples:
        msg = f"`y_true` and the predictions must have the same length, got {len(outcome)} and {n_samples}."
        raise ValueError(msg)
    return outcome, list(probs.values())


def _validated(partition: Any, confidence_level: Any, method: Any, n_resamples: Any) -> tuple[Any, float, str, int]:
    return (
        VarianceTree() if partition is None else partition,
        validate_level(confidence_level, "confidence_level"),
        validate_choice(method, "method", METHODS),
        validate_count(n_resamples, "n_resamples"),
    )


def _compare(
    samples: Sequence[Sample],
    partition: Any,
    level: float,
    method: str,
    n_resamples: int,
    *,
    paired: bool,
    workers: int,
    rng: SeedLike,
    lens: str,
) -> DifferenceResult:
    terms = [PairTerms.of(sample, partition) for sample in samples]
    differences = Differences.of(terms, same_rows=paired)
    deviation = None
    if method == "bootstrap":
        models = list(zip(samples, terms, strict=True))
        drawn = resample(models, differences, same_rows=paired, n_resamples=n_resamples, rng=rng, workers=workers)
        deviation = drawn[0, 1]
    sizes = samples[0].n_samples, samples[1].n_samples
    return difference_result(
        differences, (0, 1), deviation, confidence_level=level, paired=paired, lens=lens, n_samples=sizes
    )
