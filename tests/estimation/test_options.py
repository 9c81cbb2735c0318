"""What estimates look at."""

import caltest
from caltest.estimation._options import event_of
from tests.reference.cases import check_refused


def test_samples_of_one_probability():
    usual = {"classes": None, "lens": None}
    two, about = event_of([0, 1], [0.25, 0.75], usual)
    assert (about["lens"], two.event.tolist()) == (caltest.Canonical(), [0.25, 0.75])
    prob = [[0.5, 0.25, 0.25], [0.25, 0.625, 0.125]]
    three, about = event_of([0, 1], prob, usual)
    assert (about["lens"], three.event.tolist()) == (caltest.Confidence(), [0.5, 0.625])
    classwise, about = event_of([0, 1], prob, usual | {"lens": caltest.ClassWise(2)})
    assert (about["lens"], classwise.event.tolist()) == (caltest.ClassWise(2), [0.125, 0.25])
    message = "`lens` must have two outcomes, such as Confidence(), got Canonical() with 3."
    check_refused(event_of, ValueError, message, [0, 1], prob, usual | {"lens": caltest.Canonical()})
