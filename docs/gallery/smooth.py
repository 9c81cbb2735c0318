"""
Reliability without cells: a smooth curve
=========================================

A logistic regression with much shrinkage predicts breast cancer. The curve is smoothed by a kernel; one band is where
that of a calibrated model lies, the other is a confidence band.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import caltest

X_train, X_test, y_train, y_test = train_test_split(*load_breast_cancer(return_X_y=True), test_size=0.5, random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01)).fit(X_train, y_train)
y_prob = model.predict_proba(X_test)[:, 0]  # malignant
y_test = y_test == 0
caltest.smooth_reliability_curve(y_test, y_prob, rng=0).plot()
