"""The distribution of predictions over cells: of the confidence, the entropy and every class."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import caltest as ct


@pytest.fixture(scope="module")
def prob():
    return ct.datasets.load_cifar10_vgg16()[1][:500]


@pytest.mark.parametrize("n_cells", [1, 4, 15])
def test_counts_are_those_of_a_loop(prob, n_cells):
    found = ct.prediction_distribution(prob, n_cells=n_cells)
    count = np.zeros((12, n_cells), dtype=int)
    for row in prob.astype(float):
        positive = row[row > 0]
        entropy = -(positive * np.log(positive)).sum() / np.log(10)
        for at, value in enumerate([row.max(), entropy, *row]):
            count[at, min(int(value * n_cells), n_cells - 1)] += 1
    np.testing.assert_array_equal(found.count, count)
    assert found.quantity[:3] == ("confidence", "normalised entropy", "class 0")
    np.testing.assert_allclose(found.share.sum(axis=1), 1)
    frame = found.to_frame()
    assert frame.columns.tolist() == ["quantity", "lower", "upper", "count", "share"]
    assert frame["count"].tolist() == count.ravel().tolist()


def test_the_cells_are_those_of_the_ece(prob):
    label = prob.argmax(axis=1)
    curve = ct.reliability_curve(label, prob, partition=ct.EqualWidth(15))
    count = ct.prediction_distribution(prob).count[0]
    np.testing.assert_array_equal(count[count > 0], curve.count)


def test_permuted_classes_and_complement_mirror(prob):
    order = np.random.default_rng(0).permutation(10)
    found, other = ct.prediction_distribution(prob), ct.prediction_distribution(prob[:, order])
    np.testing.assert_array_equal(other.count[2:], found.count[2:][order])
    np.testing.assert_array_equal(other.count[0], found.count[0])
    p = (np.random.default_rng(0).integers(0, 15, 50) + 0.5) / 15  # away from the edges
    two = ct.prediction_distribution(p).count
    np.testing.assert_array_equal(two[2], two[3, ::-1])


@pytest.mark.slow(few_draws=True)
def test_odd_predictions():
    for case, prob in (
        ("one", [[0.2, 0.8]]),
        ("one-hot", np.eye(3)),
        ("constant", np.full((7, 4), 0.25)),
        ("thousand classes", np.full((2, 1000), 0.001)),
        ("event", [0.0, 1.0, 0.5]),
    ):
        found = ct.prediction_distribution(prob, n_cells=5)
        assert found.count.sum(axis=1).tolist() == [found.n_samples] * len(found.quantity), case
        ax = found.plot(Figure().subplots())
        assert ax.get_ylim()[0] == len(found.quantity), case
    assert ct.prediction_distribution(np.eye(3)).effective_cells[0] == 1


def test_picture_shows_the_shares(prob):
    found = ct.prediction_distribution(prob, classes=list("abcdefghij"))
    ax = Figure().subplots()
    assert found.plot(ax, cmap="Greys", legend=False) is ax
    (mesh,) = ax.collections
    np.testing.assert_allclose(mesh.get_array().filled(0), found.share)
    assert mesh.get_cmap().name == "Greys"
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[:3] == ["confidence", "normalised entropy", "class a"]
    assert "(numbers: % of 500 observations)" in ax.get_xlabel().replace("\n", " ")


def test_what_is_refused(prob):
    with pytest.raises(ValueError, match="`n_cells`"):
        ct.prediction_distribution(prob, n_cells=0)
    with pytest.raises(TypeError, match="`n_cells`"):
        ct.prediction_distribution(prob, n_cells=2.5)
    with pytest.raises(TypeError, match="`distribution` must be a PredictionDistribution"):
        ct.plotting.plot_prediction_distribution(prob)
