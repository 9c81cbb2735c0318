r"""Adjusted p-values of all pairs of many models, from sums with random signs (step-down max-T).

A pair of models whose units add :math:`d_g` to their difference has, with signs :math:`\xi_g` and the shares
:math:`a_g` of the units, the sum :math:`m = \sum_g \xi_g d_g` and the variance :math:`v = \sum_g (\xi_g d_g - a_g m)^2
= \sum_g d_g^2 - 2 m \sum_g a_g \xi_g d_g + m^2 \sum_g a_g^2`. Compared are the signed ratios :math:`m |m| / v`, which
order as :math:`m / \sqrt v` does.
"""

import numpy as np

from caltest._compiled._jit import kernel


@kernel
def step_down(better, worse, observed, total, by_share, squares, squared_shares):
    """Return the adjusted p-value of each pair, ``(n_pairs,)``, and the largest ratio of each draw, ``(n_draws,)``.

    Pairs are in increasing order of ``observed``.

    ``total`` and ``by_share`` are the sums of each model with the signs of each draw, ``(n_models, n_draws)``.
    """
    n_pairs, n_draws = observed.size, total.shape[1]
    largest, pvalue = np.zeros(n_draws), np.empty(n_pairs)
    # First the other direction of all pairs, which stays possible whatever is shown; then one pair after the other.
    for direction in (-1.0, 1.0):
        for i in range(n_pairs):
            a, b, square = better[i], worse[i], squares[better[i], worse[i]]
            floor, least, number = 1e-12 * square, observed[i] * (1 - 1e-9), 1
            for draw in range(n_draws):
                m = total[b, draw] - total[a, draw]
                spread = square - 2 * m * (by_share[b, draw] - by_share[a, draw]) + m * m * squared_shares
                ratio = direction * m * abs(m) / max(spread, floor)
                largest[draw] = max(largest[draw], ratio)
                number += largest[draw] >= least
            pvalue[i] = number / (n_draws + 1)
    for i in range(n_pairs - 2, -1, -1):
        pvalue[i] = max(pvalue[i], pvalue[i + 1])
    return pvalue, largest
