"""The table of a validation of predicted risks, with its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from caltest.clinical._clinical_curve import ClinicalCurve
from caltest.clinical._net_benefit import HEAD, NetBenefit
from caltest.estimation._measure import Measure
from caltest.predictions.inputs._refusals import refuse
from caltest.results import Note, Result, TestResult, Verdict
from caltest.results._decision import DecisionWord
from caltest.results._description import Description, Table, counted, percent, sized
from caltest.results._picture import Picture

if TYPE_CHECKING:
    import pandas as pd

_HEADINGS = {"calibration": "calibration", "overall": "overall", "discrimination": "discrimination"}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClinicalCalibration(Result):
    """Result of `clinical_calibration`; iterates over its measures, and has each under its name.

    Attributes
    ----------
    test : TestResult
        The test of calibration, whose p-value decides.
    measures : tuple of Measure
        The numbers: ``result["calibration_slope"].estimate``.
    net_benefits : tuple of NetBenefit
        The net benefit at each threshold.
    curve : ClinicalCurve
        The smooth calibration curve, which ``plot()`` draws.
    smoother : str
        The smooth curve of ICI, E50, E90, Emax and ECI.
    confidence_level : float
        Probability with which an interval contains its target.
    n_samples, n_events : int
        Number of observations and of events.
    expected_events : float
        Sum of the predictions (times weights, whose mean is 1).
    n_groups, weighted : int or None, bool
        Number of groups, if only these are independent, and whether observations have weights.
    n_curve_resamples : int
        Number of draws behind noise floors and p-values of the errors.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    clinical_calibration : The validation that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.clinical.clinical_calibration(y_true, y_prob[:, 1], thresholds=[0.3], n_resamples=99, rng=0)
    >>> [measure.name for measure in result][:3]
    ['observed_expected', 'intercept', 'calibration_slope']
    >>> round(result["calibration_slope"].estimate, 2)
    0.85
    """

    test: TestResult
    measures: tuple[Measure, ...]
    net_benefits: tuple[NetBenefit, ...]
    curve: ClinicalCurve = field(repr=False)
    smoother: str
    confidence_level: float
    n_samples: int
    n_events: int
    expected_events: float
    n_groups: int | None = None
    weighted: bool = False
    n_curve_resamples: int
    notes: tuple[Note, ...] = ()

    plot = Picture("plot_clinical_calibration")
    _left_out: ClassVar[frozenset[str]] = frozenset({"curve"})
    _derived: ClassVar[tuple[str, ...]] = ("pvalue", "decision", "conclusion")

    def __iter__(self) -> Iterator[Measure]:
        return iter(self.measures)

    def __getitem__(self, name: str) -> Measure:
        """Return the measure of a name."""
        found = {measure.name: measure for measure in self.measures}
        if name not in found:
            refuse(f"there is no measure {name!r}; the names are {', '.join(found)}.", KeyError)
        return found[name]

    @property
    def pvalue(self) -> float:
        """P-value of the test of calibration."""
        return self.test.pvalue

    @property
    def alpha(self) -> float:
        """Level of the decision."""
        return self.test.alpha

    @property
    def rejected(self) -> bool:
        """Whether calibration is rejected."""
        return self.test.rejected

    @property
    def decision(self) -> DecisionWord:
        """The decision of the test of calibration."""
        return self.test.decision

    @property
    def verdict(self) -> Verdict:
        """What the test of calibration found."""
        return self.test.verdict

    @property
    def conclusion(self) -> str:
        """What the test of calibration found, in words."""
        return self.test.conclusion

    def to_frame(self) -> pd.DataFrame:
        """Return the measures as a pandas frame, one in each row.

        Returns
        -------
        pandas.DataFrame
            Columns ``measure``, ``about``, ``estimate``, ``lower``, ``upper``, ``if_calibrated`` and ``pvalue``, and
            the names as its index. The net benefits are those of ``net_benefit_frame()``.
        """
        import pandas as pd

        rows = [
            {
                "measure": one.words,
                "about": one.about,
                "estimate": one.estimate,
                "lower": one.confidence_interval.low,
                "upper": one.confidence_interval.high,
                "if_calibrated": one.if_calibrated,
                "pvalue": one.pvalue,
            }
            for one in self.measures
        ]
        return pd.DataFrame(rows, index=pd.Index([one.name for one in self.measures], name="name"))

    def net_benefit_frame(self) -> pd.DataFrame:
        """Return the net benefits as a pandas frame, one threshold in each row."""
        import pandas as pd

        return (
            pd.concat([one.to_frame() for one in self.net_benefits], ignore_index=True)
            if self.net_benefits
            else pd.DataFrame()
        )

    def to_latex(self) -> str:
        r"""Return the table for a paper, as ``tabular`` of the LaTeX package booktabs.

        Returns
        -------
        str
            LaTeX code.
        """
        level = percent(self.confidence_level).replace("%", r"\%")
        head = ("", "Estimate", f"{level} interval", "If calibrated", "$p$")
        lines = [r"\begin{tabular}{lrrrr}", r"\toprule", _latex_line(head), r"\midrule"]
        lines += [_latex_line(tuple(map(_latex, one.row))) for one in self.measures]
        if self.net_benefits:
            lines.append(r"\midrule")
            for one in self.net_benefits:
                _, _, estimate, interval, *_ = map(_latex, one.row)
                lines.append(_latex_line((f"net benefit at {one.threshold:g}", estimate, interval, "", "")))
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"

    def _describe(self) -> Description:
        interval = f"{percent(self.confidence_level)} interval"
        tables = []
        for about, heading in _HEADINGS.items():
            rows = [one.row for one in self.measures if one.about == about]
            head = (heading, "estimate", interval)
            if any(row[3] or row[4] for row in rows):
                tables.append(Table((*head, "if calibrated", "p-value"), rows))
            else:
                tables.append(Table(head, [row[:3] for row in rows]))
        if self.net_benefits:
            tables.append(Table(HEAD, [one.row for one in self.net_benefits]))
        size = sized(self.n_samples, self.n_groups, weighted=self.weighted)
        return Description(
            f"Validation of predicted risks ({size}, {counted(self.n_events, 'event')})",
            [self.conclusion],
            tables,
            self._remarks(),
            self.notes,
        )

    def _remarks(self) -> list[str]:
        errors = "ICI, E50, E90, Emax and ECI"
        found = [
            f"{errors} are distances to a smooth curve ({self.smoother}), which follows the labels: compare them with "
            "the column if calibrated, the average of a calibrated model. Their intervals contain the distance of the "
            "curve of infinitely many labels, and 0 unless their p-value is below half the level.",
            f"P-values of {errors}, Brier score and U: {self.n_curve_resamples:,} simulations of calibrated labels. "
            "The first p-value decides; the others are not adjusted for their number.",
        ]
        if self.net_benefits:
            found.append(
                "Net benefit is counted in true positives for each patient; that of treating nobody is 0. The gain "
                "is that over the better one of treating everybody and nobody."
            )
        return found


def _latex_line(cells: tuple[str, ...]) -> str:
    return " & ".join(cells) + r" \\"


def _latex(text: str) -> str:
    """Return text in which signs that LaTeX reads are written for it."""
    for sign, code in (("%", r"\%"), ("<", "$<$"), (">", "$>$"), ("-", "$-$" if text[:1] in "-0123456789" else "-")):
        text = text.replace(sign, code)
    return text
