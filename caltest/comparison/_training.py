"""Calibration during training: accuracy, likelihood, errors, p-values and adaptive cells of every epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.comparison._options import TrackOptions
from caltest.estimation.scores._score_decomposition import accuracy_of, log_of, mean_of
from caltest.estimation.scores._scores import validate_errors_and_scores
from caltest.hypothesis_tests._calibration import run_tests
from caltest.hypothesis_tests._evidence import Evidence
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import induce
from caltest.predictions.inputs._arguments import read_problem, reads_arguments, warn_of_repeated_index
from caltest.predictions.inputs._frames import refuse_other_indexes
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if, require, validate_design, validate_problem, validate_rng
from caltest.resampling.engine._pvalues import correct_pvalues
from caltest.results import Note, Result
from caltest.results._decision import DecisionWord, decide, equate_pvalue, rejects
from caltest.results._description import Description, Table, counted, percent
from caltest.results._finding import Subject
from caltest.results._models_verdict import few_expected
from caltest.results._naming import describe
from caltest.results._picture import Picture
from caltest.results._progress import part_of, reporting
from caltest.statistics import ECE, Statistic
from caltest.statistics._base import default_lens, validate_statistic

if TYPE_CHECKING:
    import pandas as pd

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
    error : array of shape (n_statistics, n_entries)
        Estimates of the calibration error.
    noise_floor : array of shape (n_statistics, n_entries)
        Average of each estimate for a calibrated model with the predictions of the epoch.
    pvalue : array of shape (n_tests, n_entries)
        P-values of calibration, of each test statistic.
    smallest_possible_pvalue : array of shape (n_entries,)
        Adjusted p-value of the most extreme data; with few draws or groups it may be above every level.
    n_expected : array of shape (n_entries,)
        Expected number of the rarer one of events and other observations; of several classes of right and wrong
        predictions. With fewer than 5 an epoch at which calibration is not rejected decides nothing.
    edges : tuple of array of shape (n_entries, n_groups, n_cells) or None
        For each statistic over all classes with adaptive cells, such as `caltest.statistics.ACE`, the smallest
        prediction in each cell (bin) of each class, or of all classes together (n_groups is 1); NaN where a cell is
        empty. None for other statistics.
    statistics, test_statistics : tuple of Statistic
        The statistics of the errors and of the tests, as objects. They are the same, unless ``test_statistic`` was
        given, which is then the only test.
    lens : lens
        The lens of all.
    lens_name : str
        The lens in words.
    n_resamples : int
        Number of draws of each test.
    alpha : float
        Level of the conclusion.
    subject : Subject
        What sentences speak of.

    See Also
    --------
    caltest.training_track : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> epochs = [0.5 * y_prob + 0.5 / 3, y_prob]
    >>> track = caltest.training_track(y_true, epochs, n_resamples=99, rng=0)
    >>> track.epoch, track.accuracy.round(2)
    (array([1, 2]), array([0.58, 0.58]))
    """

    run: tuple[str, ...]
    epoch: Integers
    accuracy: Floats
    log_score: Floats
    error: Floats
    noise_floor: Floats
    pvalue: Floats
    smallest_possible_pvalue: Floats
    n_expected: Floats
    edges: tuple[Floats | None, ...]
    statistics: tuple[Statistic, ...]
    test_statistics: tuple[Statistic, ...]
    lens: LensLike
    lens_name: str
    n_resamples: int
    alpha: float = 0.05
    subject: Subject = field(default_factory=Subject)

    plot = Picture("plot_training")
    _derived: ClassVar[tuple[str, ...]] = ("best", "pvalue_adjusted", "decision", "conclusion", "notes")
    _left_out: ClassVar[frozenset[str]] = frozenset({"edges", "subject"})

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs, in their order."""
        return tuple(dict.fromkeys(self.run))

    def entries(self, run: str) -> Integers:
        """Return the positions of the entries of a run, in the order of the epochs."""
        return np.flatnonzero([name == run for name in self.run])

    @property
    def best(self) -> Booleans:
        """Whether an entry has the smallest negative log-likelihood of its run; of equal ones the first."""
        best = np.zeros(len(self.run), dtype=bool)
        for run in self.runs:
            entries = self.entries(run)
            if np.isfinite(self.log_score[entries]).any():
                best[entries[np.argmin(self.log_score[entries])]] = True
        return best

    @property
    def pvalue_adjusted(self) -> Floats:
        """P-values adjusted for the number of test statistics of an epoch by Holm's method, as ``pvalue``."""
        if len(self.pvalue) == 1:
            return self.pvalue
        return np.transpose([correct_pvalues(of_epoch) for of_epoch in self.pvalue.T])

    @property
    def decision(self) -> tuple[DecisionWord, ...]:
        """The decision of each entry at the level ``alpha``, by the smallest adjusted p-value.

        It is "undecidable" if calibration is not rejected and no p-value as small as ``alpha`` was possible, or fewer
        than 5 events or other observations were to be expected.
        """
        found = zip(self.pvalue_adjusted.min(axis=0), self.smallest_possible_pvalue, self.n_expected, strict=True)
        return tuple(decide(pvalue, self.alpha, smallest, number) for pvalue, smallest, number in found)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each statistic and entry as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Statistic, run, epoch, accuracy, negative log-likelihood, error with its noise floor, p-value with its
            adjustment for the number of test statistics, and whether the epoch is the best one of its run.
        """
        import pandas as pd

        return pd.DataFrame({name: column.ravel() for name, column in self._by_statistic().items()})

    def _by_statistic(self) -> dict[str, NDArray[Any]]:
        """Return the columns of the frame, ``(n_statistics, n_entries)``."""
        statistic = np.array([describe(one) for one in self.statistics], dtype=object)[:, None]
        names = ("run", "epoch", "accuracy", "log_score", "error", "noise_floor", "pvalue", "pvalue_adjusted", "best")
        columns = {"statistic": statistic} | {name: np.asarray(getattr(self, name)) for name in names}
        return {name: np.broadcast_to(column, self.error.shape) for name, column in columns.items()}

    @property
    def conclusion(self) -> str:
        """The decisions at the best epochs, those of smallest negative log-likelihood, in words."""
        best, level, n_tests = np.flatnonzero(self.best), percent(self.alpha), len(self.test_statistics)
        adjusted = self.pvalue_adjusted[:, best]
        smallest = adjusted.min(axis=0)
        decisions = [self.decision[i] for i in best]
        if not best.size:
            return "There is no best epoch, because the negative log-likelihood is infinite at every epoch."
        if best.size == 1:
            when = f"At the best epoch (epoch {self.epoch[best[0]]}, smallest negative log-likelihood)"
            by, name = "", "p"
            if n_tests > 1:
                which = str(rejects(adjusted, self.alpha).sum()) if decisions[0] == "rejected" else "any"
                by, name = f" by {which} of {n_tests} statistics", "smallest adjusted p"
            shown = equate_pvalue(smallest[0], name=name)
            if decisions[0] == "undecidable":
                return f"{when} these data do not decide about calibration: {self._unknown(best)} ({shown})."
            return f"{when} calibration is {decisions[0]} at the {level} level{by} ({shown})."
        found = f"calibration is rejected at the {level} level in {decisions.count('rejected')} of {best.size} runs"
        after = f", after adjustment for {n_tests} statistics" if n_tests > 1 else ""
        unknown = best[[decision == "undecidable" for decision in decisions]]
        more = (
            f" These data decide nothing in {unknown.size} of them: {self._unknown(unknown)}." if unknown.size else ""
        )
        return f"At the best epoch of each run (smallest negative log-likelihood) {found}{after}.{more}"

    def _unknown(self, entries: Integers) -> str:
        """Return why these entries decide nothing."""
        smallest = float(self.smallest_possible_pvalue[entries].min())
        if rejects(smallest, self.alpha):
            return few_expected(self.subject)
        return f"no {'adjusted ' * (len(self.pvalue) > 1)}p-value below {smallest:.4g} is possible"

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
        found = self._by_statistic()
        rows = [
            {name: column[s, i] for name, column in found.items()}
            | {"which": " ".join(word for word, holds in (("best", best[i]), ("last", last[i])) if holds)}
            for i in np.flatnonzero(best | last)
            for s in range(len(self.statistics))
        ]
        several, many_tests = len(self.statistics) > 1, len(self.test_statistics) > 1
        entry = ({} if self.runs == ("",) else {"run": "{run}"}) | {"epoch": "{epoch}"}
        scores = {"accuracy": "{accuracy:.4f}", "log score": "{log_score:.4g}"}
        errors = {"error": "{error:.4g}", "noise floor": "{noise_floor:.4g}", "p-value": "{pvalue:p}"}
        errors |= {"adjusted p": "{pvalue_adjusted:p}"} if many_tests else {}
        which = {"": "{which}"}
        if several:
            tables = [
                Table.of(rows[:: len(self.statistics)], entry | scores | which, left=("",)),
                Table.of(rows, entry | {"statistic": "{statistic}"} | errors, left=("statistic",)),
            ]
        else:
            tables = [Table.of(rows, entry | scores | errors | which, left=("",))]
        statistic = f"{len(self.statistics)} statistics" if several else describe(self.statistics[0])
        tested = "each statistic" if many_tests else describe(self.test_statistics[0])
        count = counted(len(self.run), "epoch") + (f" of {len(self.runs)} runs" if len(self.runs) > 1 else "")
        adjusted = f"Adjusted p: by Holm's method for the {len(self.test_statistics)} statistics of an epoch."
        return Description(
            f"Calibration during training ({statistic}, {self.lens_name}, {count})",
            [self.conclusion],
            tables,
            [
                "Log score: the negative log-likelihood per observation.",
                f"Noise floor: the average of {'each statistic' if several else statistic} if the model is calibrated.",
                f"p-value: of calibration, by {tested} with {self.n_resamples:,} draws at most.",
                *([adjusted] if many_tests else []),
            ],
            self.notes,
        )


@reads_arguments
def training_track(
    y_true: ArrayLike | None,
    epochs: Epochs | Mapping[str, Epochs],
    *,
    statistics: Statistic | str | Sequence[Statistic | str] | None = None,
    test_statistic: Statistic | str | None = None,
    input: str = "probabilities",  # noqa: A002
    **options: Unpack[TrackOptions],
) -> TrainingTrack:
    r"""Track calibration during training (figure 3 of Vaicenavicius et al. 2019).

    For every epoch, compute the accuracy, the negative log-likelihood :math:`-\frac1n \sum_i \log p_{i, y_i}`,
    estimates of the calibration error with their noise floors, and p-values of calibration, with predictions fixed and
    labels simulated. Several statistics share the simulated labels, and the smallest predictions of their adaptive
    cells (bins) are kept (Nixon et al. 2019, figures 2 and 5). Predictions must be for held-out observations. The same
    observations may serve every epoch. Each p-value is then valid for an epoch that was not chosen by these labels; the
    p-values depend on each other.

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
        What all statistics look at; by default the whole prediction, or the confidence if one of them needs two
        outcomes. Accuracy and log-likelihood are always those of the whole prediction.
    statistics : Statistic, str, or sequence of them, optional
        Estimates of the calibration error, and scores "brier", "log" and "spherical" as in `temperature_curve`;
        ``ECE()`` by default. A score above its noise floor means labels that are less probable than predicted, and
        its test detects over-confidence only.
    test_statistic : Statistic, optional
        The only statistic that tests; by default each estimate does, and p-values are adjusted for their number by
        Holm's method, not for the number of epochs. `ECE` has little power against under-confidence, ``Omnibus()`` has
        more.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation, the same in all epochs: how much it counts.
    groups : array-like of shape (n_samples,), optional
        The group of each observation, the same in all epochs, if observations of a group may depend on each other.
    input : {"probabilities", "logits"}
        What the predictions of all epochs are, as in `caltest.calibration_test`.
    n_resamples : int, optional
        Number of draws in each test; 999 by default.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``. If the number of epochs is
        not known beforehand, because they come from a generator, this is the progress of each epoch.

    Returns
    -------
    TrainingTrack
        Prints the best and the last epoch of every run; ``to_frame()`` has all of them; ``plot()`` draws them, and
        `caltest.plotting.plot_cell_edges` the adaptive cells.

    Raises
    ------
    TypeError
        If ``epochs`` is no iterable, a statistic is none, or ``lens``, ``n_resamples``, ``workers``, ``rng``
        or ``progress`` has another wrong type.
    ValueError
        If there is no epoch, or the labels and predictions of an epoch are refused by `calibration_test` (the message
        names the epoch); if one of ``statistics`` combines tests or occurs twice, or there is none; if ``alpha`` is not
        strictly between 0 and 1, or ``n_resamples`` < 1.

    See Also
    --------
    caltest.calibration_test : The test of a single epoch.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 5.2 and figure 3.
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, figures 2 and 5.

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

    Two statistics, and where the cells of one of them begin at the last epoch, for the event:

    >>> both = [caltest.ECE(), caltest.statistics.ACE(3)]
    >>> found = caltest.training_track(y_true, train(), statistics=both, n_resamples=99, rng=0)
    >>> found.error.shape, found.pvalue_adjusted[:, 1].tolist()
    ((2, 3), [0.27, 0.18])
    >>> found.edges[1][-1, 1].round(3)
    array([0.   , 0.086, 0.857])
    """
    chosen = validate_errors_and_scores(ECE() if statistics is None else statistics)
    tested = chosen if test_statistic is None else (validate_statistic(test_statistic),)
    sample_weight, groups, classes = options["sample_weight"], options["groups"], options["classes"]
    n_epochs, lens = _count(epochs), options["lens"]
    asked = [chosen] if tested is chosen else [chosen, tested]
    drawn: dict[str, Any] = {"n_resamples": options["n_resamples"], "workers": options["workers"], "method": "auto"}
    drawn["rng"] = validate_rng(options["rng"])
    rows: list[tuple[Any, ...]] = []
    ends: list[list[Floats | None]] = []
    look: LensLike = Canonical() if lens is None else lens
    with reporting(options["progress"], "testing epochs") as report:
        for run, number, (labels, y_prob) in _read(y_true, epochs):
            done = len(rows) if n_epochs else 0
            whole = part_of(report, done, n_epochs or 1)
            try:
                refuse_other_indexes({"y_true": labels, "y_prob": y_prob, "sample_weight": sample_weight})
                if groups is None:
                    warn_of_repeated_index(labels, y_prob)
                read = read_problem({"y_true": labels}, {"y_prob": y_prob}, classes, input)
                prob, outcome = validate_problem(read.labels["y_true"], read.probs["y_prob"], read.classes)
                look = _default_lens((*chosen, *tested), prob.shape[1]) if lens is None else lens
                sample = induce(prob, outcome, lens=look, **validate_design(sample_weight, groups, len(prob)))
                tests = [
                    run_tests(several, sample, lens=look, progress=part_of(whole, part, len(asked)), **drawn)
                    for part, several in enumerate(asked)
                ]
            except ValueError as error:
                refuse(f"`epochs`, {f'run {run}, ' if run else ''}epoch {number}: {error}")
            place = np.argsort(sample.row)
            prob, outcome = prob[sample.row[place]], outcome[sample.row[place]]
            weight = None if sample.weight is None else sample.weight[place]
            scores = [mean_of(score(prob, outcome), weight) for score in (accuracy_of, log_of)]
            errors, floors = ([getattr(test, name) for test in tests[0]] for name in ("statistic", "noise_floor"))
            about = Evidence.of(sample, look, read.classes)
            possible = correct_pvalues([test.smallest_possible_pvalue for test in tests[-1]]).min()
            pvalues = [test.pvalue for test in tests[-1]]
            rows.append((run, number, *scores, errors, floors, pvalues, possible, about.n_expected))
            ends.append([one.lower_ends(sample) for one in chosen])
    refuse_if(not rows, "`epochs` must hold at least one epoch, got none.")
    runs, *numbers = zip(*rows, strict=True)
    names = (
        "epoch",
        "accuracy",
        "log_score",
        "error",
        "noise_floor",
        "pvalue",
        "smallest_possible_pvalue",
        "n_expected",
    )
    found: dict[str, Any] = {name: np.array(each).T for name, each in zip(names, numbers, strict=True)}
    track_of_epochs = TrainingTrack(
        run=runs,
        **found,
        edges=tuple(_over_epochs(of_epochs) for of_epochs in zip(*ends, strict=True)),
        statistics=chosen,
        test_statistics=tested,
        lens=look,
        lens_name=lens_name(look, read.classes),
        n_resamples=options["n_resamples"],
        alpha=options["alpha"],
        subject=about.subject,
    )
    return read.describe(track_of_epochs)


def _over_epochs(ends: Sequence[Floats | None]) -> Floats | None:
    """Return the cells of all epochs ``(n_entries, n_groups, n_cells)``; some epochs may have fewer."""
    known = [each for each in ends if each is not None]
    if not known:
        return None
    found = np.full((len(known), *np.max([each.shape for each in known], axis=0)), np.nan)
    for place, each in zip(found, known, strict=True):
        place[: each.shape[0], : each.shape[1]] = each
    return found


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
