"""The uncertainty diagram: cells, bars and the null distribution of the UCE against loops and enumeration."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

import caltest as ct
from caltest.estimation import uncertainty_diagram
from caltest.statistics import UCE
from tests.reference.cases import check_refused
from tests.reference.examples import PROBLEMS, draw_labels


def in_loops(y_true, y_prob, n_cells=15):
    """Number, uncertainty, error rate of a calibrated model and observed error rate of each cell."""
    cells = {}
    for label, row in zip(y_true.tolist(), y_prob.astype(float).tolist(), strict=True):
        entropy = -sum(p * math.log(p) for p in row if p > 0) / math.log(len(row))
        cell = max(math.ceil(round(entropy, 12) * n_cells) - 1, 0)
        top = row.index(max(row))
        cells.setdefault(cell, []).append((entropy, 1 - max(row), label != top))
    return np.array([[len(rows), *np.mean(rows, axis=0)] for _, rows in sorted(cells.items())]).T


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_equals_the_loops(problem):
    diagram = uncertainty_diagram(problem.y_true, problem.y_prob)
    count, uncertainty, calibrated, wrong = in_loops(problem.y_true, problem.y_prob)
    np.testing.assert_array_equal(diagram.count, count)
    np.testing.assert_allclose(diagram.predicted, uncertainty, atol=1e-12)
    np.testing.assert_allclose(diagram.expected, calibrated, atol=1e-6 if problem.y_prob.dtype == np.float32 else 1e-12)
    np.testing.assert_allclose(diagram.observed, wrong, atol=1e-12)
    np.testing.assert_allclose(diagram.gap, wrong - uncertainty, atol=1e-12)
    uce = ct.calibration_error(problem.y_true, problem.y_prob, statistic=UCE())
    assert diagram.error == pytest.approx(np.abs(wrong - uncertainty) @ count / count.sum(), abs=1e-12)
    assert diagram.error == pytest.approx(uce, abs=1e-12)


def enumerated(y_prob, y_true, n_cells):
    """Values of the UCE and their probabilities over all patterns of right and wrong, and the observed value."""
    top, sure = y_prob.argmax(axis=1), y_prob.max(axis=1)
    entropy = np.array([-sum(p * math.log(p) for p in row if p > 0) for row in y_prob]) / math.log(y_prob.shape[1])
    cell = np.ceil(entropy * n_cells)

    def uce(wrong):
        return sum(abs((wrong - entropy)[cell == b].sum()) for b in np.unique(cell)) / len(top)

    patterns = [np.array(pattern) for pattern in product([0, 1], repeat=len(top))]
    chances = np.array([np.prod(np.where(pattern, 1 - sure, sure)) for pattern in patterns])
    return np.array([uce(pattern) for pattern in patterns]), chances, uce((y_true != top).astype(int))


def test_the_null_distribution_is_that_of_all_patterns_and_the_pvalue_is_valid():
    """Of 10 predictions in 2 cells, some of them tied: floor, p-value of every pattern, and its level at every p."""
    rng = np.random.default_rng(3)
    y_prob = np.concatenate([rng.dirichlet([2, 1, 1], 7), np.tile([0.5, 0.3, 0.2], (3, 1))])
    values, chances, _ = enumerated(y_prob, np.zeros(10, dtype=int), 2)
    two_sided = []
    for wrong in range(0, 1024, 73):
        y_true = np.where(
            [wrong >> i & 1 for i in range(9, -1, -1)], (y_prob.argmax(axis=1) + 1) % 3, y_prob.argmax(axis=1)
        )
        diagram = uncertainty_diagram(y_true, y_prob, partition=ct.EqualWidth(2, closed="right"))
        observed = values[wrong]
        tails = chances[values >= observed - 1e-12].sum(), chances[values <= observed + 1e-12].sum()
        assert diagram.error == pytest.approx(observed, abs=1e-12)
        assert diagram.noise_floor == pytest.approx(values @ chances, rel=1e-10)
        assert diagram.pvalue == pytest.approx(min(2 * min(tails), 1), rel=1e-9)
        two_sided.append(diagram.pvalue)
    every = np.array([
        min(2 * min(chances[values >= v - 1e-12].sum(), chances[values <= v + 1e-12].sum()), 1) for v in values
    ])  # fmt: skip
    assert all(chances[every <= p].sum() <= p + 1e-12 for p in two_sided)


def test_the_figure_of_the_paper():
    """Figure 3: (0.6, 0.4) with 60 % right has the gap 0.571, as every calibrated model with these predictions."""
    y_prob = np.tile([0.6, 0.4], (1000, 1))
    diagram = uncertainty_diagram(np.repeat([0, 1], [600, 400]), y_prob)
    assert (round(float(diagram.predicted[0]), 3), float(diagram.observed[0])) == (0.971, 0.4)
    assert (round(diagram.error, 3), round(diagram.noise_floor, 3)) == (0.571, 0.571)
    np.testing.assert_allclose(
        [diagram.bar_lower, diagram.bar_upper], binom.ppf([[0.05], [0.95]], 1000, 0.4) / 1000, atol=1e-12
    )
    assert not diagram.rejected
    assert diagram.verdict.decision == "not rejected"
    assert not diagram.outside.any()


def test_a_wrong_model_with_a_small_error_is_rejected():
    """With 3 % of the first class UCE is 0.001, less than of any calibrated model: the p-value is two-sided."""
    y_true, y_prob = np.repeat([0, 1], [30, 970]), np.tile([0.6, 0.4], (1000, 1))
    diagram = uncertainty_diagram(y_true, y_prob)
    assert diagram.error == pytest.approx(0.00095, abs=1e-5)
    assert diagram.pvalue <= 2e-12
    assert diagram.conclusion.startswith(
        "Calibration is rejected (p < 2.1e-12). The UCE in these cells (bins) is 0.00095"
    )
    assert diagram.cell_tests().rejected.all()


def test_bundled_predictions():
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    diagram = uncertainty_diagram(y_true, y_prob)
    assert round(diagram.error, 6) == 0.036385
    result = ct.calibration_test(y_true, y_prob, statistic=UCE(), n_resamples=199, rng=0)
    spread = diagram.null_distribution.std / math.sqrt(199)
    assert diagram.noise_floor == pytest.approx(result.noise_floor, abs=4 * spread)
    assert diagram.to_frame().shape == (diagram.n_cells, 11)
    assert (diagram.n_samples, diagram.smallest_possible_pvalue) == (10_000, 0.0)


@pytest.mark.slow(few_draws=True)
def test_draws_agree_with_the_exact_distribution():
    """Weights that are nearly equal simulate the labels whose distribution is known without them."""
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet([0.5] * 4, 200)
    y_true = draw_labels(y_prob, rng)
    exact = uncertainty_diagram(y_true, y_prob)
    drawn = uncertainty_diagram(y_true, y_prob, sample_weight=1 + 1e-9 * np.arange(200), n_resamples=499, rng=0)
    error = exact.null_distribution.std / math.sqrt(499)
    assert drawn.noise_floor == pytest.approx(exact.noise_floor, abs=4 * error)
    tail = exact.pvalue / 2
    assert drawn.pvalue == pytest.approx(exact.pvalue, abs=2 * (4 * math.sqrt(tail * (1 - tail) / 499) + 1 / 500))
    assert drawn.smallest_possible_pvalue == 2 / 500
    same = uncertainty_diagram(y_true, y_prob, sample_weight=np.full(200, 3.0), groups=np.arange(200))
    assert (same.pvalue, same.noise_floor, same.exact) == (exact.pvalue, exact.noise_floor, True)
    some = np.arange(200) < 150
    kept = uncertainty_diagram(y_true, y_prob, sample_weight=some)
    assert kept.pvalue == uncertainty_diagram(y_true[some], y_prob[some]).pvalue


def test_copies_in_groups_are_one_observation():
    """Every observation ten times: without groups a calibrated model is rejected, with groups it is not."""
    rng = np.random.default_rng(1)
    y_prob = rng.dirichlet([1.0] * 3, 60)
    y_true = draw_labels(y_prob, rng)
    single = uncertainty_diagram(y_true, y_prob)
    ten = {"y_true": np.repeat(y_true, 10), "y_prob": np.repeat(y_prob, 10, axis=0)}
    grouped = uncertainty_diagram(**ten, groups=np.repeat(np.arange(60), 10), rng=0)
    assert grouped.error == pytest.approx(single.error, abs=1e-12)
    assert not grouped.rejected
    assert "random signs of 60 groups" in grouped.origin
    assert np.all(grouped.bar_upper - grouped.bar_lower >= single.bar_upper - single.bar_lower - 0.15)
    assert uncertainty_diagram(**ten).pvalue < grouped.pvalue
    few = uncertainty_diagram(**ten, groups=np.repeat(np.arange(3), 200), rng=0)
    assert few.smallest_possible_pvalue == 2 / 8
    assert few.verdict.decision == "undecidable"
    assert few.conclusion.startswith("There are too few groups or draws for a test: no p-value below 0.25 is possible.")


def test_an_impossible_error_rejects():
    """A prediction of 1 that is wrong: no calibrated model has it."""
    y_prob = np.tile([1.0, 0.0, 0.0], (50, 1))
    diagram = uncertainty_diagram([1, *[0] * 49], y_prob)
    assert diagram.pvalue <= 1e-300
    right = uncertainty_diagram([0] * 50, y_prob)
    assert (right.pvalue, right.error, right.noise_floor) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_observations(n):
    diagram = uncertainty_diagram([0, 1][:n], [[0.7, 0.3], [0.6, 0.4]][:n])
    assert diagram.n_samples == n
    assert 0 < diagram.pvalue <= 1
    assert str(diagram)


@pytest.mark.slow(few_draws=True)
def test_the_event_and_its_complement_have_the_same_diagram():
    rng = np.random.default_rng(2)
    event = rng.uniform(size=100)
    y_true = rng.integers(2, size=100)
    one, other = uncertainty_diagram(y_true, event), uncertainty_diagram(1 - y_true, 1 - event)
    np.testing.assert_allclose(one.observed, other.observed)
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-6)
    behind = uncertainty_diagram(y_true, event, lens=ct.Confidence(), bars="confidence", simultaneous=True)
    assert behind.lens_name == "error of the top class, confidence"
    assert "all bars contain the means of the probability of an error in their cells" in behind.conclusion


def halves(prob):
    """A user's cells of the entropy, which stands in column 1."""
    return (prob[:, 1] > 0.5).astype(int)


@pytest.mark.parametrize("partition", [ct.EqualMass(6), ct.EqualSpread(5), ct.Edges([0.2, 0.7]), halves])
def test_any_cells_of_one_probability(partition):
    rng = np.random.default_rng(7)
    y_prob = rng.dirichlet([0.6] * 5, 150)
    y_true = draw_labels(y_prob, rng)
    diagram = uncertainty_diagram(y_true, y_prob, partition=partition)
    entropy = ct.estimation.normalized_entropy(y_prob)
    label = (
        partition(np.column_stack([1 - entropy, entropy]))
        if partition is halves
        else np.searchsorted(diagram.lower[1:], entropy, side="right")
    )
    wrong = y_prob.argmax(axis=1) != y_true
    gaps = [(wrong[label == b] - entropy[label == b]).sum() for b in range(diagram.n_cells)]
    assert diagram.error == pytest.approx(np.abs(gaps).sum() / 150, rel=1e-12)
    assert diagram.count.sum() == 150
    assert 0 < diagram.pvalue <= 1


def test_refusals():
    for options, kind, message in (
        ({"bars": "error"}, ValueError, "`bars` must be one of 'consistency', 'confidence'"),
        ({"alpha": 0}, ValueError, "`alpha` must lie strictly between 0 and 1"),
        ({"simultaneous": 1}, TypeError, "`simultaneous` must be True or False"),
        ({"partition": 3}, TypeError, "`partition` must be"),
    ):
        check_refused(uncertainty_diagram, kind, message, [0, 1], [0.3, 0.6], **options)


@pytest.mark.parametrize("rare", [0.001, 0.999])
def test_few_expected_errors_decide_nothing(rare):
    """Of 2,000 predictions 2 are expected to be wrong: the diagram approves as little as the test does."""
    y_true, y_prob = np.full(2000, rare > 0.5), np.full(2000, rare)
    diagram, test = uncertainty_diagram(y_true, y_prob), ct.calibration_test(y_true, y_prob, statistic=UCE(), rng=0)
    assert diagram.verdict.decision == test.decision == "undecidable"
    assert diagram.n_expected == pytest.approx(test.n_expected) == pytest.approx(2.0)
    said = "It cannot be told whether the model is calibrated: only 2 wrong predictions were to be expected (p = "
    assert diagram.conclusion.startswith(said)
    wrong = y_true.copy()
    wrong[:20] = ~wrong[0]
    assert uncertainty_diagram(wrong, y_prob).verdict.decision == "rejected"
    groups = np.arange(2000) // 100
    grouped = uncertainty_diagram(y_true, np.where(y_prob > 0.5, 0.7, 0.3), groups=groups, n_resamples=39, rng=0)
    assert grouped.n_expected == 0.0
    light = {"sample_weight": np.where(groups == 0, 1.0, 0.5)}
    weighted = uncertainty_diagram(y_true, y_prob, n_resamples=39, rng=0, **light)
    assert weighted.n_expected == pytest.approx(0.001 * (100 + 950) ** 2 / (100 + 475))
