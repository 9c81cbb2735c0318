"""
Which model is better calibrated?
=================================

Four classifiers of digits: errors, scores and differences with intervals.
"""

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
caltest.compare_models(y_true, models, rng=0).plot()
