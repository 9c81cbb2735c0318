"""
How errors depend on the number of cells
========================================

The same predictions have many errors; a calibrated model's error grows with the cells.
"""

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
caltest.cells_curve(y_true, models["random_forest"], rng=0).plot()
