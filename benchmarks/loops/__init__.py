"""The null distributions of caltest as a careful NumPy user would compute them; nothing of caltest is used here.

Every loop takes ``(y_true, y_prob, n_resamples, seed)`` and returns the observed error and ``n_resamples`` null
values. For each case there is a tuned loop, the fastest that was found, and a plain one, the way it is usually
written. Tried and measured alternatives stand in the docstrings, in ns per row and resample at n = 10,000, interleaved
on one core of an AMD EPYC (Zen 3, AVX2), NumPy 2.4.6; times of such a shared machine move by half, ratios much less.
"""
