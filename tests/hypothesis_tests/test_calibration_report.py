"""The report: the statistics it names, on one set of draws."""

import json

import numpy as np
import pytest
from scipy.stats import binom

import caltest
from caltest import cli
from caltest.predictions._sample import make_sample
from tests.reference.examples import draw_labels

ROWS = [
    (caltest.ECE(), None),
    (caltest.ECE(caltest.EqualWidth(15)), "top"),
    (caltest.SCE(), None),
    (caltest.KS(), "top"),
    (caltest.Kuiper(), "top"),
    (caltest.SKCE(), None),
    (caltest.Spiegelhalter(), None),
    (caltest.TCal(), "top"),
]


def calibrated(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.7), size=n)
    return draw_labels(prob, rng), prob


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_are_the_named_statistics_on_shared_draws(n_classes):
    y_true, y_prob = calibrated(150, n_classes)
    report = caltest.calibration_report(y_true, y_prob, n_resamples=50, n_kernel_resamples=20, rng=3)
    base = make_sample(y_true, y_prob)
    drawn = np.concatenate([block for _, block in caltest.Consistency().draws(50, 3).blocks(base)])
    in_order = np.empty_like(drawn)
    in_order[:, base.row] = drawn
    assert len(report.rows) == len(ROWS)
    for (statistic, where), row in zip(ROWS, report, strict=True):
        lens = caltest.Confidence() if where == "top" and n_classes > 2 else None
        if len(statistic.components) > 1:
            chosen = statistic.settle(make_sample(y_true, y_prob, lens=lens)).components
        else:
            chosen = [statistic]
        assert row.n_resamples == (20 if isinstance(statistic, caltest.SKCE) else 50)
        assert row.lens == str(lens or caltest.Canonical())
        for part, component in zip(chosen, row.components, strict=True):
            options = {"statistic": part, "lens": lens}
            expected = caltest.calibration_error(y_true, y_prob, **options)
            np.testing.assert_allclose(component.statistic, expected, rtol=1e-9, atol=1e-12)
            null = [caltest.calibration_error(y, y_prob, **options) for y in in_order[: row.n_resamples]]
            np.testing.assert_allclose(component.null.values, null, rtol=1e-9, atol=1e-12)


def test_workers_and_the_generator():
    y_true, y_prob = calibrated(100, 3)
    one, two = (caltest.calibration_report(y_true, y_prob, n_resamples=99, workers=k, rng=1) for k in (1, 2))
    assert str(one) == str(two)
    assert one.pvalue == two.pvalue


def test_prints_and_converts():
    y_true, y_prob = calibrated(100, 3)
    report = caltest.calibration_report(y_true, y_prob, n_resamples=199, n_kernel_resamples=49, rng=1)
    text = str(report)
    assert "199 redraws of the outcomes, 49 for SKCE" in text
    for name in ("ECE()", "SCE()", "KS()", "Kuiper()", "SKCE()", "Spiegelhalter()", "TCal("):
        assert name in text
    frame = report.to_frame()
    assert frame["pvalue_corrected"].ge(frame["pvalue"]).all()
    assert frame["n_resamples"].tolist() == [199] * 5 + [49] + [199] * 2
    json.dumps(report.to_dict(), allow_nan=False)


def test_an_excluded_label_makes_every_pvalue_the_smallest():
    y_true, y_prob = calibrated(60, 3)
    y_prob[5] = [0.0, 0.5, 0.5]
    y_true[5] = 0
    report = caltest.calibration_report(y_true, y_prob, n_resamples=99, n_kernel_resamples=19, rng=1)
    assert report.pvalue == 0.01
    assert report.rows[0].pvalue == report.rows[2].pvalue == 0.01


@pytest.mark.parametrize("count", [0, 1.5, "many"])
@pytest.mark.parametrize("name", ["n_resamples", "n_kernel_resamples"])
def test_bad_counts_are_refused(name, count):
    with pytest.raises(ValueError, match=f"`{name}` must be an integer >= 1, got {count!r}"):
        caltest.calibration_report(*calibrated(20, 3), **{name: count})


def test_no_more_kernel_draws_than_draws():
    report = caltest.calibration_report(*calibrated(30, 3), n_resamples=19, n_kernel_resamples=99, rng=0)
    assert {row.n_resamples for row in report} == {19}


def test_command_line(capsys):
    assert cli.main(["test", "--all", "--resamples", "19"]) == 0
    assert "Kuiper()" in capsys.readouterr().out
    assert cli.main(["test", "--all", "--lens", "confidence"]) == 2
    assert "--all has its own lenses" in capsys.readouterr().err


@pytest.mark.slow
def test_level():
    """Every row and the global p-value reject calibrated predictions at most as often as they say."""
    n_data_sets, alpha = 1000, 0.05
    rejections = np.zeros(len(ROWS) + 1)
    for seed in range(n_data_sets):
        report = caltest.calibration_report(*calibrated(100, 3, seed), n_resamples=99, n_kernel_resamples=99, rng=seed)
        rejections += [*(row.pvalue <= alpha for row in report), report.pvalue <= alpha]
    limit = binom.ppf(1 - 0.001 / len(rejections), n_data_sets, alpha)
    assert np.all(rejections <= limit), rejections / n_data_sets
