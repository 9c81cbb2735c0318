"""The test of revisions: its definition by loops, what must not matter, its level, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from caltest.hypothesis_tests import revision_test
from tests.reference.cases import check_refused


def forecasts(n, longest, rng, coefficient=0.8, power=1.0, n_places=1):
    """Forecasts of whether autoregressions exceed a limit; odds are raised to a power."""
    parts = []
    for place in range(n_places):
        noise = rng.normal(size=n + longest) * (1 - coefficient**2) ** 0.5
        state = np.zeros(n + longest)
        state[0] = noise[0] / (1 - coefficient**2) ** 0.5
        for t in range(1, n + longest):
            state[t] = coefficient * state[t - 1] + noise[t]
        made, lead = np.repeat(np.arange(n), longest), np.tile(np.arange(1, longest + 1), n)
        memory = coefficient**lead
        p = stats.norm.sf(0.5, memory * state[made], (1 - memory**2) ** 0.5)
        p = p**power / (p**power + (1 - p) ** power)
        parts.append((state[made + lead] > 0.5, p, made, lead, (made + lead) * n_places + place))
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def by_loops(y, p, time, lead, of):
    """Sum revisions from one time to the next, time by time, and compare with the F distribution."""
    moments = sorted({*time.tolist(), *(time + lead).tolist()})
    sums = {t: [0.0, 0.0] for t in moments}
    for target in sorted(set(of.tolist())):
        rows = sorted(np.flatnonzero(of == target).tolist(), key=lambda i: time[i])
        values = [p[i] for i in rows] + [float(y[rows[-1]])]
        when = [time[i] for i in rows] + [time[rows[-1]] + lead[rows[-1]]]
        for j in range(len(rows)):
            if moments.index(when[j + 1]) == moments.index(when[j]) + 1:
                inside = min(max(values[j], 1e-4), 1 - 1e-4)
                sums[when[j + 1]][0] += values[j + 1] - values[j]
                sums[when[j + 1]][1] += (values[j + 1] - values[j]) * np.log(inside / (1 - inside))
    d = np.array([one for one in sums.values() if one != [0.0, 0.0]])
    inverse = np.linalg.inv(d.T @ d)
    total = d.sum(axis=0)
    leverage = [one @ inverse @ one for one in d]
    effective = sum(leverage) ** 2 / sum(one**2 for one in leverage)
    statistic = total @ inverse @ total * (effective - 2) / (2 * effective)
    return statistic, stats.f.sf(statistic, 2, effective - 2), effective


@pytest.mark.parametrize("n_places", [1, 3])
def test_equals_the_loops(n_places):
    y, p, time, lead, of = forecasts(40, 4, np.random.default_rng(0), n_places=n_places)
    found = revision_test(y, p, time=time, lead=lead, forecast_of=of)
    statistic, pvalue, effective = by_loops(y, p, time, lead, of)
    assert (found.statistic, found.pvalue, found.effective_times) == pytest.approx((statistic, pvalue, effective))
    assert found.n_targets == 43 * n_places
    assert found.n_left_out == 3 * n_places  # of the last day the longer leads have no shorter one
    assert [note.code for note in found.notes] == ["C212"]
    assert tuple(found) == (found.statistic, found.pvalue)


def test_what_does_not_matter():
    """The order of rows, the event or its complement, the unit of time, and names of outcomes."""
    rng = np.random.default_rng(1)
    y, p, time, lead, of = forecasts(60, 3, rng)
    pvalue = revision_test(y, p, time=time, lead=lead).pvalue
    order = rng.permutation(len(y))
    day = pd.Timestamp("2026-01-01") + pd.to_timedelta(time, unit="D")
    same = [
        revision_test(y[order], p[order], time=time[order], lead=lead[order]),
        revision_test(~y, 1 - p, time=time, lead=lead),
        revision_test(y, np.column_stack([1 - p, p]), time=time, lead=lead),
        revision_test(y, p, time=10 * time - 7, lead=10 * lead),
        revision_test(y, p, time=time, lead=lead, forecast_of=[f"day {one}" for one in of]),
        revision_test(y, p, time=day, lead=lead),
        revision_test(y, p, time=day, lead=pd.to_timedelta(lead, unit="D")),
        revision_test(pd.Series(y), pd.Series(p), time=pd.Series(day), lead=pd.Series(lead)),
    ]
    assert [one.pvalue for one in same] == pytest.approx([pvalue] * len(same), rel=1e-9)


@pytest.mark.slow(few_draws=True)
def test_the_level_is_held_and_wrong_slopes_are_found():
    """300 data sets, and the level with 4 standard errors, which another slope exceeds."""
    rng, rejected = np.random.default_rng(2), np.zeros(2)
    for _ in range(300):
        y, p, time, lead, _ = forecasts(120, 5, rng)
        wrong = p**2 / (p**2 + (1 - p) ** 2)
        rejected += [revision_test(y, prob, time=time, lead=lead).rejected for prob in (p, wrong)]
    most = 300 * (0.05 + 4 * (0.05 * 0.95 / 300) ** 0.5)
    assert rejected[0] <= most < rejected[1]


def test_it_says_how_forecasts_are_revised():
    rng = np.random.default_rng(3)
    y, p, time, lead, _ = forecasts(400, 4, rng, power=2.0)
    found = revision_test(y, p, time=time, lead=lead)
    assert found.slope < -2
    assert "back towards one half, so that they are too extreme" in found.conclusion
    assert (
        "they are revised upwards, so that they are too low" in revision_test(y, p / 4, time=time, lead=lead).conclusion
    )
    right = revision_test(*forecasts(400, 4, rng)[:2], time=time, lead=lead)
    assert right.conclusion.startswith("No miscalibration is found in the revisions")
    assert str(right).startswith("Test of revisions (1,600 forecasts of 403 outcomes)")


def test_few_or_equal_revisions_decide_nothing():
    y, p, time, lead, _ = forecasts(6, 2, np.random.default_rng(4))
    assert revision_test(y, p, time=time, lead=lead).decision == "undecidable"
    certain = revision_test([0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0], time=[0, 1, 1, 2], lead=[2, 1, 2, 1])
    assert (certain.decision, certain.pvalue, certain.statistic) == ("undecidable", 1.0, 0.0)
    one_hot = revision_test([0, 1, 1], [0.0, 1.0, 1.0], time=[0, 0, 1], lead=[1, 2, 1])
    assert one_hot.pvalue == 1.0


def test_forecasts_of_probability_0_decide_if_they_are_wrong():
    """As everywhere; those that are right add nothing."""
    y, p, time, lead, _ = forecasts(60, 3, np.random.default_rng(5))
    p = np.where(p < 0.25, 0.0, p)
    found = revision_test(y, p, time=time, lead=lead)
    wrong = int((y & (p == 0)).sum())
    assert found.n_impossible == wrong > 0
    assert found.pvalue == np.finfo(float).tiny
    assert f"{wrong} forecasts gave what happened probability 0" in found.conclusion
    assert [note.code for note in found.notes] == ["C201", "C212"]
    mirrored = revision_test(~y, 1 - p, time=time, lead=lead)
    assert (mirrored.pvalue, mirrored.n_impossible) == (found.pvalue, wrong)


@pytest.mark.parametrize("decimals", [3, 4])
def test_rounded_forecasts_have_nearly_the_same_pvalue(decimals):
    y, p, time, lead, _ = forecasts(200, 4, np.random.default_rng(6))
    rounded = revision_test(y, np.round(p, decimals), time=time, lead=lead)
    assert rounded.pvalue == pytest.approx(revision_test(y, p, time=time, lead=lead).pvalue, abs=0.01)


def test_series_are_matched_by_their_index():
    """Leads too: by position, forecasts would be revised in another order."""
    y, p, time, lead, of = (pd.Series(each) for each in forecasts(20, 3, np.random.default_rng(7)))
    for name in ("time", "lead", "forecast_of"):
        arguments = {"time": time, "lead": lead, "forecast_of": of}
        arguments[name] = arguments[name][::-1]
        with pytest.raises(ValueError, match=f"`y_true` and `{name}` must have the same index"):
            revision_test(y, p, **arguments)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"y_true": [0, 1, 1, 1]}, ValueError, "must have the same label, but those of rows 0 and 1 have not"),
        (
            {"time": [0, 0, 1, 2], "forecast_of": [1, 1, 2, 2]},
            ValueError,
            "must be made at different times, but those of",
        ),
        ({"lead": [3, 2, 4, 3]}, ValueError, "`lead`: no outcome is known one time after a forecast of it"),
        ({"lead": [1, 1, 1, 1], "time": [0, 1, 2, 3]}, ValueError, "no outcome has two forecasts"),
        ({"lead": [2, 1, 2]}, ValueError, "`lead` must be one lead, or that of each of the 4 observations, got 3."),
        ({"lead": None}, ValueError, "`lead` must be how long after each prediction its label is known, got None."),
        ({"lead": [2, 0, 2, 1]}, ValueError, "`lead` must be positive"),
        ({"lead": "2D"}, ValueError, "`lead` must hold whole numbers, because `time` holds numbers"),
        ({"time": [0, 1, None, 2]}, ValueError, "`time`"),
        (
            {"y_prob": np.full((4, 3), 1 / 3)},
            ValueError,
            "`y_prob` must be the probability of an event, got 3 classes.",
        ),
    ],
)
def test_refusals(arguments, kind, message):
    usual = {"y_true": [0, 0, 1, 1], "y_prob": [0.2, 0.3, 0.6, 0.7], "time": [0, 1, 1, 2], "lead": [2, 1, 2, 1]}
    with pytest.raises((kind, TypeError), match=message.replace("(", r"\(")):
        revision_test(**(usual | arguments))
    check_refused(
        lambda: revision_test(**(usual | {"alpha": 2})), ValueError, "`alpha` must lie strictly between 0 and 1"
    )
