"""Bets on outcomes that are known later: the wealth is that of a twin, and safe whatever outcomes share."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom, norm

from caltest import CalibrationMonitor, Confidence
from caltest.streaming.monitors._pending_bets import PendingBets
from tests.reference.bets import pending_wealth
from tests.reference.cases import mostly_nightly, mostly_slow


def state(monitor):
    return monitor._now.to_dict()


def stream(n, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(n_classes), n)
    return np.minimum((prob.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), n_classes - 1), prob


def check_against_the_twin(monitor, y_true, prob, time, lead):
    expected = pending_wealth(y_true.tolist(), prob.tolist(), time.tolist(), lead) or [(0, 1.0)]
    found = dict(monitor.result().path.tolist())
    np.testing.assert_allclose([np.exp(found[n]) for n, _ in expected], [w for _, w in expected], rtol=1e-12)
    assert monitor.n_samples == expected[-1][0]
    assert monitor.n_pending == len(time) - monitor.n_samples


@pytest.mark.parametrize("lead", mostly_slow([1, 4, 50]))
def test_the_wealth_is_that_of_the_twin(lead):
    rng = np.random.default_rng(lead)
    prob = rng.choice([0.0, 0.03, 0.3, 0.5, 0.9, 1.0], 36)
    y_true = (rng.random(36) < prob).astype(int)
    for time in (np.arange(36), np.arange(12).repeat(3), np.sort(rng.integers(40, size=36))):
        monitor = CalibrationMonitor(lead=lead, alpha=1e-9).update(y_true, prob, time=time)
        check_against_the_twin(monitor, y_true, prob, time, lead)
    wrong = CalibrationMonitor(lead=lead, alpha=1e-9).update(y_true[:20], 0.02 + 0.9 * prob[:20])
    check_against_the_twin(wrong, y_true[:20], 0.02 + 0.9 * prob[:20], np.arange(20), lead)


@pytest.mark.slow(few_draws=True)
def test_several_classes_are_averages_of_events():
    label, prob = stream(40, n_classes=3)
    time = np.arange(40) // 2
    monitor = CalibrationMonitor(lead=3).update(label, prob, time=time)
    top = prob.argmax(axis=1)
    events = [(1 / 6, label == k, prob[:, k]) for k in range(3)] + [(0.5, label == top, prob.max(axis=1))]
    paths = [
        [weight * w for _, w in pending_wealth(y.astype(int).tolist(), p.tolist(), time.tolist(), 3)]
        for weight, y, p in events
    ]
    assert monitor.e_value == pytest.approx(sum(path[-1] for path in paths), rel=1e-12)
    alone = CalibrationMonitor(lens=Confidence(), lead=3).update(label, prob, time=time)
    assert alone.e_value == pytest.approx(2 * paths[-1][-1], rel=1e-12)


def test_outcomes_that_are_known_before_the_next_prediction_are_those_of_a_monitor_without_times():
    y_true, prob = stream(400, n_classes=3)
    plain = CalibrationMonitor().update(y_true, prob)
    row = np.arange(400)
    for lead, options in ((1, {}), (None, {"time": 3 * row}), (1, {"time": row}), (None, {"batch": row})):
        timed = CalibrationMonitor(lead=lead).update(y_true, prob, **options)
        assert state(timed) == state(plain)
    whole = PendingBets.of(3, 20.0)
    whole.place_times(prob, y_true, np.ones(400, dtype=int), row, row + 1)
    np.testing.assert_allclose(whole.log_path, plain._bets.log_path, atol=1e-12)


def blocks(lead, n_blocks, prob):
    """All outcomes of predictions, and their probabilities, where those of a block share one uniform number.

    Every prediction is right given all outcomes of predictions a block before, and knows of no other in its block: they
    are as dependent as they can be. ``prob(t, known)`` predicts from the outcomes at the times up to t - lead.
    """
    paths = [((), (), 1.0)]
    for block in range(n_blocks):
        longer = []
        for past, predicted, chance in paths:
            times = range(block * lead, (block + 1) * lead)
            new = [prob(t, past[: max(t - lead + 1, 0)]) for t in times]
            cuts = sorted({0.0, 1.0, *new})
            for low, high in pairwise(cuts):
                happened = tuple(int(low < p) if t % 2 else int(high <= p) for t, p in zip(times, new, strict=True))
                longer.append((past + happened, predicted + tuple(new), chance * (high - low)))
        paths = longer
    return paths


def predict(t, known):
    """Depends on outcomes that are known, differs within a block, and is sometimes extreme."""
    level = (0.35 + 0.3 * sum(known[-2:])) if known else 0.5
    return min(level, 0.9) if t % 3 else 0.15


def alike(paths, time, lead):
    """The sets of paths that cannot be told apart when the prediction of a time is made."""
    known = [(outcome[: max(time - lead + 1, 0)], prob[: time + 1]) for outcome, prob, _ in paths]
    return [[i for i, one in enumerate(known) if one == found] for found in dict.fromkeys(known)]


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("lead", [2, 3])
def test_safe_wealth_is_never_above_what_can_be_expected(lead):
    """Exact enumeration of outcomes that depend on each other: no bet changes the mean of the final wealth.

    The final wealth of the bets up to a time is that after all their outcomes. Its mean, given what is known at the
    time, is not changed by the bets of the time, and the safe wealth is at most as large. By the first, this mean is a
    martingale that begins at 1; by the second, Ville's inequality holds for the safe wealth.
    """
    n = 9 // lead * lead
    paths = blocks(lead, n // lead, predict)
    chance = np.array([one[-1] for one in paths])
    safe, final = np.ones((2, len(paths), n + 1))
    for row, (outcome, prob, _) in enumerate(paths):
        for time in range(n):
            bets = CalibrationMonitor(lead=lead, alpha=1e-9).update(outcome[: time + 1], prob[: time + 1])._bets
            safe[row, time + 1] = bets.tally[-1]
            final[row, time + 1] = bets.tally[-1] + bets.paid.sum()
    assert chance.sum() == pytest.approx(1)
    for time in range(n):
        for same in alike(paths, time, lead):
            before, after = np.average(final[same, time : time + 2], weights=chance[same], axis=0)
            assert after == pytest.approx(before, rel=1e-11)
        for same in alike(paths, time + 1, lead):  # the outcomes of time + 1 - lead are known
            assert safe[same, time + 1].max() <= np.average(final[same, time + 1], weights=chance[same]) + 1e-11
    ever = chance[(safe >= 1.3).any(axis=1)].sum()
    assert 0 < ever <= 1 / 1.3


@pytest.mark.slow(few_draws=True)
def test_the_mean_wealth_does_not_change_by_batches_whose_outcomes_depend_on_each_other():
    """Exact enumeration: whatever the outcomes of earlier batches were."""
    paths, batch = blocks(3, 3, predict), np.arange(9) // 3
    chance = np.array([one[-1] for one in paths])
    wealth = np.ones((len(paths), 4))
    for row, (outcome, prob, _) in enumerate(paths):
        for n in (3, 6, 9):
            options = {"batch": batch[:n]}
            wealth[row, n // 3] = CalibrationMonitor(alpha=1e-9).update(outcome[:n], prob[:n], **options).e_value
    for n in (0, 1, 2):
        known = [outcome[: 3 * n] for outcome, *_ in paths]
        for past in set(known):
            same = [i for i, one in enumerate(known) if one == past]
            before, after = np.average(wealth[same, n : n + 2], weights=chance[same], axis=0)
            assert after == pytest.approx(before, rel=1e-11)


def test_ignoring_the_lead_is_not_valid_here():
    """The same outcomes, as if each was known before the next prediction: the mean of the wealth grows."""
    paths = blocks(3, 3, predict)
    wealth = [CalibrationMonitor(alpha=1e-9).update(outcome, prob).e_value for outcome, prob, _ in paths]
    assert np.dot(wealth, [chance for *_, chance in paths]) > 1.02


def test_a_change_of_batches_divides_each_account_in_three():
    """Before the first batch of several predictions the wealth is that of one account for each bet, to the bit."""
    y_true, prob = stream(300)
    time = np.append(np.arange(200), 200 + np.arange(100) // 5)
    plain = CalibrationMonitor().update(y_true[:200], prob[:200])
    monitor = CalibrationMonitor().update(y_true, prob, time=time)
    assert monitor.result().path[:201].tolist() == plain.result().path.tolist()
    assert isinstance(monitor._bets, PendingBets)
    assert monitor.n_samples == 300


def test_the_order_of_observations_of_one_time_does_not_matter():
    """It may depend on their labels: those that are reported early are often of one kind."""
    y_true, prob = stream(200, n_classes=3)
    time = np.arange(200) // 8
    ordered = np.lexsort((y_true, time))
    one = CalibrationMonitor(lead=3).update(y_true, prob, time=time)
    other = CalibrationMonitor(lead=3).update(y_true[ordered], prob[ordered], time=time)
    np.testing.assert_allclose(one._now.adaptive, other._now.adaptive, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(one._now.fixed, other._now.fixed, rtol=1e-11)
    same = CalibrationMonitor().update([1] * 5 + [0] * 5, [0.5] * 10, batch=[1] * 10)
    assert same.e_value == pytest.approx(1, abs=1e-12)


def test_the_alarm_has_a_cause_and_a_direction():
    y_true, prob = stream(3000, seed=3)
    wrong = prob[:, 1] ** 2
    monitor = CalibrationMonitor(lead=7).update(y_true, wrong)
    assert monitor.direction == "too low"
    assert monitor.alarm < 600
    (found,) = monitor.result().verdict.findings
    assert found.predicted < found.observed
    settled = CalibrationMonitor(lead=7).update(y_true[: monitor.alarm + 6], wrong[: monitor.alarm + 6])
    assert (settled.alarm, settled.n_samples, settled.n_pending) == (monitor.alarm, monitor.alarm, 6)
    assert monitor.plot().get_legend().get_texts()[-1].get_text() == f"alarm, observation {monitor.alarm}: too low"
    label, several = stream(3000, seed=4, n_classes=3)
    several = (several**2) / (several**2).sum(axis=1, keepdims=True)
    result = CalibrationMonitor(lead=3, lens=Confidence()).update(label, several).result()
    assert (result.direction, result.cause) == ("too high", "confidence")


def test_impossible_outcomes_are_an_alarm_when_they_count():
    for label, p, direction in ((1, 0.0, "too low"), (0, 1.0, "too high")):
        early = CalibrationMonitor(lead=3).update([0, 1, label, 1], [0.5, 0.5, p, 0.5])
        assert early.alarm is None
        early.update([0], [0.5])
        assert (early.alarm, early.direction, early.e_value) == (3, direction, np.inf)
        early.update([0, 1] * 500, [0.5] * 1000)
        assert (early.alarm, early.e_value, early.n_samples) == (3, np.inf, 1003)
    one_hot = np.eye(3)[[0, 1, 2, 0, 1]]
    wrong = CalibrationMonitor(lead=2).update([0, 1, 1, 0, 1], one_hot).result()
    assert (wrong.alarm, wrong.cause, wrong.direction) == (3, "confidence", "too high")
    assert CalibrationMonitor(lead=2).update([0, 1, 2, 0, 1], one_hot).e_value == pytest.approx(1, abs=1e-12)


def test_wealth_beyond_doubles():
    p = np.concatenate([np.full(60, 1e-20), np.full(40, 0.9)])
    y = np.concatenate([np.ones(60, dtype=int), np.zeros(10, dtype=int), np.ones(30, dtype=int)])
    monitor = CalibrationMonitor(lead=3).update(y, p)
    expected = pending_wealth(y[:30].tolist(), p[:30].tolist(), list(range(30)), 3)
    path = dict(monitor.result().path.tolist())
    np.testing.assert_allclose([path[n] for n, _ in expected], [np.log(w) for _, w in expected], rtol=1e-11)
    assert path[60] > 355  # a unit is exp(355)
    parts = CalibrationMonitor(lead=3)
    for start in range(0, 100, 7):
        parts.update(y[start : start + 7], p[start : start + 7])
    assert state(parts) == state(monitor)


def exceedances(rng, n, lead, persistence):
    """Whether an autoregression will be above 1/2, and the probability of it ``lead`` steps before."""
    x = lfilter([np.sqrt(1 - persistence**2)], [1, -persistence], rng.normal(size=n + lead + 200))[200:]
    ahead = persistence**lead
    return (x[lead:] > 0.5).astype(int), norm.cdf((ahead * x[:n] - 0.5) / np.sqrt(1 - ahead**2))


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([100, 300]))
@pytest.mark.parametrize(("persistence", "lead"), mostly_nightly([(0.8, 7), (0.95, 30)]))
def test_false_alarms_are_few(persistence, lead, n_sets):
    """At most alpha over all time, where ignoring the lead raises one in most runs."""
    rng, found, ignored = np.random.default_rng(lead), 0, 0
    for _ in range(n_sets):
        data = exceedances(rng, 1000, lead, persistence)
        found += CalibrationMonitor(0.2, lead=lead).update(*data).alarm is not None
        ignored += CalibrationMonitor(0.2).update(*data).alarm is not None
    assert found <= binom.ppf(0.999, n_sets, 0.2)
    assert ignored > n_sets / 2


@pytest.mark.nightly
def test_false_alarms_of_batches_are_few():
    rng, found = np.random.default_rng(9), 0
    for _ in range(300):
        score = rng.normal(size=(60, 20))
        shock = rng.normal(size=63)
        common = np.stack([shock[k : k + 60] for k in range(4)]).sum(axis=0)[:, None] / 2
        y_true = np.sqrt(0.1) * common + np.sqrt(0.9) * rng.normal(size=score.shape) < score
        week = np.arange(60).repeat(20)
        monitor = CalibrationMonitor(0.2, lead=4).update(y_true.ravel(), norm.cdf(score).ravel(), batch=week)
        found += monitor.alarm is not None
    assert found <= binom.ppf(0.999, 300, 0.2)
