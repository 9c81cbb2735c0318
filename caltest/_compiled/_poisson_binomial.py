"""Poisson-binomial distribution: its characteristic function, and its probabilities summed directly."""

from caltest._compiled._jit import kernel

_BATCH = 64


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
def add_indicators(p, pmf):
    """Fill ``pmf (p.size + 1,)`` by adding indicators one by one: positive sums, so that tails keep their digits."""
    pmf[:] = 0.0
    pmf[0] = 1.0
    for i in range(p.size):
        q = p[i]
        r = 1.0 - q
        for k in range(i + 1, 0, -1):
            pmf[k] = pmf[k] * r + pmf[k - 1] * q
        pmf[0] *= r
