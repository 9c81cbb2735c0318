"""A metric that is fed with batches, as those of torchmetrics are: labels and predictions are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation import calibration_error
from caltest.hypothesis_tests import calibration_test
from caltest.predictions._arrays import Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical, Confidence
from caltest.predictions.cells._partitions import EqualWidth
from caltest.predictions.inputs._arguments import answers_other_names, reads_arguments
from caltest.predictions.inputs._options import InputOption
from caltest.predictions.inputs._refusals import refuse, refuse_if
from caltest.predictions.inputs._scale import validate_input
from caltest.predictions.inputs._validation import validate_given_problem
from caltest.results import TestResult
from caltest.results._description import counted
from caltest.results._naming import describe
from caltest.statistics import ECE, Statistic
from caltest.statistics._base import validate_estimate


class CalibrationMetric:
    """A calibration error of all batches of a validation epoch, with the test of calibration on request.

    It is used as a metric of torchmetrics: `update` with each batch, `compute` at the end of the epoch, `reset` before
    the next one, and `merge_state` for what other processes have seen. Arrays of NumPy, tensors of PyTorch and frames
    are read as in all functions of caltest; PyTorch is not needed. Labels come first, as in scikit-learn and
    everywhere in caltest; torchmetrics has predictions first.

    By default `compute` returns what ``BinaryCalibrationError()`` of torchmetrics returns for two classes, and
    ``MulticlassCalibrationError(num_classes)`` for more: the `ECE` in 15 cells (bins) of equal width, of the event of
    two classes and of the confidence of more. Predictions on edges of cells and those of exactly 1, which torchmetrics
    puts elsewhere, may make a small difference (docs/other-packages.md). `test` answers what such a number does not:
    whether a calibrated model would have a smaller one.

    All observations are kept, because most statistics and the test need them: 8 bytes for each label and, of K > 2
    classes, 8 K bytes for each prediction, 8 of two classes; half as much of predictions in float32. A million
    predictions of 1,000 classes in float32 are 4 GB. `CalibrationState` takes constant memory instead.

    Parameters
    ----------
    statistic : Statistic or str, optional
        What `compute` returns; ``ECE(EqualWidth(15))`` by default.
    lens : lens, optional
        What to look at; by default the event of two classes, and the confidence of more.
    classes : sequence, optional
        The label of each column of the predictions. Without it labels are class indices, or columns have their names.
    input : {"probabilities", "logits"}
        What predictions are, as in `caltest.calibration_test`. torchmetrics takes numbers outside [0, 1] for logits;
        here they are refused unless this is given, and kept as probabilities in float64.

    Raises
    ------
    TypeError, ValueError
        If ``statistic`` is no statistic, or combines tests and estimates no error; if ``lens`` is no lens, or
        ``input`` none of its words.

    See Also
    --------
    caltest.calibration_error : The same number of arrays.
    caltest.streaming.CalibrationState : Sums in constant memory, for streams without end.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> metric = caltest.streaming.CalibrationMetric()
    >>> for start in range(0, 10_000, 256):
    ...     _ = metric.update(y_true[start : start + 256], y_prob[start : start + 256])
    >>> round(metric.compute(), 6)
    0.03978
    >>> metric
    CalibrationMetric(statistic=ECE(partition=EqualWidth(15))), 10,000 observations
    >>> result = metric.test(rng=0)
    >>> result.rejected, result.pvalue
    (True, 0.0001)
    """

    @answers_other_names
    def __init__(
        self,
        statistic: Statistic | str | None = None,
        *,
        lens: LensLike | None = None,
        classes: Sequence[Any] | None = None,
        input: str = "probabilities",  # noqa: A002
    ) -> None:
        self.statistic = validate_estimate(ECE(EqualWidth(15)) if statistic is None else statistic)
        wrong = lens is not None and (not callable(lens) or isinstance(lens, type))
        refuse_if(wrong, f"`lens` must be a lens such as Confidence(), got {lens!r}.", right_type=False)
        self.lens = lens
        self._input = validate_input(input, "input")
        self._given = None if classes is None else list(classes)
        self.reset()

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return sum(map(len, self._labels))

    def reset(self) -> Self:
        """Forget all observations.

        Returns
        -------
        CalibrationMetric
            The metric itself.
        """
        self._classes = self._given
        self._n_classes: int | None = None
        self._labels: list[Integers] = []
        self._probs: list[NDArray[Any]] = []
        return self

    @answers_other_names
    def update(self, y_true: ArrayLike, y_prob: ArrayLike) -> Self:
        """Add a batch, of which copies are kept; nothing is added if it is refused.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels: class indices from 0, booleans for two classes, or labels of ``classes``.
        y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
            Predicted probabilities, or logits if the metric was made for them; one dimension is the positive class.

        Returns
        -------
        CalibrationMetric
            The metric itself.

        Raises
        ------
        ValueError
            If the batch is empty, a label is unknown or a prediction no probability; if the classes are not those of
            the batches before.

        Examples
        --------
        >>> CalibrationMetric().update([0, 1], [0.25, 0.5]).update([1], [0.9]).n_samples
        3
        """
        prob, outcome, classes = _read(y_true, y_prob, self._classes, input=self._input)
        self._add([outcome.copy()], [_kept(prob)], prob.shape[1], classes)
        return self

    def merge_state(self, *others: CalibrationMetric) -> Self:
        """Add the observations of other metrics, such as those of other processes, which are not changed.

        Parameters
        ----------
        *others : CalibrationMetric
            Metrics with the same statistic and lens. They can be pickled to be sent.

        Returns
        -------
        CalibrationMetric
            The metric itself.

        Raises
        ------
        TypeError, ValueError
            If one of them is no metric; if it is this one, or its statistic, lens or classes differ.

        Examples
        --------
        >>> a, b = CalibrationMetric().update([0, 1], [0.25, 0.5]), CalibrationMetric().update([1], [0.9])
        >>> a.merge_state(b).n_samples
        3
        """
        for other in others:
            if not isinstance(other, CalibrationMetric):
                refuse(f"`others` must be metrics, got {type(other).__name__}.", TypeError)
            refuse_if(other is self, "`others` must be other metrics, got this one: it would count twice.")
            same = other.statistic == self.statistic and other.lens == self.lens
            refuse_if(not same, f"`others` must be {self._code}, got {other._code}.")
        filled = [other for other in others if other._n_classes is not None]
        for other in filled:
            (self if self._n_classes is not None else filled[0])._agree(other._n_classes, other._classes)
        for other in filled:
            self._add(other._labels, other._probs, other._n_classes, other._classes)
        return self

    def compute(self) -> float:
        """Return the value of the statistic on all observations, as `caltest.calibration_error` does.

        Returns
        -------
        float
            The value. Another order of batches changes it by rounding only.

        Raises
        ------
        ValueError
            If there are no observations.
        """
        labels, prob = self._observations()
        lens = self.lens if self.lens is not None else Canonical() if self._n_classes == 2 else Confidence()
        return calibration_error(labels, prob, statistic=self.statistic, lens=lens)

    def test(self, **options: Any) -> TestResult:
        """Test whether the model is calibrated; its ``verdict`` has the decision, the size and the direction.

        Parameters
        ----------
        **options
            Those of `caltest.calibration_test`, such as ``statistic``, ``n_resamples`` and ``rng``; arrays such as
            ``groups`` have a value for each observation in the order of the batches. As there the whole prediction is
            tested by default, unless the metric was made with a lens.

        Returns
        -------
        caltest.results.TestResult
            Prints as a report.

        Raises
        ------
        TypeError, ValueError
            If there are no observations; as `caltest.calibration_test`.

        Examples
        --------
        >>> CalibrationMetric().update([0, 1, 1], [0.25, 0.5, 0.9]).test(rng=0).rejected
        False
        """
        labels, prob = self._observations()
        if self._classes is not None:
            named = np.empty(len(self._classes), dtype=object)
            named[:] = self._classes
            labels, options = named[labels], {"classes": self._classes, **options}
        return calibration_test(labels, prob, **({} if self.lens is None else {"lens": self.lens}) | options)

    def __repr__(self) -> str:
        return f"{self._code}, {counted(self.n_samples)}"

    @property
    def _code(self) -> str:
        lens = "" if self.lens is None else f", lens={describe(self.lens)}"
        return f"CalibrationMetric(statistic={self.statistic!r}{lens})"

    def _agree(self, n_classes: int | None, classes: list[Any] | None) -> None:
        """Refuse observations of other classes than those that are here, or were given."""
        differs = self._n_classes not in {None, n_classes} or self._classes != classes
        if differs and (self._n_classes is not None or self._classes is not None):
            before, now = _in_words(self._n_classes, self._classes), _in_words(n_classes, classes)
            refuse(f"all batches must have the same classes, got {before} before and {now} now.")

    def _add(
        self, labels: list[Integers], probs: list[NDArray[Any]], n_classes: int | None, classes: list[Any] | None
    ) -> None:
        self._agree(n_classes, classes)
        self._n_classes, self._classes = n_classes, classes
        self._labels += labels
        self._probs += probs

    def _observations(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return labels and predictions, which are one batch from then on."""
        refuse_if(not self._labels, "the metric has no observations; call `update` first.")
        self._labels, self._probs = [np.concatenate(self._labels)], [np.concatenate(self._probs)]
        return self._labels[0], self._probs[0]


def _in_words(n_classes: int | None, classes: list[Any] | None) -> str:
    return f"{n_classes} classes without names" if classes is None else f"the classes {classes}"


@reads_arguments
def _read(
    y_true: ArrayLike, y_prob: ArrayLike, classes: Sequence[Any] | None, **_: Unpack[InputOption]
) -> tuple[NDArray[Any], Integers, list[Any] | None]:
    """Return predictions, class indices and the label of each column."""
    prob, outcome = validate_given_problem(y_true, y_prob, classes)
    return prob, outcome, None if classes is None else list(classes)


def _kept(prob: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of predictions in float32 if that loses nothing; of two classes the probability of the event."""
    prob = prob[:, 1] if prob.shape[1] == 2 else prob
    small = prob.astype(np.float32)
    return small if np.array_equal(small, prob) else prob.copy()
