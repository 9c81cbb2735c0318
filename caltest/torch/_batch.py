"""What the penalties read: logits and labels of a batch, validated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caltest.predictions.inputs._refusals import refuse

if TYPE_CHECKING:
    from torch import Tensor


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
        msg = f"`labels` must be integers from 0 to {n_classes - 1}, got {label.dtype}; convert with `labels.long()`."
        raise TypeError(msg)
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
        msg = f"`{name}` must be a tensor of PyTorch, got {type(values).__name__}; convert with `torch.as_tensor`."
        raise TypeError(msg)
    return values
