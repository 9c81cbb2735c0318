"""
Unfamiliar images
=================

How uncertainty grows as a share of the images is replaced by noisy ones.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import caltest

X_train, X_test, y_train, y_test = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
model = RandomForestClassifier(random_state=0).fit(X_train, y_train)
noisy = X_test + np.random.default_rng(0).normal(0, 6, X_test.shape)
caltest.shift_curve(model.predict_proba(X_test), model.predict_proba(noisy), rng=0).plot()
