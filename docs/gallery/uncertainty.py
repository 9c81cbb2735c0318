"""
Does uncertainty say how often it errs?
=======================================

The share of wrong predictions against the normalised entropy.
"""

import caltest

y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
caltest.estimation.uncertainty_diagram(y_true, y_prob).plot()
