"""Disagreement of metrics: rankings of models, best temperatures, and wrong labels (Nixon et al. 2019)."""

import json
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
from caltest.hypothesis_tests._gce_table import gce_metrics
from caltest.simulation import best_temperatures, label_noise_study, metric_agreement
from caltest.simulation.replications._agreement import name_of, rank_correlation
from caltest.statistics import GCE
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


@pytest.mark.slow(few_draws=True)
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
    agreement = metric_agreement(y_true, y_prob, metrics=FEW, n_cells=(5, 7, 9), n_resamples=9)
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


@pytest.mark.slow(few_draws=True)
def test_means_by_property_are_over_pairs_that_share_it():
    y_true, y_prob = three_classes(80)
    agreement = metric_agreement(y_true, y_prob, n_cells=(5, 15), n_resamples=9)
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
    agreement = metric_agreement(y_true, y_prob, metrics=[*FEW, blind], n_cells=(5, 15), n_resamples=9)
    assert np.isnan(agreement.correlation[-1]).all()
    assert np.isnan(agreement.cells_correlation[-1])
    known = [agreement.correlation[i, j] for i in range(4) for j in range(i)]
    assert agreement.by_property()["metrics"].iloc[0] == pytest.approx(np.mean(known), abs=1e-12)
    assert np.isnan(agreement.to_frame()["mean_correlation"].iloc[-1])
    assert not agreement.to_frame()["mean_correlation"].iloc[:-1].isna().any()


def test_any_statistic_and_score_has_values_floors_and_ranks():
    """Values are those of single calls, floors those of `noise_floor`, ranks and orders those of loops."""
    y_true, y_prob = three_classes(120)
    kde = caltest.statistics.MMCE()
    metrics = ["KS", caltest.ECE(caltest.EqualWidth(15)), caltest.statistics.ACE(15), "brier", kde]
    options = {"metrics": metrics, "n_cells": (5, 9), "n_resamples": 199, "rng": 0}
    agreement = metric_agreement(y_true, y_prob, **options)
    for i, metric in enumerate(agreement.metrics):
        if metrics[i] == "brier":
            single = [caltest.estimation.brier_score(y_true, prob) for prob in y_prob.values()]
        else:
            single = [caltest.calibration_error(y_true, prob, statistic=metric) for prob in y_prob.values()]
        assert agreement.values[i] == pytest.approx(single, rel=1e-12)
        for m, value in enumerate(single):
            smaller = sum(other < value - 1e-12 for other in single)
            equal = sum(abs(other - value) <= 1e-12 for other in single)
            assert agreement.ranks[i, m] == smaller + (equal + 1) / 2
        best_first = sorted(range(6), key=lambda m: single[m])
        assert agreement.by_rank()[i].tolist() == [list(y_prob)[m] for m in best_first]
    floor = caltest.noise_floor(y_prob["T = 0.9"], statistic=kde, method="monte-carlo", n_resamples=999, rng=1)
    assert abs(agreement.floor[4, 2] - floor.mean) < 4 * floor.std * np.sqrt(1 / 199 + 1 / 999)
    five = caltest.calibration_error(y_true, y_prob["T = 0.9"], statistic=caltest.statistics.ACE(5))
    assert agreement.values_by_cells[0, 2, 2] == five
    nine = caltest.calibration_error(y_true, y_prob["T = 0.9"], statistic=caltest.ECE(caltest.EqualWidth(9)))
    assert agreement.values_by_cells[1, 1, 2] == nine
    assert np.isnan(agreement.values_by_cells[:, [0, 3, 4]]).all()
    assert np.isnan(agreement.cells_correlation).tolist() == [True, False, False, True, True]
    frame = agreement.to_frame()
    assert frame["name"].tolist() == [str(metric) for metric in agreement.metrics]
    assert frame["floor of T = 0.4"].tolist() == agreement.floor[:, 0].tolist()
    assert agreement.by_property()["property"].tolist() == ["all"]
    above = int((agreement.values > agreement.floor_upper).sum())
    assert f"Of 30 values {above} are above what 95 % of calibrated models would have." in agreement.conclusion
    assert agreement.plot().get_yticklabels()[3].get_text() == "Brier score    3"
    alone = metric_agreement(y_true, y_prob, metrics="brier", n_cells=(5, 9), n_resamples=1, rng=0)
    assert "with two of the numbers of cells" not in alone.conclusion, "a score has no cells"


def test_columns_of_table_5_are_those_of_appendix_c():
    """The list of the paper; and columns 0 to 7 and 16 to 23 of table 5 come in equal pairs, as printed there."""
    order = [
        (scheme, top, apart, threshold, norm)
        for scheme in ("equal-width", "equal-mass")  # "even", "adaptive"
        for top in (True, False)
        for apart in (True, False)
        for threshold in (0.0, 0.01)
        for norm in ("l1", "l2")
    ]
    metrics = gce_metrics()
    found = [(one.scheme, one.max_prob, one.class_conditional, one.threshold, one.norm) for one in metrics]
    assert found == order
    named = {"ECE": 4, "class-conditional ECE": 0, "SCE": 8, "ACE": 24, "RMSCE": 21}  # section 5.4
    assert {name: number for number, name in enumerate(map(name_of, metrics)) if name in named} == named
    y_true, y_prob = three_classes(80)
    places = metric_agreement(y_true, y_prob, n_cells=(5, 15), n_resamples=1, rng=0).by_rank()
    for number in (0, 1, 4, 5, 16, 17, 20, 21):
        assert places[number].tolist() == places[number + 2].tolist(), "a top prediction exceeds the threshold"


@pytest.mark.slow(few_draws=True)
def test_agreement_prints_and_draws():
    y_true, y_prob = three_classes(60)
    agreement = metric_agreement(y_true, y_prob, n_resamples=9)
    assert str(agreement).splitlines()[0] == "Rank correlation of calibration errors (32 metrics, 6 models)"
    every = agreement.by_property().iloc[0]
    assert f"a mean rank correlation of {every['metrics']:.3f}" in agreement.conclusion
    assert "<table>" in agreement._repr_html_()
    told = json.loads(json.dumps(agreement.to_dict(), allow_nan=False))
    assert told["correlation"] == agreement.correlation.tolist()
    assert told["metrics"][4] == str(agreement.metrics[4])
    ax = agreement.plot()
    assert [label.get_text().split()[-1] for label in ax.get_yticklabels()] == [str(i) for i in range(32)]
    assert ax.get_yticklabels()[24].get_text().startswith("ACE")
    drawn, beside = (mesh.get_array() for mesh in ax.collections)
    np.testing.assert_array_equal(np.reshape(drawn, (32, 32)), agreement.correlation)
    np.testing.assert_array_equal(np.ravel(beside), agreement.cells_correlation)
    mpl.pyplot.close("all")


def test_agreement_refuses():
    y_true, y_prob = three_classes(20)
    cases = [
        (
            ValueError,
            {"y_prob": {"a": [[0.5, 0.5]]}},
            "must map names to the predictions of at least three models, got 1",
        ),
        (TypeError, {"y_prob": [[0.5, 0.5]]}, "`y_prob` must map names .* got list"),
        (ValueError, {"n_cells": 10}, "`n_cells` must hold at least two numbers of cells, got 10"),
        (ValueError, {"n_cells": (10, 10)}, "`n_cells` must hold one or more different sizes"),
        (TypeError, {"metrics": 3}, "`metrics` must be statistics or their names, got 3"),
        (TypeError, {"metrics": [3]}, "`statistic` must be a statistic"),
        (ValueError, {"metrics": caltest.Omnibus()}, "`Omnibus` combines tests"),
        (ValueError, {"metrics": []}, "`metrics` must be different statistics"),
        (ValueError, {"metrics": [GCE(), GCE()]}, "`metrics` must be different statistics"),
        (ValueError, {"metrics": caltest.statistics.ConfidenceECE()}, "`n_cells` must be odd, .* got 10"),
        (ValueError, {"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0"),
    ]
    for kind, change, message in cases:
        with pytest.raises(kind, match=message):
            metric_agreement(**{"y_true": y_true, "y_prob": y_prob} | change)


# Temperatures.


@pytest.mark.slow(few_draws=True)
def test_best_temperature_is_no_worse_than_the_grid():
    """Brute force in plain Python; from some grids the search finds nothing better."""
    y_true, y_prob = three_classes(100)
    prob = y_prob["T = 0.4"]
    for n_grid in (4, 7, 60):
        best = best_temperatures(y_true, prob, metrics=FEW, n_grid=n_grid)
        grid = np.exp(np.linspace(np.log(0.1), np.log(10), n_grid))
        for metric, temperature, value in zip(FEW, best.temperature, best.value, strict=True):
            values = [naive.evaluate(metric, temper(prob, t), y_true) for t in grid]
            assert value <= min(values) + 1e-12, (n_grid, metric)
            expected = naive.evaluate(metric, temper(prob, temperature), y_true)
            assert value == pytest.approx(expected, abs=1e-12), (n_grid, metric)
        judge = GCE(max_prob=True, class_conditional=False)
        judged = [naive.evaluate(judge, temper(prob, t), y_true) for t in best.temperature]
        np.testing.assert_allclose(best.judged, judged, rtol=0, atol=1e-12, err_msg=str(n_grid))
        assert best.judged_before == caltest.calibration_error(y_true, prob, statistic=judge)


@pytest.mark.slow(few_draws=True)
def test_the_temperature_of_the_log_score_is_where_its_derivative_vanishes():
    y_true, y_prob = three_classes(2000)
    prob = y_prob["T = 0.4"]
    best = best_temperatures(y_true, prob, metrics=FEW[:1])
    tempered = temper(prob, best.log_temperature)
    log = np.log(prob)
    slope = (log[np.arange(2000), y_true] - (tempered * log).sum(axis=1)).mean()
    curvature = ((tempered * log**2).sum(axis=1) - (tempered * log).sum(axis=1) ** 2).mean()
    assert abs(slope / curvature) < 2e-3  # in 1 / T; the tolerance of log T is 1e-3
    error = 1 / np.sqrt(2000 * curvature)  # of 1 / T, whose information the curvature is; made with 1 / 2.5
    assert abs(1 / best.log_temperature - 1 / 2.5) < 4 * error


@pytest.mark.slow(few_draws=True)
def test_held_out_observations_judge_but_do_not_choose():
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
    assert "the log score is infinite at every temperature" in " ".join(str(best).split())


@pytest.mark.slow(few_draws=True)
def test_temperatures_print():
    y_true, y_prob = three_classes(100)
    best = best_temperatures(y_true, y_prob["T = 0.9"], metrics=FEW)
    assert str(best).splitlines()[0] == "Temperatures that minimise calibration errors (4 metrics)"
    assert f"The log score is smallest at temperature {best.log_temperature:.4g}" in " ".join(str(best).split())
    low, high = best.temperature.min(), best.temperature.max()
    assert best.conclusion.startswith(f"The metrics are smallest at temperatures from {low:.4g} to {high:.4g}")
    assert "<table>" in best._repr_html_()
    assert json.loads(json.dumps(best.to_dict(), allow_nan=False))["temperature"] == best.temperature.tolist()
    frame = best.by_property().set_index("property")
    assert frame.loc["all", "temperature"] == pytest.approx(best.temperature.mean())
    assert frame.loc["thresholded", "judged"] == best.judged[3]
    assert best.to_frame()["name"].tolist() == ["SCE", "", "ECE", ""]
    assert not hasattr(best, "plot")


def test_temperatures_refuse():
    y_true, y_prob = three_classes(20)
    cases = [
        (ValueError, {"bounds": (1, 1)}, r"`bounds` must be two increasing positive numbers, got \(1, 1\)"),
        (ValueError, {"bounds": (1, 2, 3)}, r"`bounds` must be two increasing positive numbers, got \(1, 2, 3\)"),
        (ValueError, {"bounds": (0, 1)}, "`bounds` must be a positive"),
        (TypeError, {"bounds": 2}, "`bounds` must be two increasing positive numbers, got 2"),
        (ValueError, {"n_grid": 2}, "`n_grid` must be"),
        (TypeError, {"judge": caltest.ECE()}, r"`judge` must be a GCE\(...\)"),
        (TypeError, {"held_out": [0]}, r"`held_out` must be a pair \(y_true, y_prob\), got list"),
        (ValueError, {"held_out": ([0], [0.5])}, "`held_out` must have 3 classes, as `y_prob` has, got 2"),
    ]
    for kind, change, message in cases:
        with pytest.raises(kind, match=message):
            best_temperatures(y_true, y_prob["T = 0.9"], **change)


# Label noise.

LABELS = np.arange(120) % 3


def counted(labels):
    """A model that predicts the frequencies of the training labels."""
    return np.tile(np.bincount(labels, minlength=3) / len(labels), (120, 1))


def copied(labels):
    """A model that repeats its training labels."""
    return np.eye(3)[labels]


@pytest.mark.slow
def test_label_noise_replaces_the_share():
    """A model that repeats its labels is right where they were not replaced, or replaced by themselves."""
    shares = [0.0, 0.3, 0.6]
    study = label_noise_study(copied, LABELS, LABELS, shares=shares, n_replicates=40, n_resamples=19, rng=0)
    clean = study.to_frame().query("labels == 'clean' and test_statistic == 'ECE'")
    for share, right in zip(shares, clean["accuracy"], strict=True):
        expected = 1 - share * 2 / 3
        assert abs(right - expected) <= 4 * (expected * (1 - expected) / (40 * 120)) ** 0.5
    np.testing.assert_allclose(clean["statistic"], 1 - clean["accuracy"], atol=1e-12)
    noisy = study.to_frame().query("labels == 'noisy' and test_statistic == 'ECE'")
    for share, right in zip(shares, noisy["accuracy"], strict=True):  # training and held-out noise are independent
        expected = (1 - share) ** 2 + (1 - (1 - share) ** 2) / 3
        assert abs(right - expected) <= 4 * (expected * (1 - expected) / (40 * 120)) ** 0.5


def test_labels_replaced_at_one_share_are_replaced_at_higher_shares():
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
    row = study.replicates.query("labels == 'clean' and test_statistic == 'SCE'").iloc[0]
    y_prob = None

    def keep(labels):
        nonlocal y_prob
        y_prob = counted(labels)
        return y_prob

    label_noise_study(keep, LABELS, LABELS % 2, shares=[0.1], n_resamples=99, rng=1)
    assert row["statistic"] == caltest.calibration_error(LABELS % 2, y_prob, statistic=caltest.statistics.SCE())
    assert row["accuracy"] == caltest.estimation.accuracy(LABELS % 2, y_prob)
    assert row["mean_confidence"] == pytest.approx(y_prob.max())
    assert row["missed"] == pytest.approx(2 / 3)  # three important predictions of each row, one is seen


@pytest.mark.slow(few_draws=True)
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
    pvalues = study.replicates.query("test_statistic == 'SCE'").set_index("labels")["pvalue"]
    assert pvalues["clean"] == 1 / 200
    assert pvalues["noisy"] > 0.001


@pytest.mark.slow(few_draws=True)
def test_label_noise_prints_and_draws():
    study = label_noise_study(counted, LABELS, LABELS, shares=[0.0, 0.5], n_resamples=19, n_replicates=2, rng=0)
    assert str(study).splitlines()[0] == "Label noise study (means over 2 replicates)"
    rejected = (study.replicates.query("labels == 'noisy'")["pvalue"] <= 0.05).mean()
    assert f"in {100 * rejected:.0f} % of those on held-out labels with the same share of noise" in study.conclusion
    assert "<table>" in study._repr_html_()
    assert list(json.loads(json.dumps(study.to_dict(), allow_nan=False))) == ["summary", "conclusion"]
    ratio, pvalue, model = study.plot()
    frame = study.to_frame()
    rows = frame.query("labels == 'noisy' and test_statistic == 'ACE'")
    line = next(line for line in ratio.lines if line.get_label() == "ACE, noisy labels")
    np.testing.assert_array_equal(line.get_ydata(), rows["statistic"] / rows["noise_floor"])
    assert pvalue.get_yscale() == "log"
    assert len(model.lines) == 4
    mpl.pyplot.close("all")


def test_label_noise_refuses():
    cases = [
        (TypeError, {"predict": 3}, "`predict` must be a function of training labels, got 3"),
        (TypeError, {"statistics": "ECE"}, r"`statistics` must hold statistics such as ECE\(\), got 'ECE'"),
        (ValueError, {"shares": [1.5]}, "`shares` must be a finite number from 0 to 1, got 1.5"),
        (ValueError, {"n_replicates": 0}, "`n_replicates` must be"),
        (ValueError, {"threshold": -1}, "`threshold` must be a finite number from 0 to 1"),
    ]
    for kind, change, message in cases:
        with pytest.raises(kind, match=message):
            label_noise_study(**{"predict": counted, "y_train": LABELS, "y_true": LABELS} | change)


def test_plots_refuse_other_results():
    for plot in (caltest.plotting.plot_metric_agreement, caltest.plotting.plot_label_noise):
        with pytest.raises(TypeError, match=r"must be a .* from .*got int"):
            plot(3)
