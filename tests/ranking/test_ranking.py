"""Rankings in words: the first sentence, the table, and what is better than a model."""

import numpy as np
import pytest
from scipy.special import ndtri

from caltest.estimation import Measure
from caltest.ranking import RankedModel, Ranking
from caltest.ranking._separation import Contributions
from caltest.results import ConfidenceInterval
from tests.reference.cases import mostly_nightly


def ranking(is_better, **about):
    """A ranking of models a, b, c of which some are shown to be better."""
    models = [
        RankedModel(
            name=name,
            measure=Measure("brier", "Brier score", "overall", 0.1 * (i + 1), ConfidenceInterval(0.05, 0.2), 0.1, 0.4),
            rank=i + 1,
            rank_interval=ConfidenceInterval(1, 3),
            tier=1 + int(is_better[:, i].any()),
            pvalue_adjusted=0.8,
        )
        for i, name in enumerate("abc")
    ]
    pvalue = np.where(is_better, 0.001, 0.7)
    about = {"larger_is_better": False, "confidence_level": 0.95, "n_samples": 50} | about
    numbers = {"value": np.array([0.1, 0.2, 0.3]), "standard_error": np.full((3, 3), 0.1), "critical_value": 3.0}
    return Ranking(models=tuple(models), pvalue_better=pvalue, **(numbers | about))


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([], "By Brier score none of the 3 models can be ruled out as the best (95 % confidence)."),
        ([(0, 1), (0, 2)], "By Brier score a is shown to be the best of 3 models (95 % confidence)."),
        ([(0, 2)], "By Brier score 2 of 3 models may be the best (95 % confidence): a and b."),
    ],
)
def test_the_first_sentence_says_what_may_be_the_best(pairs, sentence):
    is_better = np.zeros((3, 3), dtype=bool)
    for pair in pairs:
        is_better[pair] = True
    found = ranking(is_better)
    assert found.conclusion == sentence
    assert " ".join(str(found).split()).startswith(f"Ranks by Brier score (50 observations, 3 models) {sentence}")
    assert f"{len(pairs)} of 3 pairs of models are told apart" in found.separation
    assert found.better_than("c") == tuple("abc"[j] for j, k in pairs if k == 2)


def test_an_unknown_model_is_refused_with_the_names():
    with pytest.raises(KeyError, match="no model 'd'; there are a, b, c"):
        ranking(np.zeros((3, 3), dtype=bool)).better_than("d")


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
