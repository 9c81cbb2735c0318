"""Studies of bias: their data sets, the truth, and the standard errors of the summary."""

import json
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest

import caltest
from caltest import ECE, KS, EqualMass, EqualWidth, SquaredL2, VarianceTree
from caltest.simulation import (
    BentPosterior,
    DirichletModel,
    GaussianMixture,
    GaussianMixture1D,
    RandomMixture,
    Temperature,
    TrainedClassifier,
    bias_study,
)
from caltest.simulation.studies import _run
from caltest.simulation.studies._data_sets import draw_data_sets
from caltest.simulation.studies._run import Block, replicate_rng
from caltest.simulation.studies._study import _differences
from caltest.statistics import ConvexECE, MonotonicSweepECE
from tests.reference import naive

PERFECT, CONSTANT, WRONG = GaussianMixture1D(0, -2), GaussianMixture1D(0, 0), GaussianMixture1D(1, 1)
TOP = caltest.Confidence()
CELLS = {n: ECE(EqualWidth(n)) for n in (5, 20)}
TARGET = "mean {} between predicted and true probabilities through Canonical(), exact"


def data_set(model, n_samples, seed, name, replicate):
    """Return labels, predictions and generator of one replicate of a study."""
    (drawn,) = draw_data_sets(Block(name, model, n_samples, range(replicate, replicate + 1), seed))
    one = next(drawn.one_by_one())
    return one.y_true, one.y_prob, one.rng


@pytest.fixture(scope="module")
def study():
    return bias_study({"perfect": PERFECT, "wrong": WRONG}, CELLS, [50, 200], 250, rng=1)


def test_the_shape_of_a_study(study):
    assert len(study.replicates) == 2 * 2 * 2 * 250
    frame = study.to_frame()
    assert len(frame) == 8
    assert (frame["n_replicates"] == 250).all()
    assert not frame.drop(columns=["model", "lens", "test_statistic", "partition"]).isna().any().any()
    assert len(str(study).split("\n\n")[1].splitlines()) == 1 + 8, "a table with a line for each case"


def test_a_study_prints_and_serialises(study):
    title, first, *_ = str(study).splitlines()
    assert title == "Bias study (Canonical(), 250 data sets each)"
    assert study.conclusion.startswith(first)
    frame = study.to_frame(quantiles=())
    worst = frame.loc[frame["bias"].abs().idxmax()]
    assert f"The largest bias is {worst['bias']:.4g}, that of {worst['test_statistic']} with" in study.conclusion
    found = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert list(found) == ["truth", "summary", "conclusion"]
    assert [row["mean"] for row in found["summary"]] == frame["mean"].tolist()
    assert "<table>" in study._repr_html_()


def test_the_summary_is_what_its_names_say(study):
    row = study.to_frame().iloc[0]
    values = study.replicates.query("model == 'perfect' and n_samples == 50 and test_statistic == '5'")[
        "value"
    ].to_numpy()
    assert row["mean"] == pytest.approx(values.mean())
    assert row["bias"] == pytest.approx(values.mean() - row["truth"])
    assert row["std"] == pytest.approx(values.std(ddof=1))
    assert row["mean_se"] == pytest.approx(values.std(ddof=1) / np.sqrt(250))
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean((values - row["truth"]) ** 2)))
    assert row["q25"] == pytest.approx(np.quantile(values, 0.25))


@pytest.mark.nightly
def test_the_errors_of_the_summary_are_standard_deviations_over_studies():
    """Over 50 studies, every estimate varies as its own standard error says, within 4 standard errors."""
    frames = pd.concat([bias_study(WRONG, CELLS[5], 40, 100, rng=seed).to_frame() for seed in range(50)])
    for name in ("mean", "std", "rmse", "q25", "q50"):
        spread, claimed = frames[name].std(ddof=1), np.sqrt(np.square(frames[f"{name}_se"]).mean())
        # A standard deviation of 50 values has a relative error of 10 %; the claimed errors of quantiles are coarse.
        assert abs(np.log(spread / claimed)) < 4 * (0.1 if not name.startswith("q") else 0.125), name


def test_the_truth_lies_where_the_model_says(study):
    truth = study.to_frame().groupby("model", sort=False)["truth"].first()
    assert truth["perfect"] == pytest.approx(0, abs=1e-12)
    assert truth["wrong"] == pytest.approx(0.5637511406, abs=1e-9)


def test_estimates_of_a_replicate_are_those_of_the_public_function(study):
    values = study.replicates.query("model == 'wrong' and n_samples == 200 and replicate == 3")["value"].to_numpy()
    y_true, y_prob, _ = data_set(WRONG, 200, 1, "wrong", 3)
    expected = [caltest.calibration_error(y_true, y_prob, statistic=statistic) for statistic in CELLS.values()]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_data_sets_do_not_depend_on_what_is_done_with_them():
    alone = bias_study(WRONG, CELLS[5], 60, 120, rng=4)
    among = bias_study([PERFECT, WRONG], [CELLS[20], CELLS[5]], [30, 60], 150, rng=4, workers=2)
    picked = among.replicates.query(
        f"model == '{WRONG}' and n_samples == 60 and test_statistic == '{CELLS[5]}' and replicate < 120"
    )
    np.testing.assert_array_equal(picked["value"], alone.replicates["value"])


@pytest.mark.slow(few_draws=True)
def test_cells_that_grow_reach_the_truth_and_one_for_each_observation_does_not():
    """Theorem 1 of Vaicenavicius et al. (2019): first the observations must grow, then the cells."""
    n = 100_000
    rows = bias_study(WRONG, [ECE(EqualWidth(cells)) for cells in (5, 47, n)], n, 20, rng=0).to_frame(quantiles=())
    few, cube_root, as_many = rows["bias"] / rows["mean_se"]
    assert few < -4
    assert abs(cube_root) < 4
    assert as_many > 4


@pytest.mark.slow
def test_any_backend_gives_the_same_numbers(monkeypatch):
    whole = bias_study(WRONG, CELLS, [40, 80], 50, rng=2)
    monkeypatch.setattr(_run, "_REPLICATES", 20)  # in a part: six parts
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert bias_study(WRONG, CELLS, [40, 80], 50, rng=2).replicates.equals(whole.replicates), backend


def interrupted_and_resumed(study, out, **options):
    """Stop a study after its first part, and go on in the same folder."""

    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(out=out, progress=stop)
    assert len(list(out.glob("[!.s]*"))) == 1
    return study(out=out, **options)


def of_mixture(**options):
    mixture = GaussianMixture([0.3, 0.3, 0.4], [[-1.0, 0.0], [1.0, 0.5], [0.0, 2.0]], [np.eye(2)] * 3, [0, 1, 2])
    statistics = [ECE(EqualMass(5)), caltest.statistics.GCE(), SquaredL2(), KS(), ConvexECE()]
    return bias_study(
        BentPosterior(mixture, Temperature(2.0)), statistics, [30, 50], 20, lenses=TOP, n_truth=500, rng=3, **options
    )


def of_compiled_draws(**options):
    """Return a study of several parts, each drawn in several blocks for the larger data sets."""
    statistics = [ECE(EqualWidth(10)), ECE(EqualMass(7)), SquaredL2(EqualMass(7)), ECE(VarianceTree()), KS()]
    return bias_study(WRONG, statistics, [40, 5000], 150, rng=3, **options)


@pytest.mark.parametrize("study", [of_mixture, of_compiled_draws])
@pytest.mark.slow
def test_an_interrupted_study_goes_on_bit_for_bit(study, tmp_path):
    whole = study()
    resumed = interrupted_and_resumed(study, tmp_path / "threads", workers=2)
    pd.testing.assert_frame_equal(resumed.replicates, whole.replicates, check_exact=True)
    pd.testing.assert_frame_equal(resumed.truth, whole.truth, check_exact=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # tasks cancelled
@pytest.mark.parametrize("study", [of_mixture, of_compiled_draws])
def test_an_interrupted_study_goes_on_in_processes(study, tmp_path):
    with joblib.parallel_config(backend="loky", n_jobs=2):
        resumed = interrupted_and_resumed(study, tmp_path / "processes")
    pd.testing.assert_frame_equal(resumed.replicates, study().replicates, check_exact=True)


@pytest.mark.slow
def test_each_statistic_has_its_own_target():
    lens = caltest.Confidence()
    statistics = [ECE(), ECE(distance=caltest.predictions.chebyshev), SquaredL2(EqualMass(5)), ConvexECE(), KS()]
    truth = bias_study(WRONG, statistics, 50, 2, lenses=lens, rng=0).truth["truth"].to_numpy()
    tv = WRONG.expected_miscalibration(lens)
    squared = WRONG.expected_miscalibration(lens, caltest.predictions.squared_euclidean)
    # Behind two outcomes both coordinates deviate by the same amount, and SquaredL2 counts one of them.
    np.testing.assert_allclose(truth, [tv, tv, squared / 2, tv, np.nan], rtol=1e-9)


def test_debiased_estimates_of_a_calibrated_model_have_no_bias():
    row = bias_study(PERFECT, SquaredL2(EqualWidth(10)), 100, 1000, rng=5).to_frame().iloc[0]
    assert abs(row["bias"]) < 4 * row["mean_se"]


def test_a_truth_of_the_user():
    study = bias_study(WRONG, KS(), 50, 10, truth=lambda model, lens, statistic: model.beta0 / 4, rng=0)
    assert study.to_frame()["truth"].item() == 0.25


def test_statistics_have_their_default_lenses():
    """KS judges one probability: of three classes it gets the confidence, of two the whole prediction."""
    models = {"two": DirichletModel(2), "three": DirichletModel(3)}
    study = bias_study(models, {"ece": ECE(), "ks": KS()}, 40, 3, rng=6)
    used = study.replicates.groupby(["model", "test_statistic"])["lens"].agg(set).to_dict()
    assert used == {
        **{("two", name): {"Canonical()"} for name in ("ece", "ks")},
        ("three", "ece"): {"Canonical()"},
        ("three", "ks"): {"Confidence()"},
    }
    kept = study.replicates.set_index(["model", "test_statistic", "replicate"])["value"]
    for name, model in models.items():
        for replicate in range(3):
            _, y_true, y_prob = model.draw(40, replicate_rng(6, f"{name}/40", replicate))
            for key, statistic in (("ece", ECE()), ("ks", KS())):
                value = caltest.calibration_error(y_true, y_prob, statistic=statistic)
                assert kept[name, key, replicate] == pytest.approx(value, rel=1e-12), (name, key, replicate)
    assert study.truth[["model", "lens", "test_statistic"]].values.tolist() == [
        ["two", "Canonical()", "ece"],
        ["two", "Canonical()", "ks"],
        ["three", "Canonical()", "ece"],
        ["three", "Confidence()", "ks"],
    ]


@pytest.mark.slow(few_draws=True)
def test_intervals_are_counted_against_the_truth():
    calls = []

    def around(y_true, y_prob, *, lens, statistic, rng):
        value = caltest.calibration_error(y_true, y_prob, lens=lens, statistic=statistic)
        calls.append(rng)
        return value - 0.05, value + 0.05

    built = {"fixed": around, "all": lambda y, p: (0, 1), "l2": partial(caltest.l2_interval, partition=EqualWidth(5))}
    study = bias_study(WRONG, CELLS[5], 100, 50, intervals=built, rng=0)
    row = study.to_frame().iloc[0]
    held = np.abs(study.replicates["value"] - row["truth"]) <= 0.05
    assert len(calls) == 50
    assert row["fixed coverage"] == held.mean()
    assert row["fixed coverage_se"] == pytest.approx(np.sqrt(held.mean() * (1 - held.mean()) / 50))
    assert row["all coverage"] == 1
    ends = study.replicates.query("replicate == 0")[["l2 low", "l2 high"]].iloc[0]
    y_true, y_prob, _ = data_set(WRONG, 100, 0, str(WRONG), 0)
    assert tuple(ends) == caltest.l2_interval(y_true, y_prob, partition=EqualWidth(5)).confidence_interval


@pytest.mark.slow
def test_the_study_of_the_paper():
    """Section 5.1: estimates of calibrated models almost always lie above 0; the wrong model's on both sides."""
    models = {"perfect": PERFECT, "constant": CONSTANT, "wrong": WRONG}
    frame = (
        bias_study(models, CELLS, [100, 1000], 200, rng=0)
        .to_frame()
        .set_index(["model", "n_samples", "test_statistic"])
    )
    assert (frame.loc[["perfect", "constant"], "bias"] > 4 * frame.loc[["perfect", "constant"], "mean_se"]).all()
    wrong = frame.loc["wrong"]
    assert (wrong["q05"] < wrong["truth"]).all()
    assert (wrong["q95"] > wrong["truth"]).all()
    # More observations in a cell make underestimation more likely, and few cells always underestimate (Theorem 2).
    assert wrong.loc[(1000, "5"), "bias"] < -4 * wrong.loc[(1000, "5"), "mean_se"]


def test_an_independent_loop_finds_the_same_bias():
    rng = np.random.default_rng(7)
    values = []
    for _ in range(100):
        y = rng.choice([-1, 1], size=80)
        g = 1 / (1 + np.exp(-(1 + (rng.standard_normal(80) + y))))
        values.append(naive.ece(CELLS[5], np.stack([g, 1 - g], axis=1), (y == 1).astype(int)))
    row = bias_study(WRONG, CELLS[5], 80, 100, rng=8).to_frame().iloc[0]
    assert abs(np.mean(values) - row["mean"]) < 4 * np.hypot(row["mean_se"], np.std(values) / 10)


def test_bad_arguments_are_named():
    good = {"models": WRONG, "statistics": ECE(), "n_samples": 10, "n_replicates": 2, "rng": 0}
    wrong_values = [
        ({"models": []}, "`models` must hold one or more things with different names, got none."),
        (
            {"statistics": [ECE(), ECE()]},
            "`statistics` must hold one or more things with different names, got 'ECE()' twice",
        ),
        ({"n_samples": 0}, "`n_samples` must be an integer >= 1, got 0."),
        ({"n_samples": [5, 5]}, "`n_samples` must hold one or more different sizes"),
        ({"n_replicates": 1}, "`n_replicates` must be an integer >= 2, got 1."),
        ({"rng": -1}, "`rng` must be None, an integer >= 0"),
        ({"workers": 0}, "`workers` must be an integer >= 1, or -1 for all processors, got 0."),
        ({"workers": -2}, "`workers` must be an integer >= 1, or -1 for all processors, got -2."),
        ({"statistics": caltest.Omnibus()}, "`Omnibus` combines tests and estimates no error"),
        ({"models": DirichletModel(3), "statistics": KS(), "lenses": caltest.Canonical()}, "two-outcome lens"),
    ]
    wrong_types = [
        ({"progress": "yes"}, "`progress` must be True, False or a function of (done, total), got 'yes'."),
        ({"workers": "2"}, "`workers` must be an integer >= 1, or -1 for all processors, got '2'."),
        ({"intervals": {"a": 3}}, "`intervals` must hold functions that return two numbers, got 3."),
        ({"intervals": max}, '`intervals` must be a mapping such as {"l2": l2_interval}, got max.'),
        ({"intervals": {"a": lambda y_true, y_prob: 3}}, "'a' whose ends are two numbers, low and high, got 3"),
        ({"statistics": "ECE"}, "`statistics` must hold statistics such as ECE(), got 'ECE'."),
        ({"models": 3}, "`models` must hold models of caltest.simulation, got 3."),
        ({"statistics": 3}, "`statistics` must hold statistics such as ECE(), got 3."),
    ]
    for kind, cases in ((ValueError, wrong_values), (TypeError, wrong_types)):
        for arguments, message in cases:
            with pytest.raises(kind) as raised:
                bias_study(**good | arguments)
            assert message in str(raised.value)


def test_a_calibrated_model_has_no_miscalibration_of_any_kind():
    statistics = [ECE(), SquaredL2(), ECE(distance=caltest.predictions.chebyshev)]
    study = bias_study([DirichletModel(3, 0.5), PERFECT], statistics, 20, 2, lenses=caltest.Confidence(), rng=0)
    assert study.truth["truth"].tolist() == [0.0] * 6


def test_what_is_not_known_has_no_error():
    study = bias_study(WRONG, KS(), 20, 5, rng=0)
    row = study.to_frame().iloc[0]
    assert np.isnan(row[["truth", "bias", "rmse", "rmse_se"]].to_numpy(dtype=float)).all()
    assert study.conclusion == "The truth is not known for these statistics, so the study shows no bias."
    assert "nan" not in str(study)
    model = TrainedClassifier(RandomMixture(2, 2, 0), "naive Bayes")
    assert np.isnan(bias_study(model, ECE(), 20, 2, n_truth=0, rng=0).truth["truth"].item()), "not known exactly"
    assert bias_study(WRONG, MonotonicSweepECE(), 20, 2, lenses=caltest.Confidence(), rng=0).truth["truth"].item() > 0


@pytest.mark.slow(few_draws=True)
def test_a_truth_that_is_not_known_is_simulated_with_its_error():
    model = TrainedClassifier(RandomMixture(2, 2, 0), "naive Bayes")
    first, other = (
        bias_study(model, {"ece": ECE(EqualWidth(5))}, 30, 20, n_truth=10_000, rng=seed).to_frame() for seed in (0, 1)
    )
    row = first.iloc[0]
    assert row["truth"] == other["truth"].item(), "it belongs to the model, not to the seed"
    assert 0 < row["truth_se"] < 0.2 * row["truth"]
    assert row["bias_se"] == pytest.approx(np.hypot(row["mean_se"], row["truth_se"]))
    again = model.estimate_miscalibration(n_samples=50_000, rng=5)
    assert abs(row["truth"] - again.value) < 4 * np.hypot(row["truth_se"], again.standard_error) + again.noise_floor + (
        model.estimate_miscalibration(n_samples=10_000, rng=6).noise_floor
    )
    exact = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
    study = bias_study(BentPosterior(exact, Temperature(2.0)), ECE(), 30, 5, rng=0)
    assert study.truth["target"].item() == TARGET.format("total variation")
    assert study.to_frame()["truth_se"].item() == 0


def test_an_error_and_its_square_are_not_ranked_against_each_other():
    """The truth of both is 0 for a calibrated model, but the square of a small number is smaller."""
    study = bias_study(PERFECT, {"ece": ECE(EqualWidth(5)), "square": SquaredL2(EqualWidth(5))}, 100, 20, rng=0)
    ranking = study.ranking().set_index("test_statistic")
    assert ranking["rank"].to_dict() == {"ece": 1, "square": 1}
    assert ranking["excess"].tolist() == [0, 0]
    assert ranking.loc["ece", "target"] == TARGET.format("total variation")
    assert ranking.loc["square", "target"] == TARGET.format("squared l2")


def test_the_report_explains_truths_that_are_not_known():
    for statistic, words in ((KS(), True), (ECE(EqualWidth(5)), False)):
        study = bias_study(PERFECT, statistic, 100, 5, rng=0)
        assert ("name it with `truth`" in " ".join(str(study).split())) is words, statistic


def test_estimators_are_ranked_where_the_study_decides():
    """Two names of one estimator share a rank; many cells are clearly worse for a calibrated model."""
    statistics = {"5": ECE(EqualWidth(5)), "again": ECE(EqualWidth(5)), "50": ECE(EqualWidth(50)), "ks": KS()}
    study = bias_study(PERFECT, statistics, 100, 100, rng=3)
    ranking = study.ranking().set_index("test_statistic")
    assert ranking["rank"].to_dict() == {"5": 1, "again": 1, "50": 3}, "KS has no truth, so that it is not ranked"
    value = study.replicates.pivot_table(index="replicate", columns="test_statistic", values="value")
    paired = np.square(value["50"]) - np.square(value["5"])
    assert ranking.loc["50", "excess"] == pytest.approx(paired.mean())
    assert ranking.loc["50", "excess_se"] == pytest.approx(paired.std(ddof=1) / 10)
    few = bias_study(WRONG, {"19": ECE(EqualWidth(19)), "20": ECE(EqualWidth(20))}, 300, 10, rng=0)
    assert few.ranking()["rank"].tolist() == [1, 1], "ten data sets do not decide"


def test_the_error_of_a_simulated_truth_is_in_every_error():
    """Against differences of the summary when the truth moves by its error."""

    def around(y_true, y_prob):
        return 0.5, 0.1 * y_true.mean() + 0.515

    study = bias_study(WRONG, CELLS[5], 100, 100, intervals={"own": around}, rng=0)
    rows = {}
    for shift, error in ((0.0, 0.0), (0.0, 0.01), (-0.01, 0.0), (0.01, 0.0)):
        truth = study.truth.assign(truth=study.truth["truth"] + shift, truth_se=error)
        rows[shift, error] = replace(study, truth=truth).to_frame().iloc[0]
    plain, row = rows[0.0, 0.0], rows[0.0, 0.01]
    for name in ("rmse", "own coverage"):
        half = (rows[0.01, 0.0][name] - rows[-0.01, 0.0][name]) / 2
        assert row[f"{name}_se"] == pytest.approx(np.hypot(plain[f"{name}_se"], half), rel=0.02), name
    assert row["own coverage_se"] > plain["own coverage_se"]


@pytest.mark.nightly
def test_equal_estimators_are_hardly_ever_ranked_apart():
    """A difference of 4 standard errors between exchangeable estimators: 200 studies show none."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        deviation = rng.standard_normal((100, 3)) + rng.standard_normal((100, 1))
        difference, error = _differences(deviation, 0.0)
        assert (difference <= 4 * error + 1e-12).all()
