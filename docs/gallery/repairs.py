"""
Which repair works best?
========================

Three recalibration maps on the predictions of a forest and of logistic regression.
"""

import caltest

y_true, models = caltest.datasets.load_digits_predictions()
maps = {
    "temperature": caltest.recalibration.TemperatureScaling(),
    "vector": caltest.recalibration.VectorScaling(),
    "histogram": caltest.recalibration.HistogramBinning(),
}
chosen = {name: models[name] for name in ("logistic_regression", "random_forest")}
caltest.recalibration_study(y_true, chosen, maps, rng=0).plot()
