"""Cells of equal mass that a state's predictions tell, before any label is looked at."""

from __future__ import annotations

import numpy as np

from caltest.predictions.cells._partitions import Edges, EqualWidth, Partition
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_count
from caltest.streaming.states._answers import TwoOutcomes
from caltest.streaming.states._state import CalibrationState


@reads_arguments
def equal_mass_cells(state: CalibrationState, n_cells: int = 15) -> Partition:
    r"""Return cells (bins) of nearly equal numbers of observations, for statistics of the same state or another one.

    With :math:`N_b` the number of observations below the b-th edge of the micro-cells, cell j ends at the edge

    .. math:: b_j = \arg\min_b \left| N_b - \frac{j n}{L} \right|, \qquad j = 1, \dots, L - 1,

    so that the number of observations of a cell differs from n / L by at most that of the fullest micro-cell. Tied
    predictions stay together; cells that would be empty are left out. `caltest.EqualMass` cuts between observations,
    which a state does not have, so that its cells are close to these and not the same.

    Labels play no part: the cells are fixed given the predictions, and tests with them are as valid as with cells that
    were chosen beforehand.

    Parameters
    ----------
    state : CalibrationState
        Where the predictions are. Its own statistics may use the cells; or another state's with the same
        ``micro_cells``, such as that of next month.
    n_cells : int
        Number of cells L.

    Returns
    -------
    Edges or EqualWidth
        ``Edges(...)``, or ``EqualWidth(1)`` where all predictions lie in one micro-cell.

    Raises
    ------
    TypeError
        If ``state`` is no state or ``n_cells`` no integer.
    ValueError
        If ``n_cells`` < 1, the state is empty, or it has more than two outcomes.

    See Also
    --------
    CalibrationState.test : Takes statistics with these cells.
    caltest.EqualMass : The same for predictions in memory.

    Examples
    --------
    >>> import caltest
    >>> from caltest.streaming import CalibrationState, equal_mass_cells
    >>> state = CalibrationState(10).update(*caltest.datasets.load_cifar10_vgg16())
    >>> cells = equal_mass_cells(state, 4)
    >>> [round(edge, 4) for edge in cells.edges]
    [0.9989, 0.9998, 0.9999]
    >>> state.test(caltest.ECE(cells)).pvalue < 1e-9
    True
    """
    if not isinstance(state, CalibrationState):
        refuse(f"`state` must be a CalibrationState, got {type(state).__name__}.", TypeError)
    wanted = validate_count(n_cells, "n_cells")
    answers = state._answers()
    if not isinstance(answers, TwoOutcomes):
        refuse(f"`state` must have a lens with two outcomes, such as Confidence(), got {state!r}.")
    sums = answers.sums.micro
    lower, below = sums.cells.lower, np.append(0, np.cumsum(sums.count.sum(axis=1))[:-1])
    possible = np.flatnonzero((lower > 0) & (lower < 1) & (below > 0) & (below < sums.n_samples))
    if wanted == 1 or not possible.size:
        return EqualWidth(1)
    target = np.arange(1, wanted) * sums.n_samples / wanted
    after = np.clip(np.searchsorted(below[possible], target), 1, max(len(possible) - 1, 1))
    pair = possible[np.minimum(np.stack([after - 1, after]), len(possible) - 1)]
    chosen = np.where(target - below[pair[0]] <= below[pair[1]] - target, pair[0], pair[1])
    _, first = np.unique(below[chosen], return_index=True)
    return Edges(lower[chosen[first]])
