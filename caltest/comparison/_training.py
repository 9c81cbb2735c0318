"""Calibration during training: accuracy, likelihood, error and p-value, epoch by epoch."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation._scores import accuracy, log_score
from caltest.hypothesis_tests._calibration import calibration_test, validate_estimate, validate_statistic
from caltest.hypothesis_tests._calibration_table import LEVEL
from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._lenses import Lens
from caltest.predictions._validation import SeedLike, validate_rng
from caltest.results._test_result import finite
from caltest.statistics import ECE, Statistic

if TYPE_CHECKING:
    import pandas as pd

Epochs = Iterable[tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True, eq=False)
class TrainingTrack:
    """Result of `track`; one entry per epoch of every run.

    Attributes
    ----------
    run : tuple of str
        The run of each entry; empty names if there is only one.
    epoch : array of int of shape (n_entries,)
        Number of the epoch in its run, from 1.
    accuracy : array of shape (n_entries,)
        Share of the rows whose most probable class is right.
    log_score : array of shape (n_entries,)
        Negative log-likelihood per row, in nats.
    error : array of shape (n_entries,)
        Estimated miscalibration.
    noise_floor : array of shape (n_entries,)
        What a perfect model shows on the predictions of this epoch, on average.
    pvalue : array of shape (n_entries,)
        P-value of perfect calibration.
    statistic, test_statistic : str
        The estimate, and the statistic of the test.
    lens : str
        What they look at.
    n_resamples : int
        Draws of each test.
    """

    run: tuple[str, ...]
    epoch: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    log_score: NDArray[np.float64]
    error: NDArray[np.float64]
    noise_floor: NDArray[np.float64]
    pvalue: NDArray[np.float64]
    statistic: str
    test_statistic: str
    lens: str
    n_resamples: int

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs, in their order."""
        return tuple(dict.fromkeys(self.run))

    def entries(self, run: str) -> NDArray[np.int64]:
        """Return the positions of the entries of a run, by epoch."""
        return np.flatnonzero([name == run for name in self.run])

    @property
    def best(self) -> NDArray[np.bool_]:
        """Whether an entry has the smallest negative log-likelihood of its run, the first among equals."""
        best = np.zeros(len(self.run), dtype=bool)
        for run in self.runs:
            entries = self.entries(run)
            if np.isfinite(self.log_score[entries]).any():
                best[entries[np.argmin(self.log_score[entries])]] = True
        return best

    @property
    def conclusion(self) -> str:
        """What the tests say at the epochs of smallest negative log-likelihood, in words."""
        chosen = self.pvalue[self.best]
        rejected = int((chosen <= LEVEL).sum())
        return (
            f"At the epoch of smallest negative log-likelihood, calibration is rejected at {LEVEL:.0%} in {rejected} "
            f"of {len(chosen)} run(s). Each p-value is valid for an epoch chosen beforehand; one that is chosen by "
            "these labels, such as the one of smallest negative log-likelihood, is to be tested on other rows."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per epoch of every run as a pandas frame."""
        import pandas as pd

        names = ("run", "epoch", "accuracy", "log_score", "error", "noise_floor", "pvalue", "best")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, ready for JSON; infinity becomes None."""
        records = self.to_frame().to_dict("records")
        for record in records:
            record["log_score"] = finite(record["log_score"])
        return {
            "epochs": records,
            "statistic": self.statistic,
            "test_statistic": self.test_statistic,
            "lens": self.lens,
            "n_resamples": self.n_resamples,
            "conclusion": self.conclusion,
        }

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        width = max(len("run"), *map(len, self.runs))
        tested = "" if self.test_statistic == self.statistic else f", tested by {self.test_statistic}"
        lines = [
            f"Calibration during training: {self.statistic} through {self.lens}{tested}",
            f"{'run':<{width}} {'epoch':>6} {'accuracy':>9} {'log score':>10} {'error':>9} {'noise floor':>12} "
            f"{'p-value':>9}",
        ]
        last = np.append(np.array(self.run[1:]) != np.array(self.run[:-1]), True)
        best = self.best
        for i in np.flatnonzero(best | last):
            which = " ".join(word for word, holds in (("best", best[i]), ("last", last[i])) if holds)
            lines.append(
                f"{self.run[i]:<{width}} {self.epoch[i]:>6} {self.accuracy[i]:>9.4f} {self.log_score[i]:>10.4g} "
                f"{self.error[i]:>9.4g} {self.noise_floor[i]:>12.4g} {self.pvalue[i]:>9.4g}  {which}"
            )
        return "\n".join([*lines, *textwrap.wrap(self.conclusion, width=100, subsequent_indent="  ")])


def track(
    epochs: Epochs | Mapping[str, Epochs],
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    statistic: Statistic | None = None,
    test_statistic: Statistic | None = None,
    n_resamples: int = 999,
    workers: int = 1,
    rng: SeedLike = None,
) -> TrainingTrack:
    r"""Follow calibration while a model is trained, as figure 3 of the paper does.

    For every epoch: the accuracy, the negative log-likelihood :math:`-\frac1n \sum_i \log p_{i, y_i}`, an estimate of
    miscalibration with its noise floor, and the p-value of perfect calibration (the paper's
    :math:`p_\mathrm{ECE}`), with predictions fixed and outcomes redrawn. Predictions must be for held-out rows. The
    same rows may serve every epoch: each p-value is valid by itself, but they depend on each other, and not where the
    epoch was chosen by these labels.

    Parameters
    ----------
    epochs : iterable of pairs (y_true, y_prob), or mapping of names to such iterables
        Labels ``(n_samples,)`` and predicted probabilities ``(n_samples, n_classes)`` or ``(n_samples,)`` after each
        epoch. Read one by one and not kept, so that a generator may train the model meanwhile. A mapping holds several
        runs, for instance of different initialisations, which are read one after the other.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What error and test look at; the whole prediction by default. Accuracy and likelihood are those of the classes.
    statistic : Statistic, optional
        The estimate of miscalibration; ``ECE()`` by default.
    test_statistic : Statistic, optional
        The statistic of the test; the estimate by default, as in the paper. `ECE` is nearly blind to under-confidence,
        ``Omnibus()`` is not.
    n_resamples : int
        Number of draws in each test.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    TrainingTrack
        Prints the best and the last epoch of every run; ``to_frame()`` has all; `caltest.plot_training` draws it.

    Raises
    ------
    ValueError
        If an argument is not of the form above; what is wrong with an epoch names the epoch.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 5.2 and figure 3.

    Examples
    --------
    A model that grows too sure of itself: its logits are scaled up, epoch by epoch.

    >>> import caltest
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logit = rng.normal(size=1000)
    >>> y_true = rng.random(1000) < 1 / (1 + np.exp(-2 * logit))
    >>> def train():
    ...     for scale in (0.5, 2.0, 5.0):
    ...         yield y_true, 1 / (1 + np.exp(-scale * logit))
    >>> found = caltest.track(train(), rng=0)
    >>> found.to_frame()[["epoch", "log_score", "error", "pvalue", "best"]].round(3)
       epoch  log_score  error  pvalue   best
    0      1      0.585  0.151   0.000  False
    1      2      0.504  0.032   0.241   True
    2      3      0.702  0.146   0.000  False
    """
    chosen = validate_estimate(ECE() if statistic is None else statistic)
    tested = chosen if test_statistic is None else validate_statistic(test_statistic)
    generator = validate_rng(rng)
    options: dict[str, Any] = {
        "classes": classes,
        "lens": lens,
        "n_resamples": n_resamples,
        "workers": workers,
        "rng": generator,
    }
    runs, rows = [], []
    for run, number, (y_true, y_prob) in _read(epochs):
        try:
            hit, score = (mean(y_true, y_prob, classes=classes) for mean in (accuracy, log_score))
            estimate = calibration_test(y_true, y_prob, statistic=chosen, **options)
            test = estimate if tested is chosen else calibration_test(y_true, y_prob, statistic=tested, **options)
        except ValueError as error:
            msg = f"`epochs`, {f'run {run}, ' if run else ''}epoch {number}: {error}"
            raise ValueError(msg) from None
        runs.append(run)
        rows.append((number, hit, score, estimate.statistic, estimate.noise_floor, test.pvalue))
    if not rows:
        msg = "`epochs` must hold at least one pair (y_true, y_prob), got none."
        raise ValueError(msg)
    epoch, hits, scores, errors, floors, pvalues = np.array(rows).T
    return TrainingTrack(
        tuple(runs),
        epoch.astype(np.int64),
        hits,
        scores,
        errors,
        floors,
        pvalues,
        str(chosen),
        str(tested),
        lens_text(lens, classes),
        n_resamples,
    )


def _read(epochs: Any) -> Iterator[tuple[str, int, tuple[ArrayLike, ArrayLike]]]:
    """Yield name of the run, number of the epoch, and the pair, one by one."""
    runs = epochs if isinstance(epochs, Mapping) else {"": epochs}
    for run, pairs in runs.items():
        if not isinstance(pairs, Iterable) or isinstance(pairs, str):
            msg = f"`epochs` must be an iterable of pairs (y_true, y_prob), or a mapping of such, got {pairs!r}."
            raise ValueError(msg)
        number = 0
        for number, pair in enumerate(pairs, 1):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                msg = f"`epochs` must hold pairs (y_true, y_prob), got {type(pair).__name__} in epoch {number}."
                raise ValueError(msg)
            yield str(run), number, (pair[0], pair[1])
        if not number and run:
            msg = f"`epochs` must hold at least one pair (y_true, y_prob) in every run, got none in {run!r}."
            raise ValueError(msg)
