"""
Leaving out uncertain predictions
=================================

The share of wrong predictions among the others, if the most uncertain ones are handed to a person.
"""

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
caltest.rejection_curve(y_true, models, uncertainty="entropy").plot()
