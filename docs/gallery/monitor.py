"""
Drift in production
===================

Evidence of miscalibration, which may be looked at after every day; images become noisy half-way.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import caltest

X_train, X_test, y_train, y_test = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
model = MLPClassifier(random_state=0).fit(X_train, y_train)
noise = np.random.default_rng(0).normal(0, 6, X_test.shape)
noise[: len(noise) // 2] = 0
monitor = caltest.CalibrationMonitor(lens=caltest.Confidence())
for today in np.array_split(np.arange(len(y_test)), 30):
    monitor.update(y_test[today], model.predict_proba((X_test + noise)[today]))
monitor.plot()
