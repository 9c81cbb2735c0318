"""Calibration during training: accuracy, likelihood, error and p-value of every epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.comparison._options import TrackOptions
from caltest.estimation.scores._score_decomposition import accuracy_of, log_of, mean_of
from caltest.hypothesis_tests._calibration import run_test
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import induce
from caltest.predictions.inputs._arguments import read_problem, reads_arguments, warn_of_repeated_index
from caltest.predictions.inputs._frames import refuse_other_indexes
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if, require, validate_design, validate_problem, validate_rng
from caltest.resampling import Consistency
from caltest.results import Note, Result
from caltest.results._decision import equate_pvalue, rejects
from caltest.results._description import Description, Table, percent
from caltest.results._naming import describe
from caltest.results._picture import Picture
from caltest.results._progress import part_of, reporting
from caltest.statistics import ECE, Statistic
from caltest.statistics._base import default_lens, validate_estimate, validate_statistic

Epochs = Iterable[ArrayLike] | Iterable[tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TrainingTrack(Result):
    """Result of `training_track`; one entry per epoch of every run.

    Attributes
    ----------
    run : tuple of str
        The run of each entry; empty names if there is only one.
    epoch : array of int of shape (n_entries,)
        Number of the epoch in its run, from 1.
    accuracy : array of shape (n_entries,)
        Share of the observations whose most probable class is the right one.
    log_score : array of shape (n_entries,)
        Negative log-likelihood per observation, in nats.
    error : array of shape (n_entries,)
        Estimate of the calibration error.
    noise_floor : array of shape (n_entries,)
        Average of this estimate for a calibrated model with the predictions of the epoch.
    pvalue : array of shape (n_entries,)
        P-value of calibration.
    error_statistic, test_statistic : Statistic
        The statistics of the error and of the test, as objects.
    lens : lens
        The lens of both.
    lens_name : str
        The lens in words.
    n_resamples : int
        Number of draws of each test.
    alpha : float
        Level of the conclusion.
    """

    run: tuple[str, ...]
    epoch: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    log_score: NDArray[np.float64]
    error: NDArray[np.float64]
    noise_floor: NDArray[np.float64]
    pvalue: NDArray[np.float64]
    error_statistic: Statistic
    test_statistic: Statistic
    lens: LensLike
    lens_name: str
    n_resamples: int
    alpha: float = 0.05

    plot = Picture("plot_training")
    _derived: ClassVar[tuple[str, ...]] = ("best", "conclusion", "notes")
    _columns: ClassVar[tuple[str, ...]] = (
        *("run", "epoch", "accuracy", "log_score", "error", "noise_floor", "pvalue", "best"),
    )

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs, in their order."""
        return tuple(dict.fromkeys(self.run))

    def entries(self, run: str) -> NDArray[np.int64]:
        """Return the positions of the entries of a run, in the order of the epochs."""
        return np.flatnonzero([name == run for name in self.run])

    @property
    def best(self) -> NDArray[np.bool_]:
        """Whether an entry has the smallest negative log-likelihood of its run; of equal ones the first."""
        best = np.zeros(len(self.run), dtype=bool)
        for run in self.runs:
            entries = self.entries(run)
            if np.isfinite(self.log_score[entries]).any():
                best[entries[np.argmin(self.log_score[entries])]] = True
        return best

    @property
    def conclusion(self) -> str:
        """The decisions at the best epochs, those of smallest negative log-likelihood, in words."""
        best, level = np.flatnonzero(self.best), percent(self.alpha)
        rejected = rejects(self.pvalue[best], self.alpha)
        if not best.size:
            return "There is no best epoch, because the negative log-likelihood is infinite at every epoch."
        if best.size == 1:
            decision = "rejected" if rejected[0] else "not rejected"
            when = f"At the best epoch (epoch {self.epoch[best[0]]}, smallest negative log-likelihood)"
            return f"{when} calibration is {decision} at the {level} level ({equate_pvalue(self.pvalue[best[0]])})."
        found = f"calibration is rejected at the {level} level in {int(rejected.sum())} of {best.size} runs"
        return f"At the best epoch of each run (smallest negative log-likelihood) {found}."

    @property
    def notes(self) -> tuple[Note, ...]:
        """When the p-values are valid."""
        text = (
            "Each p-value is valid for an epoch that was chosen beforehand. An epoch that was chosen by these labels, "
            "such as the best one, must be tested on other observations."
        )
        return (Note("C801", text), *self._input_notes)

    def _describe(self) -> Description:
        last = np.append(np.array(self.run[1:]) != np.array(self.run[:-1]), True)
        best = self.best
        rows = [
            {name: getattr(self, name)[i] for name in self._columns}
            | {"which": " ".join(word for word, holds in (("best", best[i]), ("last", last[i])) if holds)}
            for i in np.flatnonzero(best | last)
        ]
        columns = {} if self.runs == ("",) else {"run": "{run}"}
        columns |= {"epoch": "{epoch}", "accuracy": "{accuracy:.4f}", "log score": "{log_score:.4g}"}
        columns |= {"error": "{error:.4g}", "noise floor": "{noise_floor:.4g}", "p-value": "{pvalue:p}"}
        statistic, tested = describe(self.error_statistic), describe(self.test_statistic)
        count = f"{len(self.run)} epochs" + (f" of {len(self.runs)} runs" if len(self.runs) > 1 else "")
        return Description(
            f"Calibration during training ({statistic}, {self.lens_name}, {count})",
            [self.conclusion],
            [Table.of(rows, columns | {"": "{which}"}, left=("",))],
            [
                "Log score: the negative log-likelihood per observation.",
                f"Noise floor: the average of {statistic} if the model is calibrated.",
                f"p-value: of calibration, by {tested} with {self.n_resamples:,} draws at most.",
            ],
            self.notes,
        )


@reads_arguments
def training_track(
    y_true: ArrayLike | None,
    epochs: Epochs | Mapping[str, Epochs],
    *,
    statistic: Statistic | str | None = None,
    test_statistic: Statistic | str | None = None,
    **options: Unpack[TrackOptions],
) -> TrainingTrack:
    r"""Track calibration during training (figure 3 of Vaicenavicius et al. 2019).

    For every epoch, compute the accuracy, the negative log-likelihood :math:`-\frac1n \sum_i \log p_{i, y_i}`, an
    estimate of the calibration error with its noise floor, and the p-value of calibration, with predictions fixed and
    labels simulated. Predictions must be for held-out observations. The same observations may serve every epoch. Each
    p-value is then valid for an epoch that was not chosen by these labels; the p-values depend on each other.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
        None if each epoch has its own labels.
    epochs : iterable of array-like, or mapping of names to such iterables
        Predicted probabilities ``(n_samples, n_classes)`` or ``(n_samples,)`` after each epoch, for the observations of
        ``y_true``; if that is None, pairs ``(y_true, y_prob)``. They are read one by one and not kept, so that a
        generator may train the model meanwhile. A mapping holds several runs, for instance with different
        initialisations, which are read one after the other.
    lens : lens, optional
        What the estimate and the test look at; by default the whole prediction, or the confidence if a statistic needs
        two outcomes. Accuracy and log-likelihood are always those of the whole prediction.
    statistic : Statistic, optional
        The estimate of the calibration error; ``ECE()`` by default.
    test_statistic : Statistic, optional
        The statistic of the test; the estimate by default. `ECE` has little power against under-confidence,
        ``Omnibus()`` has more.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation, the same in all epochs: how much it counts.
    groups : array-like of shape (n_samples,), optional
        The group of each observation, the same in all epochs, if observations of a group may depend on each other.
    n_resamples : int, optional
        Number of draws in each test; 999 by default.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``. If the number of epochs is
        not known beforehand, because they come from a generator, this is the progress of each epoch.

    Returns
    -------
    TrainingTrack
        Prints the best and the last epoch of every run; ``to_frame()`` has all of them; ``plot()`` draws them.

    Raises
    ------
    TypeError
        If ``epochs`` is no iterable, a statistic is none, or ``lens``, ``n_resamples``, ``workers``, ``rng``
        or ``progress`` has another wrong type.
    ValueError
        If there is no epoch, or the labels and predictions of an epoch are refused by `calibration_test` (the message
        names the epoch); if ``statistic`` is a combination of tests; if ``alpha`` is not strictly between 0 and 1, or
        ``n_resamples`` < 1.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 5.2 and figure 3.

    Examples
    --------
    A model that becomes over-confident, because its logits are scaled up epoch by epoch:

    >>> import caltest
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logit = rng.normal(size=1000)
    >>> y_true = rng.random(1000) < 1 / (1 + np.exp(-2 * logit))
    >>> def train():
    ...     for scale in (0.5, 2.0, 5.0):
    ...         yield 1 / (1 + np.exp(-scale * logit))
    >>> found = caltest.training_track(y_true, train(), rng=0)
    >>> found.to_frame()[["epoch", "log_score", "error", "pvalue", "best"]].round(3)
       epoch  log_score  error  pvalue   best
    0      1      0.585  0.151   0.000  False
    1      2      0.504  0.032   0.241   True
    2      3      0.702  0.146   0.000  False
    """
    chosen = validate_estimate(ECE() if statistic is None else statistic)
    tested = chosen if test_statistic is None else validate_statistic(test_statistic)
    sample_weight, groups, classes = options["sample_weight"], options["groups"], options["classes"]
    n_epochs, lens = _count(epochs), options["lens"]
    statistics = [chosen] if tested is chosen else [chosen, tested]
    drawn: dict[str, Any] = {"n_resamples": options["n_resamples"], "workers": options["workers"], "method": "auto"}
    drawn["rng"] = validate_rng(options["rng"])
    rows: list[tuple[Any, ...]] = []
    look: LensLike = Canonical() if lens is None else lens
    with reporting(options["progress"], "testing epochs") as report:
        for run, number, (labels, y_prob) in _read(y_true, epochs):
            done = len(rows) if n_epochs else 0
            whole = part_of(report, done, n_epochs or 1)
            try:
                refuse_other_indexes({"y_true": labels, "y_prob": y_prob, "sample_weight": sample_weight})
                if groups is None:
                    warn_of_repeated_index(labels, y_prob)
                read = read_problem({"y_true": labels}, {"y_prob": y_prob}, classes)
                prob, outcome = validate_problem(read.labels["y_true"], read.probs["y_prob"], read.classes)
                look = _default_lens(statistics, prob.shape[1]) if lens is None else lens
                sample = induce(prob, outcome, lens=look, **validate_design(sample_weight, groups, len(prob)))
                tests = [
                    run_test(
                        statistic,
                        sample,
                        Consistency(),
                        lens=look,
                        progress=part_of(whole, part, len(statistics)),
                        **drawn,
                    )
                    for part, statistic in enumerate(statistics)
                ]
            except ValueError as error:
                msg = f"`epochs`, {f'run {run}, ' if run else ''}epoch {number}: {error}"
                raise ValueError(msg) from None
            place = np.argsort(sample.row)
            prob, outcome = prob[sample.row[place]], outcome[sample.row[place]]
            weight = None if sample.weight is None else sample.weight[place]
            scores = [mean_of(score(prob, outcome), weight) for score in (accuracy_of, log_of)]
            rows.append((run, number, *scores, tests[0].statistic, tests[0].noise_floor, tests[-1].pvalue))
    refuse_if(not rows, "`epochs` must hold at least one epoch, got none.")
    runs, *numbers = zip(*rows, strict=True)
    found: dict[str, Any] = dict(zip(TrainingTrack._columns[1:-1], map(np.array, numbers), strict=True))
    track_of_epochs = TrainingTrack(
        run=runs,
        **found,
        error_statistic=chosen,
        test_statistic=tested,
        lens=look,
        lens_name=lens_name(look, read.classes),
        n_resamples=options["n_resamples"],
        alpha=options["alpha"],
    )
    return read.describe(track_of_epochs)


def _default_lens(statistics: Sequence[Statistic], n_classes: int) -> LensLike:
    """Return the default lens of several statistics: the confidence if one of them needs two outcomes."""
    lenses = [default_lens(statistic, n_classes) for statistic in statistics]
    return next((lens for lens in lenses if lens != Canonical()), Canonical())


def _count(epochs: Any) -> int | None:
    """Return the number of epochs of all runs; None if it is not known before they are read."""
    runs = list(epochs.values()) if isinstance(epochs, Mapping) else [epochs]
    return sum(map(len, runs)) if all(isinstance(run, Sized) for run in runs) else None


def _read(y_true: ArrayLike | None, epochs: Any) -> Iterator[tuple[str, int, tuple[ArrayLike, ArrayLike]]]:
    """Yield the name of the run, the number of the epoch, and its labels and predictions."""
    runs = epochs if isinstance(epochs, Mapping) else {"": epochs}
    what = "predictions" if y_true is not None else "pairs (y_true, y_prob)"
    for run, found in runs.items():
        must = f"`epochs` must be an iterable of {what}, or a mapping of such"
        require(isinstance(found, Iterable) and not isinstance(found, str), must, found, right_type=False)
        number = 0
        for number, epoch in enumerate(found, 1):
            is_pair = isinstance(epoch, tuple | list) and len(epoch) == 2
            if y_true is None and not is_pair:
                refuse(f"`epochs` must hold pairs (y_true, y_prob), got {type(epoch).__name__} in epoch {number}.")
            yield str(run), number, (epoch[0], epoch[1]) if y_true is None else (y_true, epoch)
        if not number and run:
            refuse(f"`epochs` must hold at least one epoch in every run, got none in {run!r}.")
