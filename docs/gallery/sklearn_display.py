"""
In the manner of scikit-learn
=============================

A reliability diagram from a fitted estimator, with the interface of scikit-learn's displays.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import caltest

X_train, X_test, y_train, y_test = train_test_split(*load_breast_cancer(return_X_y=True), test_size=0.5, random_state=0)
model = RandomForestClassifier(random_state=0).fit(X_train, y_train)
caltest.ReliabilityDisplay.from_estimator(model, X_test, y_test)
