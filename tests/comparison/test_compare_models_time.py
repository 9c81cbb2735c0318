"""Several models that forecast what is known after a lead: every number uses it."""

import numpy as np
import pytest
from scipy.special import stdtrit

import caltest as ct
from caltest.comparison._u_statistics import Differences, largest_deviations, resample, terms_of
from caltest.predictions._sample import make_sample
from caltest.statistics import ECE
from tests.comparison.models import exceedances, shifted

N, LEAD = 150, 3
TRUE, LABEL = exceedances(N, LEAD, 0.7, np.random.default_rng(5))
MODELS = {"true": TRUE, "high": shifted(TRUE, 1.0), "low": shifted(TRUE, -1.0)}
TIME = {"time": np.arange(N), "lead": LEAD}


@pytest.fixture(scope="module")
def comparison():
    return ct.compare_models(LABEL, MODELS, statistic=ECE(), n_resamples=199, rng=0, **TIME)


def test_each_model_has_the_test_and_the_interval_of_forecasts_in_time(comparison):
    for model in comparison:
        interval = ct.l2_interval(LABEL, MODELS[model.name], partition=ct.VarianceTree(), **TIME)
        assert tuple(model.miscalibration) == tuple(interval)
        assert model.test.method in {"timed-labels", "shared-shocks"}
    single = ct.calibration_test(LABEL, MODELS["high"], statistic=ECE(), n_resamples=199, rng=0, **TIME)
    assert comparison.models[1].test.pvalue == single.pvalue


def test_pairs_are_those_of_paired_tests_and_adjusted_for_their_number(comparison):
    for pair in comparison.pairs:
        alone = ct.paired_test(LABEL, MODELS[pair.a], MODELS[pair.b], **TIME)
        assert (pair.test.difference, pair.test.pvalue) == pytest.approx((alone.difference, alone.pvalue))
        assert pair.pvalue_adjusted >= alone.pvalue
        assert pair.simultaneous_interval.low <= alone.confidence_interval.low
    assert "Student's with 11 degrees of freedom" in " ".join(str(comparison).split())


def test_the_largest_of_all_pairs_follows_students_distribution_for_one_pair():
    """Where nothing but the sum over observations varies: weights of cosines have the tail of Student's."""
    samples = [make_sample(LABEL, MODELS[name], **TIME) for name in ("high", "low")]
    terms, number = terms_of(samples, ct.VarianceTree()), 4000
    for part in terms:
        part.__dict__["products"] = np.zeros_like(part.products)
    differences = Differences.of(terms, paired=True)
    drawn = resample(terms, differences, paired=True, n_resamples=number, rng=1)
    share = np.mean(largest_deviations(differences, drawn) > stdtrit(11, 0.975))
    assert abs(share - 0.05) < 4 * np.sqrt(0.05 * 0.95 / number)


def test_little_time_is_noted_once_for_all_pairs():
    few = slice(0, 26)
    models = {name: prob[few] for name, prob in MODELS.items()}
    found = ct.compare_models(LABEL[few], models, statistic=ECE(), n_resamples=99, rng=0, time=np.arange(26), lead=LEAD)
    assert found.decision == "undecidable"
    texts = [note.text for note in found.notes if "uncertain the difference" in note.text]
    assert len(texts) == 1
    assert texts[0].startswith("The predictions span 8.67 times the lead")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"groups": np.arange(N) // 3}, "`groups` and `time` cannot be taken together"),
        ({"variance": "bootstrap"}, "with `time` take variance="),
    ],
)
def test_what_cannot_be_taken_is_refused(more, words):
    with pytest.raises(ValueError, match=words):
        ct.compare_models(LABEL, MODELS, **TIME, **more)
    pairs = {name: (LABEL, prob) for name, prob in MODELS.items()}
    with pytest.raises(ValueError, match="`groups` and `time` need `y_true`"):
        ct.compare_models(None, pairs, **TIME)
