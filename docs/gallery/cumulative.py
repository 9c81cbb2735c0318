"""
Cumulative differences
======================

Where the graph is steep, predictions are too low or too high; no cells are needed.
"""

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
chosen = {name: models[name] for name in ("logistic_regression", "neural_network")}
caltest.cumulative_graphs(y_true, chosen, rng=0).plot()
