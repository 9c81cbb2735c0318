"""How often do the intervals of `clinical_calibration` contain their targets?

``python -m benchmarks.clinical`` measures all designs and writes docs/data/clinical.csv, from which
`benchmarks.certificate_page` makes a part of docs/validity.md. It takes some 40 minutes on one core. Targets are those
of the model of the simulation: of observed over expected the ratio for the simulated predictions, of the distances
those of the curve that the same smoother has for the true probabilities, of all others the values of a million
observations.
"""

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.markdown import table
from benchmarks.pages import Studies
from caltest.clinical import clinical_calibration
from caltest.clinical._discrimination import c_statistic
from caltest.clinical._net_benefit import NetBenefit
from caltest.clinical._overall import brier_scores, likelihood_indexes
from caltest.estimation.event._event_cells import EventCells
from caltest.predictions._sample import make_sample
from caltest.statistics import E50, E90, ECI, ICI, Emax

SEED, LEVEL, N_RESAMPLES = 20261128, 0.05, 199
THRESHOLD = 0.2
_POPULATION = 1_000_000
_CURVE = ICI(), E50(), E90(), Emax(), ECI()
_SHOWN = (
    *("observed_expected", "calibration_slope", "ICI", "E50", "E90", "Emax", "ECI", "brier", "scaled_brier", "r2"),
    *("quality_index", "discrimination_index", "c_statistic", "net_benefit"),
)

Floats = NDArray[np.float64]


class Design(NamedTuple):
    """True logits are a shift plus a slope times normal predicted logits, plus what patients of a site share."""

    n: int
    mean: float
    shift: float = 0.0
    slope: float = 1.0
    sites: int = 0
    between_sites: float = 0.0

    @property
    def words(self) -> str:
        """What is wrong with the predictions."""
        wrong = "calibrated" if (self.shift, self.slope) == (0, 1) else f"shift {self.shift:g}, slope {self.slope:g}"
        return f"{wrong}, {self.sites} sites" if self.sites else wrong


DESIGNS = (
    *(Design(n, -1.9, *wrong) for n in (100, 250, 1000) for wrong in ((0.0, 1.0), (0.4, 1.0), (0.0, 0.6))),
    Design(2000, -5.2),
    Design(5000, -5.2, 0.4, 0.8),
    Design(600, -1.9, 0.0, 1.0, 30, 0.0),
    Design(600, -1.9, 0.4, 0.8, 30, 0.4),
)


def simulated(design: Design, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return predictions, true probabilities and sites."""
    logit = design.mean + 1.2 * rng.standard_normal(n)
    site = np.arange(n) * max(design.sites, 1) // n
    shared = design.between_sites * rng.standard_normal(max(design.sites, 1))[site]
    return expit(logit), expit(design.shift + design.slope * logit + shared), site


@cache
def population(design: Design) -> dict[str, float]:
    """Return the targets that do not depend on the simulated predictions, and the frequency of the event."""
    rng = np.random.default_rng(SEED)
    many = design._replace(sites=_POPULATION * design.sites // design.n)
    prob, true, _ = simulated(many, _POPULATION, rng)
    sample = make_sample((rng.random(_POPULATION) < true).astype(int), prob)
    cells = sample.once(EventCells.of)
    found = brier_scores(sample, LEVEL) | likelihood_indexes(sample, cells, LEVEL)
    return {name: one.estimate for name, one in found.items()} | {
        "frequency": float(true.mean()),
        "observed_expected": float(true.sum() / prob.sum()),
        "calibration_slope": EventCells.of_counts(prob, np.ones(_POPULATION), true).raw_fit[1],
        "c_statistic": c_statistic(sample, LEVEL)[0],
        "net_benefit": NetBenefit.at(sample, THRESHOLD, LEVEL).estimate,
    }


def targets(design: Design, prob: Floats, true: Floats) -> dict[str, float]:
    """Return the targets for simulated predictions."""
    found = dict(population(design))
    if not design.sites:
        found["observed_expected"] = float(true.sum() / prob.sum())
    if (design.shift, design.slope, design.between_sites) == (0, 1, 0):
        return found | {one.name: 0.0 for one in _CURVE}  # what the smoother misses is no error
    if design.between_sites:  # the sites are a sample of many
        point, weight = np.polynomial.hermite_e.hermegauss(31)
        logit = design.shift + design.slope * np.log(prob / (1 - prob))
        true = expit(logit[:, None] + design.between_sites * point) @ (weight / weight.sum())
    sample = make_sample(np.arange(len(prob)) % 2, prob)
    return found | {one.name: float(one.evaluate(sample, true[sample.row])) for one in _CURVE}


def coverage(data_sets: int) -> Iterator[tuple]:
    """Yield for each design and measure how often its interval lies above and below its target."""
    for design in DESIGNS:
        rng, missed = np.random.default_rng([SEED, design.n]), {name: [] for name in _SHOWN}
        for _ in range(data_sets):
            prob, true, site = simulated(design, design.n, rng)
            event = (rng.random(design.n) < true).astype(int)
            if not 0 < event.sum() < design.n:
                continue
            groups = {"groups": site} if design.sites else {}
            result = clinical_calibration(
                event, prob, thresholds=[THRESHOLD], n_resamples=N_RESAMPLES, rng=rng, **groups
            )
            wanted = targets(design, prob, true)
            found = {one.name: one.confidence_interval for one in result}
            found["net_benefit"] = result.net_benefits[0].confidence_interval
            for name in _SHOWN:
                low, high = found[name]
                if not math.isnan(low):
                    missed[name].append((low > wanted[name] + 1e-12, high < wanted[name] - 1e-12))
        for name, each in missed.items():
            above, below = np.mean(each, axis=0) if each else (math.nan, math.nan)
            events = round(design.n * population(design)["frequency"])
            yield Row("coverage", design.words, design.n, events, name, len(each), above, below)


class Row(NamedTuple):
    """How often the interval of a measure misses its target."""

    study: str
    predictions: str
    n: int
    events: int
    measure: str
    sets: int
    above: float
    below: float


SECTION = """## Intervals of the validation of a clinical model

How often the 95 % intervals of [`clinical_calibration`](clinical.md) contain their targets, in per cent. True logits
are a shift plus a slope times the predicted logits, which are normal with standard deviation 1.2; with sites they vary
between 30 sites by 0.4 where the slope is 0.8, and `groups` names the sites. Net benefit is that at a risk of 0.2. One
standard error of 95 % is 1.4 points with 250 data sets and 1.5 with 200. The data are in
[clinical.csv](data/clinical.csv).

Intervals of means of observations (Brier score, R2, D, Q) and of the c-statistic cover 90 to 98 %: they are
approximations, and least good with 20 events and wrong predictions. Those of distances cover 93 to 100 %, as they hold
several shapes of an error.

{table}"""


def section(frame: pd.DataFrame) -> str:
    """Return the part of docs/validity.md that the data make."""
    return SECTION.format(table=coverage_table(frame))


def coverage_table(frame: pd.DataFrame) -> str:
    """Return the table of coverages in per cent."""
    frame = frame.assign(coverage=100 * (1 - frame["above"].astype(float) - frame["below"].astype(float)))
    wide = frame.pivot_table(index=["predictions", "n", "events"], columns="measure", values="coverage", sort=False)
    rows = [
        [words, f"{n:,}", f"{events:,}", *(f"{values[name]:.1f}" for name in _SHOWN)]
        for (words, n, events), values in wide.iterrows()
    ]
    return table(["predictions", "n", "events", *(f"`{name}`" for name in _SHOWN)], rows)


STUDIES = Studies("clinical", SEED, N_RESAMPLES, 400, {"coverage": (coverage, coverage_table, "validity.md")})

if __name__ == "__main__":
    STUDIES.main(__doc__)
