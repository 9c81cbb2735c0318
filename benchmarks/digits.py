"""Script that makes ``digits.npz``: held-out predictions of four scikit-learn classifiers for images of digits.

Run ``python benchmarks/digits.py [FILE]``; it needs scikit-learn and a few seconds. Every seed is fixed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def predict_digits() -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """Train on one half of the images and return labels ``(899,)`` and predictions ``(899, 10)`` of the other.

    One split, not cross-validation: predictions pooled over folds are not independent given the predictions.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    image, label = load_digits(return_X_y=True)
    # Not stratified: that would fix the class counts, and observations would not be independent.
    train, held_out, train_label, y_true = train_test_split(image / 16, label, test_size=0.5, random_state=0)
    models = _classifiers()
    return y_true.astype(np.int64), {
        name: model.fit(train, train_label).predict_proba(held_out) for name, model in models.items()
    }


def _classifiers() -> dict[str, Any]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier

    return {
        "logistic_regression": LogisticRegression(max_iter=1000),
        "naive_bayes": GaussianNB(),
        "random_forest": RandomForestClassifier(n_estimators=200, random_state=0),
        "neural_network": MLPClassifier((64,), max_iter=1000, random_state=0),
    }


BY_BYTES = {"logistic_regression", "neural_network"}
"""Models whose probabilities need less room in a compressed file if equal bytes of all of them are stored together."""


def encoded(prob: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of probabilities, ``(n_bytes, n_samples, n_classes)``, and offsets of the largest ones.

    The largest probability of each observation is replaced by NaN; its offset is the number of units of its last digit
    by which it differs from 1 minus the others.
    """
    integer = f"i{prob.itemsize}"
    rows, tops = np.arange(len(prob)), prob.argmax(axis=1)
    rest = prob.copy()
    rest[rows, tops] = np.nan
    nearly = (1 - np.nancumsum(rest, axis=1, dtype=float)[:, -1]).astype(prob.dtype)
    offsets = prob[rows, tops].view(integer) - nearly.view(integer)
    little = np.ascontiguousarray(rest, dtype=rest.dtype.newbyteorder("<"))
    return np.ascontiguousarray(np.moveaxis(little[:, :, None].view(np.uint8), -1, 0)), offsets.astype(np.int8)


def shortened(prob: np.ndarray) -> np.ndarray:
    """Return probabilities ``(n_samples, n_classes)`` with 24 bits (7 digits), the largest as what is left to 1.

    Further digits would be half of the file. Exponents stay, so that nothing becomes 0, and a 1 stays 1.
    """
    mantissa, exponent = np.frexp(prob)
    short = np.ldexp(np.round(np.ldexp(mantissa, 24)), exponent - 24)
    rows, tops = np.arange(len(prob)), prob.argmax(axis=1)
    short[rows, tops] = 0
    short[rows, tops] = 1 - np.cumsum(short, axis=1)[:, -1]
    return np.where(prob == 1, prob, short)


def stored(models: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays that hold the probabilities of models in little room."""
    # float64: naive Bayes predicts 1e-300, which is not impossible, but would be 0 in float32.
    found = {}
    for name, prob in models.items():
        if name == "random_forest":
            found[name] = np.rint(200 * prob).astype(np.uint8)  # votes of its trees, which have pure leaves
        elif name in BY_BYTES:
            found[name], found[f"{name}_offsets"] = encoded(shortened(prob))
        else:
            found[name] = shortened(prob)
    return found


def main(file: str | Path | None = None) -> None:
    """Store labels, one array per model and the scikit-learn version that made them; in the package by default."""
    import sklearn

    y_true, y_prob = predict_digits()
    arrays: dict[str, Any] = {"labels": y_true.astype(np.uint8), "sklearn_version": np.array(sklearn.__version__)}
    arrays |= stored(y_prob)
    with open(file or Path(__file__).parents[1] / "caltest" / "datasets" / "digits.npz", "wb") as stream:
        np.savez_compressed(stream, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:2])
