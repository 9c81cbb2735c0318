"""
Calibration during training
===========================

Errors and p-values of a network on held-out digits after each epoch.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import caltest

X_train, X_test, y_train, y_test = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
network, epochs = MLPClassifier([64], learning_rate_init=0.01, random_state=0), []
for _ in range(20):
    network.partial_fit(X_train / 16, y_train, classes=range(10))
    epochs.append(network.predict_proba(X_test / 16))
caltest.training_track(y_test, epochs, n_resamples=199, rng=0).plot()
