"""Recalibration by a fitted map whose values are averaged in cells (Kumar, Liang and Ma 2019)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from caltest.predictions._equal_mass import EqualMass
from caltest.predictions._partitions import Partition
from caltest.recalibration._base import Recalibrator
from caltest.recalibration._objective import Objective
from caltest.recalibration._one_vs_rest import Map, OneVsRest
from caltest.recalibration._platt_scaling import PlattScaling
from caltest.recalibration._steps import evaluate_steps, fit_steps, validate_cells

Floats = NDArray[np.float64]


class ScalingBinning(OneVsRest):
    r"""Recalibration by a fitted map whose values are averaged in cells (Kumar, Liang and Ma 2019).

    .. math:: \gamma_k(p) = \operatorname{mean} \{ g_k(p_i) : g_k(p_i) \in B_k(g_k(p)) \}

    A map g is fitted to the labels, its values for each class are cut into cells (bins), and each value becomes the
    mean value in its cell. Rows are divided by their sums. As the map has few values, its remaining error can be
    estimated, and as values and not labels are averaged, it varies less than `HistogramBinning`.

    Parameters
    ----------
    recalibrator : Recalibrator, optional
        The method that fits g; `PlattScaling` by default, as in the paper. Its ``input`` and ``classes`` do not matter.
    partition : EqualMass, EqualWidth or Edges, optional
        The cells of the values of g; ``EqualMass(10)`` by default. A cell without observations has its midpoint as
        value.
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.

    Attributes
    ----------
    recalibrator_ : Recalibrator
        The fitted method.
    maps_ : list of tuples of arrays
        Inner edges (n_cells - 1,) and values (n_cells,) of the values of g, for each class.
    classes_ : array of shape (n_classes,)
        The label of each column of `predict_proba`.

    Raises
    ------
    TypeError
        If ``recalibrator`` is no recalibration method, or ``partition`` no partition.
    ValueError
        If the cells of ``partition`` are not intervals.

    See Also
    --------
    HistogramBinning : Means of labels in cells.

    Notes
    -----
    The theorems of the paper have three sets of observations: for g, for the cells, and for the means. All three steps
    use the same observations here, as they do in the authors' program (uncertainty-calibration). Weights count in g and
    in the means, not in the cells. The map has ties and may change the ranking of classes.

    References
    ----------
    A. Kumar, P. Liang and T. Ma (2019), Verified uncertainty calibration, NeurIPS, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> import caltest
    >>> from caltest.recalibration import ScalingBinning
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> binning = ScalingBinning().fit(y_prob[:5000], y_true[:5000])
    >>> len(binning.maps_[0][1])
    10
    """

    _fitted: ClassVar[tuple[str, ...]] = ("recalibrator_",)

    def __init__(
        self,
        recalibrator: Recalibrator | None = None,
        partition: Partition | None = None,
        *,
        input: str = "probabilities",  # noqa: A002
        classes: Any = None,
    ) -> None:
        self.recalibrator = recalibrator
        self.partition = partition
        self.input = input
        self.classes = classes

    def _validate(self) -> None:
        validate_cells(self.partition)
        if self.recalibrator is not None and not isinstance(self.recalibrator, Recalibrator):
            msg = f"`recalibrator` must be a recalibration method such as PlattScaling(), got {self.recalibrator!r}."
            raise TypeError(msg)

    def _fit(self, values: NDArray[Any], outcome: NDArray[np.int64], weight: Floats | None) -> None:
        method = PlattScaling() if self.recalibrator is None else clone(self.recalibrator)
        self.recalibrator_ = method.set_params(input="probabilities", classes=list(range(values.shape[1])))
        self.recalibrator_.fit(values, outcome, weight)
        super()._fit(self.recalibrator_.predict_proba(values), outcome, weight)

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        return super()._map(self.recalibrator_.predict_proba(values))

    def _fit_map(
        self, score: NDArray[Any], event: NDArray[np.bool_], weight: Floats | None
    ) -> tuple[Map, Objective | None]:
        partition = EqualMass(10) if self.partition is None else self.partition
        return fit_steps(partition, score, score.astype(np.float64), weight), None

    def _evaluate(self, fitted: Map, score: NDArray[Any]) -> Floats:
        return evaluate_steps(fitted, score)
