"""Distribution of a sum of binomial numbers."""

import math

from caltest._compiled._jit import kernel

_NEGLIGIBLE = 1e-22  # of the mass of a binomial number


@kernel
def convolve_binomials(prob, count, one, mass):
    """Fill ``mass (n,)`` with the probabilities of 0, ..., n - 1 of a sum of binomial numbers, one after the other.

    ``prob (n_cells,)`` are at most 1/2, ``count (n_cells,)`` need not be whole numbers. All terms are positive where
    they are, so that the smallest probabilities are as precise as the others. ``mass`` begins as that of 0, and ``one
    (n,)`` holds those of one cell.
    """
    top = 0
    for i in range(prob.size):
        m, q = count[i], prob[i]
        if q <= 0.0 or m <= 0.0:
            continue
        odds = q / (1.0 - q)
        one[0] = math.exp(m * math.log1p(-q))
        last = 0
        while last < mass.size - 1 and last < m and (last < m * q or abs(one[last]) > _NEGLIGIBLE):
            one[last + 1] = one[last] * (m - last) / (last + 1.0) * odds
            last += 1
        top = min(top + last, mass.size - 1)
        for k in range(top, -1, -1):
            total = 0.0
            for j in range(min(k, last) + 1):
                total += one[j] * mass[k - j]
            mass[k] = total
