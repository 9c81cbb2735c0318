r"""Where null distributions come from: how outcomes, and perhaps predictions, are redrawn.

:math:`D^\rho`, data whose true calibration function is :math:`\rho`, is drawn as in section 4.2 of Vaicenavicius et
al. (2019); what is held fixed decides when the p-value is valid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.predictions._sample import CalibrationFunction, Sample, with_calibration_function
from caltest.predictions._validation import SeedLike, validate_count, validate_rng
from caltest.resampling._draws import BootstrapDraws, Draws, OutcomeDraws, RowDraws


@dataclass(frozen=True)
class Consistency:
    r"""Resampling under the hypothesis that the model is calibrated (Bröcker & Smith 2007).

    By default the predictions are held fixed and only outcomes are redrawn, :math:`y_i \sim \rho(g_i)`. The null law is
    then fully known and the p-value valid at every sample size, for every statistic.

    Parameters
    ----------
    resample_predictions : bool
        Also draw the rows with replacement, as the paper does, and fit data-dependent partitions again on every
        resample. This p-value is asymptotic only, and wrong when cells hold few rows, because copies of a row share a
        cell; the result of the test warns.
    calibration_function : callable, optional
        A known calibration function :math:`\rho` instead of the identity, from induced probabilities
        ``(n_samples, n_outcomes)`` to the same shape. Cells stay on the predictions; outcomes are drawn from
        :math:`\rho` and residuals are centred on it. It must not have been fitted on these labels.

    Raises
    ------
    ValueError
        If ``resample_predictions`` is no boolean or ``calibration_function`` not callable.

    Examples
    --------
    >>> Consistency()
    Consistency(resample_predictions=False, calibration_function=None)
    """

    resample_predictions: bool = False
    calibration_function: CalibrationFunction | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.resample_predictions, bool):
            msg = f"`resample_predictions` must be True or False, got {self.resample_predictions!r}."
            raise ValueError(msg)
        if self.calibration_function is not None and not callable(self.calibration_function):
            msg = f"`calibration_function` must be a function of probabilities, got {self.calibration_function!r}."
            raise ValueError(msg)

    def under_null(self, sample: Sample) -> Sample:
        """Return the sample with the probabilities that its outcomes have under this null hypothesis."""
        if self.calibration_function is None:
            return sample
        return with_calibration_function(sample, self.calibration_function)

    def draws(self, n_resamples: int, rng: SeedLike = None) -> Draws:
        """Return ``n_resamples`` draws."""
        kind = RowDraws if self.resample_predictions else OutcomeDraws
        return kind(draw_seed(rng), 0, validate_count(n_resamples, "n_resamples"))


@dataclass(frozen=True)
class Bootstrap:
    """Resampling of the data: rows, each a prediction with its outcome, are drawn with replacement (Efron 1979).

    Partitions that depend on the rows are fitted again on every resample. It shows how much an estimate varies, and
    never gives a p-value of perfect calibration, because the data need not be calibrated.

    Examples
    --------
    >>> Bootstrap()
    Bootstrap()
    """

    def draws(self, n_resamples: int, rng: SeedLike = None) -> BootstrapDraws:
        """Return ``n_resamples`` draws."""
        return BootstrapDraws(draw_seed(rng), 0, validate_count(n_resamples, "n_resamples"))


def draw_seed(rng: SeedLike) -> np.uint64:
    """Return a seed for all draws: all randomness enters here."""
    return validate_rng(rng).integers(2**64, dtype=np.uint64)
