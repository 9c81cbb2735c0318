"""Results of hypothesis tests: one class for all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from caltest.results._base import Result
from caltest.results._decision import Decision, equate_pvalue, show_pvalue
from caltest.results._description import Description, Table, sized
from caltest.results._distribution import Distribution
from caltest.results._naming import describe
from caltest.results._note import PAGE, Note
from caltest.results._picture import Picture
from caltest.results._verdict import Finding, Verdict

Extended = TypeVar("Extended", bound="TestResult")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ComponentResult(Result):
    """One statistic of a test with its null distribution and p-value.

    Attributes
    ----------
    test_statistic : Statistic
        What was computed.
    statistic : float
        Its observed value.
    pvalue : float
        ``(1 + #{null >= observed}) / (1 + n_resamples)``, or the tail of a computed distribution; not adjusted for
        other components.
    null : Distribution
        Its null distribution: ``mean``, ``std``, ``quantile(q)``, ``sf(x)`` and ``cdf(x)``.
    derived : dict
        Further numbers by name; empty for most statistics. Some are arrays, with an entry for each group.
    """

    test_statistic: Any
    statistic: float
    pvalue: float
    null: Distribution = field(repr=False)
    derived: Mapping[str, Any] = field(default_factory=dict)

    plot = Picture("plot_null_distribution")
    _derived: ClassVar[tuple[str, ...]] = ("noise_floor", "noise_interval")
    _left_out: ClassVar[frozenset[str]] = frozenset({"null"})

    @property
    def null_distribution(self) -> NDArray[np.float64] | None:
        """Values of the statistic on every draw, ``(n_resamples,)``; None if nothing was drawn."""
        return getattr(self.null, "values", None)

    @property
    def noise_floor(self) -> float:
        """Mean of the null distribution: what a calibrated model shows on these predictions on average."""
        return self.null.mean

    @property
    def noise_interval(self) -> tuple[float, float]:
        """5 % and 95 % quantiles of the null distribution."""
        return self.null.quantile(0.05), self.null.quantile(0.95)

    def _row(self, *, bound: bool = False) -> tuple[str, str, str, str]:
        low, high = self.noise_interval
        under_null = f"{self.noise_floor:.4g} ({low:.4g} to {high:.4g})"
        return describe(self.test_statistic), f"{self.statistic:.4g}", under_null, show_pvalue(self.pvalue, bound=bound)

    def _describe(self) -> Description:
        return Description(str(self.test_statistic), (), (components_table([self]),))


def components_table(components: Sequence[ComponentResult], *, bound: bool = False) -> Table:
    """Return the table of statistics with their values under calibration; p-values may be upper bounds."""
    rows = [component._row(bound=bound) for component in components]
    return Table(("statistic", "value", "under calibration (5 % to 95 %)", "p-value"), rows)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TestResult(Decision, ComponentResult):
    """Result of a hypothesis test; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    test_statistic, statistic, pvalue, null, derived
        Of the statistic; for a combination of statistics -log10 of the smallest p-value of its components. Derived
        numbers are attributes too: ``result.slope`` is ``result.derived["slope"]``.
    title : str
        What was tested.
    lens : lens
        What was looked at, as an object.
    lens_name : str
        What was looked at, in words.
    lens_short_name : str or None
        The same in a table of similar lenses.
    n_samples, n_outcomes : int
        Number of observations, and of outcomes behind the lens.
    components : tuple of ComponentResult
        The combined statistics; for a single statistic the one itself.
    method : {"monte-carlo", "random-signs", "all-signs", "exact", "upper-bound", "asymptotic", "distribution-free"}
        How the null distribution was found. If "all-signs", it consists of all arrangements of the signs of few groups,
        and nothing was drawn. If "upper-bound", the exact p-value is below 1e-12 and ``pvalue`` is
        Chernoff's or another upper bound of it; if "distribution-free", the null distribution is not known and
        ``pvalue`` is an upper bound too.
    numerical_error : float
        Standard error of the p-value due to the number of draws, or error of a computed p-value; NaN for a limit
        distribution, whose error is not known.
    hypothesis : str
        The null hypothesis.
    of_calibration : bool
        Whether it is calibration, not another calibration function.
    origin : str
        Where the null distribution comes from.
    conditions : tuple of Note
        When the p-value is valid.
    alpha : float
        Level of the conclusion.
    smallest_possible_pvalue : float
        The p-value of the most extreme data: 1 / (B + 1) with B draws, and with G groups at least :math:`2^{1-G}` for a
        statistic that has the same value for opposite signs. If it is above ``alpha``, the data cannot decide.
    decision : {"rejected", "not rejected", "undecidable"}
        The decision at the level ``alpha``; "undecidable" if no p-value as small as ``alpha`` was possible.
    score : float or None
        Signed value of the statistic that shows the direction: negative means over-confident.
    findings : tuple of Finding
        What is wrong, if the score is significant itself: "over-confident" or "under-confident" if the average
        confidence lies above or below the accuracy accordingly; "too low" or "too high" are the predictions of an event
        that nearly all predictions make the less (or the more) probable outcome. ``direction`` and ``direction_words``
        are the first finding in a word and in a sentence, or None.
    n_groups : int or None
        Number of groups of observations, if only groups are independent.
    weighted : bool
        Whether the observations have weights.
    impossible_samples : array of int
        Observations whose label had been given probability 0; if there are any, the p-value is the smallest possible.
    notes : tuple of Note
        Cautions.
    """

    __test__: ClassVar[bool] = False  # not a test of pytest

    title: str
    lens: Any
    lens_name: str
    n_samples: int
    n_outcomes: int
    components: tuple[ComponentResult, ...]
    method: str
    numerical_error: float
    hypothesis: str
    origin: str
    of_calibration: bool = True
    lens_short_name: str | None = None
    conditions: tuple[Note, ...] = ()
    alpha: float = 0.05
    smallest_possible_pvalue: float = 0.0
    score: float | None = None
    findings: tuple[Finding, ...] = ()
    n_groups: int | None = None
    weighted: bool = False
    impossible_samples: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    notes: tuple[Note, ...] = ()
    _problem: Any = field(default=None, repr=False)  # `L2Problem` of estimation

    _left_out: ClassVar[frozenset[str]] = ComponentResult._left_out | {"of_calibration", "lens_short_name"}
    _derived: ClassVar[tuple[str, ...]] = (
        *("noise_floor", "noise_interval", "n_resamples", "decision", "conclusion", "l2_error"),
        *("direction", "direction_words"),
    )

    def __getattr__(self, name: str) -> Any:
        """Return a derived number, such as ``result.slope`` of a Cox test."""
        derived = self.__dict__.get("derived", {})
        if name in derived:
            return derived[name]
        msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(msg)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.derived})

    @property
    def n_resamples(self) -> int:
        """Number of draws; 0 if nothing was drawn."""
        drawn = self.null_distribution is not None and self.method != "all-signs"
        return len(self.null.values) if drawn else 0  # type: ignore[attr-defined]

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        return self._verdict().conclusion

    @property
    def verdict(self) -> Verdict:
        """The decision, what is wrong and how large it is."""
        return self._verdict(self.l2_error)

    def _verdict(self, size: Any = None) -> Verdict:
        """Return the verdict; sentences about the decision need no size, which may take time."""
        return Verdict(
            pvalue=self.pvalue,
            alpha=self.alpha,
            smallest_possible_pvalue=self.smallest_possible_pvalue,
            subject=self._subject,
            proof="that the model is calibrated" if self.of_calibration else "it",
            n_samples=self.n_samples,
            n_groups=self.n_groups,
            weighted=self.weighted,
            n_resamples=self.n_resamples,
            p=self._p,
            least=self._smallest,
            findings=self.findings,
            size=size,
            cautions=self.notes,
        )

    @property
    def direction(self) -> str | None:
        """What is wrong in a word, if that is beyond doubt."""
        return self.findings[0].kind if self.findings else None

    @property
    def direction_words(self) -> str | None:
        """What is wrong in a sentence, with the two numbers that it rests on, the statistic and its p-value."""
        return self.findings[0].sentence if self.findings else None

    @property
    def l2_error(self) -> Any:
        """The size of the miscalibration: `l2_interval` of the same problem; None where it is not defined."""
        return None if self._problem is None else self._problem.interval

    def extend(self, kind: type[Extended], /, **more: Any) -> Extended:
        """Return the result as one of a kind that carries more; fields that are named are replaced."""
        return kind(**{f.name: getattr(self, f.name) for f in fields(self)} | more)

    @property
    def _subject(self) -> str:
        return "Calibration" if self.of_calibration else "The hypothesis"

    @property
    def _size(self) -> str:
        return sized(self.n_samples, self.n_groups, weighted=self.weighted)

    @property
    def _p(self) -> str:
        if self.method == "distribution-free":
            return f"p is at most {self.pvalue:.4g}"
        return equate_pvalue(self.pvalue, bound=self.method == "upper-bound")

    @property
    def _smallest(self) -> str:
        if self.method == "all-signs":
            few = self.pvalue <= self.smallest_possible_pvalue
            return f", the smallest p-value possible with {self.n_groups} groups" if few else ""
        if not self.n_resamples or self.pvalue * (self.n_resamples + 1) > 1.5:
            return ""
        return f", the smallest p-value possible with {self.n_resamples} draws"

    @property
    def _name(self) -> str:
        name: str = self.test_statistic.name
        return name

    @property
    def _full_name(self) -> str:
        """The statistic with its parameters; a combination is named by its class."""
        return self._name if len(self.components) > 1 else self.test_statistic.brief

    def _describe(self) -> Description:
        size = f"{self._size}, {self.n_outcomes} outcomes"
        return Description(
            f"{self.title} ({self._name}, {self.lens_name}, {size})",
            [self.conclusion, *self._sizes()],
            self._tables(),
            self._remarks(),
            self.notes,
        )

    def _sizes(self) -> list[str]:
        """Say how large the miscalibration is."""
        return [*([] if self.l2_error is None else [self.l2_error.conclusion]), *self._usual_size()]

    def _usual_size(self, name: str = "") -> list[str]:
        """Say what chance makes of the first statistic, by its name or another one."""
        first = self.components[0]
        if not math.isfinite(first.noise_floor):
            return []
        name = name or first.test_statistic.name
        kind = "a calibrated model" if self.of_calibration else "a model as in the hypothesis"
        if self.method in {"random-signs", "all-signs"}:
            each = "draws" if self.method == "random-signs" else "arrangements"
            return [
                f"{name} {first.statistic:.4g}; with random signs of the groups it is {first.noise_floor:.4g} on "
                f"average and at most {first.null.quantile(0.95):.4g} in 95 % of {each}."
            ]
        return [
            f"{name} {first.statistic:.4g}; {kind} with these predictions has {first.noise_floor:.4g} on average "
            f"and at most {first.null.quantile(0.95):.4g} in 95 % of data sets."
        ]

    def _tables(self) -> list[Table]:
        return [components_table(self.components, bound=self.method == "upper-bound")]

    def _remarks(self) -> list[str]:
        known = self.method != "upper-bound" and not math.isnan(self.numerical_error)
        error = f"; numerical error of p {self.numerical_error:.1g}" if known else ""
        return [
            *self._numbers(),
            f"Hypothesis: {self.hypothesis}.",
            f"Null distribution: {self.origin}{error}.",
            *(f"Valid if {note.text} [{note.code}: {PAGE}]" for note in self.conditions),
        ]

    def _numbers(self) -> list[str]:
        """Name the derived numbers of each statistic."""
        return [line for part in self.components if (line := numbers_line(part.test_statistic, part.derived))]


def numbers_line(statistic: Any, derived: Mapping[str, Any]) -> str:
    """Return derived numbers as a line of a report, arrays left out; empty where there are none."""
    numbers = [
        f"{name.replace('_', ' ')} {value:.4g}" for name, value in derived.items() if isinstance(value, float | int)
    ]
    return f"{statistic}: {', '.join(numbers)}." if numbers else ""
