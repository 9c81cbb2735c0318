"""Results of measures that rank no models: their values beside those of calibrated predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from caltest.estimation._measure import Measure
from caltest.estimation.scores._mean_interval import UNKNOWN
from caltest.predictions.inputs._refusals import refuse, refuse_if
from caltest.ranking._measures import KINDS
from caltest.resampling import correct_pvalues
from caltest.results import ConfidenceInterval, Result, TestResult
from caltest.results._decision import align_pvalue, level_of, rejects
from caltest.results._description import Description, Table, join, percent, sized
from caltest.results._naming import describe
from caltest.statistics import SquaredL2, Statistic
from caltest.statistics._base import validate_estimate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CalibrationError:
    """An error that ranks no models, as the caller calls it."""

    name: str
    statistic: Statistic

    @classmethod
    def named(cls, given: Any) -> CalibrationError:
        """Return the error that ``by`` names."""
        try:
            statistic = validate_estimate(given, "by")
        except ValueError as error:
            msg = f"{error} Models are ranked by {join(map(repr, KINDS))}."
            raise ValueError(msg) from None
        refuse_if(isinstance(statistic, SquaredL2), '`by`: models are ranked by the l2 error; name it "l2".')
        return cls(given.strip() if isinstance(given, str) else describe(statistic), statistic)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnrankedModel(Result):
    """One model of an `Unranked` measure.

    Attributes
    ----------
    name : str
        Its name.
    measure : Measure
        The estimate, the noise floor (the average value if the predictions are calibrated) and the p-value of
        calibration; it has no interval.
    noise_interval : ConfidenceInterval
        The 5 % and 95 % quantiles of the value if the predictions are calibrated.
    pvalue_adjusted : float
        The p-value, Holm-adjusted for the number of models.

    See Also
    --------
    caltest.leaderboard : The function that returns such models.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> board = caltest.leaderboard(y_true, models, by="KS", n_resamples=199, rng=0)
    >>> flat = board["KS"]["flat"]
    >>> flat.pvalue_adjusted, flat.rejected
    (0.01, True)
    """

    name: str
    measure: Measure
    noise_interval: ConfidenceInterval
    pvalue_adjusted: float

    @property
    def rejected(self) -> bool:
        """Whether calibration is rejected."""
        return bool(rejects(self.pvalue_adjusted, level_of(self.measure.confidence_level)))

    @property
    def row(self) -> tuple[str, ...]:
        """The line of a table."""
        one = self.measure
        chance = f"{one.if_calibrated:.4g} ({self.noise_interval})"
        return self.name, f"{one.estimate:.4g}", chance, align_pvalue(self.pvalue_adjusted)

    def _describe(self) -> Description:
        return Description(f"{self.name} by {self.measure.words}", (), [_table([self])])


def _table(models: Sequence[UnrankedModel]) -> Table:
    """Return the table of some models."""
    head = ("model", models[0].measure.words, "if calibrated (5 % to 95 %)", "adj. p")
    return Table(head, [model.row for model in models])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Unranked(Result):
    """All models by an error that does not rank them, in the order of the caller; iterates over them.

    What chance alone shows differs between models: a sharper model has a lower ECE than a vague one if both are
    calibrated. So a smaller value does not show a better model, and only the test of calibration says something.

    Attributes
    ----------
    models : tuple of UnrankedModel
        The models.
    confidence_level : float
        1 minus the level of the tests.
    n_samples : int
        Number of observations.
    n_groups : int or None
        Number of their groups, if only groups are independent.

    See Also
    --------
    caltest.leaderboard : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> board = caltest.leaderboard(y_true, models, by="KS", n_resamples=199, rng=0)
    >>> print(board["KS"].conclusion)
    KS (confidence): calibration is rejected for 1 of 2 models (Holm, 5 %): flat.
    """

    models: tuple[UnrankedModel, ...]
    confidence_level: float
    n_samples: int
    n_groups: int | None = None

    _derived: ClassVar[tuple[str, ...]] = ("name", "conclusion")

    @classmethod
    def of(
        cls, error: CalibrationError, tests: Mapping[str, TestResult], *, confidence_level: float, **size: Any
    ) -> Unranked:
        """Return what tests of all models by an error found."""
        adjusted = correct_pvalues([test.pvalue for test in tests.values()])
        models = [
            UnrankedModel(
                name=name,
                measure=Measure(
                    name=error.name,
                    words=f"{error.name} ({test.lens_name})",
                    about="calibration",
                    estimate=test.statistic,
                    confidence_interval=UNKNOWN,
                    if_calibrated=test.noise_floor,
                    pvalue=test.pvalue,
                    confidence_level=confidence_level,
                ),
                noise_interval=ConfidenceInterval(*test.noise_interval),
                pvalue_adjusted=float(pvalue),
            )
            for (name, test), pvalue in zip(tests.items(), adjusted, strict=True)
        ]
        return cls(models=tuple(models), confidence_level=confidence_level, **size)

    def __iter__(self) -> Iterator[UnrankedModel]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, name: str) -> UnrankedModel:
        """Return a model by its name."""
        return self.models[place_of(name, [model.name for model in self.models])]

    @property
    def name(self) -> str:
        """Name of the measure."""
        return self.models[0].measure.name

    @property
    def words(self) -> str:
        """What the measure is called, with what it looks at."""
        return self.models[0].measure.words

    @property
    def conclusion(self) -> str:
        """For which models calibration is rejected."""
        wrong = [model.name for model in self if model.rejected]
        level = f"(Holm, {percent(level_of(self.confidence_level))})"
        start = f"{self.words}: calibration is rejected for"
        if not wrong:
            return f"{start} none of {len(self)} models {level}, which does not prove that they are calibrated."
        return f"{start} {len(wrong)} of {len(self)} models {level}: {some_of(wrong)}."

    def to_frame(self) -> pd.DataFrame:
        """Return the models as a pandas frame, one in each row.

        Returns
        -------
        pandas.DataFrame
            Measure, model, estimate, the value if calibrated with its 5 % and 95 % quantiles, and the p-values.
        """
        import pandas as pd

        return pd.DataFrame(self.records)

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows of the frame."""
        return [
            {
                "measure": self.name,
                "model": model.name,
                "estimate": model.measure.estimate,
                "if_calibrated": model.measure.if_calibrated,
                "if_calibrated_lower": model.noise_interval.low,
                "if_calibrated_upper": model.noise_interval.high,
                "pvalue": model.measure.pvalue,
                "pvalue_adjusted": model.pvalue_adjusted,
            }
            for model in self
        ]

    @property
    def table(self) -> Table:
        """The models in print."""
        return _table(self.models)

    def _describe(self) -> Description:
        title = f"{self.words} ({sized(self.n_samples, self.n_groups)}, {len(self)} models)"
        return Description(title, [self.conclusion], [self.table], [why_unranked([self])])


def why_unranked(measures: Sequence[Unranked]) -> str:
    """Return why some measures have no ranks."""
    names = join(measure.name for measure in measures)
    return (
        f"{names} {'has' if len(measures) == 1 else 'have'} no ranks: what chance alone shows (column if calibrated) "
        "differs between models, so that a smaller value does not show a better model."
    )


_NAMED = 5  # models that a sentence lists


def some_of(names: Sequence[str]) -> str:
    """Return names as a list in a sentence, of many the first ones."""
    more = len(names) - _NAMED
    return join(names) if more <= 1 else f"{', '.join(names[:_NAMED])} and {more} others"


def place_of(name: str, names: Sequence[str]) -> int:
    """Return the place of the model of a name."""
    if name not in names:
        refuse(f"no model {name!r}; there are {', '.join(names)}.", KeyError)
    return names.index(name)
