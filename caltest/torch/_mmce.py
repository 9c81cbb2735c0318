"""Maximum mean calibration error of a batch, as a penalty in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caltest.predictions.inputs._validation import validate_bool, validate_positive
from caltest.torch._batch import read_batch, top_prediction

if TYPE_CHECKING:
    from torch import Tensor


def mmce_loss(logits: Tensor, labels: Tensor, *, bandwidth: float = 0.4, weighted: bool = False) -> Tensor:
    r"""Compute the maximum mean calibration error (MMCE) of a batch, with gradients (Kumar et al. 2018).

    .. math:: \Bigl(\sum_{i, j} w_i w_j r_i r_j \, e^{-|c_i - c_j| / \gamma}\Bigr)^{1/2}, \qquad r_i = a_i - c_i

    with the confidence :math:`c_i`, the largest probability, and :math:`a_i = 1` if the first class that has it is the
    label, else 0. Without ``weighted`` :math:`w_i = 1 / n`. With ``weighted`` the right predictions share the weight 1
    and so do the wrong ones: :math:`w_i = 1 / n_\mathrm{right}` or :math:`1 / n_\mathrm{wrong}`. This is the weighted
    MMCE of the paper, for batches with few errors; if all predictions are right, or all are wrong, it is the plain one.

    Add it to the loss, ``loss + weight * mmce_loss(logits, labels)``. It is the value of ``MMCE(bandwidth)`` behind
    `caltest.Confidence` on the batch; weighted, twice its value with the sample weights w (once if one of the groups is
    empty). Which class has the largest probability counts as constant, as in the authors' program. Where the
    error is 0, the gradient is set to 0, so that a batch of certain and right predictions does no harm.

    On a batch the error of a calibrated model is larger than 0 (`caltest.noise_floor`), so that the penalty moves
    calibrated models too. Weighted, the error measures calibration among as many wrong as right predictions, so that a
    model whose confidences are all 1/2 has the value 0 whatever its accuracy: choose a small weight
    (docs/papers/training.md). Only the confidence is compared: a model that always predicts the frequencies of the
    classes has a small error.

    Parameters
    ----------
    logits : tensor of shape (n_samples, n_classes)
        Logits of a batch, of any floating dtype and on any device; 16-bit logits are converted to float32.
    labels : tensor of shape (n_samples,)
        Class indices from 0, of any integer dtype. That they are in range is checked, for which a GPU is waited for.
    bandwidth : float
        :math:`\gamma` of the Laplace kernel, 0.4 in the paper.
    weighted : bool
        Whether right and wrong predictions have the same total weight.

    Returns
    -------
    tensor of shape ()
        The error, at least 0. It takes memory for n x n numbers.

    Raises
    ------
    ImportError
        If PyTorch is not installed (``pip install "caltest[torch]"``).
    TypeError
        If ``logits`` or ``labels`` is no tensor or has a wrong dtype, ``bandwidth`` is no number, or ``weighted``
        no bool.
    ValueError
        If shapes or devices do not fit, a label is out of range, or ``bandwidth`` is not positive and finite.

    See Also
    --------
    caltest.statistics.MMCE : The statistic, with p-values.
    uce_loss : Compares the entropy with the error rate, class by class.

    Notes
    -----
    The authors' program returns 0 for the weighted error if all predictions of a batch are right or all are wrong; the
    paper's formula has an empty sum there.

    References
    ----------
    A. Kumar, S. Sarawagi and U. Jain (2018), Trainable calibration measures for neural networks from kernel mean
    embeddings, ICML.

    Examples
    --------
    >>> import torch
    >>> from caltest.torch import mmce_loss
    >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]], requires_grad=True)
    >>> loss = mmce_loss(logits, torch.tensor([0, 1, 1]))
    >>> print(f"{loss.item():.4f}")
    0.2110
    >>> loss.backward()
    """
    width = validate_positive(bandwidth, "bandwidth")
    validate_bool(weighted, "weighted")
    log_prob, label = read_batch(logits, labels)
    top, confidence = top_prediction(log_prob)
    right = (top == label).to(confidence.dtype)
    residual = right - confidence
    if weighted:
        n_right = right.sum()
        share = right / n_right.clamp(min=1) + (1 - right) / (len(right) - n_right).clamp(min=1)
        residual = residual * share
    else:
        residual = residual / len(right)
    kernel = (-(confidence[:, None] - confidence[None, :]).abs() / width).exp()
    squared = residual @ kernel @ residual
    # The root has an infinite slope at 0, and rounding may put the sum below it. A NaN stays one.
    is_zero = squared.detach() <= 0
    return squared.masked_fill(is_zero, 1.0).sqrt() * ~is_zero
