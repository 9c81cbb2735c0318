"""The bundled predictions: their shape, their source, and that the digits can be made again."""

from importlib.resources import files

import numpy as np
import pytest
import threadpoolctl

import caltest
from benchmarks.digits import main, predict_digits

MODELS = ("logistic_regression", "naive_bayes", "random_forest", "neural_network")
REPEATED = 1e-6  # solvers stop by a tolerance: other BLAS kernels and thread counts moved probabilities by 5e-9


@pytest.fixture(scope="module")
def digits():
    return caltest.datasets.load_digits_predictions()


def test_vgg16_is_the_file_of_the_reference_values():
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    assert y_true.shape == (10_000,)
    assert y_true.dtype == np.int64
    assert y_prob.shape == (10_000, 10)
    assert y_prob.dtype == np.float32
    assert np.mean(y_prob.argmax(axis=1) == y_true) == 0.9359
    # Computed by other programs on the original file: no label and no prediction has been changed or moved.
    ece = caltest.ECE(partition=caltest.EqualWidth(15))
    error = caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), statistic=ece)
    assert error == pytest.approx(0.0397800668567, rel=0, abs=1e-12)
    np.testing.assert_array_equal(np.bincount(y_true), 1000)
    np.testing.assert_allclose(y_prob.sum(axis=1, dtype=float), 1.0, rtol=0, atol=1e-6)


def test_digits_are_a_random_half(digits):
    assert digits.y_true.shape == (899,)
    assert digits.y_true.dtype == np.int64
    # Not stratified, or the class counts would not be those of independent observations.
    assert np.bincount(digits.y_true).tolist() == [89, 90, 92, 93, 76, 108, 89, 78, 92, 92]
    assert tuple(digits.y_prob) == MODELS


@pytest.mark.parametrize(
    ("model", "accuracy"),
    [("logistic_regression", 0.96), ("naive_bayes", 0.83), ("random_forest", 0.97), ("neural_network", 0.97)],
)
def test_digits_models_predict_plausibly(digits, model, accuracy):
    prob = digits.y_prob[model]
    assert prob.shape == (899, 10)
    assert prob.dtype == np.float64
    assert prob.min() >= 0
    np.testing.assert_allclose(prob.sum(axis=1), 1.0, rtol=0, atol=1e-8)
    assert np.mean(prob.argmax(axis=1) == digits.y_true) == pytest.approx(accuracy, abs=0.01)


@pytest.mark.parametrize(
    ("model", "direction", "n_impossible"),
    [
        ("logistic_regression", "under-confident", 0),
        ("naive_bayes", "over-confident", 17),
        ("random_forest", "under-confident", 0),
        ("neural_network", None, 0),
    ],
)
def test_digits_models_go_wrong_as_the_docstring_says(digits, model, direction, n_impossible):
    result = caltest.calibration_test(digits.y_true, digits.y_prob[model], n_resamples=999, rng=0)
    assert result.direction == direction
    assert len(result.impossible_samples) == n_impossible


@pytest.mark.parametrize("load", [caltest.datasets.load_cifar10_vgg16, caltest.datasets.load_digits_predictions])
def test_predictions_are_frozen(load):
    predictions = load()
    with pytest.raises(AttributeError, match="can't set"):
        predictions.y_true = None


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("cifar10_vgg16.LICENSE.txt", ["verified_calibration", "MIT License", "Copyright (c) 2019 Ananya Kumar"]),
        (
            "digits.LICENSE.txt",
            ["Optical", "E. Alpaydin and C. Kaynak", "CC BY 4.0", "BSD 3-Clause", "digits.py"],
        ),
    ],
)
def test_source_and_licence_lie_beside_the_data(file, said):
    text = (files(caltest.datasets) / file).read_text()
    assert [words for words in said if words not in text] == []


@pytest.mark.slow
def test_digits_script_makes_the_stored_predictions_again(digits):
    import sklearn

    with threadpoolctl.threadpool_limits(1):  # 2 s; up to 30 s where BLAS threads compete
        y_true, y_prob = predict_digits()
    np.testing.assert_array_equal(y_true, digits.y_true)
    assert tuple(y_prob) == tuple(digits.y_prob)
    with np.load(str(files(caltest.datasets) / "digits.npz")) as data:
        made_by = str(data["sklearn_version"])
    if made_by.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        pytest.skip(f"probabilities are compared with scikit-learn {made_by} only, this is {sklearn.__version__}")
    for model, prob in y_prob.items():
        np.testing.assert_allclose(prob, digits.y_prob[model], rtol=0, atol=REPEATED, err_msg=model)


def test_digits_script_writes_what_is_loaded(digits, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.digits.predict_digits", lambda: (digits.y_true, digits.y_prob))
    main(tmp_path / "digits.npz")
    with (
        np.load(tmp_path / "digits.npz") as written,
        np.load(str(files(caltest.datasets) / "digits.npz")) as bundled,
    ):
        assert written.files == bundled.files
        for name in set(written.files) - {"sklearn_version"}:
            np.testing.assert_array_equal(written[name], bundled[name])
