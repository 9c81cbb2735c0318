"""The score of Posocco and Bonnefoy (2021): estimates from few observations against the truth."""

import json
from itertools import product

import joblib
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import caltest
from caltest import ECE, EqualMass, EqualWidth
from caltest.simulation import (
    ApproximationStudy,
    GaussianMixture1D,
    RandomMixture,
    TrainedClassifier,
    approximation_study,
)
from caltest.simulation.models._base import draw_classes
from caltest.simulation.replications._approximation import _relative
from caltest.simulation.studies._run import replicate_rng
from caltest.statistics import ConvexECE, KDEError
from tests.reference import naive

mpl.use("Agg")

MODEL = GaussianMixture1D(0.5, -1)
TWO = {"legacy": ECE(EqualWidth(10)), "convex": ConvexECE(EqualMass(5, cut="halfway"))}
SMALL = {"n_samples": [20, 40], "n_replicates": 7, "n_holdout": 1000, "rng": 3}


def test_every_number_is_that_of_plain_loops():
    study = approximation_study(MODEL, TWO, **SMALL)
    found = study.models.set_index(["setting", "estimator", "n_samples", "truth"]).sort_index()
    rng = replicate_rng(3, str(MODEL), 0)
    rows = MODEL.draw_unlabelled(1000, rng)
    y_true = draw_classes(rows.class_prob, rng)
    sets = [rng.integers(1000, size=(7, n)) for n in (20, 40)]
    top = rows.y_prob.argmax(axis=1)
    settings = {
        "confidence": (0.5, [(rows.y_prob.max(axis=1), y_true == top)]),
        "class-wise": (0.0, [(rows.y_prob[:, k], y_true == k) for k in (0, 1)]),
    }
    for setting, (low, problems) in settings.items():

        def error(statistic, rows, problems=problems):
            values = [
                naive.evaluate(statistic, np.column_stack([1 - score[rows], score[rows]]), event[rows])
                for score, event in problems
            ]
            return np.mean(values)

        theta = error(ECE(EqualWidth(2000)), slice(None))
        told = {"legacy": TWO["legacy"], "convex": ConvexECE(EqualMass(5, cut="halfway"), low=low)}
        for (n, of_size), (name, statistic) in product(zip((20, 40), sets, strict=True), told.items()):
            estimates = np.array([error(statistic, rows) for rows in of_size])
            row = found.loc[(setting, name, n)]
            assert row.loc["large sample", "true_value"] == pytest.approx(theta, abs=1e-12)
            expected = np.quantile(np.abs(estimates - theta) / theta, 0.95)
            assert row.loc["large sample", "error"] == pytest.approx(expected, abs=1e-10)
            level = row.loc["level set", "true_value"]
            expected = np.quantile(np.abs(estimates - level) / level, 0.95)
            assert row.loc["level set", "error"] == pytest.approx(expected, abs=1e-10)
            assert row["mean"].tolist() == pytest.approx([estimates.mean()] * 2, abs=1e-12)


@pytest.mark.slow(few_draws=True)
def test_the_level_set_truth_is_the_exact_one():
    """Within its noise floor and 4 standard errors; the paper's truth is inflated by noise."""
    study = approximation_study(MODEL, TWO["legacy"], 30, 1, n_holdout=50_000, rng=0)
    found = study.models.set_index(["setting", "truth"])
    for setting, lens in (("confidence", caltest.Confidence()), ("class-wise", caltest.ClassWise(0))):
        level, large = found.loc[(setting, "level set")], found.loc[(setting, "large sample")]
        exact = MODEL.expected_miscalibration(lens)
        assert abs(level["true_value"] - exact) <= 4 * level["truth_error"] + level["truth_floor"]
        assert exact < large["true_value"] <= exact + large["truth_floor"] + 4 * large["truth_error"]


def test_three_classes_and_the_range_of_their_scores():
    """Confidences of three classes begin at 1/3: a kernel estimate mirrored at 0 would see another density."""
    model = TrainedClassifier(RandomMixture(3, 2, seed=1), "naive Bayes", n_train=150)
    study = approximation_study(model, {"kde": KDEError(0.1)}, 50, 1, n_holdout=1000, rng=0)
    assert study.models["distribution"].unique().tolist() == ["RandomMixture(3, 2, 1)"]
    rng = replicate_rng(0, str(model), 0)
    rows = model.draw_unlabelled(1000, rng)
    y_true = draw_classes(rows.class_prob, rng)
    chosen = rng.integers(1000, size=(1, 50))[0]

    def error(lens, statistic, some=chosen):
        return caltest.calibration_error(y_true[some], rows.y_prob[some], lens=lens, statistic=statistic)

    found = study.models.set_index(["setting", "truth"])
    classes = [caltest.ClassWise(k) for k in range(3)]
    expected = error(caltest.Confidence(), KDEError(0.1, support=(1 / 3, 1.0)))
    assert found.loc["confidence", "mean"].tolist() == pytest.approx([expected] * 2, abs=1e-12)
    expected = np.mean([error(lens, KDEError(0.1)) for lens in classes])
    assert found.loc["class-wise", "mean"].tolist() == pytest.approx([expected] * 2, abs=1e-12)
    large = np.mean([error(lens, ECE(EqualWidth(2000)), slice(None)) for lens in classes])
    assert found.loc[("class-wise", "large sample"), "true_value"] == pytest.approx(large, abs=1e-12)


def test_relative_errors_at_a_truth_of_0():
    assert _relative(np.array([0.0, 0.1]), 0.0).tolist() == [0.0, np.inf]
    assert _relative(np.array([0.0, 0.3]), 0.2).tolist() == pytest.approx([-1.0, 0.5])


@pytest.mark.slow
def test_more_observations_approximate_better():
    study = approximation_study(MODEL, None, [30, 3000], 60, n_holdout=20_000, rng=0)
    error = study.to_frame().pivot_table(index=["setting", "truth", "estimator"], columns="n_samples", values="median")
    assert len(error) == 2 * 2 * 10
    assert (error[3000] < error[30]).all()


def synthetic(errors):
    """A study of models whose errors are given, ``{distribution: [errors]}``."""
    rows = [
        {"model": f"{name} {i}", "distribution": name, "setting": "confidence", "truth": "level set"}
        | {"estimator": "one", "n_samples": 30, "true_value": 0.5, "mean": 0.6, "error": error}
        for name, several in errors.items()
        for i, error in enumerate(several)
    ]
    return ApproximationStudy(models=pd.DataFrame(rows))


@pytest.mark.slow(few_draws=True)
def test_the_standard_error_is_that_of_resampled_distributions():
    errors = {"a": [1.0, 1.5], "b": [2.0, 4.0], "c": [3.0, 7.0]}
    frame = synthetic(errors).to_frame(n_resamples=4000, rng=0)
    assert frame["n_models"].tolist() == [6]
    assert frame["median"].tolist() == [2.5]
    assert frame["median_bias"].tolist() == pytest.approx([0.2])
    every = np.array([np.median([errors[name] for name in three]) for three in product("abc", repeat=3)])
    fourth = np.mean((every - every.mean()) ** 4) - every.var() ** 2  # variance of the squares: the delta method
    tolerance = 4 * np.sqrt(fourth / 4000) / (2 * every.std())
    assert abs(frame["median_se"].iloc[0] - every.std()) < tolerance


@pytest.mark.slow(few_draws=True)
def test_the_study_does_not_depend_on_workers_or_interruptions(tmp_path):
    models = {"one": MODEL, "other": GaussianMixture1D(0, -1)}
    whole = approximation_study(models, TWO, **SMALL)
    again = approximation_study({"other": models["other"]}, TWO, **SMALL)
    mine = whole.models.query("model == 'other'").reset_index(drop=True)
    pd.testing.assert_frame_equal(again.models, mine)

    def interrupted(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        approximation_study(models, TWO, out=tmp_path, progress=interrupted, **SMALL)
    seen = []
    resumed = approximation_study(models, TWO, out=tmp_path, progress=lambda done, total: seen.append(done), **SMALL)
    assert seen[0] == 3  # the first model, of two classes
    pd.testing.assert_frame_equal(resumed.models, whole.models)
    with joblib.parallel_config(backend="threading"):
        threads = approximation_study(models, TWO, workers=2, **SMALL)
    pd.testing.assert_frame_equal(threads.models, whole.models)


@pytest.mark.slow(few_draws=True)
def test_the_share_of_models_on_which_an_estimator_is_best():
    models = {f"T{i}": GaussianMixture1D(0.3 * i, -1) for i in range(4)}
    study = approximation_study(models, TWO, **SMALL)
    frame = study.to_frame().set_index(["setting", "truth", "n_samples", "estimator"])["best"]
    for setting, truth, n in product(("confidence", "class-wise"), ("level set", "large sample"), (20, 40)):
        rows = study.models.query("setting == @setting and truth == @truth and n_samples == @n")
        one, other = (rows[rows["estimator"] == name].set_index("model")["error"] for name in TWO)
        assert frame[setting, truth, n, "legacy"] == (one <= other).mean()
        assert frame[setting, truth, n, "convex"] == (other <= one).mean()


@pytest.mark.slow
def test_training_moves_to_other_processes():
    models = [TrainedClassifier(RandomMixture(2, 2, seed=0), kind) for kind in ("naive Bayes", "random forest")]
    here, there = (approximation_study(models, TWO, workers=workers, **SMALL) for workers in (1, 2))
    pd.testing.assert_frame_equal(there.models, here.models)


@pytest.mark.slow
def test_the_study_prints_and_draws():
    study = approximation_study(MODEL, {"legacy, 5": ECE(EqualWidth(5)), "legacy, 9": ECE(EqualWidth(9))}, **SMALL)
    assert str(study).splitlines()[0] == "Approximation of the calibration error (1 model)"
    mean = study.to_frame().query("truth == 'level set'").groupby("estimator")["median"].mean()
    best, worst = (f"{mean[name]:.3f} ({name})" for name in (mean.idxmin(), mean.idxmax()))
    assert f"the median errors lie between {best} and {worst}, which do not differ by more than 4" in study.conclusion
    assert "<table>" in study._repr_html_()
    told = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert list(told) == ["summary", "conclusion"]
    assert [row["median"] for row in told["summary"]] == study.to_frame()["median"].tolist()
    for truth in ("level set", "large sample"):
        axes = study.plot(truth=truth)
        assert [ax.get_title() for ax in axes] == ["confidence", "class-wise"]
        for ax in axes:
            rows = study.to_frame().query("truth == @truth and setting == @ax.get_title()")
            assert [line.get_label() for line in ax.lines] == ["legacy, 5", "legacy, 9"]
            for line in ax.lines:
                expected = rows[rows["estimator"] == line.get_label()]
                np.testing.assert_array_equal(line.get_xydata(), expected[["n_samples", "median"]])
            assert ax.lines[0].get_color() == ax.lines[1].get_color()
            assert ax.get_xscale() == ax.get_yscale() == "log"
    mpl.pyplot.close("all")


def test_the_study_refuses():
    cases = [
        (TypeError, {"models": 3}, "`models` must"),
        (TypeError, {"estimators": {"mean": np.mean}}, "`estimators` must"),
        (ValueError, {"n_samples": []}, "`n_samples` must hold one or more different sizes"),
        (ValueError, {"n_replicates": 0}, "`n_replicates` must"),
        (ValueError, {"n_holdout": 10}, "`n_holdout` must"),
    ]
    for kind, change, message in cases:
        with pytest.raises(kind, match=message):
            approximation_study(**{"models": MODEL, "estimators": TWO} | SMALL | change)


def test_the_plot_refuses():
    study = synthetic({"a": [1.0]})
    with pytest.raises(ValueError, match="`truth` must be"):
        study.plot(truth="exact")
    with pytest.raises(TypeError, match=r"`study` must be an ApproximationStudy .* got int"):
        caltest.plotting.plot_approximation(3)


@pytest.mark.slow
def test_one_distribution_shows_no_variation_between_distributions():
    study = approximation_study(GaussianMixture1D(1, 1), n_samples=[30], n_replicates=5, n_holdout=2000, rng=0)
    assert study.to_frame()["median_se"].isna().all()


@pytest.mark.slow(few_draws=True)
def test_a_best_estimator_is_named_only_where_the_models_decide():
    """Ten distributions; "far" is worse on each, "near" and "twin" differ by chance."""
    rng = np.random.default_rng(0)
    rows = [
        {"model": str(i), "distribution": str(i), "setting": "confidence", "truth": "level set", "estimator": name}
        | {"n_samples": 30, "true_value": 0.1, "mean": 0.1, "error": level + 0.1 * rng.random()}
        for i in range(10)
        for name, level in (("near", 1.0), ("twin", 1.0), ("far", 2.0))
    ]
    frame = pd.DataFrame(rows)
    study = ApproximationStudy(models=frame)
    assert "does not differ by more than 4 standard errors; far has the largest" in study.conclusion
    without = ApproximationStudy(models=frame[frame["estimator"] != "twin"])
    assert "near has the smallest median error" in without.conclusion
    assert "does not differ" not in without.conclusion
    summary = study.to_frame()
    assert (summary[["median_se", "median_bias_se", "best_se"]] >= 0).all().all()
    again = study.to_frame(rng=np.random.default_rng(0))
    assert summary["median_se"].tolist() == again["median_se"].tolist(), "one set of resamples serves all columns"
