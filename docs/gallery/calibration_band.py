"""
Where the true curve can be
===========================

A band that contains the calibration function everywhere at once with 95 % confidence, at any sample size.
"""

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
hits = y_true == 8  # is this the digit 8?
caltest.calibration_band(hits, models["naive_bayes"][:, 8], rng=0).plot()
