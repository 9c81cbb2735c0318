"""The entropy of predictions, plain and normalised, as a measure of their uncertainty."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._options import InputOption
from caltest.predictions.inputs._validation import validate_given_prob
from caltest.statistics._entropy import entropy_of, normalised_entropy


@reads_arguments
def entropy(y_prob: ArrayLike, **_: Unpack[InputOption]) -> Floats:
    r"""Compute the entropy of each prediction, in nats (Laves et al. 2020, equation 7).

    .. math:: H(p_i) = -\sum_k p_{ik} \log p_{ik}

    from 0, if one class has all of the probability, to log K, if all K classes are equally probable; a class of
    probability 0 adds 0. `normalized_entropy` does not grow with the number of classes.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.

    Returns
    -------
    array of shape (n_samples,)
        The entropies.

    Raises
    ------
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1.

    See Also
    --------
    normalized_entropy : The same divided by log K.
    caltest.statistics.EntropyDifference : Compares it with the entropy of labels.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, equation 7.

    Examples
    --------
    >>> from caltest.estimation import entropy
    >>> entropy([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]]).round(3)
    array([0.   , 1.386])
    """
    return entropy_of(validate_given_prob(y_prob))


@reads_arguments
def normalized_entropy(y_prob: ArrayLike, **_: Unpack[InputOption]) -> Floats:
    r"""Compute the entropy of each prediction divided by its largest possible value (Laves et al. 2020, equation 11).

    .. math:: h_i = -\frac{1}{\log K} \sum_k p_{ik} \log p_{ik}

    from 0, if one class has all of the probability, to 1, if all K classes are equally probable. It is the uncertainty
    of `caltest.statistics.UCE`, `rejection_curve` and `shift_curve`.

    **It is not the probability of an error**, :math:`1 - \max_k p_{ik}`, unless K is very large. If the rest of the
    probability is spread evenly, it exceeds it by

    .. math:: \frac{-\hat p \log \hat p - (1 - \hat p) \log(1 - \hat p)
              - (1 - \hat p) \log\frac{K}{K - 1}}{\log K}, \qquad \hat p = \max_k p_{ik},

    which falls as 1 / log K (the authors' proposition 1 is the limit 0): with :math:`\hat p = 0.6` it is 0.57 for 2
    classes, 0.27 for 10, 0.15 for 100 and 0.10 for 1,000, and below 0.01 from about 10\ :sup:`29` classes on. If the
    rest is concentrated on a few classes, the normalised entropy tends to 0 instead, whatever the error is.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.

    Returns
    -------
    array of shape (n_samples,)
        The normalised entropies, from 0 to 1.

    Raises
    ------
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1.

    See Also
    --------
    entropy : The same in nats.
    caltest.torch.normalized_entropy : The same of the logits of a network, with gradients.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, equation 11 and proposition 1.

    Examples
    --------
    >>> from caltest.estimation import normalized_entropy
    >>> normalized_entropy([[0.6, 0.4], [1.0, 0.0], [0.5, 0.5]]).round(3)
    array([0.971, 0.   , 1.   ])
    """
    return normalised_entropy(validate_given_prob(y_prob))
