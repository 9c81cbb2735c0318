"""Uncertainty calibration error of a batch, as a penalty in training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from caltest.predictions.inputs._validation import validate_choice, validate_count
from caltest.torch._batch import read_batch, top_prediction
from caltest.torch._entropy import entropy_of

if TYPE_CHECKING:
    from torch import Tensor


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
