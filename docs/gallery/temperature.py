"""
How errors depend on the temperature
====================================

The network's error at each temperature, and the error that a calibrated model would have.
"""

import caltest

y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
caltest.temperature_curve(y_true, y_prob, rng=0).plot()
