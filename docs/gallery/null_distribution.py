"""
The null distribution, and the observed error
=============================================

The errors of simulated labels of a calibrated model, and the error of a neural network on digits.
"""

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
result = caltest.calibration_test(y_true, models["neural_network"], statistic=caltest.ECE(), rng=0)
result.plot()
