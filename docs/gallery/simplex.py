"""
Three classes at once
=====================

Arrows lead from mean predictions to observed frequencies in the triangle of three digits.
"""

import numpy as np

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
three = np.isin(y_true, [3, 8, 9])
prob = models["naive_bayes"][np.ix_(three, [3, 8, 9])] + 1e-12  # given that it is one of them
prob /= prob.sum(axis=1, keepdims=True)
caltest.simplex_diagram(y_true[three], prob, classes=[3, 8, 9], rng=0).plot()
