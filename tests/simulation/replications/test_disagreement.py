"""Metric disagreement: rankings of models by many metrics, the temperatures they like, and wrong labels."""

from itertools import pairwise

import joblib
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import caltest
from caltest import GCE
from caltest.hypothesis_tests._gce_table import gce_metrics
from caltest.simulation import best_temperatures, label_noise_study, metric_agreement
from caltest.simulation.replications._agreement import rank_correlation
from caltest.simulation.replications._temperature import _minimise
from tests.reference import naive

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=30)
FEW = (GCE(), GCE("equal-mass", norm="l2"), GCE(max_prob=True, class_conditional=False), GCE(threshold=0.01))

mpl.use("Agg")


def three_classes(n_samples=300, seed=0):
    """Labels, and predictions of six models that are over-confident by different temperatures."""
    rng = np.random.default_rng(seed)
    y_prob = rng.dirichlet(np.ones(3), size=n_samples)
    y_true = (rng.random(n_samples)[:, None] > y_prob.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return y_true, {f"T = {t}": temper(y_prob, t) for t in (0.4, 0.6, 0.9, 1.1, 1.6, 2.5)}


def temper(y_prob, temperature):
    return np.array([naive.at_temperature(row, temperature) for row in y_prob])


# Agreement.


@PROFILE
@given(
    st.integers(2, 6).flatmap(
        lambda m: st.lists(
            st.lists(st.integers(0, 5), min_size=m, max_size=m).filter(lambda v: len(set(v)) > 1),
            min_size=2,
            max_size=4,
        )
    )
)
def test_rank_correlation_is_spearmans(rows):
    found = rank_correlation(np.array(rows, dtype=float))
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            assert found[i, j] == pytest.approx(naive.rank_correlation(one, other), abs=1e-12)
            assert found[i, j] == pytest.approx(spearmanr(one, other).statistic, abs=1e-12)


def test_the_printed_formula_cannot_have_made_table_4():
    """Without the square, reversed rankings of ten models have 0.697; the table goes down to 0.1059."""
    n, reverse = 10, np.arange(10)[::-1]

    def printed(first, second):
        return 1 - 6 * np.abs(first - second).sum() / (n * (n**2 - 1))

    assert printed(np.arange(n), reverse) == pytest.approx(0.697, abs=5e-4)
    rng = np.random.default_rng(0)
    assert min(printed(np.arange(n), rng.permutation(n)) for _ in range(1000)) >= printed(np.arange(n), reverse)
    squared = 1 - 6 * np.square(np.arange(n) - reverse).sum() / (n * (n**2 - 1))
    assert squared == pytest.approx(spearmanr(np.arange(n), reverse).statistic) == -1


def test_agreement_is_that_of_single_calls():
    y_true, y_prob = three_classes()
    agreement = metric_agreement(y_true, y_prob, metrics=FEW, n_cells=(5, 7, 9))
    values = np.array([
        [caltest.calibration_error(y_true, prob, statistic=metric) for prob in y_prob.values()] for metric in FEW
    ])  # fmt: skip
    np.testing.assert_array_equal(agreement.values, values)
    for i, one in enumerate(values):
        for j, other in enumerate(values):
            assert agreement.correlation[i, j] == pytest.approx(naive.rank_correlation(one, other), abs=1e-12)
    seven = GCE("equal-mass", norm="l2", n_cells=7)
    expected = [caltest.calibration_error(y_true, prob, statistic=seven) for prob in y_prob.values()]
    np.testing.assert_array_equal(agreement.values_by_cells[1, 1], expected)
    for i, found in enumerate(agreement.cells_correlation):
        pairs = [agreement.values_by_cells[list(pair), i] for pair in ((0, 1), (0, 2), (1, 2))]
        assert found == pytest.approx(np.mean([naive.rank_correlation(*pair) for pair in pairs]), abs=1e-12)


def test_means_by_property_are_over_pairs_that_share_it():
    y_true, y_prob = three_classes(80)
    agreement = metric_agreement(y_true, y_prob, n_cells=(5, 15))
    frame = agreement.by_property().set_index("property")
    assert frame["n_metrics"].tolist() == [32] + [16] * 10
    for name, has in (
        ("equal-mass", lambda metric: metric.scheme == "equal-mass"),
        ("top prediction", lambda metric: metric.max_prob),
        ("classes together", lambda metric: not metric.class_conditional),
        ("thresholded", lambda metric: metric.threshold == 0.01),
        ("l2", lambda metric: metric.norm == "l2"),
    ):
        chosen = [number for number, metric in enumerate(gce_metrics()) if has(metric)]
        pairs = [agreement.correlation[i, j] for i in chosen for j in chosen if i < j]
        assert len(pairs) == 120
        assert frame.loc[name, "metrics"] == pytest.approx(np.mean(pairs), abs=1e-12)
        assert frame.loc[name, "n_cells"] == pytest.approx(agreement.cells_correlation[chosen].mean(), abs=1e-12)


def test_a_metric_that_is_the_same_on_all_models_ranks_nothing():
    """No warning, no number: no prediction exceeds this threshold, and the metric is 0 throughout."""
    y_true, y_prob = three_classes(50)
    blind = GCE(max_prob=False, threshold=0.999999)
    agreement = metric_agreement(y_true, y_prob, metrics=[*FEW, blind], n_cells=(5, 15))
    assert np.isnan(agreement.correlation[-1]).all()
    assert np.isnan(agreement.cells_correlation[-1])
    known = [agreement.correlation[i, j] for i in range(4) for j in range(i)]
    assert agreement.by_property()["metrics"].iloc[0] == pytest.approx(np.mean(known), abs=1e-12)
    assert np.isnan(agreement.to_frame()["mean_correlation"].iloc[-1])
    assert not agreement.to_frame()["mean_correlation"].iloc[:-1].isna().any()


def test_agreement_prints_and_draws():
    y_true, y_prob = three_classes(60)
    agreement = metric_agreement(y_true, y_prob)
    assert "32 metrics over 6 models" in str(agreement)
    assert agreement._repr_html_().startswith("<pre>")
    ax = caltest.plot_metric_agreement(agreement)
    assert [label.get_text().split()[-1] for label in ax.get_yticklabels()] == [str(i) for i in range(32)]
    assert ax.get_yticklabels()[24].get_text().startswith("ACE")
    drawn, beside = (mesh.get_array() for mesh in ax.collections)
    np.testing.assert_array_equal(np.reshape(drawn, (32, 32)), agreement.correlation)
    np.testing.assert_array_equal(np.ravel(beside), agreement.cells_correlation)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"y_prob": {"a": [[0.5, 0.5]]}},
            "must map names to the predictions of at least three models, got 1",
        ),
        ({"y_prob": [[0.5, 0.5]]}, "`y_prob` must map names .* got list"),
        ({"n_cells": 10}, "`n_cells` must hold at least two numbers of cells, got 10"),
        ({"n_cells": (10, 10)}, "`n_cells` must hold one or more different sizes"),
        ({"metrics": [caltest.ECE()]}, r"`metrics` must hold one or more different GCE\(...\)"),
        ({"metrics": []}, "`metrics` must hold one or more different GCE"),
        ({"metrics": [GCE(), GCE()]}, "`metrics` must hold one or more different GCE"),
    ],
)
def test_agreement_refuses(change, message):
    y_true, y_prob = three_classes(20)
    with pytest.raises(ValueError, match=message):
        metric_agreement(**{"y_true": y_true, "y_prob": y_prob} | change)


# Temperatures.


@pytest.mark.parametrize("n_grid", [4, 7, 60])
def test_best_temperature_is_no_worse_than_the_grid(n_grid):
    """Brute force in plain Python; from some grids the search finds nothing better."""
    y_true, y_prob = three_classes(100)
    prob = y_prob["T = 0.4"]
    best = best_temperatures(y_true, prob, metrics=FEW, n_grid=n_grid)
    grid = np.exp(np.linspace(np.log(0.1), np.log(10), n_grid))
    for metric, temperature, value in zip(FEW, best.temperature, best.value, strict=True):
        values = [naive.evaluate(metric, temper(prob, t), y_true) for t in grid]
        assert value <= min(values) + 1e-12
        assert value == pytest.approx(naive.evaluate(metric, temper(prob, temperature), y_true), abs=1e-12)
    judge = GCE(max_prob=True, class_conditional=False)
    judged = [naive.evaluate(judge, temper(prob, t), y_true) for t in best.temperature]
    np.testing.assert_allclose(best.judged, judged, rtol=0, atol=1e-12)
    assert best.judged_before == caltest.calibration_error(y_true, prob, statistic=judge)


def test_the_search_never_gives_up_what_the_grid_had():
    """A dip at one point of the grid, which the search does not meet again."""
    grid = np.array([0.0, 1.0, 2.0])
    assert _minimise(lambda t: float(t != 1), grid, np.array([1.0, 0.0, 1.0])) == (1.0, 0.0)
    at, value = _minimise(lambda t: (t - 1.3) ** 2, grid, (grid - 1.3) ** 2)
    assert at == pytest.approx(1.3, abs=1e-3)
    assert value < 1e-6


def test_the_temperature_of_the_log_score_is_where_its_derivative_vanishes():
    y_true, y_prob = three_classes(2000)
    prob = y_prob["T = 0.4"]
    best = best_temperatures(y_true, prob, metrics=FEW[:1])
    tempered = temper(prob, best.log_temperature)
    log = np.log(prob)
    slope = (log[np.arange(2000), y_true] - (tempered * log).sum(axis=1)).mean()
    curvature = ((tempered * log**2).sum(axis=1) - (tempered * log).sum(axis=1) ** 2).mean()
    assert abs(slope / curvature) < 2e-3  # in 1 / T; the tolerance of log T is 1e-3
    assert best.log_temperature == pytest.approx(2.5, abs=0.3)  # made with 1 / 2.5


def test_held_out_rows_judge_but_do_not_choose():
    y_true, y_prob = three_classes(400)
    prob = y_prob["T = 0.6"]
    here = best_temperatures(y_true[:200], prob[:200], metrics=FEW)
    there = best_temperatures(y_true[:200], prob[:200], metrics=FEW, held_out=(y_true[200:], prob[200:]))
    np.testing.assert_array_equal(here.temperature, there.temperature)
    judge = here.judge
    assert there.judged_before == caltest.calibration_error(y_true[200:], prob[200:], statistic=judge)
    expected = naive.evaluate(judge, temper(prob[200:], there.temperature[0]), y_true[200:])
    assert there.judged[0] == pytest.approx(expected, abs=1e-12)


def test_temperature_of_sharp_predictions():
    """Powers of tiny probabilities underflow, the largest of a row never does; impossible outcomes have no score."""
    prob = np.array([[1e-300, 1.0], [1.0, 0.0], [0.25, 0.75]])
    best = best_temperatures([1, 1, 1], prob, metrics=[GCE()], bounds=(0.001, 10))
    assert np.isfinite(best.temperature).all()
    assert np.isfinite(best.judged).all()
    assert np.isnan(best.log_temperature)
    assert np.isnan(best.log_judged)


def test_temperatures_print():
    y_true, y_prob = three_classes(100)
    best = best_temperatures(y_true, y_prob["T = 0.9"], metrics=FEW)
    assert "log score: temperature" in str(best)
    assert best._repr_html_().startswith("<pre>")
    frame = best.by_property().set_index("property")
    assert frame.loc["all", "temperature"] == pytest.approx(best.temperature.mean())
    assert frame.loc["thresholded", "judged"] == best.judged[3]
    assert best.to_frame()["name"].tolist() == ["SCE", "", "ECE", ""]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bounds": (1, 1)}, r"`bounds` must be two increasing positive numbers, got \(1, 1\)"),
        ({"bounds": (0, 1)}, "`bounds` must be a positive"),
        ({"bounds": 2}, "`bounds` must be two increasing positive numbers, got 2"),
        ({"n_grid": 2}, "`n_grid` must be"),
        ({"judge": caltest.ECE()}, r"`judge` must be a GCE\(...\)"),
        ({"held_out": [0]}, r"`held_out` must be a pair \(y_true, y_prob\), got list"),
        ({"held_out": ([0], [0.5])}, "`held_out` must have 3 classes, as `y_prob` has, got 2"),
    ],
)
def test_temperatures_refuse(change, message):
    y_true, y_prob = three_classes(20)
    with pytest.raises(ValueError, match=message):
        best_temperatures(y_true, y_prob["T = 0.9"], **change)


# Label noise.

LABELS = np.arange(120) % 3


def counted(labels):
    """A model that predicts how often each class was met."""
    return np.tile(np.bincount(labels, minlength=3) / len(labels), (120, 1))


def copied(labels):
    """A model that repeats its training labels."""
    return np.eye(3)[labels]


def test_label_noise_replaces_the_share():
    """A model that repeats its labels is right where they were not replaced, or replaced by themselves."""
    shares = [0.0, 0.3, 0.6]
    study = label_noise_study(copied, LABELS, LABELS, shares=shares, n_replicates=40, n_resamples=19, rng=0)
    clean = study.to_frame().query("labels == 'clean' and statistic == 'ECE'")
    for share, right in zip(shares, clean["accuracy"], strict=True):
        expected = 1 - share * 2 / 3
        assert abs(right - expected) <= 4 * (expected * (1 - expected) / (40 * 120)) ** 0.5
    np.testing.assert_allclose(clean["value"], 1 - clean["accuracy"], atol=1e-12)
    noisy = study.to_frame().query("labels == 'noisy' and statistic == 'ECE'")
    for share, right in zip(shares, noisy["accuracy"], strict=True):  # training and held-out noise are independent
        expected = (1 - share) ** 2 + (1 - (1 - share) ** 2) / 3
        assert abs(right - expected) <= 4 * (expected * (1 - expected) / (40 * 120)) ** 0.5


def test_what_is_replaced_stays_replaced_at_higher_shares():
    seen = []

    def predict(labels):
        seen.append(labels)
        return counted(labels)

    label_noise_study(predict, LABELS, LABELS, shares=[0.0, 0.2, 0.5], n_resamples=19, rng=3)
    np.testing.assert_array_equal(seen[0], LABELS)
    for fewer, more in pairwise(seen):
        changed = fewer != LABELS
        np.testing.assert_array_equal(more[changed], fewer[changed])


def test_label_noise_values_are_those_of_single_calls():
    study = label_noise_study(counted, LABELS, LABELS % 2, shares=[0.1], n_resamples=99, rng=1, threshold=0.2)
    row = study.replicates.query("labels == 'clean' and statistic == 'SCE'").iloc[0]
    y_prob = None

    def keep(labels):
        nonlocal y_prob
        y_prob = counted(labels)
        return y_prob

    label_noise_study(keep, LABELS, LABELS % 2, shares=[0.1], n_resamples=99, rng=1)
    assert row["value"] == caltest.calibration_error(LABELS % 2, y_prob, statistic=caltest.SCE())
    assert row["accuracy"] == caltest.accuracy(LABELS % 2, y_prob)
    assert row["mean_confidence"] == pytest.approx(y_prob.max())
    assert row["missed"] == pytest.approx(2 / 3)  # three important predictions of each row, one is seen


def test_label_noise_does_not_depend_on_workers_or_interruptions(tmp_path):
    options = {"shares": [0.0, 0.1], "n_replicates": 2, "n_resamples": 19, "rng": 5}
    whole = label_noise_study(counted, LABELS, LABELS, **options)
    calls = []

    def interrupted(done, total):
        calls.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        label_noise_study(counted, LABELS, LABELS, out=tmp_path, progress=interrupted, **options)
    resumed = label_noise_study(counted, LABELS, LABELS, out=tmp_path, **options)
    pd.testing.assert_frame_equal(resumed.replicates, whole.replicates)
    with joblib.parallel_config(backend="threading"):
        threads = label_noise_study(counted, LABELS, LABELS, workers=2, **options)
    pd.testing.assert_frame_equal(threads.replicates, whole.replicates)


def test_a_calibrated_model_of_noise_is_rejected_for_clean_labels_only():
    """Noise 1: the model that counts is right about random labels, of any name, and wrong about clean ones."""
    names = np.array(["a", "b", "c"])

    def predict(labels):
        return np.tile([(labels == name).mean() for name in names], (400, 1))

    train = held_out = np.repeat("a", 400)
    study = label_noise_study(predict, train, held_out, classes=names, shares=[1.0], n_resamples=199, rng=0)
    pvalues = study.replicates.query("statistic == 'SCE'").set_index("labels")["pvalue"]
    assert pvalues["clean"] == 1 / 200
    assert pvalues["noisy"] > 0.001


def test_label_noise_prints_and_draws():
    study = label_noise_study(counted, LABELS, LABELS, shares=[0.0, 0.5], n_resamples=19, n_replicates=2, rng=0)
    assert "means over 2 replicates" in str(study)
    assert study._repr_html_().startswith("<pre>")
    ratio, pvalue, model = caltest.plot_label_noise(study)
    frame = study.to_frame()
    rows = frame.query("labels == 'noisy' and statistic == 'ACE'")
    line = next(line for line in ratio.lines if line.get_label() == "ACE, noisy labels")
    np.testing.assert_array_equal(line.get_ydata(), rows["value"] / rows["noise_floor"])
    assert pvalue.get_yscale() == "log"
    assert len(model.lines) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predict": 3}, "`predict` must be a function of training labels, got 3"),
        ({"shares": [1.5]}, "`shares` must be a finite number from 0 to 1, got 1.5"),
        ({"n_replicates": 0}, "`n_replicates` must be"),
        ({"threshold": -1}, "`threshold` must be a finite number from 0 to 1"),
    ],
)
def test_label_noise_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        label_noise_study(**{"predict": counted, "y_train": LABELS, "y_true": LABELS} | change)


@pytest.mark.parametrize("plot", [caltest.plot_metric_agreement, caltest.plot_label_noise])
def test_plots_refuse_what_is_not_theirs(plot):
    with pytest.raises(ValueError, match=r"must be a .* from .*got int"):
        plot(3)
