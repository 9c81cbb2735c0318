"""Studies of size and power, and sample sizes: p-values are those of the public tests, rates those of theory."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import joblib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy.stats import binom

import caltest
from caltest.resampling.engine._run import run
from caltest.results._naming import describe
from caltest.simulation import (
    BentPosterior,
    DirichletModel,
    GaussianMixture,
    Identity,
    Model,
    RejectionStudy,
    Temperature,
    Unlabelled,
    power_study,
    sample_size,
    size_study,
)
from caltest.simulation.studies import _run
from caltest.simulation.studies import _size as _battery
from caltest.simulation.studies._run import replicate_rng
from caltest.simulation.studies._size import Battery
from tests.reference.examples import default_statistics

MODEL = DirichletModel(3, 0.5)
TOP = caltest.Confidence()
ONE_CELL = caltest.ECE(caltest.EqualWidth(1))
CHI_SQUARED = partial(caltest.hosmer_lemeshow_test, method="asymptotic")


@dataclass(frozen=True)
class Coin(Model):
    """Always predicts one half; the second class has another probability."""

    truth: float = 0.5

    @property
    def n_classes(self):
        return 2

    def draw_unlabelled(self, n_samples, rng):
        prob = np.full((n_samples, 2), 0.5)
        return Unlabelled(prob, prob, np.tile([1 - self.truth, self.truth], (n_samples, 1)))


def flattened(prob):
    """A known calibration function."""
    return 0.9 * prob + 0.1 / prob.shape[1]


def coin_power(n, truth, level):
    """Exact rejection rate of the two-sided binomial test of one half that orders counts by their distance."""
    count = np.arange(n + 1)
    null = binom.pmf(count, n, 0.5)
    reaches = np.abs(count[:, None] - n / 2) <= np.abs(count - n / 2) + 1e-9
    return binom.pmf(count, n, truth)[(reaches * null).sum(axis=1) <= level].sum()


def unwrapped(study):
    """What is printed, whatever the width of the terminal."""
    return " ".join(str(study).split())


# P-values.


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
def test_pvalues_are_those_of_the_test_bit_by_bit():
    """All statistics at once, through each lens, under each null hypothesis, by each method."""
    _, y_true, y_prob = MODEL.draw(40, 1)
    fixed, rows = caltest.Consistency(), caltest.Consistency(resample_predictions=True)
    known = caltest.Consistency(calibration_function=flattened)
    checked = {
        (lens, null, method): check_pvalues(y_true, y_prob, lens, null, method)
        for lens, (null, method) in product(
            (caltest.Canonical(), TOP),
            ((fixed, "auto"), (fixed, "monte-carlo"), (rows, "auto"), (known, "auto"), (fixed, "asymptotic")),
        )
    }
    for (lens, null, method), count in checked.items():
        least = {"asymptotic": 0 if lens == caltest.Canonical() else 5}.get(method, 14)
        assert count >= least, (lens, null, method)


def check_pvalues(y_true, y_prob, lens, null, method):
    """Compare a battery with the public function; return the number of statistics that accept lens and method."""
    options = {"resampling": null, "n_resamples": 19, "method": method}
    expected = {}
    for statistic in default_statistics():
        if null.resample_predictions and isinstance(statistic, caltest.SmoothECE):
            continue  # slow
        try:
            found = caltest.calibration_test(y_true, y_prob, lens=lens, statistic=statistic, rng=5, **options)
        except ValueError:
            assert lens == caltest.Canonical() or method == "asymptotic", "needs two outcomes, or has no known limit"
            with pytest.raises(ValueError, match="needs"):
                Battery.of(statistic, 19, null, method).pvalues(y_true, y_prob, lens, 5)
        else:
            expected[str(statistic)] = (statistic, found.pvalue)
    tests = {name: statistic for name, (statistic, _) in expected.items()}
    pvalues = Battery.of(tests, 19, null, method).pvalues(y_true, y_prob, lens, 5) if tests else []
    for name, pvalue in zip(tests, pvalues, strict=True):
        assert pvalue == expected[name][1], (name, lens, null, method)
    return len(tests)


def test_statistics_on_labels_share_draws(monkeypatch):
    """The others are asked alone: they have an exact distribution, or need counts only."""
    asked = []
    monkeypatch.setattr(
        _battery, "run", lambda questions, *args, **kw: asked.append(len(questions)) or run(questions, *args, **kw)
    )
    _, y_true, y_prob = DirichletModel(2).draw(30, 0)
    statistics = [
        caltest.KS(),
        ONE_CELL,
        caltest.Omnibus(),
        caltest.HosmerLemeshow(),
        caltest.statistics.IsotonicError(),
    ]
    for method, expected in (("auto", [1, 1, 3]), ("monte-carlo", [1, 4])):
        asked.clear()
        Battery.of(statistics, 19, None, method).pvalues(y_true, y_prob, TOP, 0)
        assert asked == expected, method


def test_an_excluded_outcome_gives_the_smallest_pvalue():
    y_true, y_prob = np.array([0, 1, 1]), np.array([[0.75, 0.25], [0.0, 1.0], [1.0, 0.0]])
    for method in ("exact", "monte-carlo"):
        public = caltest.calibration_test(y_true, y_prob, statistic=ONE_CELL, n_resamples=19, method=method, rng=0)
        battery = Battery.of(ONE_CELL, 19, None, method)
        assert battery.pvalues(y_true, y_prob, caltest.Canonical(), 0) == [public.pvalue]


def test_tests_have_their_default_lenses():
    """KS judges one probability: of three classes it gets the confidence; a function gets the whole prediction."""
    tests = {"omnibus": caltest.Omnibus(), "ks": caltest.KS(), "chi-squared": CHI_SQUARED}
    study = size_study({"m": MODEL}, tests, 30, 3, n_resamples=19, rng=3)
    used = study.pvalues.groupby("test")["lens"].unique().explode().to_dict()
    assert used == {"omnibus": "Canonical()", "chi-squared": "Canonical()", "ks": "Confidence()"}
    kept = study.pvalues.set_index(["test", "replicate"])["pvalue"]
    for replicate in range(3):
        rng = replicate_rng(3, "m/30", replicate)
        _, y_true, y_prob = MODEL.draw(30, rng)
        seed = int(rng.integers(2**63))
        for name in ("omnibus", "ks"):
            found = caltest.calibration_test(y_true, y_prob, statistic=tests[name], n_resamples=19, rng=seed)
            assert kept[name, replicate] == found.pvalue, (name, replicate)
    axes = study.plot()
    assert [ax.get_title() for ax in axes] == ["m, Canonical()", "m, Confidence()"]
    labels = [text.get_text() for text in axes[0].figure.legends[0].get_texts()]
    assert labels == ["5 % level", "binomial variation", "omnibus", "chi-squared", "ks"]
    plt.close("all")


@pytest.mark.slow(few_draws=True)
def test_pvalues_are_those_of_the_public_functions():
    tests = {"omnibus": caltest.Omnibus(), "score": caltest.TemperatureScore(), "chi-squared": CHI_SQUARED}
    lenses = [caltest.Canonical(), TOP]
    study = size_study(MODEL, tests, [30, 60], 4, lenses=lenses, n_resamples=19, rng=3)
    assert len(study.pvalues) == 2 * 4 * 2 * 3
    kept = study.pvalues.set_index(["lens", "n_samples", "test", "replicate"])["pvalue"]
    for n in (30, 60):
        for replicate in range(4):
            rng = replicate_rng(3, f"{MODEL}/{n}", replicate)
            _, y_true, y_prob = MODEL.draw(n, rng)
            seed = int(rng.integers(2**63))
            for lens in lenses:
                for name in ("omnibus", "score"):
                    options = {"lens": lens, "statistic": tests[name], "n_resamples": 19, "rng": seed}
                    found = caltest.calibration_test(y_true, y_prob, **options).pvalue
                    assert kept[str(lens), n, name, replicate] == found
                assert kept[str(lens), n, "chi-squared", replicate] == CHI_SQUARED(y_true, y_prob, lens=lens).pvalue


def test_another_test_changes_no_pvalue():
    alone = size_study(MODEL, ONE_CELL, 50, 10, n_resamples=19, rng=1).pvalues
    among = size_study(MODEL, [caltest.KS(), ONE_CELL], 50, 10, lenses=[TOP], n_resamples=19, rng=1).pvalues
    top = size_study(MODEL, ONE_CELL, 50, 10, lenses=TOP, n_resamples=19, rng=1).pvalues
    assert among[among["test"] == str(ONE_CELL)]["pvalue"].tolist() == top["pvalue"].tolist()
    assert alone["pvalue"].tolist() != top["pvalue"].tolist()


def test_functions_get_what_they_take():
    def seen(y_true, y_prob, *, rng):
        assert isinstance(rng, int)
        return caltest.calibration_table(y_true, y_prob, n_resamples=99, rng=rng)

    frame = size_study(MODEL, seen, 30, 2, rng=0).pvalues
    assert frame["test"].unique().tolist() == ["seen"]
    assert describe(CHI_SQUARED) == "hosmer_lemeshow_test(method='asymptotic')"


# Rejection rates.


@pytest.mark.slow
def test_counts_and_limits():
    study = size_study(Coin(), ONE_CELL, 20, 400, method="exact", levels=[0.05, 0.2], rng=0)
    for error, per in ((0.001, "study"), (0.05, "row")):
        frame = study.to_frame(error=error, per=per)
        each = error / 2 if per == "study" else error
        for row in frame.itertuples():
            assert row.rejections == (study.pvalues["pvalue"] <= row.level).sum()
            tail = binom.sf(np.arange(401), 400, row.level)
            assert row.limit == np.flatnonzero(tail <= each)[0]
            assert row.exceeds == (row.rejections > row.limit)
            assert binom.sf(row.rejections - 1, 400, row.lower) == pytest.approx(each)
            assert binom.cdf(row.rejections, 400, row.upper) == pytest.approx(each)
            np.testing.assert_allclose(row.rate_se, np.sqrt(row.rate * (1 - row.rate) / 400))


def test_a_pvalue_of_the_level_itself_rejects():
    """19 draws: the smallest p-value is 0.05."""
    certain = DirichletModel(2, 1.0, Temperature(50.0))
    frame = size_study(certain, caltest.TemperatureScore(), 200, 5, n_resamples=19, levels=0.05, rng=0).to_frame()
    assert frame["rate"].tolist() == [1.0]


@pytest.mark.slow
def test_sizes_of_a_valid_and_of_an_asymptotic_test():
    """The asymptotic test rejects too often where predictions are sharp; with draws the same statistic does not."""
    sharp = DirichletModel(2, 0.1)
    tests = {"chi-squared": CHI_SQUARED, "monte-carlo": caltest.HosmerLemeshow()}
    study = size_study(sharp, tests, 200, 400, n_resamples=99, method="monte-carlo", workers=2, rng=0)
    frame = study.to_frame().set_index(["test", "level"])
    assert frame.loc["chi-squared", "exceeds"].any()
    assert not frame.loc["monte-carlo", "exceeds"].any()
    assert frame.loc[("monte-carlo", 0.05), "rate"] > 0.02, "nor does it never reject"
    over = int(study.to_frame()["exceeds"].sum())
    assert study.conclusion.startswith(f"{over} of 6 rejection rates exceed the binomial limit of their level")
    assert study.conclusion.endswith("chi-squared rejects too often.")
    assert str(study).count("*") == over
    assert "<table>" in study._repr_html_()
    told = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert list(told) == ["levels", "summary", "conclusion"]
    assert [row["rate"] for row in told["summary"]] == study.to_frame()["rate"].tolist()
    fine = RejectionStudy(pvalues=study.pvalues.query("test == 'monte-carlo'"), levels=study.levels)
    assert fine.conclusion.startswith("None of 3 rejection rates exceeds the binomial limit of its level")
    assert "*" not in str(fine)
    assert unwrapped(fine).startswith(f"Rejection rates by level ({sharp}, Canonical(), 400 data sets each) None of 3")


def test_numbers_of_data_sets_may_differ():
    study = size_study(MODEL, ONE_CELL, [10, 20], 4, n_resamples=19, rng=0)
    fewer = study.pvalues[(study.pvalues["n_samples"] == 10) | (study.pvalues["replicate"] < 2)]
    assert "2 to 4 data sets each" in unwrapped(RejectionStudy(pvalues=fewer, levels=(0.05,)))


def test_bad_input_of_size_study():
    good = {"models": MODEL, "tests": ONE_CELL, "n_samples": 10, "n_replicates": 2, "n_resamples": 19}
    wrong_values = [
        ({"tests": []}, "`tests` must hold one or more"),
        ({"levels": [0.05, 1.0]}, "`levels` must hold one or more different levels"),
        ({"levels": []}, "`levels`"),
        ({"method": "magic"}, "`method` must be one of"),
        ({"method": "asymptotic"}, 'method="asymptotic" needs a statistic whose limit is known'),
        (
            {"method": "exact", "tests": caltest.KS(), "lenses": TOP},
            'method="exact" needs ECE, MCE, ConfidenceECE or HosmerLemeshow',
        ),
        ({"n_replicates": 0}, "`n_replicates` must be"),
        ({"tests": caltest.KS(), "lenses": caltest.Canonical()}, "needs a two-outcome lens"),
    ]
    wrong_types = [
        ({"tests": [caltest.KS]}, "`tests` must hold statistics or functions"),
        ({"tests": {"mean": lambda y_true, y_prob: y_prob.mean()}}, "`tests` must return results with a `pvalue`"),
        ({"models": "model"}, "`models` must hold models"),
        ({"resampling": "rows"}, "`resampling` must be a Consistency"),
    ]
    for kind, cases in ((ValueError, wrong_values), (TypeError, wrong_types)):
        for options, says in cases:
            with pytest.raises(kind) as raised:
                size_study(**{**good, **options})
            assert says in str(raised.value)
    with pytest.raises(ValueError, match="`per` must be one of 'study', 'row'"):
        size_study(**good).to_frame(per="table")


# Where and how it runs.


STUDY = {
    "models": MODEL,
    "tests": [caltest.Omnibus(), CHI_SQUARED],
    "n_samples": [20, 40],
    "n_replicates": 50,
    "lenses": [TOP],
    "n_resamples": 19,
    "rng": 7,
}
IN_A_PART = 20  # replicates: six parts


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of fewer replicates than usual, so that a small study has several."""
    monkeypatch.setattr(_run, "_REPLICATES", IN_A_PART)


@pytest.fixture(scope="module")
def whole():
    return size_study(**STUDY)


@pytest.mark.slow  # that of all studies is in test_runs
@pytest.mark.usefixtures("small_parts")
def test_the_backend_changes_nothing(whole):
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert size_study(**STUDY).pvalues.equals(whole.pvalues), backend


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
def test_a_cluster_changes_nothing(whole):
    import distributed

    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        assert size_study(**STUDY).pvalues.equals(whole.pvalues)


KILLED = """
import sys, time
sys.path[:0] = {path!r}
import test_size
from caltest.simulation import size_study
from caltest.simulation.studies import _run

_run._REPLICATES = test_size.IN_A_PART

def progress(done, total):
    if done > total / 2:
        print("half", flush=True)
        time.sleep(600)

size_study(**test_size.STUDY, out=sys.argv[1], progress=progress)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
def test_a_killed_study_goes_on(whole, tmp_path):
    """SIGKILL half-way: what was finished stays, is not computed again, and all is as without the interruption."""
    code = KILLED.format(path=[str(Path(__file__).parent), str(Path(caltest.__file__).parents[1])])
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "half\n"
        os.kill(process.pid, signal.SIGKILL)
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir() if not file.name.startswith(".")}
    assert 1 < len(kept) < 7, "the manifest and some of six parts"
    time.sleep(0.01)
    steps = []
    again = size_study(**STUDY, out=tmp_path, progress=lambda done, total: steps.append(done / total))
    assert again.pvalues.equals(whole.pvalues)
    assert steps[0] > 0.4
    assert all(file.stat().st_mtime_ns == moment for file, moment in kept.items())
    assert size_study(**{**STUDY, "rng": None}, out=tmp_path).pvalues.equals(whole.pvalues)


# Power.


def temperature(t):
    return DirichletModel(2, 1.0, Temperature(t) if t != 1 else Identity())


@pytest.mark.slow
def test_power_is_that_of_the_binomial_distribution():
    amounts = [0.5, 0.6, 0.7]
    study = power_study(Coin, amounts, ONE_CELL, 50, 400, levels=0.05, method="exact", rng=0)
    frame = study.to_frame()
    for row in frame.itertuples():
        exact = coin_power(50, row.amount, 0.05)
        assert abs(row.rate - exact) <= 4 * np.sqrt(exact * (1 - exact) / 400)
    assert frame["miscalibration"].isna().all(), "a user's model need not know it"
    power = frame.loc[frame["amount"] > 0.5, "rate"].mean()
    assert study.conclusion.startswith(f"The power of {ONE_CELL} is {power:.3f} at the 5 % level")
    assert "averaged over all miscalibrated models" in study.conclusion
    only = power_study(Coin, 0.5, [ONE_CELL, caltest.KS()], 20, 10, levels=0.1, method="monte-carlo", n_resamples=19)
    assert "averaged over all calibrated models" in only.conclusion, "its amount is not known, its direction is"
    assert "The most powerful test is" in only.conclusion
    assert "0.1 level" not in only.conclusion
    assert "10 % level" in only.conclusion


def test_the_truth_of_a_calibrated_model_is_0():
    """The quadrature of a posterior that a rounding error bends leaves some 1e-17."""
    one = 1.0 + 2.0**-50
    mixture = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
    assert BentPosterior(mixture, Temperature(one)).expected_miscalibration() != 0
    study = power_study(
        lambda t: BentPosterior(mixture, Temperature(t)), one, [caltest.KS()], 30, 4, n_resamples=19, rng=0
    )
    assert study.truth["miscalibration"].tolist() == [0.0]


@pytest.mark.slow(few_draws=True)
def test_under_confidence_is_separated(monkeypatch):
    study = power_study(
        {"t": temperature}, [0.8, 1.0, 1.25], [caltest.TemperatureScore()], 30, 4, n_resamples=19, rng=0
    )
    truth = study.truth.set_index("amount")
    assert truth["direction"].tolist() == ["under-confident", "neither", "over-confident"]
    assert truth.loc[0.8, "miscalibration"] == temperature(0.8).expected_miscalibration()
    panels = dict(study.panels())
    assert {name: sorted(frame["amount"].unique()) for name, frame in panels.items()} == {
        "t: under-confident": [0.8, 1.0],
        "t: over-confident": [1.0, 1.25],
    }
    only = power_study({"t": temperature}, [0.8, 1.0], caltest.TemperatureScore(), 30, 4, n_resamples=19, rng=0)
    assert [name for name, _ in only.panels()] == ["t: under-confident"]
    axes = study.plot(level=0.1)
    assert axes.shape == (2, 1)
    for ax in axes.flat:
        assert len(ax.containers) == 1
        assert "10 % level" in ax.get_legend_handles_labels()[1]
    plt.close("all")
    monkeypatch.setenv("COLUMNS", "100")
    assert "under-confident" in str(study)
    told = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert [row["direction"] for row in told["truth"]] == truth["direction"].tolist()


@pytest.mark.slow(few_draws=True)
def test_power_through_default_lenses():
    """One picture shows tests that have one lens each; where they have several, the first lens."""
    tests = {"omnibus": caltest.Omnibus(), "ks": caltest.KS()}
    options = {"n_samples": 20, "n_replicates": 2, "n_resamples": 19, "rng": 0}

    def three(t):
        return DirichletModel(3, 1.0, Temperature(t))

    study = power_study({"t": three}, [1.25, 1.5], tests, **options)
    assert set(zip(study.pvalues["lens"], study.pvalues["test"], strict=True)) == {
        ("Canonical()", "omnibus"),
        ("Confidence()", "ks"),
    }
    assert set(study.truth["lens"]) == {"Canonical()", "Confidence()"}
    assert len(study.plot()[0, 0].containers) == 2
    assert len(study.plot(lens="Confidence()")[0, 0].containers) == 1
    both = power_study(
        {"t": three}, [1.25, 1.5], {"omnibus": tests["omnibus"]}, lenses=[caltest.Canonical(), TOP], **options
    )
    assert len(both.plot()[0, 0].containers) == 1
    plt.close("all")


@pytest.mark.slow(few_draws=True)
def test_the_size_figure_shows_every_panel_and_test(whole):
    (ax,) = whole.plot()
    rates = whole.to_frame().query("level == 0.05").groupby("test", sort=False)["rate"].apply(list).tolist()
    level, *drawn = [list(line.get_ydata()) for line in ax.lines]
    assert level == [0.05, 0.05]
    assert drawn == rates
    plt.close("all")


@pytest.mark.slow(few_draws=True)
def test_bad_input_of_the_figures(whole):
    with pytest.raises(ValueError, match=r"`level` must be one of 0.01, 0.05, 0.1, got 0.2"):
        whole.plot(level=0.2)
    with pytest.raises(TypeError, match=r"`study` must be a PowerStudy from power_study\(...\), got RejectionStudy"):
        caltest.plotting.plot_power_study(whole)
    with pytest.raises(TypeError, match=r"`study` must be a RejectionStudy from size_study\(...\), got str"):
        caltest.plotting.plot_size_study("study")


def test_bad_input_of_power_study():
    common = {"tests": ONE_CELL, "n_samples": 10, "n_replicates": 2, "n_resamples": 19}
    with pytest.raises(ValueError, match="`amounts` must hold one or more different finite numbers"):
        power_study(temperature, [1.0, 1.0], **common)
    with pytest.raises(TypeError, match="`family` must hold functions that make models"):
        power_study(lambda amount: amount, 1.0, **common)


# Sample sizes.


@pytest.mark.slow
def test_sample_size_of_a_known_power_function():
    """Exact power by the binomial distribution: first 0.9 with 263 observations, and above it from 274 on."""
    power = np.array([coin_power(n, 0.6, 0.05) for n in range(240, 300)])
    first, last = 240 + int(np.argmax(power >= 0.9)), 240 + int(np.flatnonzero(power < 0.9)[-1])
    options = {"power": 0.9, "method": "exact", "n_replicates": 600, "confidence_level": 0.9999}
    found = sample_size(Coin(0.6), ONE_CELL, **options, rng=0)
    low, high = found
    assert (low, high) == found.confidence_interval
    assert low <= last
    assert high >= first
    assert high - low < 200
    assert low < found.n_samples < high
    assert found.rates["n_replicates"].sum() >= 600
    assert found.to_frame() is found.rates
    assert found.conclusion == (
        f"About {found.n_samples} observations are needed (99.99 % confidence interval {low} to {high}) for power 0.9 "
        "at the 5 % level."
    )
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["confidence_interval"] == {"low": low, "high": high}
    assert (told["model"], told["test"]) == ("Coin(truth=0.6)", str(ONE_CELL))
    assert "Coin(truth=0.6)" in str(found).splitlines()[0]


@pytest.mark.slow
def test_workers_do_not_change_a_sample_size():
    options = {"power": 0.5, "method": "exact", "n_replicates": 60, "n_range": (10, 60), "rng": 0}
    one, two = (sample_size(Coin(0.7), ONE_CELL, **options, workers=workers) for workers in (1, 2))
    assert tuple(one) == tuple(two)
    assert one.n_samples == two.n_samples
    assert one.rates.equals(two.rates)


@pytest.mark.release
def test_intervals_of_sample_sizes_cover():
    """Intervals at 80 % miss the size where the smooth power is 0.9 as often as they may: binomial limit 0.0001."""
    size = np.arange(200, 340)
    exact = [coin_power(n, 0.6, 0.05) for n in size]
    crossing = np.interp(0.9, np.convolve(exact, np.ones(21) / 21, "valid"), size[10:-10])
    options = {"power": 0.9, "method": "exact", "n_replicates": 300, "confidence_level": 0.8}
    found = [sample_size(Coin(0.6), ONE_CELL, **options, rng=seed) for seed in range(20)]
    missed = sum(not low <= crossing <= high for low, high in found)
    assert missed <= binom.isf(1e-4, 20, 0.2)


@pytest.mark.slow
def test_sample_size_at_the_ends_of_the_range():
    easy = sample_size(Coin(0.99), ONE_CELL, method="exact", n_replicates=60, n_range=(50, 100), rng=0)
    assert (easy.n_samples, easy.confidence_interval.low) == (50, 50)
    assert easy.conclusion.startswith("At most 50 observations are needed")
    words = r"`n_range` must reach the size that gives power 0.9; at 40 observations 0\.\d+ of the data sets"
    with pytest.raises(ValueError, match=words):
        sample_size(Coin(0.52), ONE_CELL, method="exact", n_range=(20, 40), rng=0)
    options = {"power": 0.3, "method": "exact", "n_replicates": 60, "n_range": (39, 40), "rng": 1}
    assert sample_size(Coin(0.62), ONE_CELL, **options).n_samples <= 40, "reached at the end of the range, not clearly"


def test_bad_input_of_sample_size():
    wrong_values = [
        ({"power": 1.0}, "`power` must lie strictly between 0 and 1"),
        ({"alpha": 0}, "`alpha` must lie strictly between 0 and 1"),
        ({"power": 0.04}, "`power` must be larger than `alpha` 0.05, got 0.04"),
        ({"n_range": (10, 10)}, "`n_range` must hold two increasing sizes"),
        ({"n_replicates": 3}, "`n_replicates` must be"),
    ]
    wrong_types = [
        ({"n_range": 10}, "`n_range` must hold two increasing sizes"),
        ({"model": "coin"}, "`models` must hold models"),
    ]
    for kind, cases in ((ValueError, wrong_values), (TypeError, wrong_types)):
        for options, says in cases:
            with pytest.raises(kind) as raised:
                sample_size(**{"model": Coin(), "test": ONE_CELL, **options})
            assert says in str(raised.value)
