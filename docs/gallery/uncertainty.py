"""
Does the uncertainty match the error rate?
==========================================

The share of wrong predictions of a network against the normalised entropy of its predictions.
"""

import caltest

y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
caltest.estimation.uncertainty_diagram(y_true, y_prob).plot()
