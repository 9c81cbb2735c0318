"""Studies of power: how often tests reject models that are miscalibrated, by amount and direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.predictions._lenses import Lens
from caltest.predictions._validation import SeedLike
from caltest.resampling._schemes import Consistency
from caltest.results._progress import Progress
from caltest.simulation.models._base import Model
from caltest.simulation.studies._run import PathLike, named, run_study
from caltest.simulation.studies._size import LEVELS, Battery, RejectionStudy, Test, cells_of, validate_levels

if TYPE_CHECKING:
    import pandas as pd

Family = Callable[[float], Model]
"""Models by their amount of miscalibration."""

_ROWS = 100_000  # from which the direction of a model is told
_CLEAR = 4.0  # standard errors


@dataclass(frozen=True, eq=False)
class PowerStudy(RejectionStudy):
    """P-values of tests on data sets of models by their amount of miscalibration.

    Attributes
    ----------
    pvalues : pandas.DataFrame
        One row per family, amount, lens, number of samples, replicate and test, with its ``pvalue``.
    levels : tuple of float
        Levels at which `to_frame` counts rejections.
    truth : pandas.DataFrame
        One row per family, amount and lens with ``miscalibration``, the expected total variation distance through the
        lens (NaN where the model does not know it), and ``direction``: "over-confident", "under-confident" or
        "neither", by the mean of confidence minus accuracy.
    """

    truth: pd.DataFrame

    def to_frame(self, *, error: float = 0.025, per: str = "row") -> pd.DataFrame:
        """Return one row per family, amount, lens, number of samples, test and level.

        As `RejectionStudy.to_frame`, with the truth, and without the limits that concern calibrated models; ``lower``
        and ``upper`` together are a 95 % interval of the power.
        """
        frame = super().to_frame(error=error, per=per).drop(columns=["limit", "exceeds"])
        return frame.merge(self.truth, on=["family", "amount", "lens"], how="left", sort=False)

    def panels(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield names and rows of the frame that are read together: a family, under-confident models always apart."""
        for family, frame in self.to_frame().groupby("family", sort=False):
            under = frame["direction"] == "under-confident"
            over = frame["direction"] == "over-confident"
            if not (under.any() and over.any()):
                yield f"{family}: under-confident" if under.any() else str(family), frame
                continue
            yield f"{family}: under-confident", frame[~over]
            yield f"{family}: over-confident", frame[~under]

    def __str__(self) -> str:
        frame = self.to_frame()
        index = ["family", "amount", "direction", "lens", "n_samples", "level"]
        wide = frame.pivot_table(index=index, columns="test", values="rate", sort=False)
        total = frame["n_replicates"].max()
        return f"Rejection rates by test, {total:,} data sets each\n{wide.to_string(float_format='{:.3f}'.format)}"


def power_study(
    family: Family | Mapping[str, Family],
    amounts: float | Sequence[float],
    tests: Test | Sequence[Test] | Mapping[str, Test],
    n_samples: int | Sequence[int],
    n_replicates: int = 1000,
    *,
    lenses: Lens | Sequence[Lens] | Mapping[str, Lens] | None = None,
    levels: Sequence[float] = LEVELS,
    n_resamples: int = 999,
    resampling: Consistency | None = None,
    method: str = "auto",
    out: PathLike | None = None,
    workers: int | None = None,
    progress: bool | Progress = False,
    rng: SeedLike = None,
) -> PowerStudy:
    r"""Draw data sets from models of growing miscalibration, test each, and count how often tests reject.

    The power of a test is :math:`P(p \le \alpha)`, which depends on the kind of miscalibration as much as on its
    amount; above all, tests that measure scatter are blind to under-confidence, which is therefore always shown apart.
    Every test sees the same data sets.

    Parameters
    ----------
    family : function or mapping of name to function
        From an amount to a `Model`.
    amounts : float or sequence of float
        Amounts of miscalibration, in the unit of the family.
    tests, n_samples, n_replicates, lenses, levels, n_resamples, resampling, method, out, workers, progress, rng
        As of `size_study`.

    Returns
    -------
    PowerStudy
        The p-values and, by ``to_frame()``, the power; `caltest.plot_power_study` draws it.

    Raises
    ------
    ValueError
        If an argument is not of the form above, a test does not accept a lens, or ``out`` holds another study.

    Examples
    --------
    The slope of a logistic model: -2 is perfect, -3 is over-confident:

    >>> import caltest
    >>> from caltest.simulation import GaussianMixture1D, power_study
    >>> study = power_study(lambda slope: GaussianMixture1D(0, slope), [-2, -3], caltest.TemperatureScore(),
    ...                     n_samples=200, n_replicates=200, levels=[0.05], n_resamples=99, rng=0)
    >>> study.to_frame()[["amount", "direction", "miscalibration", "rate"]].round(3)
       amount       direction  miscalibration   rate
    0    -2.0         neither           0.000  0.040
    1    -3.0  over-confident           0.049  0.815
    """
    battery, stated = Battery.of(tests, n_resamples, resampling, method), validate_levels(levels)
    families, steps = named(family, "family"), _amounts(amounts)
    members = {
        f"{name}, {amount:.17g}": (name, amount, make(amount)) for name, make in families.items() for amount in steps
    }
    models = named({name: member[2] for name, member in members.items()}, "family", Model, "functions that make models")
    cells = cells_of(models, lenses, battery, n_samples, n_replicates)
    pvalues = run_study(
        "power", lambda seed: [cell.part(seed) for cell in cells], out=out, workers=workers, progress=progress, rng=rng
    )
    model = pvalues.pop("model")
    pvalues.insert(0, "family", model.map({name: member[0] for name, member in members.items()}))
    pvalues.insert(1, "amount", model.map({name: member[1] for name, member in members.items()}))
    return PowerStudy(pvalues, stated, _truth(list(members.values()), cells[0].lenses))


def _truth(members: Sequence[tuple[str, float, Model]], lenses: dict[str, Lens]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for family, amount, model in members:
        direction = _direction(model)
        for seen, lens in lenses.items():
            known = {"miscalibration": _miscalibration(model, lens), "direction": direction}
            rows.append({"family": family, "amount": amount, "lens": seen} | known)
    return pd.DataFrame(rows)


def _miscalibration(model: Model, lens: Lens) -> float:
    try:
        return model.expected_miscalibration(lens)
    except NotImplementedError:
        return float("nan")


def _direction(model: Model) -> str:
    """Return whether the confidence lies above or below the accuracy on average, from many rows of the model."""
    _, y_prob, class_prob = model.draw_rows(_ROWS, np.random.default_rng(0))
    row = np.arange(len(y_prob))
    top = y_prob.argmax(axis=1)
    gap = y_prob[row, top] - class_prob[row, top]
    clear = _CLEAR * gap.std() / np.sqrt(len(gap)) + 1e-12  # a posterior of equal predictions need not be equal
    return "over-confident" if gap.mean() > clear else "under-confident" if gap.mean() < -clear else "neither"


def _amounts(amounts: Any) -> list[float]:
    given = [float(amount) for amount in np.atleast_1d(np.asarray(amounts, dtype=np.float64))]
    if not given or len(set(given)) < len(given) or not np.isfinite(given).all():
        msg = f"`amounts` must hold one or more different finite numbers, got {amounts!r}."
        raise ValueError(msg)
    return given
