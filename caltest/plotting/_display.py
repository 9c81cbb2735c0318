"""The reliability diagram with the interface of scikit-learn's `CalibrationDisplay`, and with bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation.curves._reliability_curve import ReliabilityCurve, reliability_curve
from caltest.plotting._axes import literal, single
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._arguments import read_problem
from caltest.predictions.inputs._class_columns import plain_dates
from caltest.predictions.inputs._frames import read_observations, refuse_other_indexes
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import require, validate_choice, validate_count, validate_prob
from caltest.results._description import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_REFERENCE = "Perfectly calibrated"


class ReliabilityDisplay:
    r"""Reliability diagram of a probability of two classes, with the interface of scikit-learn's `CalibrationDisplay`.

    It takes the same arguments, has the same attributes and draws the same points: the frequency of the positive class
    against the average prediction in each bin. Besides, every point has a bar. The consistency bar of level
    :math:`\gamma` holds the frequency of its bin with probability :math:`\gamma` at least if the model is calibrated;
    it is computed from the exact Poisson-binomial distribution (`caltest.reliability_curve`). A point outside its bar
    is evidence against calibration, a point inside is not.

    Use `from_estimator` or `from_predictions`.

    Parameters
    ----------
    prob_true : array of shape (n_bins,)
        Frequency of the positive class in each occupied bin.
    prob_pred : array of shape (n_bins,)
        Average predicted probability in each occupied bin.
    y_prob : array of shape (n_samples,)
        Predicted probabilities of the positive class.
    estimator_name : str, optional
        Name in the legend.
    pos_label : int, float, bool or str, optional
        The positive class, named in the labels of the axes.
    curve : ReliabilityCurve, optional
        Where the bars come from; without it none are drawn.

    Attributes
    ----------
    line_ : matplotlib.lines.Line2D
        The points.
    bars_ : matplotlib.collections.LineCollection or None
        The bars.
    ax_ : matplotlib.axes.Axes
        The axes.
    figure_ : matplotlib.figure.Figure
        The figure of the axes.

    See Also
    --------
    caltest.reliability_curve : The data, with more kinds of bars, several classes, weights and groups.
    caltest.calibration_test : Is the model calibrated?

    References
    ----------
    J. Bröcker and L. A. Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = [0, 0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.8, 0.9]
    >>> display = caltest.ReliabilityDisplay.from_predictions(y_true, y_prob, n_bins=2)
    >>> display.prob_true.round(3), display.prob_pred.round(3)
    (array([0.333, 0.667]), array([0.267, 0.767]))
    """

    line_: Any
    bars_: Any
    ax_: Axes
    figure_: Any

    def __init__(
        self,
        prob_true: Floats,
        prob_pred: Floats,
        y_prob: Floats,
        *,
        estimator_name: str | None = None,
        pos_label: Any = None,
        curve: ReliabilityCurve | None = None,
    ) -> None:
        self.prob_true = prob_true
        self.prob_pred = prob_pred
        self.y_prob = y_prob
        self.estimator_name = estimator_name
        self.pos_label = pos_label
        self.curve = curve

    def plot(self, *, ax: Axes | None = None, name: str | None = None, ref_line: bool = True, **kwargs: Any) -> Self:
        """Draw the points, their bars and the diagonal.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            What to draw into; new axes by default.
        name : str, optional
            Name in the legend; ``estimator_name`` by default.
        ref_line : bool
            Whether to draw the diagonal.
        **kwargs
            Passed to `matplotlib.axes.Axes.plot` for the points.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        self.ax_ = single(ax, (6.4, 5.6))
        self.figure_ = self.ax_.figure
        if ref_line and _REFERENCE not in self.ax_.get_legend_handles_labels()[1]:
            self.ax_.plot([0, 1], [0, 1], "k:", label=_REFERENCE)
        label = self.estimator_name if name is None else name
        look: dict[str, Any] = {"marker": "s", "linestyle": "-"} | ({} if label is None else {"label": literal(label)})
        short = {"c": "color", "ls": "linestyle", "lw": "linewidth", "ms": "markersize"}
        look |= {short.get(key, key): value for key, value in kwargs.items()}
        self.line_ = self.ax_.plot(self.prob_pred, self.prob_true, **look)[0]
        self.bars_ = None if self.curve is None else self._draw_bars(self.curve)
        if self.ax_.get_legend_handles_labels()[1]:
            self.ax_.legend(loc="best")
        event = "" if self.pos_label is None else f" (Positive class: {literal(self.pos_label)})"
        self.ax_.set(xlabel=f"Mean predicted probability{event}", ylabel=f"Fraction of positives{event}")
        return self

    def _draw_bars(self, curve: ReliabilityCurve) -> Any:
        """Return the bars, in the colour of the points; the legend has one entry for those of all models."""
        label = f"{percent(curve.confidence_level)} {curve.bars} bars"
        known = label in self.ax_.get_legend_handles_labels()[1]
        look: dict[str, Any] = {"linewidth": 6, "alpha": 0.3, "zorder": self.line_.get_zorder() - 0.5}
        look |= {} if known else {"label": label}
        return self.ax_.vlines(curve.predicted, curve.bar_lower, curve.bar_upper, color=self.line_.get_color(), **look)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,  # noqa: N803
        y: ArrayLike,
        *,
        n_bins: int = 5,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        ref_line: bool = True,
        bars: str = "consistency",
        confidence_level: float = 0.9,
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability diagram of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba`` and two classes; a pipeline, for example.
        X : array-like, sparse matrix or data frame
            Features of the observations.
        y : array-like of shape (n_samples,)
            Labels.
        n_bins : int
            Number of bins.
        strategy : {"uniform", "quantile"}
            Bins of equal width, or between quantiles of the predictions.
        pos_label : int, float, bool or str, optional
            The positive class; by default the second of ``estimator.classes_``.
        name : str, optional
            Name in the legend; that of the class of the estimator by default.
        ax : matplotlib.axes.Axes, optional
            What to draw into; new axes by default.
        ref_line : bool
            Whether to draw the diagonal.
        bars : {"consistency", "confidence"}
            Quantiles of the frequency if the model is calibrated; or Clopper-Pearson intervals of the frequency.
        confidence_level : float
            Level of each bar.
        **kwargs
            Passed to `matplotlib.axes.Axes.plot` for the points.

        Returns
        -------
        ReliabilityDisplay
            What was drawn.

        Raises
        ------
        TypeError
            If ``estimator`` has no ``predict_proba``.
        ValueError
            If the estimator has more than two classes, ``pos_label`` is none of them, or as in `from_predictions`.

        See Also
        --------
        from_predictions : The same for probabilities.

        Examples
        --------
        >>> import caltest
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.naive_bayes import GaussianNB
        >>> features, labels = load_breast_cancer(return_X_y=True)
        >>> model = GaussianNB().fit(features[:300], labels[:300])
        >>> display = caltest.ReliabilityDisplay.from_estimator(model, features[300:], labels[300:])
        >>> display.estimator_name, display.pos_label, display.curve.outside.sum()
        ('GaussianNB', 1, np.int64(2))
        """
        if not hasattr(estimator, "predict_proba"):
            refuse(f"`estimator` must have predict_proba, which {type(estimator).__name__} lacks.", TypeError)
        classes = np.asarray(plain_dates(estimator.classes_)).tolist()
        if len(classes) != 2:
            refuse(f"`estimator` must have two classes, got {len(classes)}; use caltest.reliability_curve(...).plot().")
        positive = classes[1] if pos_label is None else pos_label
        require(positive in classes, f"`pos_label` must be one of the classes {classes}", pos_label)
        y_prob = np.asarray(estimator.predict_proba(X))[:, classes.index(positive)]
        kwargs |= {"n_bins": n_bins, "strategy": strategy, "bars": bars, "confidence_level": confidence_level}
        named = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, y_prob, pos_label=positive, name=named, ax=ax, ref_line=ref_line, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        n_bins: int = 5,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        ref_line: bool = True,
        bars: str = "consistency",
        confidence_level: float = 0.9,
        input: str = "probabilities",  # noqa: A002
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability diagram of predicted probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels, of at most two values.
        y_prob : array-like of shape (n_samples,)
            Predicted probability of the positive class.
        n_bins : int
            Number of bins.
        strategy : {"uniform", "quantile"}
            Bins of equal width, or between quantiles of the predictions.
        pos_label : int, float, bool or str, optional
            The positive class; 1 by default, if the labels are 0 and 1 or -1 and 1.
        name : str, optional
            Name in the legend; "Classifier" by default.
        ax : matplotlib.axes.Axes, optional
            What to draw into; new axes by default.
        ref_line : bool
            Whether to draw the diagonal.
        bars : {"consistency", "confidence"}
            Quantiles of the frequency if the model is calibrated; or Clopper-Pearson intervals of the frequency.
        confidence_level : float
            Level of each bar.
        input : {"probabilities", "logits"}
            What predictions are, as in `caltest.calibration_test`.
        **kwargs
            Passed to `matplotlib.axes.Axes.plot` for the points.

        Returns
        -------
        ReliabilityDisplay
            What was drawn.

        Raises
        ------
        ValueError
            If the labels have more than two values, or ``pos_label`` is missing where they are not numbers or is not
            among them; if ``n_bins`` < 1 or ``strategy`` is unknown; if ``y_prob`` is not one-dimensional, has values
            outside [0, 1] or the name of the other class; if lengths or indexes differ.

        See Also
        --------
        from_estimator : The same for a fitted classifier.

        Examples
        --------
        >>> import caltest
        >>> display = caltest.ReliabilityDisplay.from_predictions(["no", "yes"], [0.2, 0.7], pos_label="yes")
        >>> display.ax_.get_xlabel()
        'Mean predicted probability (Positive class: yes)'
        """
        validate_count(n_bins, "n_bins")
        validate_choice(strategy, "strategy", ("uniform", "quantile"))
        label, event, positive = _read(y_true, y_prob, pos_label, input)
        if event.ndim != 1:
            refuse(
                f"`y_prob` must hold one probability for each observation, got shape {event.shape}; of two classes "
                "pass that of the positive one, y_prob[:, 1], for more call caltest.reliability_curve(...).plot()."
            )
        event = validate_prob(event)[:, 1]
        width = np.linspace(0, 1, n_bins + 1)
        edges = (width if strategy == "uniform" else np.percentile(event, 100 * width))[1:-1]
        how: dict[str, Any] = {"partition": _Between(edges), "bars": bars, "confidence_level": confidence_level}
        curve = reliability_curve(label == positive, event, **how)
        named = "Classifier" if name is None else name
        display = cls(curve.observed, curve.predicted, event, estimator_name=named, pos_label=positive, curve=curve)
        return display.plot(ax=ax, ref_line=ref_line, **kwargs)


def _read(y_true: Any, y_prob: Any, pos_label: Any, kind: str) -> tuple[NDArray[Any], NDArray[Any], Any]:
    """Return labels, probabilities and the positive class; refuse what contradicts them."""
    refuse_other_indexes({"y_true": y_true, "y_prob": y_prob})
    label = np.asarray(plain_dates(read_observations(y_true, "y_true")))
    positive = _positive(label, pos_label)
    other = [value for value in _values(label) if value != positive]
    try:
        classes = [*other, positive] if len(other) == 1 else None
        found = read_problem({"y_true": label}, {"y_prob": y_prob}, classes, kind)
    except ValueError as error:  # the labels are not given by `classes` here
        refuse(str(error).replace(f"classes={[positive, *other]}", f"pos_label={other[0]!r}" if other else ""))
    return label, np.asarray(found.probs["y_prob"]), positive


class _Between:
    """Bins between inner edges, closed above, as scikit-learn cuts them; edges may be 0, 1 or repeated."""

    def __init__(self, edges: Floats) -> None:
        self._edges = edges

    def __call__(self, prob: Floats) -> Integers:
        return np.searchsorted(self._edges, prob[:, 1])


def _values(label: NDArray[Any]) -> list[Any]:
    """Return the distinct labels, in their order where they have one."""
    import pandas as pd

    require(label.ndim == 1, "`y_true` must have shape (n_samples,)", label.shape)
    missing = np.flatnonzero(pd.isna(label))
    if missing.size:
        refuse(f"`y_true` must have a label for every observation, got {label[missing[0]]} in row {missing[0]}.")
    values = list(dict.fromkeys(label.tolist()))
    return sorted(values) if len({type(value) for value in values}) == 1 else values


def _positive(label: NDArray[Any], pos_label: Any) -> Any:
    """Return the label of the positive class; the default is that of scikit-learn."""
    values = _values(label)
    if len(values) > 2:
        refuse(f"`y_true` must have two values, got {len(values)}; use caltest.reliability_curve(...).plot().")
    if pos_label is not None:
        if pos_label not in values and len(values) == 2:
            refuse(f"`pos_label` must be one of the labels {values}, got {pos_label!r}.")
        return pos_label
    if set(values) <= {0, 1} or set(values) <= {-1, 1}:
        return 1
    msg = f"`pos_label` must be given for the labels {values}: which of them do the probabilities belong to?"
    raise ValueError(msg)
