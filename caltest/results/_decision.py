"""Decisions at a level, the same for all tests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

DecisionWord = Literal["rejected", "not rejected", "undecidable"]

_ROUNDING = 1e-12  # 1 / (B + 1) and the level are rounded differently
_FEWEST = 1.5  # data sets among the draws that are as extreme as the most extreme one: it alone
_SMALLEST_SHOWN = 1e-300  # computed p-values end there


def show_pvalue(pvalue: float, *, bound: bool = False) -> str:
    """Return a p-value as text, such as "0.012"; an upper bound as "< 3.1e-20".

    Examples
    --------
    >>> show_pvalue(0.01234567), show_pvalue(3.12e-20, bound=True), show_pvalue(0.0)
    ('0.01235', '< 3.3e-20', '< 1e-300')
    """
    if pvalue <= _SMALLEST_SHOWN:
        return f"< {_SMALLEST_SHOWN:g}"
    return f"< {1.05 * pvalue:.2g}" if bound else f"{pvalue:.4g}"  # rounded up


def align_pvalue(pvalue: float, *, bound: bool = False) -> str:
    """Return a p-value for a column: four decimals, unless it is smaller or an upper bound; nothing for NaN.

    Examples
    --------
    >>> align_pvalue(0.5), align_pvalue(3.456e-20), align_pvalue(0.01, bound=True)
    ('0.5000', '3.5e-20', '< 0.011')
    """
    if math.isnan(pvalue):
        return ""
    if bound or pvalue <= _SMALLEST_SHOWN:
        return show_pvalue(pvalue, bound=bound)
    return f"{pvalue:.2g}" if pvalue < 5e-5 else f"{pvalue:.4f}"


def equate_pvalue(pvalue: float, *, bound: bool = False, name: str = "p") -> str:
    """Return a p-value in a sentence: "p = 0.012", "p < 3.1e-20"."""
    sign = "" if bound or pvalue <= _SMALLEST_SHOWN else "= "  # a bound has its own sign
    return f"{name} {sign}{show_pvalue(pvalue, bound=bound)}"


def rejects(pvalue: Any, alpha: float) -> Any:
    """Return whether a hypothesis with this p-value, or these, is rejected at the level ``alpha``."""
    return pvalue <= alpha * (1 + _ROUNDING)


NO_PROOF = "This does not prove that the model is calibrated."
"""What is said of every test that does not reject."""
FEWEST_EXPECTED = 5
"""With fewer expected events or other observations a test that does not reject decides nothing; rejections stand."""


def decide(pvalue: float, alpha: float, smallest: float = 0.0, n_expected: float = math.inf) -> DecisionWord:
    """Return the decision at a level, where no p-value below ``smallest`` was possible.

    ``n_expected`` is the expected number of the rarer one of events and other observations.

    Examples
    --------
    >>> decide(0.01, 0.05), decide(0.3, 0.05), decide(0.3, 0.05, smallest=0.25)
    ('rejected', 'not rejected', 'undecidable')
    >>> decide(0.01, 0.05, n_expected=2.7), decide(0.3, 0.05, n_expected=2.7)
    ('rejected', 'undecidable')
    """
    if rejects(pvalue, alpha):
        return "rejected"
    return "not rejected" if rejects(smallest, alpha) and n_expected >= FEWEST_EXPECTED else "undecidable"


def decided(pvalue: float, alpha: float, *, bound: bool = False, n_expected: float = math.inf) -> str:
    """Return the decision of a test of calibration in a sentence, with the p-value or an upper bound of it.

    ``n_expected`` is as in `decide`.

    Examples
    --------
    >>> decided(0.012, 0.05), decided(0.3, 0.05)
    ('Calibration is rejected (p = 0.012).', 'Calibration is not rejected (p = 0.3).')
    """
    return f"Calibration is {decide(pvalue, alpha, n_expected=n_expected)} ({equate_pvalue(pvalue, bound=bound)})."


def cannot_decide(
    smallest: float,
    alpha: float,
    *,
    numbers: str,
    n_groups: int | None = None,
    n_resamples: int = 0,
    unadjusted: float | None = None,
    name: str = "p-value",
    where: str = "",
) -> str:
    """Return the conclusion of a test that could not have rejected, whatever the labels were.

    Either the draws are too few for the level, or the groups are, as there are few arrangements of their signs.
    ``unadjusted`` is the smallest possible p-value of a single test, if ``smallest`` is adjusted for several, and shows
    which of both it is. ``numbers`` are what stands in brackets, ``name`` that of the p-value, and ``where`` the part
    that has the groups.

    Examples
    --------
    >>> print(cannot_decide(0.25, 0.05, n_groups=3, numbers="p = 0.25"))
    These data cannot decide: with 3 groups no p-value below 0.25 is possible, and the level is 5 % (p = 0.25).
    >>> print(cannot_decide(0.1, 0.05, n_resamples=9, numbers="p = 0.3"))
    This test cannot decide: with 9 draws no p-value below 0.1 is possible, and the level is 5 % (p = 0.3).
    """
    single = smallest if unadjusted is None else unadjusted
    subject = "This test" if _are_draws(single, n_groups, n_resamples) else "These data"
    reason = too_few(smallest, single, n_groups, n_resamples, name=name, where=where)
    return f"{subject} cannot decide: {reason}, and the level is {100 * alpha:.4g} % ({numbers})."


def too_few(
    smallest: float, single: float, n_groups: int | None, n_resamples: int, *, name: str = "p-value", where: str = ""
) -> str:
    """Return why no p-value below ``smallest`` is possible; ``single`` is that of a test before the adjustment.

    Examples
    --------
    >>> too_few(0.5, 0.25, 3, 999, name="adjusted p-value")
    'with 3 groups no adjusted p-value below 0.5 is possible'
    """
    draws = _are_draws(single, n_groups, n_resamples)
    number, what = (n_resamples, "draw") if draws else (n_groups, "group")
    return f"with {number} {what}{'' if number == 1 else 's'}{where} no {name} below {smallest:.4g} is possible"


def _are_draws(single: float, n_groups: int | None, n_resamples: int) -> bool:
    """Whether it is the draws that are too few, not the groups."""
    return n_groups is None or (bool(n_resamples) and single <= _FEWEST / (n_resamples + 1))


def level_of(confidence_level: float) -> float:
    """Return the level of the test that belongs to the level of an interval, without the rounding of the subtraction.

    Examples
    --------
    >>> 1 - 0.9, level_of(0.9)
    (0.09999999999999998, 0.1)
    """
    return round(1 - confidence_level, 12)


class Decided:
    """What results have in common that decide by one p-value."""

    @property
    def rejected(self: Any) -> bool:
        """Whether the p-value rejects at the level ``alpha``."""
        return bool(rejects(self.pvalue, self.alpha))


class Decision(Decided):
    """What results of tests have in common: they unpack as ``statistic, pvalue`` and reject at a level."""

    statistic: float
    pvalue: float
    alpha: float
    smallest_possible_pvalue: float = 0.0
    n_expected: float = math.inf

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    @property
    def decision(self) -> DecisionWord:
        """The decision at the level ``alpha``.

        It is "undecidable" if the hypothesis is not rejected and no p-value as small as ``alpha`` was possible, or
        fewer than 5 events or other observations were to be expected.
        """
        return decide(self.pvalue, self.alpha, self.smallest_possible_pvalue, self.n_expected)
