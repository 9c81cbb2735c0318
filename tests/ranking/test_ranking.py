"""Rankings in words: the first sentence, the table, and what is better than a model."""

import numpy as np
import pytest

from caltest.estimation import Measure
from caltest.ranking import RankedModel, Ranking
from caltest.results import ConfidenceInterval


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
