"""The picture of a test shows its null distribution; the coloured columns add up to the p-value."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

import caltest as ct
from caltest.plotting._axes import FINDING
from caltest.statistics._base import quantities
from tests.reference.cases import mostly_slow

EVENT = np.array([0.2, 0.7, 0.9, 0.4] * 50)
LABEL = (np.random.default_rng(5).random(200) < EVENT).astype(int)
CONFIDENCE = {"lens": ct.Confidence(), "statistic": ct.ECE(ct.EqualWidth(5))}


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def heights(ax, label):
    """Total height of the columns with this label in the legend."""
    return sum(sum(bar.get_height() for bar in group) for group in ax.containers if group.get_label() == label)


@pytest.mark.parametrize("n_resamples", mostly_slow([99, 1999]))
@pytest.mark.parametrize("statistic", [ct.KS(), ct.TemperatureScore(), ct.ECE(ct.EqualWidth(2))])
def test_columns_are_the_draws(statistic, n_resamples):
    options = {"statistic": statistic, "method": "monte-carlo", "n_resamples": n_resamples, "rng": 1}
    result = ct.calibration_test(LABEL, EVENT, **options)
    ax = result.plot()
    extreme, other = heights(ax, "at least as extreme"), heights(ax, "under the null hypothesis")
    assert extreme + other == pytest.approx(1, abs=1e-12)
    assert extreme == pytest.approx((result.pvalue * (n_resamples + 1) - 1) / n_resamples, abs=1e-12)
    assert ax.get_title().replace("\n", " ") == result.verdict.sentences(brief=True)[0]
    caption = ax.figure.legends[0].get_title().get_text().replace("\n", " ")
    assert caption.startswith(
        f"{result.lens_name}, {result.n_samples:,} observations; observed {result.statistic:.4g}, "
    )
    assert f"of {n_resamples:,} simulated data sets" in caption


@pytest.mark.slow(few_draws=True)
def test_only_findings_are_orange():
    """Of calibrated predictions no panel alarms; of wrong ones those parts that are significant themselves."""
    for labels, found in ((LABEL, False), ((EVENT < 0.5).astype(int), True)):
        result = ct.calibration_test(labels, EVENT, n_resamples=99, rng=0)
        assert result.rejected is found
        mine = plt.subplots(1, len(result.components))[1]
        result.plot(mine)
        colours = {to_hex(bar.get_facecolor()) for ax in mine for bar in ax.patches if bar.get_height()}
        assert (FINDING in colours) is False, "none of the draws is as extreme as these labels"
    result = ct.calibration_test(LABEL, EVENT, statistic=ct.KS(), n_resamples=99, rng=0, alpha=0.9999)
    assert any(to_hex(bar.get_facecolor()) == FINDING for bar in result.plot().patches)


def adaptive_error(happened, prob, n_cells):
    """The error of cells of equal mass, by loops; without ties."""
    rows, total, start = sorted(zip(prob, happened, strict=True)), 0.0, 0
    for cell in range(n_cells):
        size = len(rows) // n_cells + (cell < len(rows) % n_cells)
        total += abs(sum(p - hit for p, hit in rows[start : start + size]))
        start += size
    return total / len(rows)


def test_the_histogram_of_the_classes():
    """Nixon et al., figure 1: the ACE of each class; behind it the expected number of calibrated classes."""
    rng = np.random.default_rng(2)
    y_prob = rng.dirichlet(np.full(6, 0.5), 300)
    labels = (rng.random(300)[:, None] > y_prob.cumsum(axis=1)[:, :-1]).sum(axis=1)
    y_prob[:, :2] **= 2
    y_prob /= y_prob.sum(axis=1, keepdims=True)
    look = {"lenses": [ct.Confidence(), *(ct.ClassWise(k) for k in range(6))], "statistic": ct.ECE(ct.EqualMass(7))}
    table = ct.calibration_table(labels, y_prob, **look, n_resamples=199, rng=0)
    ax = table.plot(n_columns=12)
    values = [adaptive_error(labels == k, y_prob[:, k], 7) for k in range(6)]
    assert [test.statistic for test in table.tests[1:]] == pytest.approx(values, rel=1e-9)
    (behind,) = (patch for patch in ax.patches if patch.get_label() == "expected if calibrated")
    expected, edges, _ = behind.get_data()
    assert expected.sum() == pytest.approx(6)
    drawn = np.concatenate([test.null_distribution for test in table.tests[1:]])
    first = sum(edges[0] <= value < edges[1] for value in drawn) / 199
    assert expected[0] == pytest.approx(first)
    found = int((table.pvalue_adjusted[1:] <= 0.05).sum())
    assert (heights(ax, "more than chance"), heights(ax, "no more than chance")) == (found, 6 - found)
    assert 0 < found < 6
    assert ax.get_title() == f"Calibration is rejected in {found} of 6 classes."
    for column in range(12):
        inside = sum(edges[column] <= v < edges[column + 1] or v == edges[-1] == edges[column + 1] for v in values)
        tall = sum(bar.get_height() for group in ax.containers for bar in list(group)[column : column + 1])
        assert tall == inside
    other = ct.calibration_table(labels, y_prob, lenses=[ct.Confidence(), ct.ClassWise(0)], n_resamples=49, rng=0)
    assert not hasattr(other, "plot")
    with pytest.raises(ValueError, match="`table` must hold tests of two classes or more by one statistic"):
        ct.plotting.plot_class_histogram(other)


@pytest.mark.parametrize("label", [LABEL, 1 - LABEL])
def test_exact_columns_add_up_to_the_p_value(label):
    result = ct.calibration_test(label, EVENT, method="exact", **CONFIDENCE)
    ax = result.plot()
    if result.pvalue > 0.01:
        assert heights(ax, "at least as extreme") == pytest.approx(result.pvalue, abs=0.003)
    else:
        assert heights(ax, "at least as extreme") == 0
        assert ax.lines[-1].get_marker() == ">"


def test_limits_are_drawn():
    ax = ct.calibration_test(LABEL, EVENT, statistic=ct.statistics.Spiegelhalter(), method="asymptotic").plot()
    assert heights(ax, "under the null hypothesis") + heights(ax, "at least as extreme") > 0.99


@pytest.mark.slow(few_draws=True)
def test_a_combination_has_a_panel_for_each_part_and_the_first_sentence_above():
    result = ct.calibration_test(LABEL, EVENT, n_resamples=99, rng=0)
    axes = result.plot()
    words = [" ".join(ax.get_xlabel().split()) for ax in axes]
    assert words == [*quantities(part.test_statistic for part in result.components)]
    assert words[0] == "average error in cells"
    assert len(set(words)) == len(words), "two scores of the temperature have their code too"
    assert " ".join(axes[0].figure.get_suptitle().split()) == result.verdict.sentences(brief=True)[0]
    mine = plt.subplots(1, len(axes))[1]
    assert list(result.plot(mine)) == list(mine)
    with pytest.raises(ValueError, match="one for each panel"):
        result.plot(mine[0])
    assert result.components[0].plot(mine[0]) is mine[0]


@pytest.mark.parametrize("label", [0, 1])
def test_one_observation(label):
    result = ct.calibration_test([label], [0.7], n_resamples=99, rng=0)
    for ax in result.plot():
        assert heights(ax, "under the null hypothesis") + heights(ax, "at least as extreme") == pytest.approx(1)


def test_infinite_values_are_left_out():
    result = ct.calibration_test([1, 0, 1], [0.0, 0.5, 0.5], statistic=ct.TemperatureScore(), n_resamples=99, rng=0)
    assert result.statistic == np.inf
    assert "; observed inf" in result.plot().figure.legends[0].get_title().get_text().replace("\n", " ")


def test_results_without_a_distribution_are_refused():
    tests = ct.calibration_test(LABEL, EVENT, folds=np.arange(200) % 2, n_resamples=99, rng=0)
    assert not hasattr(tests, "plot")
    assert hasattr(tests.folds[0], "plot")
    with pytest.raises(ValueError, match="has no null distribution of all folds; plot one of its `folds`"):
        ct.plotting.plot_null_distribution(tests)
    with pytest.raises(TypeError, match="must be a ComponentResult from calibration_test"):
        ct.plotting.plot_null_distribution(3.0)
