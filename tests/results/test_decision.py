"""Decisions at a level: one rule for all tests."""

import pytest

from caltest.results._decision import Decision, cannot_decide, decide


@pytest.mark.parametrize(
    ("pvalue", "alpha", "smallest", "decision"),
    [
        (0.05, 0.05, 0.0, "rejected"),
        (0.05, 0.05, 0.25, "rejected"),  # a rejection stands
        (0.051, 0.05, 0.05, "not rejected"),
        (0.3, 0.05, 0.0, "not rejected"),
        (0.3, 0.05, 0.051, "undecidable"),
        (3 / 300, 0.01, 0.01, "rejected"),
    ],
)
def test_a_test_that_could_not_reject_is_undecidable(pvalue, alpha, smallest, decision):
    assert decide(pvalue, alpha, smallest) == decision
    result = Decision()
    result.pvalue, result.alpha, result.smallest_possible_pvalue = pvalue, alpha, smallest
    assert (result.decision, result.rejected) == (decision, decision == "rejected")


def test_results_without_a_smallest_pvalue_decide_in_two_ways():
    result = Decision()
    result.pvalue, result.alpha = 0.9, 1e-6
    assert result.decision == "not rejected"


def test_the_reason_is_what_there_is_too_little_of():
    few = {"numbers": "p = 0.3"}
    assert cannot_decide(0.25, 0.05, n_groups=3, n_resamples=9999, **few).startswith(
        "These data cannot decide: with 3 g"
    )
    assert cannot_decide(0.1, 0.05, n_groups=40, n_resamples=9, **few).startswith(
        "This test cannot decide: with 9 draws"
    )
    assert cannot_decide(0.5, 0.05, n_resamples=1, **few).startswith("This test cannot decide: with 1 draw no p-value")
