"""Results of a leaderboard: for each measure the models with their ranks, confidence sets and tiers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.estimation._measure import Measure
from caltest.estimation.event._event_estimate import show_interval
from caltest.hypothesis_tests._power_curve import validate_power
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.ranking._sample_size import QuestionsNeeded, questions_for
from caltest.ranking._unranked import Unranked, place_of, some_of, why_unranked
from caltest.recalibration import CrossFittedDecomposition
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._decision import align_pvalue, level_of, rejects
from caltest.results._description import Description, Table, percent, sized
from caltest.results._picture import Picture

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankedModel(Result):
    """One model of a `Ranking`.

    Attributes
    ----------
    name : str
        Its name.
    measure : Measure
        The estimate with its interval, the value that calibrated predictions like these have on average, and the
        p-value of calibration.
    rank : int
        1 + number of models with a better estimate; equal models have equal ranks.
    rank_interval : ConfidenceInterval
        The confidence set of its rank: from 1 + the number of models that are shown to be better, to the number of
        models that are not shown to be worse. All sets together contain all ranks with the confidence level, at least.
    tier : int
        1 if no model is shown to be better: not separable from the best. Otherwise one more than the tier of the worst
        model that is shown to be better.
    pvalue_adjusted : float
        P-value of calibration, Holm-adjusted for the number of models.
    parts : CrossFittedDecomposition or None
        The miscalibration and the discrimination in the score, if it was divided.

    See Also
    --------
    caltest.leaderboard : The function that returns such models.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> board = caltest.leaderboard(y_true, models, n_resamples=99, rng=0)
    >>> best = board["brier"].models[0]
    >>> best.name, best.rank, best.tier
    ('as it is', 1, 1)
    """

    name: str
    measure: Measure
    rank: int
    rank_interval: ConfidenceInterval
    tier: int
    pvalue_adjusted: float
    parts: CrossFittedDecomposition | None = None

    @property
    def rank_set(self) -> str:
        """The confidence set of the rank, in print."""
        low, high = (int(end) for end in self.rank_interval)
        return str(low) if low == high else f"{low} to {high}"

    @property
    def row(self) -> tuple[str, ...]:
        """The line of a table."""
        _, estimate, interval, calibrated, _ = self.measure.row
        adjusted = align_pvalue(self.pvalue_adjusted)
        return str(self.rank), self.rank_set, str(self.tier), self.name, estimate, interval, calibrated, adjusted

    def _describe(self) -> Description:
        title = f"{self.name} by {self.measure.words}"
        return Description(title, (), [_table([self])])


def _table(models: Sequence[RankedModel]) -> Table:
    """Return the table of some models."""
    measure = models[0].measure
    sets = f"{percent(measure.confidence_level)} set"
    head = ("rank", sets, "tier", "model", measure.words, "interval", "if calibrated", "adj. p")
    return Table(head, [model.row for model in models], ("model",))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ranking(Result):
    """The models by one measure, the best estimate first; iterates over them.

    Attributes
    ----------
    models : tuple of RankedModel
        The models in the order of their estimates.
    pvalue_better : array of shape (n_models, n_models)
        P-value of "model i is not better than model j", adjusted for all pairs, in the order of ``models``.
    value : array of shape (n_models,)
        What models are ordered by, the smallest first: the estimate, minus the accuracy, or the squared l2 error.
    standard_error : array of shape (n_models, n_models)
        Standard error of the difference of two values; 0 where it is not known.
    critical_value : float
        So many standard errors tell two models apart with the confidence level of all sets; infinite with too few
        units or draws. Once some models are told apart, fewer are enough for the others.
    larger_is_better : bool
        Whether larger values of the measure are better.
    confidence_level : float
        Probability with which the confidence sets of all ranks contain them together, at least.
    n_samples : int
        Number of observations.
    n_groups : int or None
        Number of their groups, if only groups are independent.

    See Also
    --------
    caltest.leaderboard : The function that returns rankings.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> board = caltest.leaderboard(y_true, models, n_resamples=99, rng=0)
    >>> ranking = board["brier"]
    >>> [model.name for model in ranking], ranking.better_than("flat")
    (['as it is', 'flat'], ('as it is',))
    """

    models: tuple[RankedModel, ...]
    pvalue_better: NDArray[np.float64]
    value: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    critical_value: float
    larger_is_better: bool
    confidence_level: float
    n_samples: int
    n_groups: int | None = None

    _left_out: ClassVar[frozenset[str]] = frozenset({"pvalue_better", "value", "standard_error"})
    _derived: ClassVar[tuple[str, ...]] = ("name", "best", "n_separated", "conclusion")

    def __iter__(self) -> Iterator[RankedModel]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, name: str) -> RankedModel:
        """Return a model by its name."""
        return self.models[self._place(name)]

    def _place(self, name: str) -> int:
        return place_of(name, [model.name for model in self.models])

    @property
    def name(self) -> str:
        """Name of the measure."""
        return self.models[0].measure.name

    @property
    def words(self) -> str:
        """What the measure is called."""
        return self.models[0].measure.words

    @property
    def is_better(self) -> NDArray[np.bool_]:
        """Whether model i is shown to be better than model j, ``(n_models, n_models)``."""
        return np.asarray(rejects(self.pvalue_better, level_of(self.confidence_level)), dtype=bool)

    @property
    def best(self) -> tuple[str, ...]:
        """The models of the first tier: it contains every best model with the confidence level, at least."""
        return tuple(model.name for model in self.models if model.tier == 1)

    @property
    def n_separated(self) -> int:
        """Number of pairs of models of which one is shown to be better."""
        return int(np.count_nonzero(self.is_better))

    @property
    def n_neighbours(self) -> int:
        """Number of pairs of neighbours in the table of which the upper one is shown to be better."""
        return int(np.count_nonzero(np.diagonal(self.is_better, 1)))

    def about(self, name: str) -> str:
        """Return the sentence on which models are shown to be better than one."""
        better = self.better_than(name)
        if not better:
            return f"By {self.words} no model is shown to be better than {name}."
        are = "model is" if len(better) == 1 else "models are"
        return f"By {self.words} {len(better)} {are} shown to be better than {name}: {some_of(better)}."

    def better_than(self, name: str) -> tuple[str, ...]:
        """Return the models that are shown to be better than a model.

        Parameters
        ----------
        name : str
            The model.

        Returns
        -------
        tuple of str
            Their names, in the order of their estimates; empty if the model may be as good as every other one.
        """
        shown = self.is_better[:, self._place(name)]
        return tuple(model.name for model, is_better in zip(self.models, shown, strict=True) if is_better)

    def sample_size(self, pair: tuple[str, str] | None = None, *, power: float = 0.8) -> QuestionsNeeded:
        r"""Return how many more observations tell two models apart.

        With the difference D of their estimates, its standard error s with n observations, and the critical value c of
        the largest studentised difference of all pairs of models, this takes

        .. math:: N = n \Bigl(\frac{(c + z)\, s}{D}\Bigr)^2

        observations in all, where z is the normal quantile of the power, because s falls with the root of N and D over
        its standard error is about normal. For the l2 error D is a difference of squared errors. With groups n and N
        are numbers of groups like these. Of skewed losses or small N more are needed; once other models are told apart,
        or if all predictions are nearly calibrated and compared by the l2 error, fewer.

        Parameters
        ----------
        pair : tuple of two str, optional
            Two models; the first two of the table by default.
        power : float
            Probability of telling them apart, if their true difference is the estimated one.

        Returns
        -------
        QuestionsNeeded
            Prints as a sentence; ``n_more`` is the number.

        Raises
        ------
        KeyError
            If there is no model of a name.
        TypeError
            If ``pair`` is not a pair of names.
        ValueError
            If the models have equal estimates or one is infinite, nothing is known of how much they differ by chance,
            or ``power`` is not between 1 - ``confidence_level`` and 1.
        """
        power = validate_power(power, level_of(self.confidence_level))
        asked = (self.models[0].name, self.models[1].name) if pair is None else pair
        is_pair = isinstance(asked, list | tuple) and len(asked) == 2 and all(isinstance(name, str) for name in asked)
        require(is_pair, "`pair` must be the names of two models", pair, right_type=False)
        first, second = sorted(self._place(name) for name in asked)
        better, worse = self.models[first], self.models[second]
        gap, error = float(self.value[second] - self.value[first]), float(self.standard_error[first, second])
        names = f"{better.name!r} and {worse.name!r}"
        refuse_if(gap == 0, f"{names} have equal estimates: no number of observations tells them apart.")
        refuse_if(not math.isfinite(gap), f"{names} have an infinite difference, of which no standard error is known.")
        refuse_if(
            not 0 < error * self.critical_value < math.inf,
            f"{names} have a difference with the standard error {error:.3g}, and {self.critical_value:.3g} of these "
            "tell two models apart, so that no sample size can be computed: take more observations, groups or draws.",
        )
        n_now = self.n_samples if self.n_groups is None else self.n_groups
        return QuestionsNeeded(
            better=better.name,
            worse=worse.name,
            words=self.words,
            difference=gap,
            standard_error=error,
            critical_value=self.critical_value,
            power=power,
            n_now=n_now,
            n_needed=questions_for(gap / error, self.critical_value, power, n_now),
            are_groups=self.n_groups is not None,
        )

    @property
    def conclusion(self) -> str:
        """Which models may be the best."""
        number, best = len(self), self.best
        start, level = f"By {self.words}", f" ({percent(self.confidence_level)} confidence)"
        if len(best) == number:
            return f"{start} none of the {number} models can be ruled out as the best{level}."
        if len(best) == 1:
            return f"{start} {best[0]} is shown to be the best of {number} models{level}."
        return f"{start} {len(best)} of {number} models may be the best{level}: {some_of(best)}."

    @property
    def separation(self) -> str:
        """How many pairs and neighbours of the table are told apart."""
        number = len(self)
        pairs, beside = number * (number - 1) // 2, self.n_neighbours
        return (
            f"{self.n_separated:,} of {pairs:,} pairs of models are told apart, and {beside:,} of {number - 1:,} pairs "
            "of neighbours in the table."
        )

    @property
    def table(self) -> Table:
        """The models in print."""
        return _table(self.models)

    def to_frame(self) -> pd.DataFrame:
        """Return the models as a pandas frame, one in each row.

        Returns
        -------
        pandas.DataFrame
            Measure, model, rank with ``rank_lower`` and ``rank_upper``, tier, estimate with ``lower`` and ``upper``,
            the value if calibrated, and the p-values of calibration; of scores that were divided ``miscalibration``
            and ``discrimination``, each with its interval.
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
                "rank": model.rank,
                "rank_lower": int(model.rank_interval.low),
                "rank_upper": int(model.rank_interval.high),
                "tier": model.tier,
                "estimate": model.measure.estimate,
                "lower": model.measure.confidence_interval.low,
                "upper": model.measure.confidence_interval.high,
                "if_calibrated": model.measure.if_calibrated,
                "pvalue": model.measure.pvalue,
                "pvalue_adjusted": model.pvalue_adjusted,
                **_parts_of(model),
            }
            for model in self.models
        ]

    @property
    def is_divided(self) -> bool:
        """Whether the score was divided into miscalibration and discrimination."""
        return self.models[0].parts is not None

    @property
    def tables(self) -> list[Table]:
        """The models in print, and the parts of their scores."""
        return [self.table, *([_table_of_parts(self.models)] if self.is_divided else [])]

    @property
    def remarks(self) -> list[str]:
        """What the columns are."""
        return [*remarks(self.confidence_level), *([about_parts(self)] if self.is_divided else [])]

    def _describe(self) -> Description:
        title = f"Ranks by {self.words} ({sized(self.n_samples, self.n_groups)}, {len(self)} models)"
        return Description(title, [self.conclusion, self.separation], self.tables, self.remarks)


_PARTS = ("miscalibration", "discrimination")


def _parts_of(model: RankedModel) -> dict[str, float]:
    """Return the parts of a score with their intervals, by the names of the columns of the frame."""
    found: dict[str, float] = {}
    if (parts := model.parts) is not None:
        for name in _PARTS:
            low, high = parts.intervals[name]
            found |= {name: getattr(parts, name), f"{name}_lower": low, f"{name}_upper": high}
    return found


def _table_of_parts(models: Sequence[RankedModel]) -> Table:
    """Return the table of the parts of scores."""
    rows = []
    for model in models:
        parts = _parts_of(model)
        row = [model.name, f"{model.measure.estimate:.4g}"]
        for name in _PARTS:
            interval = ConfidenceInterval(parts[f"{name}_lower"], parts[f"{name}_upper"])
            row += [f"{parts[name]:.3g}", show_interval(interval).replace("none", "")]
        rows.append(row)
    return Table(("model", models[0].measure.words, "miscalibration", "interval", "discrimination", "interval"), rows)


def about_parts(ranking: Ranking) -> str:
    """Return what the parts of a score are."""
    parts = ranking.models[0].parts
    assert parts is not None
    method = " ".join(repr(parts.recalibrator).split())
    return (
        f"Miscalibration is what {method}, fitted to the other {parts.n_folds - 1} of {parts.n_folds} folds, removes "
        "from the score of held-out observations; it may be negative. The calibration error of the score is at least "
        "its lower limit. Discrimination is what the recalibrated predictions gain on the base rates. Score = "
        "miscalibration - discrimination + the score of the base rates, which all models share."
    )


def remarks(confidence_level: float) -> list[str]:
    """Return what the columns are."""
    level = percent(confidence_level)
    return [
        f"Column {level} set: the sets of all models contain all ranks together with {level} confidence, by each "
        "measure (step-down max-T over all pairs). A tie of true values gives all the better rank.",
        "Tier 1: not separable from the best. Column interval: of the estimate of one model alone; whether intervals "
        f"overlap does not tell models apart. {_ABOUT_CALIBRATION}",
    ]


_ABOUT_CALIBRATION = (
    "Column if calibrated: what calibrated predictions like these have on average. Column adj. p: test of "
    "calibration, Holm-adjusted for the number of models."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Leaderboard(Result):
    """Result of `leaderboard`; iterates over its rankings, one for each measure.

    Attributes
    ----------
    rankings : tuple of Ranking
        The ranking by each measure that ranks models.
    unranked : tuple of Unranked
        All models by each measure that does not rank them, such as the ECE.
    confidence_level : float
        Probability with which the confidence sets of all ranks by a measure contain them together, at least.
    n_samples : int
        Number of observations on which the models were compared.
    n_groups : int or None
        Number of their groups, if only groups are independent.
    lead : str or None
        Of predictions in time: those closer than this may depend on each other.
    n_resamples : int
        Number of draws of random signs, in time of random directions.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    caltest.leaderboard : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> board = caltest.leaderboard(y_true, models, n_resamples=99, rng=0)
    >>> [ranking.name for ranking in board]
    ['log_score', 'brier', 'l2']
    >>> board.n_samples
    300
    """

    rankings: tuple[Ranking, ...]
    unranked: tuple[Unranked, ...]
    confidence_level: float
    n_samples: int
    n_groups: int | None
    n_resamples: int
    lead: str | None = None
    notes: tuple[Note, ...] = ()

    plot = Picture("plot_leaderboard")
    _derived: ClassVar[tuple[str, ...]] = ("best", "conclusion")

    def __iter__(self) -> Iterator[Ranking]:
        return iter(self.rankings)

    def __len__(self) -> int:
        return len(self.rankings)

    def __getitem__(self, measure: str) -> Any:
        """Return the `Ranking` by a measure, or the `Unranked` models by one that does not rank them."""
        found = {found.name: found for found in self.measures}
        if measure not in found:
            refuse(f"no measure {measure!r}; there are {', '.join(found)}.", KeyError)
        return found[measure]

    @property
    def measures(self) -> tuple[Ranking | Unranked, ...]:
        """What was found by each measure: first by those that rank models."""
        return *self.rankings, *self.unranked

    @property
    def best(self) -> dict[str, tuple[str, ...]]:
        """The models of the first tier by each measure."""
        return {ranking.name: ranking.best for ranking in self.rankings}

    @property
    def conclusion(self) -> str:
        """Which models may be the best by the first measure; if none ranks them, which are not calibrated."""
        return self.measures[0].conclusion

    def sample_size(self, pair: tuple[str, str] | None = None, *, power: float = 0.8) -> QuestionsNeeded:
        """Return how many more observations tell two models apart by the first measure, as `Ranking.sample_size`.

        Parameters
        ----------
        pair : tuple of two str, optional
            Two models; the first two of the table by default.
        power : float
            Probability of telling them apart, if their true difference is the estimated one.

        Returns
        -------
        QuestionsNeeded
            Prints as a sentence; ``n_more`` is the number.

        Raises
        ------
        ValueError
            If no measure ranks the models, and what `Ranking.sample_size` refuses.
        """
        refuse_if(not self.rankings, "no measure ranks the models; take one of those by which `leaderboard` ranks.")
        return self.rankings[0].sample_size(pair, power=power)

    def to_frame(self) -> pd.DataFrame:
        """Return the models as a pandas frame, one row for each measure and model.

        Returns
        -------
        pandas.DataFrame
            The columns of `Ranking.to_frame`; and of `Unranked.to_frame`, if there are such measures. Ranks that do
            not exist are missing.
        """
        import pandas as pd

        frame = pd.DataFrame([record for found in self.measures for record in found.records])
        return frame.astype({name: "Int64" for name in ("rank", "rank_lower", "rank_upper", "tier") if name in frame})

    @property
    def sentences(self) -> list[str]:
        """What was found by each measure, in words."""
        ranked = [text for ranking in self.rankings for text in (ranking.conclusion, ranking.separation)]
        return [*ranked, *(found.conclusion for found in self.unranked)]

    @property
    def remarks(self) -> list[str]:
        """What the columns of the tables are."""
        divided = next((ranking for ranking in self.rankings if ranking.is_divided), None)
        found = (divided or self.rankings[0]).remarks if self.rankings else [_ABOUT_CALIBRATION]
        return [*found, *([why_unranked(self.unranked)] if self.unranked else [])]

    def _describe(self) -> Description:
        closer = "" if self.lead is None else f", which may depend on each other within {self.lead}"
        size = f"{sized(self.n_samples, self.n_groups)}{closer}, {len(self.measures[0])} models"
        tables = [*(one for ranking in self.rankings for one in ranking.tables), *(one.table for one in self.unranked)]
        return Description(f"Leaderboard ({size})", self.sentences, tables, self.remarks, self.notes)
