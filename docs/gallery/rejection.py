"""
Leaving out uncertain predictions
=================================

The error of the rest when the most uncertain predictions are handed to a person.
"""

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
caltest.rejection_curve(y_true, models, uncertainty="entropy").plot()
