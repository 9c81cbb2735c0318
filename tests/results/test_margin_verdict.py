"""What is said of an error and a margin: shown, not shown, or not to be told."""

import pytest

from caltest.results import ConfidenceInterval, MarginFinding, MarginVerdict, Number


@pytest.mark.parametrize("kind", ["below", "above"])
@pytest.mark.parametrize(
    ("pvalue", "smallest", "words", "advice"),
    [
        (0.01, 0.0, "The error is shown to be {kind} 5 points (p = 0.01): it is 3 points.", "again|recalibrate"),
        (0.2, 0.0, "The error is not shown to be {kind} 5 points (p = 0.2): it is 3 points.", "not"),
        (1.0, 1.0, "Whether the error is {kind} 5 points cannot be told: these observations are too few", "Collect"),
    ],
)
def test_sentences(kind, pvalue, smallest, words, advice):
    size = Number(name="error", estimate=3.0, interval=ConfidenceInterval(0.0, 4.0), shown="3 points")
    asked = MarginFinding(kind=kind, size=size, margin=5.0, unit="points", pvalue=pvalue, n=10)
    found = MarginVerdict(pvalue=pvalue, alpha=0.05, smallest_possible_pvalue=smallest, n_samples=10, question=asked)
    assert found.conclusion.startswith(words.format(kind=kind))
    (said,) = found.advice
    assert any(part in said for part in advice.split("|"))
    assert " ".join(str(found).split()).count(said) == 1
