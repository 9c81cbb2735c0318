"""Studies of power: how often tests reject models that are miscalibrated, by amount and direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np

from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.results._description import Description, percent
from caltest.results._picture import Picture
from caltest.simulation.models._base import Model
from caltest.simulation.studies._options import TestStudyOptions
from caltest.simulation.studies._run import Design, by_lens, distinct_numbers, named, read_lenses
from caltest.simulation.studies._size import Battery, RejectionStudy, Test, run_tests, validate_levels
from caltest.simulation.studies._study import CLEAR
from caltest.simulation.studies._truth import ROUNDING, exact_miscalibration

if TYPE_CHECKING:
    import pandas as pd

Family = Callable[[float], Model]
"""Models by their amount of miscalibration."""

_SAMPLES = 100_000  # that decide the direction of a model


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PowerStudy(RejectionStudy):
    """Result of `power_study`: p-values of tests on data sets of models by their amount of miscalibration.

    Attributes
    ----------
    pvalues : pandas.DataFrame
        One row for each family, amount, lens, number of samples, replicate and test, with its ``pvalue``.
    levels : tuple of float
        Levels at which `to_frame` counts rejections.
    truth : pandas.DataFrame
        One row for each family, amount and lens with ``miscalibration``, the expected total variation distance through
        the lens (NaN where the model does not know it), and ``direction``: "over-confident", "under-confident" or
        "neither", by the mean of confidence minus accuracy.

    See Also
    --------
    power_study : The study that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, power_study
    >>> def family(slope):
    ...     return GaussianMixture1D(0, slope)
    >>> study = power_study(family, [-2, -4], caltest.KS(), 30, 10, n_resamples=19, rng=0)
    >>> len(study.pvalues), study.truth["direction"].tolist()
    (20, ['neither', 'over-confident'])
    """

    truth: pd.DataFrame

    plot = Picture("plot_power_study")

    def to_frame(self, *, error: float = 0.025, per: str = "row") -> pd.DataFrame:
        """Return one row for each family, amount, lens, number of samples, test and level.

        As `RejectionStudy.to_frame`, with the truth, and without the limits that concern calibrated models; ``lower``
        and ``upper`` together are a 95 % interval of the power.

        Parameters
        ----------
        error : float
            Probability with which each of ``lower`` and ``upper`` is wrong.
        per : {"study", "row"}
            Whether ``error`` is shared by all rows (Bonferroni) or that of each row.

        Returns
        -------
        pandas.DataFrame
            The rejection rates.
        """
        frame = super().to_frame(error=error, per=per).drop(columns=["limit", "exceeds"])
        return frame.merge(self.truth, on=["family", "amount", "lens"], how="left", sort=False)

    @property
    def conclusion(self) -> str:
        """Which test rejects miscalibrated models most often, in words."""
        level = 0.05 if 0.05 in self.levels else self.levels[0]
        frame = self.to_frame()
        frame = frame[frame["level"] == level]
        unknown = frame["miscalibration"].isna() & (frame["direction"] == "neither")
        wrong = frame[~unknown & ~(frame["miscalibration"] <= ROUNDING)]
        power = (frame if wrong.empty else wrong).groupby("test", sort=False)["rate"].mean()
        models = "calibrated" if wrong.empty else "miscalibrated"
        at = f"at the {percent(level)} level, averaged over all {models} models and numbers of observations"
        if len(power) == 1:
            return f"The power of {power.index[0]} is {power.iloc[0]:.3f} {at}."
        return (
            f"The most powerful test is {power.idxmax()} with {power.max():.3f} {at}; the least powerful is "
            f"{power.idxmin()} with {power.min():.3f}."
        )

    def _describe(self) -> Description:
        frame = self.to_frame()
        always = ["amount", "miscalibration", "direction", "n_samples", "test"]
        return Description(
            self._title("Rejection rates by level", frame, ("family", "lens")),
            [self.conclusion],
            [self._rates(frame, ["family", "lens"], always)],
            ["miscalibration: expected total variation distance through the lens; empty where it is not known."],
        )

    def panels(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield a name and rows of the frame for each family, with under-confident models separated."""
        for family, frame in self.to_frame().groupby("family", sort=False):
            under = frame["direction"] == "under-confident"
            over = frame["direction"] == "over-confident"
            if not (under.any() and over.any()):
                yield f"{family}: under-confident" if under.any() else str(family), frame
                continue
            yield f"{family}: under-confident", frame[~over]
            yield f"{family}: over-confident", frame[~under]


@reads_arguments
def power_study(
    family: Family | Mapping[str, Family],
    amounts: float | Sequence[float],
    tests: Test | Sequence[Test] | Mapping[str, Test],
    n_samples: int | Sequence[int],
    n_replicates: int = 1000,
    **options: Unpack[TestStudyOptions],
) -> PowerStudy:
    r"""Simulate the power of tests against models of increasing miscalibration.

    The power of a test is :math:`P(p \le \alpha)`. It depends on the kind of miscalibration as much as on its amount;
    above all, tests that measure scatter cannot detect under-confidence, which is therefore always shown separately.
    Every test is applied to the same data sets.

    Parameters
    ----------
    family : function or mapping of name to function
        From an amount to a `Model`.
    amounts : float or sequence of float
        Amounts of miscalibration, in the unit of the family.
    tests : Statistic, function, sequence or mapping
        As in `size_study`.
    n_samples : int or sequence of int
        Number of observations of a data set.
    n_replicates : int
        Number of data sets for each model and number of observations.
    lenses : lens, sequence or mapping, optional
        What to look at; default lenses as in `size_study`.
    workers : int
        Threads, or what ``joblib.parallel_config`` names; -1 for all processors. The answer does not depend on it.

    Returns
    -------
    PowerStudy
        The p-values and, by ``to_frame()``, the power; ``plot()`` draws it.

    Raises
    ------
    TypeError
        If ``family`` makes something else than models, or an argument of `size_study` has a wrong type.
    ValueError
        If ``amounts`` are not different finite numbers, or an argument of `size_study` has a wrong value; if a test
        does not accept a lens; if ``out`` holds another study.

    See Also
    --------
    caltest.simulation.size_study : False rejections.
    caltest.simulation.sample_size : The number of observations for a given power.

    Examples
    --------
    The slope of a logistic model, of which -2 is calibrated and -3 over-confident:

    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, power_study
    >>> study = power_study(lambda slope: GaussianMixture1D(0, slope), [-2, -3], caltest.TemperatureScore(),
    ...                     n_samples=200, n_replicates=100, levels=[0.05], n_resamples=99, rng=0)
    >>> study.to_frame()[["amount", "direction", "miscalibration", "rate"]].round(3)
       amount       direction  miscalibration  rate
    0    -2.0         neither           0.000  0.04
    1    -3.0  over-confident           0.049  0.78
    """
    battery, levels = Battery.taken(tests, options), validate_levels(options.pop("levels"))
    families = named(family, "family")
    steps = distinct_numbers(amounts, "amounts", "finite numbers", np.isfinite)
    members = {
        f"{name}, {amount:.17g}": (name, amount, make(amount)) for name, make in families.items() for amount in steps
    }
    models = named({name: member[2] for name, member in members.items()}, "family", Model, "functions that make models")
    design, looks = Design.of(models, n_samples, n_replicates), read_lenses(options.pop("lenses"))
    pvalues = run_tests("power", design, looks, battery, **options)
    model = pvalues.pop("model")
    pvalues.insert(0, "family", model.map({name: member[0] for name, member in members.items()}))
    pvalues.insert(1, "amount", model.map({name: member[1] for name, member in members.items()}))
    return PowerStudy(pvalues=pvalues, levels=levels, truth=_truth(members.values(), looks, battery))


def _truth(
    members: Iterable[tuple[str, float, Model]], lenses: dict[str, LensLike] | None, battery: Battery
) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for family, amount, model in members:
        direction = _direction(model)
        for view, (lens, _) in by_lens(lenses, battery.tests, model.n_classes).items():
            known = {"miscalibration": exact_miscalibration(model, lens), "direction": direction}
            rows.append({"family": family, "amount": amount, "lens": view} | known)
    return pd.DataFrame(rows)


def _direction(model: Model) -> str:
    """Return whether the confidence is above or below the accuracy on average, by simulation."""
    _, y_prob, class_prob = model.draw_unlabelled(_SAMPLES, np.random.default_rng(0))
    row = np.arange(len(y_prob))
    top = y_prob.argmax(axis=1)
    gap = y_prob[row, top] - class_prob[row, top]
    clear = CLEAR * gap.std() / np.sqrt(len(gap)) + 1e-12  # posteriors of equal predictions may differ
    return "over-confident" if gap.mean() > clear else "under-confident" if gap.mean() < -clear else "neither"
