"""How numbers are written: shares, counts and p-values."""

import math

import pytest

from caltest.results._description import Table, as_percent, counted, decimals_of, sized


def test_sums_in_another_order_have_the_same_decimals():
    """A share of 99.05 % had one decimal or two, as its sum was rounded: a state and an array differed in a digit."""
    for share in (0.9905, 0.0095, 0.99715):
        near = [math.nextafter(share, 0), share, math.nextafter(share, 1)]
        assert len({decimals_of(one) for one in near}) == len({as_percent(one) for one in near}) == 1


def test_counts_have_their_thousands_separated():
    assert counted(1234.5) == "1,234.5 observations"
    assert sized(20_000, 1_000, weighted=True) == "20,000 weighted observations in 1,000 groups"


@pytest.mark.parametrize(
    ("pvalue", "shown"), [(0.001, "0.0010"), (0.5, "0.5000"), (3.21e-9, "3.2e-09"), (0.0, "< 1e-300")]
)
def test_a_column_of_pvalues_has_one_number_of_decimals(pvalue, shown):
    assert Table.of([{"name": "a", "p": pvalue}], {"name": "{name}", "p": "{p:p}"}).rows == [["a", shown]]
