"""The reliability curve of a state."""

from __future__ import annotations

import numpy as np

from caltest.estimation import ReliabilityCurve
from caltest.estimation._bars import exact_deviations, smallest_pvalues
from caltest.estimation._cell_tests import EXACT
from caltest.estimation._prediction_density import EDGES, prediction_density
from caltest.predictions._lens import Lens, lens_name
from caltest.predictions._partitions import Partition
from caltest.resampling._distributions import SMALLEST_PVALUE
from caltest.streaming._cells import CoarseCells, two_sided
from caltest.streaming._sums import Sums


def curve_of(sums: Sums, lens: Lens, partition: Partition, level: float, *, simultaneous: bool) -> ReliabilityCurve:
    """Return the curve with exact consistency bars and p-values of the cells."""
    cells = CoarseCells(sums, partition)
    counts, nodes = cells.counts(), cells.nodes()
    own_level = level ** (1 / cells.n_cells) if simultaneous else level
    bars = np.array([count.central_interval(own_level) for count in counts]) / cells.count[:, None]
    pvalues = [two_sided(*one) for one in zip(counts, nodes, cells.events.tolist(), strict=True)]
    predicted, observed, share = cells.expected / cells.count, cells.events / cells.count, cells.count / sums.n_samples
    size, mean = sums.count.sum(axis=1), sums.prob.sum(axis=1)
    used = size > 0  # the prediction of each micro-cell for the picture: its mean
    return ReliabilityCurve(
        lower=cells.lower,
        upper=cells.upper,
        count=cells.count,
        predicted=predicted,
        expected=predicted,
        observed=observed,
        bar_low=bars[:, 0],
        bar_high=bars[:, 1],
        bars="consistency",
        confidence_level=level,
        simultaneous=simultaneous,
        exact=True,
        lens=lens,
        lens_name=lens_name(lens),
        partition=partition,
        notes=(),
        density_edges=EDGES,
        density=prediction_density(mean[used] / size[used], size[used]),
        error=float(np.abs(observed - predicted) @ share),
        noise_floor=float(exact_deviations(counts, cells.count) @ share),
        pvalue=np.where(cells.impossible(), SMALLEST_PVALUE, pvalues),
        smallest_pvalue=smallest_pvalues(counts, cells.count),
        origin=EXACT,
    )
