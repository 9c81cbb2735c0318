"""Cumulative graphs: paths, bands and slopes agree with slow twins, tests and simulated labels."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import caltest as ct
from caltest.estimation.curves._cumulative_graphs import SplineFrequency
from caltest.predictions._sample import make_sample
from tests.reference.cases import mostly_nightly, mostly_slow
from tests.reference.examples import draw_labels


def problem(n=200, n_classes=4, seed=0, digits=2):
    """Calibrated predictions with ties."""
    rng = np.random.default_rng(seed)
    y_prob = rng.multinomial(10**digits, rng.dirichlet(np.ones(n_classes), n)[0], n) / 10**digits
    return draw_labels(y_prob, rng), y_prob


def slow_path(event, happened):
    """Cumulative sums at the ends of tied blocks, one threshold after the other."""
    levels = sorted(set(event.tolist()))
    rows = [(0.0, 0.0, 0.0)]
    rows += [(np.mean(event <= s), event[event <= s].sum(), happened[event <= s].sum()) for s in levels]
    share, predicted, observed = np.array(rows).T
    return share, predicted / len(event), observed / len(event)


def slow_slope(event, happened, n_knots, grid):
    """Dense least squares on all points; the labels of a tied block are their mean."""
    n = len(event)
    order = np.argsort(event, kind="stable")
    event, happened = event[order], happened[order].astype(float)
    means = np.array([happened[event == p].mean() for p in event])
    path = np.append(0.0, np.cumsum(means - event)) / n
    knots = np.linspace(0, 1, n_knots)
    design = np.column_stack([CubicSpline(knots, e, bc_type="natural")(np.arange(n + 1) / n) for e in np.eye(n_knots)])
    values = np.linalg.lstsq(design, path, rcond=None)[0]
    return CubicSpline(knots, values, bc_type="natural").derivative()(grid)


@pytest.mark.parametrize("lens", [ct.ClassWise(1), ct.TopRank(1), ct.TopRank(2), ct.WithinTop(2), ct.Confidence()])
def test_paths_are_those_of_the_slow_twin_and_ks_is_that_of_the_package(lens):
    y_true, y_prob = problem()
    (graph,) = ct.cumulative_graphs(y_true, y_prob, lens=lens, n_resamples=19, rng=0)
    induced, event = lens(y_prob, y_true)
    share, predicted, observed = slow_path(np.round(induced[:, 1], 12), event)
    np.testing.assert_allclose(graph.fractile, share)
    np.testing.assert_allclose(graph.predicted, predicted, atol=1e-9)
    np.testing.assert_allclose(graph.observed, observed, atol=1e-12)
    ks = ct.calibration_error(y_true, y_prob, lens=lens, statistic=ct.KS())
    assert graph.statistic == pytest.approx(ks, rel=1e-12)
    assert np.abs(graph.observed - graph.predicted).max() == pytest.approx(ks, rel=1e-9, abs=1e-12)
    assert abs(graph.observed - graph.predicted)[graph.worst] == pytest.approx(ks, rel=1e-9, abs=1e-12)


@pytest.mark.slow(few_draws=True)
def test_the_path_leaves_its_band_exactly_where_the_test_rejects():
    decisions = set()
    for seed in range(60):
        y_true, y_prob = problem(60, 3, seed)
        for method in ("monte-carlo", "asymptotic"):
            options = {"n_resamples": 99, "rng": seed, "method": method, "alpha": 0.4}
            (graph,) = ct.cumulative_graphs(y_true, y_prob, **options)
            outside = (graph.observed < graph.lower - 1e-12) | (graph.observed > graph.upper + 1e-12)
            assert outside.any() == graph.rejected, (seed, method)
            leaves = np.abs(graph.observed - graph.predicted).max() > graph.critical_value * (1 + 1e-9)
            assert leaves == graph.rejected == (graph.pvalue <= 0.4 + 1e-9), (seed, method)
            decisions.add((method, graph.rejected))
    assert len(decisions) == 4


@pytest.mark.nightly
def test_the_band_has_its_level():
    """Of calibrated models 20 % leave a band of 80 %: 4 standard errors of 500 data sets."""
    rng = np.random.default_rng(1)
    left = []
    for seed in range(500):
        event = rng.beta(0.5, 0.5, 100)
        (graph,) = ct.cumulative_graphs(rng.random(100) < event, event, alpha=0.2, n_resamples=199, rng=seed)
        left.append(graph.rejected)
    assert abs(np.mean(left) - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 500)


def test_few_expected_events_decide_nothing():
    for y_true, event in [([0] * 200, [0.01] * 200), ([1] * 200, [0.99] * 200)]:
        (graph,) = ct.cumulative_graphs(y_true, event, n_resamples=99, rng=0)
        assert graph.verdict.decision == "undecidable"
        expected = "It cannot be told whether the model is calibrated: only 2 events, or other observations, were to be"
        assert graph.conclusion.startswith(expected)
    (graph,) = ct.cumulative_graphs([1] * 20 + [0] * 180, [0.01] * 200, n_resamples=99, rng=0)
    assert graph.verdict.decision == "rejected"
    assert "is rejected" in graph.conclusion


def test_too_few_draws_reject_nothing():
    (graph,) = ct.cumulative_graphs([0] * 30, [0.9] * 30, n_resamples=9, rng=0)
    assert (graph.critical_value, graph.rejected) == (1.0, False)


def test_a_label_of_probability_0_is_rejected():
    (graph,) = ct.cumulative_graphs([1, 0, 1], [0.0, 0.5, 0.9], n_resamples=99, rng=0)
    assert graph.pvalue == 0.01


@pytest.mark.parametrize("n_knots", [2, 3, 6])
def test_slopes_are_those_of_the_slow_twin(n_knots):
    y_true, y_prob = problem(n=150)
    sample = make_sample(y_true, y_prob, lens=ct.Confidence())
    found = SplineFrequency.of(sample, n_knots, "residuals")
    induced, event = ct.Confidence()(y_prob, y_true)
    score = np.round(induced[:, 1], 12)
    expected = slow_slope(score, event, n_knots, found.fractile)
    np.testing.assert_allclose(found.frequency - found.score, expected, atol=1e-8)
    np.testing.assert_array_equal(found.expected, found.score)
    of_labels = SplineFrequency.of(sample, n_knots, "labels")
    smoothed = slow_slope(score, 2 * score, n_knots, found.fractile)  # residuals that are the predictions
    np.testing.assert_allclose(of_labels.expected, smoothed, atol=1e-8)
    np.testing.assert_allclose(of_labels.frequency, smoothed + expected, atol=1e-8)
    np.testing.assert_array_equal(of_labels.std, found.std)


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([500, 2000]))
def test_slopes_of_calibrated_models_have_mean_0_and_the_stated_variance(n_sets):
    """4 standard errors of the simulated sets; those of a variance with kurtosis 3."""
    rng = np.random.default_rng(2)
    event = np.round(rng.beta(0.6, 0.6, 80), 2)
    drawn, std = [], None
    for _ in range(n_sets):
        found = SplineFrequency.of(make_sample((rng.random(80) < event).astype(int), event), 6, "labels")
        drawn.append(found.frequency - found.expected)
        std = found.std
    error = 4 / np.sqrt(n_sets)
    assert np.all(np.abs(np.mean(drawn, axis=0)) < error * std)
    assert np.all(np.abs(np.var(drawn, axis=0) / std**2 - 1) < error * np.sqrt(2.5))


def test_a_constant_deviation_is_found_exactly():
    """The residuals of two equal predictions in turn have a straight path; so has its spline."""
    (graph,) = ct.cumulative_graphs([1, 0] * 50, [0.3] * 100, n_resamples=19, rng=0)
    np.testing.assert_allclose(graph.frequency, 0.5)
    np.testing.assert_allclose(graph.score, 0.3)


def test_the_spline_of_the_paper_goes_through_the_labels():
    """Its band moves with it: a calibrated model is drawn away from the diagonal, and inside its band."""
    rng = np.random.default_rng(0)
    event = np.sort(rng.beta(0.03, 0.03, 4000))
    graphs = ct.cumulative_graphs(rng.random(4000) < event, event, curve="labels", n_resamples=99, rng=0)
    (graph,) = graphs
    middle = (graph.frequency_lower + graph.frequency_upper) / 2
    inside = (graph.frequency >= graph.frequency_lower) & (graph.frequency <= graph.frequency_upper)
    assert np.abs(middle - graph.score)[20:80].max() > 0.1
    assert inside.mean() > 0.8
    assert graphs.curve == "labels"
    assert "slope of a cubic spline through the cumulative labels" in " ".join(str(graphs).split())


def test_ks_is_the_expected_error_where_the_sign_is_constant():
    """Equation 8: residuals of one sign add up to |accuracy - mean confidence|, and every cell of ECE has that sign."""
    rng = np.random.default_rng(0)
    event = rng.uniform(0.5, 1.0, 200)
    y_true = np.zeros(200, dtype=int)
    ks, ece = (ct.calibration_error(y_true, event, statistic=s) for s in (ct.KS(), ct.ECE(ct.EqualWidth(15))))
    assert ks == pytest.approx(event.mean(), rel=1e-12)
    assert ece == pytest.approx(event.mean(), rel=1e-12)
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    gap = y_prob.max(axis=1).astype(float).mean() - np.mean(y_prob.argmax(axis=1) == y_true)
    ks = ct.calibration_error(y_true, y_prob, statistic=ct.KS(), lens=ct.Confidence())
    assert (round(ks, 5), round(gap, 5)) == (0.0397, 0.03967)  # a sharp network: the sign hardly changes


@pytest.mark.parametrize("n", [400, 333, 7, 1])
def test_an_event_and_its_complement_mirror(n):
    rng = np.random.default_rng(n)
    event = rng.random(n).round(2)
    y_true = rng.random(n) < event
    one, other = (
        ct.cumulative_graphs(y, p, n_resamples=99, rng=0).models[0] for y, p in ((y_true, event), (~y_true, 1 - event))
    )
    np.testing.assert_allclose(one.frequency, 1 - other.frequency[::-1], atol=1e-9)


def test_the_order_of_tied_observations_does_not_matter():
    y_true, y_prob = problem()
    order = np.random.default_rng(3).permutation(len(y_true))
    one, other = (
        ct.cumulative_graphs(y, p, n_resamples=99, rng=0).models[0]
        for y, p in ((y_true, y_prob), (y_true[order], y_prob[order]))
    )
    np.testing.assert_allclose(one.observed, other.observed)
    np.testing.assert_allclose(one.frequency, other.frequency, atol=1e-9)


def test_several_models_have_names_and_equal_ones_equal_numbers():
    y_true, y_prob = problem()
    graphs = ct.cumulative_graphs(y_true, {"before": y_prob, "after": y_prob}, n_resamples=99, rng=0)
    assert [model.name for model in graphs] == ["before", "after"]
    assert graphs["before"].pvalue == graphs["after"].pvalue
    assert graphs["before"].critical_value == graphs["after"].critical_value
    assert graphs.to_frame().groupby("model").size().to_dict() == dict.fromkeys(
        ("before", "after"), len(graphs["before"].fractile)
    )
    assert "P-values are not adjusted for the number of models." in str(graphs)


def test_many_points_are_thinned_and_the_largest_deviation_stays():
    rng = np.random.default_rng(4)
    event = rng.random(20_000)
    y_true = rng.random(20_000) < event
    (graph,) = ct.cumulative_graphs(y_true, event, n_resamples=19, rng=0)
    assert len(graph.fractile) <= 2048
    ks = ct.calibration_error(y_true, event, statistic=ct.KS())
    assert np.abs(graph.observed - graph.predicted).max() == pytest.approx(ks, rel=1e-9)


@pytest.mark.parametrize(
    ("y_true", "y_prob"),
    mostly_slow(
        [
            ([1], [0.3]),
            ([0, 1], [0.3, 0.3]),
            ([0, 1], [0.0, 1.0]),
            (np.arange(5), np.eye(5)),
            ([3] * 4, np.full((4, 1000), 1e-3)),
            (np.zeros(50, int), np.tile([0.25, 0.75], (50, 1))),
        ]
    ),
)
def test_odd_data(y_true, y_prob):
    for lens in (None, ct.ClassWise(1), ct.TopRank(2)):
        for method in ("monte-carlo", "asymptotic"):
            (graph,) = ct.cumulative_graphs(y_true, y_prob, lens=lens, method=method, n_resamples=39, rng=0)
            numbers = np.concatenate([graph.observed, graph.predicted, graph.frequency, graph.frequency_lower])
            assert np.isfinite(numbers).all()
            assert np.isfinite([graph.critical_value, graph.pvalue]).all()
            assert 0 < graph.pvalue <= 1
            assert ct.cumulative_graphs(y_true, y_prob, lens=lens, method=method, n_resamples=39, rng=0).conclusion


def test_refusals():
    y_true, y_prob = problem()
    for arguments, kind, message in (
        ({"y_prob": {}}, ValueError, "`y_prob` must hold at least one model, got none"),
        ({"y_prob": {"": y_prob}}, ValueError, "names of `y_prob` must not be empty"),
        ({"y_prob": {1: y_prob}}, TypeError, "names of `y_prob` must be strings, got 1"),
        ({"y_prob": {"a": y_prob, "b": y_prob[:, 0]}}, ValueError, "all models must predict the same observations"),
        ({"y_prob": {"a": y_prob * 2}}, ValueError, "a: `y_prob` must lie in"),
        ({"method": "exact"}, ValueError, "`method` must be one of 'monte-carlo', 'asymptotic', got 'exact'"),
        ({"n_knots": 1}, ValueError, "`n_knots` must be an integer >= 2, got 1"),
        ({"curve": "events"}, ValueError, "`curve` must be one of 'residuals', 'labels', got 'events'"),
        ({"lens": ct.Canonical()}, ValueError, "`KS` needs a two-outcome lens"),
        ({"alpha": 1}, ValueError, "`alpha` must lie strictly between 0 and 1"),
    ):
        with pytest.raises(kind, match=message):
            ct.cumulative_graphs(**{"y_true": y_true, "y_prob": y_prob} | arguments)
