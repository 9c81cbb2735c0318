"""Forecasts in time, told in another way: other orders of rows and of classes, and the complement of the event."""

import numpy as np
import pytest

import caltest as ct
from benchmarks.streams import STREAMS, Stream
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._timed_draws import TimedOutcome, inflation_of
from caltest.statistics import SKCE, Statistic
from tests.reference.examples import STATISTICS

N, LEAD = 60, 4
NAMES = {"two": ("AR(.9)", N), "several": ("5 classes", N), "batches": ("batches of 50", 500)}
ORDER_OF_CLASSES = np.array([3, 0, 4, 1, 2])


def stream_of(kind: str) -> Stream:
    name, n = NAMES[kind]
    return STREAMS[name](np.random.default_rng(7), n, LEAD)


def pvalue(stream: Stream, statistic: Statistic) -> float | None:
    """The p-value; None if the statistic does not take these data."""
    try:
        return ct.calibration_test(
            stream.y_true, stream.y_prob, statistic=statistic, time=stream.time, lead=LEAD, n_resamples=19, rng=0
        ).pvalue
    except ValueError:
        return None


def shuffled(stream: Stream) -> Stream:
    rows = np.random.default_rng(1).permutation(len(stream.time))
    return Stream(stream.time[rows], stream.y_prob[rows], stream.y_true[rows])


def renamed(stream: Stream) -> Stream:
    """The stream with its classes in another order; of two outcomes the complement."""
    if stream.y_prob.ndim == 1:
        return Stream(stream.time, 1 - stream.y_prob, 1 - stream.y_true)
    place = np.argsort(ORDER_OF_CLASSES)
    return Stream(stream.time, stream.y_prob[:, ORDER_OF_CLASSES], place[stream.y_true])


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("kind", NAMES)
def test_the_order_of_rows_changes_no_p_value(kind):
    """Not in the last bit, of every kind of statistic; the block estimator of `SKCE` is defined by the order."""
    stream, taken = stream_of(kind), 0
    for statistic in [one for make in STATISTICS.values() for one in make()[:1]]:
        if (known := pvalue(stream, statistic)) is not None:
            assert pvalue(shuffled(stream), statistic) == known, statistic
            taken += 1
    assert taken > 15


@pytest.mark.slow(few_draws=True)
def test_the_order_of_classes_changes_no_p_value():
    """Of statistics that treat classes alike, because dependence is measured along directions of its own."""
    stream = stream_of("several")
    alike = (
        ct.ECE(),
        ct.SquaredL2(),
        ct.statistics.ClasswiseKS(),
        SKCE(),
        ct.statistics.SCE(),
        ct.statistics.Omnibus(),
    )
    for statistic in (*alike, ct.TemperatureScore(), ct.statistics.ConfidenceECE(), ct.statistics.Spiegelhalter()):
        assert pvalue(renamed(stream), statistic) == pvalue(stream, statistic), statistic


@pytest.mark.parametrize("kind", NAMES)
def test_labels_depend_on_each_other_as_much_in_every_order(kind):
    """The complement has other draws, with the same correlation, inflation and counts."""
    stream = stream_of(kind)
    found = []
    for one in (stream, shuffled(stream), renamed(stream), shuffled(renamed(stream))):
        sample = make_sample(one.y_true, one.y_prob, time=one.time, lead=LEAD)
        known = sample.once(TimedOutcome.of)
        numbers = known.n_windows, known.n_surprises, known.largest, known.raised_inflation(sample.outcome)
        found.append((*numbers, known.correlations(sample.outcome)[0], inflation_of(sample), float(known.in_batches)))
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-5)
