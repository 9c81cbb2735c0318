"""
Reliability diagram with bars
=============================

Does a network's confidence come true? Bars contain the points of a calibrated model with probability 90 % each.
"""

import caltest

y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
curve = caltest.reliability_curve(y_true, y_prob, lens=caltest.Confidence())
caltest.plotting.plot_reliability(curve)
