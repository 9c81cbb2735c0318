"""Studies of size and power, and sample sizes: p-values are those of the public tests, and counts those of the laws."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy.stats import binom

import caltest
from caltest.predictions._sample import make_sample
from caltest.resampling._pvalues import find_pvalues
from caltest.results._naming import describe
from caltest.simulation import (
    DirichletModel,
    Identity,
    Model,
    Rows,
    Temperature,
    power_study,
    sample_size,
    size_study,
)
from caltest.simulation.studies._run import replicate_rng
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

    def draw_rows(self, n_samples, rng):
        prob = np.full((n_samples, 2), 0.5)
        return Rows(prob, prob, np.tile([1 - self.truth, self.truth], (n_samples, 1)))


def coin_power(n, truth, level):
    """Exact rejection rate of the two-sided binomial test of one half that orders counts by their distance."""
    count = np.arange(n + 1)
    null = binom.pmf(count, n, 0.5)
    reaches = np.abs(count[:, None] - n / 2) <= np.abs(count - n / 2) + 1e-9
    return binom.pmf(count, n, truth)[(reaches * null).sum(axis=1) <= level].sum()


# P-values.


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("lens", [caltest.Canonical(), TOP])
@pytest.mark.filterwarnings("ignore::caltest.CalibrationWarning")
def test_shared_draws_give_the_pvalues_of_the_test(lens, rows):
    """All statistics at once, and each alone by the public function."""
    _, y_true, y_prob = MODEL.draw(40, 1)
    scheme = caltest.Consistency(resample_predictions=rows)
    sample = make_sample(y_true, y_prob, lens=lens)
    common = {"lens": lens, "resampling": scheme, "n_resamples": 19, "rng": 5}
    expected = {}
    for statistic in default_statistics():
        if rows and isinstance(statistic, caltest.SmoothECE):
            continue  # slow
        try:
            expected[statistic] = caltest.calibration_test(y_true, y_prob, statistic=statistic, **common).pvalue
        except ValueError:
            assert lens == caltest.Canonical(), "needs two outcomes"
    assert len(expected) > 14
    found = find_pvalues(list(expected), sample, resampling=scheme, draws=scheme.draws(19, 5), method="auto")
    assert dict(zip(expected, found, strict=True)) == expected


def test_an_excluded_outcome_gives_the_smallest_pvalue():
    y_true, y_prob = [0, 1, 1], [0.25, 1.0, 0.0]
    sample, scheme = make_sample(y_true, y_prob), caltest.Consistency()
    for method in ("exact", "monte-carlo"):
        options = {"resampling": scheme, "draws": scheme.draws(19, 0), "method": method}
        public = caltest.calibration_test(y_true, y_prob, statistic=ONE_CELL, n_resamples=19, method=method, rng=0)
        assert find_pvalues([ONE_CELL], sample, **options) == [public.pvalue]


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
        return caltest.calibration_table(y_true, y_prob, n_resamples=19, rng=rng)

    frame = size_study(MODEL, seen, 30, 2, rng=0).pvalues
    assert frame["test"].unique().tolist() == ["seen"]
    assert describe(CHI_SQUARED) == "hosmer_lemeshow_test(method='asymptotic')"


# Rejection rates.


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


def test_sizes_of_a_valid_and_of_an_asymptotic_test():
    """Chi-squared groups are too small where predictions are sharp; the exact law of the same statistic is not."""
    sharp = DirichletModel(2, 0.1)
    tests = {"chi-squared": CHI_SQUARED, "redrawn": caltest.HosmerLemeshow()}
    study = size_study(sharp, tests, 200, 1000, n_resamples=99, method="monte-carlo", workers=2, rng=0)
    frame = study.to_frame().set_index(["test", "level"])
    assert frame.loc["chi-squared", "exceeds"].any()
    assert not frame.loc["redrawn", "exceeds"].any()
    assert frame.loc[("redrawn", 0.05), "rate"] > 0.02, "nor does it never reject"
    assert "exceed the binomial limit" in str(study)
    assert "<pre>" in study._repr_html_()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tests": [caltest.KS]}, "`tests` must hold statistics or functions"),
        ({"tests": []}, "`tests` must hold one or more"),
        ({"models": "model"}, "`models` must hold models"),
        ({"levels": [0.05, 1.0]}, "`levels` must hold one or more different levels"),
        ({"levels": []}, "`levels`"),
        ({"method": "asymptotic"}, "`method` must be one of"),
        ({"resampling": caltest.Bootstrap()}, "`resampling` must be a Consistency"),
        ({"n_replicates": 0}, "`n_replicates` must be"),
        ({"tests": caltest.KS()}, "needs a two-outcome lens"),
    ],
)
def test_bad_input_of_size_study(options, says):
    given = {"models": MODEL, "tests": ONE_CELL, "n_samples": 10, "n_replicates": 2, "n_resamples": 19, **options}
    with pytest.raises(ValueError, match=says):
        size_study(**given)


def test_bad_words_of_to_frame():
    with pytest.raises(ValueError, match="`per` must be one of 'study', 'row'"):
        size_study(MODEL, ONE_CELL, 10, 2, n_resamples=19).to_frame(per="table")


# Where and how it runs.


STUDY = {
    "models": MODEL,
    "tests": [caltest.Omnibus(), CHI_SQUARED],
    "n_samples": [20, 40],
    "n_replicates": 250,
    "lenses": [TOP],
    "n_resamples": 19,
    "rng": 7,
}


@pytest.fixture(scope="module")
def whole():
    return size_study(**STUDY)


@pytest.mark.parametrize(("backend", "workers"), [("threading", 2), ("loky", 2)])
def test_the_backend_changes_nothing(whole, backend, workers):
    with joblib.parallel_config(backend=backend, n_jobs=workers):
        assert size_study(**STUDY).pvalues.equals(whole.pvalues)


def test_a_cluster_changes_nothing(whole):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        assert size_study(**STUDY).pvalues.equals(whole.pvalues)


KILLED = """
import sys, time
sys.path[:0] = {path!r}
import test_size
from caltest.simulation import size_study

def progress(done, total):
    if done > total / 2:
        print("half", flush=True)
        time.sleep(600)

size_study(**test_size.STUDY, out=sys.argv[1], progress=progress)
"""


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


def test_power_is_that_of_the_law():
    amounts = [0.5, 0.6, 0.7]
    study = power_study(Coin, amounts, ONE_CELL, 50, 400, levels=0.05, method="exact", rng=0)
    frame = study.to_frame()
    for row in frame.itertuples():
        exact = coin_power(50, row.amount, 0.05)
        assert abs(row.rate - exact) <= 4 * np.sqrt(exact * (1 - exact) / 400)
    assert frame["miscalibration"].isna().all(), "a user's model need not know it"


def test_under_confidence_stands_apart():
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
    figure = caltest.plot_power_study(study, level=0.1)
    assert len(figure.axes) == 2
    for ax in figure.axes:
        assert len(ax.containers) == 1
        assert "level 0.1" in ax.get_legend_handles_labels()[1]
    plt.close(figure)
    assert "under-confident" in str(study)


def test_the_size_figure_shows_every_panel_and_test(whole):
    figure = caltest.plot_size_study(whole)
    (ax,) = figure.axes
    rates = whole.to_frame().query("level == 0.05").groupby("test", sort=False)["rate"].apply(list).tolist()
    level, *drawn = [list(line.get_ydata()) for line in ax.lines]
    assert level == [0.05, 0.05]
    assert drawn == rates
    plt.close(figure)


@pytest.mark.parametrize(
    ("draw", "options", "says"),
    [
        (caltest.plot_size_study, {"level": 0.2}, "`level` must be one of 0.01, 0.05, 0.1, got 0.2"),
        (caltest.plot_power_study, {}, "`study` must be a PowerStudy"),
    ],
)
def test_bad_input_of_the_figures(whole, draw, options, says):
    with pytest.raises(ValueError, match=says):
        draw(whole, **options)


def test_bad_input_of_power_study():
    common = {"tests": ONE_CELL, "n_samples": 10, "n_replicates": 2, "n_resamples": 19}
    with pytest.raises(ValueError, match="`amounts` must hold one or more different finite numbers"):
        power_study(temperature, [1.0, 1.0], **common)
    with pytest.raises(ValueError, match="`family` must hold functions that make models"):
        power_study(lambda amount: amount, 1.0, **common)


# Sample sizes.


def test_sample_size_of_a_known_power_function():
    """Exact power by the binomial law: it first reaches 0.9 with 263 rows and stays above from 274 on."""
    power = np.array([coin_power(n, 0.6, 0.05) for n in range(240, 300)])
    first, last = 240 + int(np.argmax(power >= 0.9)), 240 + int(np.flatnonzero(power < 0.9)[-1])
    options = {"power": 0.9, "method": "exact", "n_replicates": 600, "confidence_level": 0.9999}
    found = sample_size(Coin(0.6), ONE_CELL, **options, rng=0)
    assert found.low <= last
    assert found.high >= first
    assert found.high - found.low < 200
    assert found.low < found.n_samples < found.high
    assert found.rates["n_replicates"].sum() >= 600
    assert sample_size(Coin(0.6), ONE_CELL, **options, workers=2, rng=0).n_samples == found.n_samples
    assert f"{found.n_samples} rows" in str(found)


@pytest.mark.slow
def test_intervals_of_sample_sizes_cover():
    """Intervals at 80 % miss the size where the smooth power is 0.9 as often as they may: binomial limit 0.0001."""
    size = np.arange(200, 340)
    exact = [coin_power(n, 0.6, 0.05) for n in size]
    crossing = np.interp(0.9, np.convolve(exact, np.ones(21) / 21, "valid"), size[10:-10])
    options = {"power": 0.9, "method": "exact", "n_replicates": 300, "confidence_level": 0.8}
    found = [sample_size(Coin(0.6), ONE_CELL, **options, rng=seed) for seed in range(20)]
    missed = sum(not answer.low <= crossing <= answer.high for answer in found)
    assert missed <= binom.isf(1e-4, 20, 0.2)


def test_sample_size_at_the_ends_of_the_range():
    easy = sample_size(Coin(0.99), ONE_CELL, method="exact", n_replicates=60, n_range=(50, 100), rng=0)
    assert (easy.n_samples, easy.low) == (50, 50)
    with pytest.raises(ValueError, match=r"`n_range` must reach the size that gives power 0.9; at 40 rows 0\.\d+"):
        sample_size(Coin(0.52), ONE_CELL, method="exact", n_range=(20, 40), rng=0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"power": 1.0}, "`power` must lie between 0 and 1"),
        ({"power": 0.04}, "`power` must be larger than `level` 0.05"),
        ({"n_range": (10, 10)}, "`n_range` must hold two increasing sizes"),
        ({"n_replicates": 3}, "`n_replicates` must be"),
    ],
)
def test_bad_input_of_sample_size(options, says):
    with pytest.raises(ValueError, match=says):
        sample_size(Coin(), ONE_CELL, **options)
