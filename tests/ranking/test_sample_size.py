"""How many more questions tell two models apart: the formula, what is refused, and the power on as many as are said."""

import numpy as np
import pytest
from scipy.special import ndtri

from caltest.ranking._separation import Contributions
from tests.ranking.test_ranking import ranking
from tests.reference.cases import mostly_nightly


def test_the_sample_size_is_that_of_the_formula():
    found = ranking(np.zeros((3, 3), dtype=bool)).sample_size()
    assert found.n_needed == np.ceil(50 * (3 + ndtri(0.8)) ** 2)
    assert found.n_more == found.n_needed - 50
    assert " ".join(str(found).split()).startswith(
        "Sample size of a and b To show that a is better than b by Brier score with a probability of 80 %, 688 more "
        "observations are needed, 738 in all. The difference is 0.1, which is 1 standard errors, and 3 of these tell"
    )
    grouped = ranking(np.zeros((3, 3), dtype=bool), n_groups=10).sample_size(("c", "a"), power=0.9)
    assert (grouped.better, grouped.worse, grouped.n_now) == ("a", "c", 10)
    assert grouped.n_needed == np.ceil(10 * (3 + ndtri(0.9)) ** 2 / 4)
    assert "more groups are needed" in grouped.conclusion
    enough = ranking(np.zeros((3, 3), dtype=bool), value=np.arange(3.0)).sample_size()
    assert enough.n_more == 0
    assert "8 observations are enough, and there are 50." in enough.conclusion


@pytest.mark.parametrize(
    ("about", "arguments", "error", "text"),
    [
        ({}, {"pair": ("a", "d")}, KeyError, "no model 'd'"),
        ({}, {"pair": "ab"}, TypeError, "`pair` must be the names of two models, got 'ab'"),
        ({}, {"pair": ("a",)}, TypeError, "`pair` must be the names of two models"),
        ({}, {"power": 0.05}, ValueError, "`power` must be larger than `alpha` 0.05, got 0.05"),
        ({}, {"power": 80}, ValueError, "`power`"),
        ({"value": np.array([0.1, 0.1, 0.3])}, {}, ValueError, "'a' and 'b' have equal estimates"),
        ({"value": np.array([0.1, np.inf, np.inf])}, {}, ValueError, "'a' and 'b' have an infinite difference"),
        (
            {"critical_value": np.inf},
            {},
            ValueError,
            "inf of these .* take more observations, groups or draws",
        ),
        ({}, {"pair": ("a", "a")}, ValueError, "'a' and 'a' have equal estimates"),
    ],
)
def test_what_has_no_sample_size_is_refused(about, arguments, error, text):
    with pytest.raises(error, match=text):
        ranking(np.zeros((3, 3), dtype=bool), **about).sample_size(**arguments)


@pytest.mark.slow
@pytest.mark.parametrize("noise", mostly_nightly(["normal", "exponential"]))
def test_as_many_questions_as_are_said_have_the_power(noise):
    """Six models on 300 questions, of which the first two are separated with a power of .8 on as many as are said."""
    rng, n_sets = np.random.default_rng(12), 500

    def losses(n):
        drawn = rng.normal(size=(6, n)) if noise == "normal" else rng.exponential(1, (6, n))
        return drawn + np.array([0.0, 0.15, 0.15, 0.15, 0.15, 0.15])[:, None]

    def separated(n, n_resamples):
        share = np.full(n, 1 / n)
        every = np.ones(6, dtype=bool)
        return Contributions(losses(n) * share, share, np.zeros((6, 6)), every).separate(n_resamples, rng)

    now = separated(300, 9_999)
    about = {"value": np.array([0.0, 0.15, 0.15]), "standard_error": np.full((3, 3), np.sqrt(2 / 300))}
    about |= {"critical_value": now.critical_value(0.05), "n_samples": 300}
    needed = ranking(np.zeros((3, 3), dtype=bool), **about).sample_size(power=0.8).n_needed
    power = np.mean([separated(needed, 199).pvalue[0, 1] <= 0.05 for _ in range(n_sets)])
    assert abs(power - 0.8) < 4 * np.sqrt(0.8 * 0.2 / n_sets)
    assert now.error[0, 1] == pytest.approx(np.sqrt(2 / 300), rel=4 / np.sqrt(300))
