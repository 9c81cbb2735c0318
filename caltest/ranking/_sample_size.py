"""How many more questions tell two models of a leaderboard apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from caltest.results import Result
from caltest.results._description import Description, counted, percent


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QuestionsNeeded(Result):
    """How many observations, or groups of them, show that a model is better than another one.

    Attributes
    ----------
    better, worse : str
        The models; the first one has the better estimate.
    words : str
        The measure.
    difference, standard_error : float
        The difference of their estimates, at least 0, and its standard error; of the l2 error that of squared errors.
    critical_value : float
        The difference in standard errors that separates two models with the confidence level of all sets of ranks.
    power : float
        Probability of telling the models apart, if the difference is the true one.
    n_now, n_needed : int
        Number of observations of the leaderboard, and of those that are needed; of groups where only groups are
        independent.
    are_groups : bool
        Whether these are groups.

    See Also
    --------
    caltest.leaderboard : The models, whose ``sample_size`` returns this.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> board = caltest.leaderboard(y_true, y_prob, by="brier", rng=0)
    >>> board.sample_size(("random_forest", "naive_bayes")).n_more
    0
    """

    better: str
    worse: str
    words: str
    difference: float
    standard_error: float
    critical_value: float
    power: float
    n_now: int
    n_needed: int
    are_groups: bool = False

    _derived: ClassVar[tuple[str, ...]] = ("n_more", "conclusion")

    @property
    def n_more(self) -> int:
        """How many more are needed; 0 if there are enough."""
        return max(self.n_needed - self.n_now, 0)

    @property
    def conclusion(self) -> str:
        """How many more are needed, in words."""
        unit = "group" if self.are_groups else "observation"
        start = (
            f"To show that {self.better} is better than {self.worse} by {self.words} with a probability of "
            f"{percent(self.power)}"
        )
        if not self.n_more:
            return f"{start}, {counted(self.n_needed, unit)} are enough, and there are {self.n_now:,}."
        more = counted(self.n_more, f"more {unit}")
        return f"{start}, {more} {'is' if self.n_more == 1 else 'are'} needed, {self.n_needed:,} in all."

    def _describe(self) -> Description:
        ratio = self.difference / self.standard_error
        text = (
            f"The difference is {self.difference:.3g}, which is {ratio:.3g} standard errors, and "
            f"{self.critical_value:.3g} of these tell two of so many models apart. The number supposes that the true "
            "difference is this one. If the models were chosen because they differ, the true difference is smaller."
        )
        return Description(f"Sample size of {self.better} and {self.worse}", [self.conclusion], (), [text])


def questions_for(ratio: float, critical_value: float, power: float, n_now: int) -> int:
    """Return how many units separate a difference of ``ratio`` standard errors of ``n_now`` units with some power."""
    from scipy.special import ndtri

    return math.ceil(n_now * ((critical_value + float(ndtri(power))) / ratio) ** 2)
