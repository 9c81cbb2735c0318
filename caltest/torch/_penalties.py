"""Penalties in training: the entropy of predictions, their maximum mean and their uncertainty calibration error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_bool, validate_choice, validate_count, validate_positive

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


def uce_loss(logits: Tensor, labels: Tensor, *, n_cells: int = 15, classwise: str = "label") -> Tensor:
    r"""Compute the uncertainty calibration error (UCE) of a batch, averaged over classes, with gradients.

    .. math:: \frac{1}{|C|} \sum_{c \in C} \mathrm{UCE}(c), \qquad \mathrm{UCE}(c) =
              \sum_b \frac{n_{cb}}{n_c} \bigl|\mathrm{err}_{cb} - \mathrm{uncert}_{cb}\bigr|

    with the :math:`n_c` observations of class c, those of them whose normalised entropy lies in cell (bin)
    :math:`b = (j/L, (j+1)/L]`, their error rate err and their mean normalised entropy uncert (Laves et al. 2020,
    equation 15). C are the classes with an observation in the batch. Add it to the loss,
    ``loss + weight * uce_loss(logits, labels)`` (equation 18).

    The authors recommend the error of each class, because a small class that is predicted wrongly with certainty would
    vanish among the others, and write only that it "is computed for predictions of class c". Here the observations of a
    class are those with this label, which fits their example of a class whose observations are all predicted as another
    one; ``classwise="prediction"`` reads it as the predicted class, and ``"none"`` is the error of the whole batch. The
    value is the mean of ``UCE(n_cells)`` over the classes, or its value on the batch.

    Gradients flow through the mean entropies. Cells and errors are constant where they do not jump. The error rate of a
    calibrated model is :math:`1 - \max_k p_{ik}` and not the entropy, so that the UCE does not have its minimum at
    calibration: a calibrated model that predicts (0.6, 0.4) has 0.571 (with ``classwise="none"``), and a penalty moves
    it away from there. Judge the trained model by `caltest.calibration_test`.

    Parameters
    ----------
    logits : tensor of shape (n_samples, n_classes)
        Logits of a batch, of any floating dtype and on any device; 16-bit logits are converted to float32.
    labels : tensor of shape (n_samples,)
        Class indices from 0, of any integer dtype. That they are in range is checked, for which a GPU is waited for.
    n_cells : int
        Number of cells L; the first one contains 0 too.
    classwise : {"label", "prediction", "none"}
        Whether the observations of a class are those with this label or those with this predicted class; "none" takes
        all observations together.

    Returns
    -------
    tensor of shape ()
        The error, from 0 to 1.

    Raises
    ------
    ImportError
        If PyTorch is not installed (``pip install "caltest[torch]"``).
    TypeError
        If ``logits`` or ``labels`` is no tensor or has a wrong dtype, or ``n_cells`` is no integer.
    ValueError
        If shapes or devices do not fit, a label is out of range, ``n_cells`` < 1 or ``classwise`` is something else.

    See Also
    --------
    caltest.statistics.UCE : The statistic, with p-values.
    mmce_loss : Compares the confidence with the accuracy, without cells.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, equations 15 and 18 and
    section 7.3.

    Examples
    --------
    >>> import torch
    >>> from caltest.torch import uce_loss
    >>> logits = torch.tensor([[4.0, 0.0], [3.0, 0.0], [5.0, 0.0]], requires_grad=True)
    >>> labels = torch.tensor([0, 0, 1])  # the one observation of class 1 is predicted wrongly, and with certainty
    >>> for classwise in ("label", "none"):
    ...     print(f"{uce_loss(logits, labels, classwise=classwise).item():.4f}")
    0.5724
    0.4491
    >>> uce_loss(logits, labels).backward()
    """
    validate_count(n_cells, "n_cells")
    validate_choice(classwise, "classwise", ("label", "prediction", "none"))
    log_prob, label = read_batch(logits, labels)
    n_samples, n_classes = log_prob.shape
    top, _ = top_prediction(log_prob)
    entropy = entropy_of(log_prob) / math.log(n_classes)
    group = {"label": label, "prediction": top, "none": label.new_zeros(n_samples)}[classwise]
    size = entropy.new_zeros(n_classes).index_add(0, group, entropy.new_ones(n_samples))
    inner = label.new_tensor(range(1, n_cells)).to(entropy.dtype) / n_cells
    cell = (entropy.detach()[:, None] > inner).sum(dim=1)  # an edge belongs to the cell below it
    gap = (entropy - (top != label).to(entropy.dtype)) / size[group]
    sums = gap.new_zeros(n_classes * n_cells).index_add(0, group * n_cells + cell, gap)
    return sums.abs().sum() / (size > 0).sum()


def read_logits(logits: Any) -> Tensor:
    """Return the logarithms of the probabilities ``(n_samples, n_classes)``, in float32 if the logits have 16 bits."""
    tensor = _tensor(logits, "logits")
    if not tensor.is_floating_point():
        refuse(f"`logits` must have a floating dtype, got {tensor.dtype}; convert with `logits.float()`.", TypeError)
    if tensor.ndim != 2 or tensor.shape[0] < 1 or tensor.shape[1] < 2:
        refuse(
            "`logits` must have the shape (n_samples, n_classes) with at least one observation and two classes, got "
            f"{tuple(tensor.shape)}; one logit z per observation of two classes becomes torch.stack([0 * z, z], dim=1)."
        )
    if tensor.element_size() < 4:  # sums of 16-bit numbers lose what the penalties measure
        tensor = tensor.float()
    return tensor.log_softmax(dim=1)


def read_batch(logits: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """Return the logarithms of the probabilities, and the labels ``(n_samples,)`` as int64."""
    log_prob, label = read_logits(logits), _tensor(labels, "labels")
    n_samples, n_classes = log_prob.shape
    if label.is_floating_point() or label.is_complex() or str(label.dtype) == "torch.bool":
        refuse(
            f"`labels` must be integers from 0 to {n_classes - 1}, got {label.dtype}; convert with `labels.long()`.",
            TypeError,
        )
    if tuple(label.shape) != (n_samples,):
        refuse(
            f"`labels` must have the shape ({n_samples},), one class per row of `logits`, got {tuple(label.shape)}; "
            "of one-hot labels pass `labels.argmax(dim=1)`."
        )
    if label.device != log_prob.device:
        refuse(f"`logits` and `labels` must be on one device, got {log_prob.device} and {label.device}; use `.to()`.")
    outside = label[(label < 0) | (label >= n_classes)]
    if len(outside):
        refuse(
            f"`labels` must lie between 0 and {n_classes - 1}, got {outside[0].item()}; leave out observations without "
            "a label, such as those marked by -100."
        )
    return log_prob, label.long()


def top_prediction(log_prob: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first most probable class and its probability, both ``(n_samples,)``."""
    prob = log_prob.exp()
    top = prob.detach().argmax(dim=1)
    return top, prob.gather(1, top[:, None])[:, 0]


def _tensor(values: Any, name: str) -> Tensor:
    try:
        import torch
    except ImportError as error:
        msg = f'`{name}` must be a tensor of PyTorch, which is missing: pip install "caltest[torch]".'
        raise ImportError(msg) from error
    if not isinstance(values, torch.Tensor):
        refuse(
            f"`{name}` must be a tensor of PyTorch, got {type(values).__name__}; convert with `torch.as_tensor`.",
            TypeError,
        )
    return values
