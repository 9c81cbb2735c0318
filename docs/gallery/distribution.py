"""
How confident are predictions?
==============================

The distribution of each class's predicted probabilities.
"""

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
caltest.prediction_distribution(models["random_forest"]).plot()
