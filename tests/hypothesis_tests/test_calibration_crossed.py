"""Tests of groups whose observations come back over time: what they agree with, say and refuse, and their level."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import caltest
from caltest.results._decision import rejects
from tests.reference.cases import check_refused, mostly_nightly

DRAWS = {"n_resamples": 199, "rng": 0}


def visits(rng, n, n_groups, icc, in_time, lead, rate=0.3, wrong=0.0):
    """Calibrated risks of patients who come back at random times, ten visits at a time; ``wrong`` shifts them."""
    group, time = rng.integers(n_groups, size=n), np.sort(rng.integers(n // 10, size=n))
    logit = np.sqrt(1.25) * ndtri(rate) + 0.5 * rng.standard_normal(n)
    moving = np.convolve(rng.standard_normal(n // 10 + lead), np.full(lead, lead**-0.5), "valid")
    shock = np.sqrt(icc) * rng.standard_normal(n_groups)[group] + np.sqrt(in_time) * moving[time]
    label = shock + np.sqrt(1 - icc - in_time) * rng.standard_normal(n) <= logit
    return label, ndtr(logit + wrong), {"groups": group, "time": time, "lead": lead}


LABEL, PROB, DESIGN = visits(np.random.default_rng(1), 600, 60, 0.3, 0.1, 4)


def pvalue(label=LABEL, prob=PROB, **options):
    return caltest.calibration_test(label, prob, **{**DRAWS, **DESIGN, **options}).pvalue


@pytest.mark.slow(few_draws=True)
def test_what_the_p_value_does_not_depend_on():
    known = pvalue()
    assert known != pvalue(groups=None)
    assert known != pvalue(time=None, lead=None)
    order = np.random.default_rng(0).permutation(600)
    given = {name: DESIGN[name][order] for name in ("groups", "time")}
    assert pvalue(LABEL[order], PROB[order], **given) == known
    assert pvalue(time=DESIGN["time"] * 10 + 5, lead=40) == known
    assert pvalue(workers=2, sample_weight=np.full(600, 2.0)) == known
    assert pvalue(groups=np.arange(600)) == pvalue(groups=None)


def test_all_tests_take_both_and_say_so():
    found = [
        caltest.calibration_test(LABEL, PROB, **DESIGN, **DRAWS),
        caltest.calibration_table(LABEL, PROB, **DESIGN, **DRAWS),
        caltest.calibration_report(LABEL, PROB, **DESIGN, **DRAWS),
        caltest.subgroup_tests(LABEL, PROB, subgroup=np.arange(600) % 2, **DESIGN, **DRAWS),
    ]
    for one in found:
        assert "shocks of time and of groups" in " ".join(str(one).split())
    (valid,) = (note.text for note in found[0].conditions if note.code == "C101")
    assert "predictions of different groups that are 4 or more apart" in valid


def test_few_groups_are_cautious():
    few = caltest.calibration_test(LABEL, PROB, **{**DESIGN, "groups": DESIGN["groups"] % 12}, **DRAWS)
    (note,) = (note.text for note in few.notes if note.code == "C305")
    assert "the groups are worth only 1" in note
    four = caltest.calibration_test(~LABEL, PROB, **{**DESIGN, "groups": DESIGN["groups"] % 4}, **DRAWS)
    assert four.decision in {"undecidable", "rejected"}
    rare = caltest.calibration_test(DESIGN["groups"] < 7, np.full(600, 0.1), **DESIGN, **DRAWS)
    (note,) = (note.text for note in rare.notes if note.code == "C305")
    assert "only 7 of 60 groups have a label other than the most probable one" in note


@pytest.mark.parametrize("name", ["l2_interval", "reliability_curve", "paired_test", "compare_models"])
def test_others_say_where_both_can_be_taken(name):
    models = {"paired_test": (PROB, PROB), "compare_models": ({"a": PROB, "b": PROB},)}
    message = "`groups` and `time` cannot be taken together here, but in calibration_test"
    check_refused(getattr(caltest, name), ValueError, message, LABEL, *models.get(name, (PROB,)), **DESIGN)


@pytest.mark.slow
@pytest.mark.parametrize(("icc", "in_time", "lead"), mostly_nightly([(0.3, 0.1, 4), (0.0, 0.1, 1)]))
def test_calibrated_risks_are_rejected_at_the_level(icc, in_time, lead):
    n_sets = 150
    pvalues = []
    for seed in range(n_sets):
        label, prob, design = visits(np.random.default_rng([seed, 7]), 600, 60, icc, in_time, lead)
        pvalues.append(caltest.calibration_test(label, prob, statistic=caltest.ECE(), **design, **DRAWS).pvalue)
    assert np.mean([rejects(p, 0.05) for p in pvalues]) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_sets)


def test_wrong_risks_are_found():
    label, prob, design = visits(np.random.default_rng(5), 1000, 200, 0.05, 0.05, 4, wrong=0.6)
    assert pvalue(label, prob, **design) == 1 / 200
