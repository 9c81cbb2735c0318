"""The entropy of predictions, as a measure of uncertainty and as a penalty on confident predictions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from caltest.torch._batch import read_logits

if TYPE_CHECKING:
    from torch import Tensor


def normalized_entropy(logits: Tensor) -> Tensor:
    r"""Compute the entropy of each prediction divided by its largest possible value, with gradients.

    .. math:: h_i = -\frac{1}{\log K} \sum_k p_{ik} \log p_{ik}, \qquad p_i = \mathrm{softmax}(z_i)

    It is 0 if one class has all of the probability and 1 if all K classes are equally probable (Laves et al. 2020,
    equation 11). A class with probability 0, such as one whose logit is minus infinity, adds 0.

    Parameters
    ----------
    logits : tensor of shape (n_samples, n_classes)
        Logits z of a batch, of any floating dtype and on any device; 16-bit logits are converted to float32.

    Returns
    -------
    tensor of shape (n_samples,)
        The normalised entropies, from 0 to 1.

    Raises
    ------
    ImportError
        If PyTorch is not installed (``pip install "caltest[torch]"``).
    TypeError
        If ``logits`` is no tensor or has no floating dtype.
    ValueError
        If ``logits`` has another shape, no observation or fewer than two classes.

    See Also
    --------
    caltest.estimation.normalized_entropy : The same of probabilities, in NumPy.
    caltest.rejection_curve : Errors of the predictions that are left if the most uncertain ones are rejected.
    uce_loss : Compares it with the error rate.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, equation 11.

    Examples
    --------
    >>> import torch
    >>> from caltest.torch import normalized_entropy
    >>> normalized_entropy(torch.tensor([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [9.0, 0.0, 0.0]]))
    tensor([1.0000, 0.6058, 0.0022])
    """
    log_prob = read_logits(logits)
    return entropy_of(log_prob) / math.log(log_prob.shape[1])


def entropy_penalty(logits: Tensor) -> Tensor:
    r"""Compute the penalty on confident predictions, the negative mean entropy of a batch (Pereyra et al. 2017).

    .. math:: -\frac{1}{n} \sum_i H(p_i) = \frac{1}{n} \sum_i \sum_k p_{ik} \log p_{ik}

    in nats, from -log K to 0. Add it to the loss with a positive weight, ``loss + 0.1 * entropy_penalty(logits)``: the
    smaller it is, the less confident are the predictions. It uses no labels, so that it makes right and wrong
    predictions less confident alike, and calibrated ones under-confident. Laves et al. (2020) use the weight 0.1; their
    text adds the entropy itself, with a plus sign, which would reward confidence.

    Parameters
    ----------
    logits : tensor of shape (n_samples, n_classes)
        Logits z of a batch, of any floating dtype and on any device; 16-bit logits are converted to float32.

    Returns
    -------
    tensor of shape ()
        The negative mean entropy.

    Raises
    ------
    ImportError
        If PyTorch is not installed (``pip install "caltest[torch]"``).
    TypeError
        If ``logits`` is no tensor or has no floating dtype.
    ValueError
        If ``logits`` has another shape, no observation or fewer than two classes.

    See Also
    --------
    mmce_loss, uce_loss : Penalties that compare predictions with labels.

    References
    ----------
    G. Pereyra et al. (2017), Regularizing neural networks by penalizing confident output distributions, ICLR workshop.

    Examples
    --------
    >>> import torch
    >>> from caltest.torch import entropy_penalty
    >>> logits = torch.tensor([[0.0, 0.0], [99.0, 0.0]], requires_grad=True)
    >>> penalty = entropy_penalty(logits)
    >>> print(f"{penalty.item():.4f}")
    -0.3466
    >>> penalty.backward()
    """
    return -entropy_of(read_logits(logits)).mean()


def entropy_of(log_prob: Tensor) -> Tensor:
    """Return the entropy of each prediction in nats, ``(n_samples,)``."""
    prob = log_prob.exp()
    # A class of probability 0 has the term 0 and no gradient, where 0 times minus infinity would be NaN.
    return (prob * -log_prob.masked_fill(prob == 0, 0.0)).sum(dim=1)
