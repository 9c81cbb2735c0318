"""Poisson-binomial and Poisson-multinomial distributions, and sums of binomial numbers."""

import math

import numpy as np

from caltest._compiled._jit import kernel

_BATCH = 64
_TINY, _HUGE = 1e-200, 1e200  # products stay between 1e-300 and 1e300, as factors lie between 1e-100 and 1e100


@kernel
def characteristic_function(p, cosine, sine, real, imag, batch_real, batch_imag):
    """Fill ``real`` and ``imag (n_frequencies,)`` with ``prod_i (1 + |p_i| (exp(i w sign p_i) - 1))``.

    ``cosine`` is cos w - 1, ``sine`` is sin w, ``batch_real`` and ``batch_imag`` are working space. A negative p stands
    for an event that is counted down from certain, by its complement. The frequencies are the inner, vectorised loop.
    Factors are multiplied in batches as ``(1 + z)(1 + Z) = 1 + (z + Z + z Z)``, so that the 1 is rounded once a batch:
    for small p a plain product loses digits in step with n.
    """
    n_frequencies = cosine.size
    for j in range(n_frequencies):
        real[j] = 1.0
        imag[j] = 0.0
    for start in range(0, p.size, _BATCH):
        for j in range(n_frequencies):
            batch_real[j] = 0.0
            batch_imag[j] = 0.0
        for i in range(start, min(start + _BATCH, p.size)):
            q = p[i]
            for j in range(n_frequencies):
                a = abs(q) * cosine[j]
                b = q * sine[j]
                x = batch_real[j]
                y = batch_imag[j]
                batch_real[j] = x + (a + (x * a - y * b))
                batch_imag[j] = y + (b + (x * b + y * a))
        for j in range(n_frequencies):
            a = 1.0 + batch_real[j]
            b = batch_imag[j]
            x = real[j]
            real[j] = x * a - imag[j] * b
            imag[j] = x * b + imag[j] * a


@kernel
def log_moment(p, t):
    """Return ``log E exp(t K)``, the sum of ``log(1 - p_i + p_i exp(t))``; logarithms of products of many factors.

    Four products side by side, because each factor waits for the one before.
    """
    growth = math.exp(t)
    total = 0.0
    a, b, c, d = 1.0, 1.0, 1.0, 1.0
    fours = p.size // 4 * 4
    for i in range(0, fours, 4):
        a *= (1.0 - p[i]) + p[i] * growth
        b *= (1.0 - p[i + 1]) + p[i + 1] * growth
        c *= (1.0 - p[i + 2]) + p[i + 2] * growth
        d *= (1.0 - p[i + 3]) + p[i + 3] * growth
        if not (_TINY < min(a, b, c, d) and max(a, b, c, d) < _HUGE):
            total += math.log(a) + math.log(b) + math.log(c) + math.log(d)
            a, b, c, d = 1.0, 1.0, 1.0, 1.0
    for i in range(fours, p.size):
        a *= (1.0 - p[i]) + p[i] * growth
        total += math.log(a)
        a = 1.0
    return total + math.log(a) + math.log(b) + math.log(c) + math.log(d)


@kernel
def log_moment_of_deviations(p, start, centre, deviation, mass, first, t):
    """Return the sum over cells of ``log E exp(t |K - m|)``, with m of ``centre (n_cells,)``.

    Probabilities of the events of cell b are ``p[start[b] : start[b + 1]]``; the values of ``|K - m|`` that are not
    negligible and their probabilities are ``deviation`` and ``mass[first[b] : first[b + 1]]``.
    """
    total = 0.0
    for b in range(centre.size):
        events = p[start[b] : start[b + 1]]
        up = log_moment(events, t) - t * centre[b]
        down = log_moment(events, -t) + t * centre[b]
        top = max(up, down)
        inner = 0.0
        for j in range(first[b], first[b + 1]):
            inner += mass[j] * math.exp(-t * deviation[j] - top)
        total += top + math.log(math.exp(up - top) + math.exp(down - top) - inner)
    return total


@kernel
def pearson_tail(prob, expected, least):
    """Return the probability that ``sum_k (N_k - m_k)**2 / m_k`` is at least ``least``.

    N counts the outcomes of independent observations with probabilities ``prob (n_samples, 4)``, m is ``expected
    (4,)``; an outcome with m = 0 counts nothing. The probabilities of all counts of outcomes 1 to 3 are built up
    observation by observation, in place from the largest count down: sums of products that are not negative, so that
    the smallest ones are as precise as the others.
    """
    n = prob.shape[0]
    last = n if expected[3] > 0.0 else 0
    mass = np.zeros((n + 1, n + 1, last + 1))
    mass[0, 0, 0] = 1.0
    for t in range(1, n + 1):
        p, q, r, s = prob[t - 1]
        for i in range(t, -1, -1):
            for j in range(t - i, -1, -1):
                for k in range(min(t - i - j, last), -1, -1):
                    value = p * mass[i, j, k] if i + j + k < t else 0.0
                    if i > 0:
                        value += q * mass[i - 1, j, k]
                    if j > 0:
                        value += r * mass[i, j - 1, k]
                    if k > 0:
                        value += s * mass[i, j, k - 1]
                    mass[i, j, k] = value
    weight = np.zeros(4)
    for k in range(4):
        if expected[k] > 0.0:
            weight[k] = 1.0 / expected[k]
    tail = 0.0
    for i in range(n + 1):
        for j in range(n + 1 - i):
            for k in range(min(n - i - j, last) + 1):
                statistic = weight[0] * (n - i - j - k - expected[0]) ** 2
                statistic += weight[1] * (i - expected[1]) ** 2
                statistic += weight[2] * (j - expected[2]) ** 2
                statistic += weight[3] * (k - expected[3]) ** 2
                if statistic >= least:
                    tail += mass[i, j, k]
    return tail


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
