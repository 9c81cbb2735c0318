"""
How errors depend on the number of cells
========================================

Binned errors of the same predictions; that of a calibrated model grows with the number of cells (bins).
"""

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
caltest.cells_curve(y_true, models["random_forest"], rng=0).plot()
