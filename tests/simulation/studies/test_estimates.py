"""Statistics of one data set from sorted predictions agree with the statistics themselves, on odd data too."""

import numpy as np
import pytest

import caltest
from caltest import ECE, KS, MCE, SquaredL2
from caltest.predictions import Edges, EqualMass, EqualWidth, VarianceTree
from caltest.predictions._sample import make_sample
from caltest.simulation import DirichletModel, GaussianMixture1D
from caltest.simulation.models._base import Unlabelled
from caltest.simulation.studies._data_sets import draw_data_sets
from caltest.simulation.studies._estimates import CommonEstimates, Estimates, is_common
from caltest.simulation.studies._run import Block
from caltest.statistics import ACE, GCE, RMSCE, SCE, TACE, ClassConditionalECE, Kuiper
from tests.reference import naive
from tests.reference.cases import mostly_slow

GCES = [
    GCE(scheme, max_prob, classwise, threshold, norm, 4)
    for scheme in ("equal-width", "equal-mass")
    for max_prob in (False, True)
    for classwise in (False, True)
    for threshold in (0.0, 0.01)
    for norm in ("l1", "l2")
]
PARTITIONS = (
    *(EqualWidth(7, closed=closed) for closed in ("left", "right", "outer")),
    EqualWidth("sqrt"),
    Edges([0.2, 0.5], closed="right"),
    *(EqualMass(n, cut=cut) for n in (1, 5) for cut in ("value", "halfway")),
    VarianceTree(),
    VarianceTree(min_leaf=3),
    VarianceTree("mean", min_split=4),
)
OF_EVENT = (
    *(ECE(partition) for partition in PARTITIONS),
    *(SquaredL2(partition, estimator) for partition in PARTITIONS for estimator in ("unbiased", "t-cal")),
    *(KS(), Kuiper()),
)
OF_ALL = (
    *GCES,
    *(SCE(4), SCE(closed="right", average="sum"), ACE(4), ACE(3, "equal-width", True, "occupied"), TACE(5, 0.1)),
    *(RMSCE(4), RMSCE(samples_per_cell=6), ClassConditionalECE(4, "observations"), GCE(threshold=0.9)),
)

LENSES_OF_FOUR = (
    *(caltest.Canonical(), caltest.Confidence(), caltest.ClassWise(2), caltest.predictions.TopK(2)),
    *(caltest.predictions.TopRank(2), caltest.predictions.WithinTop(2), caltest.ClassGroups([[0, 1], [2], [3]])),
)


class RoundedModel(DirichletModel):
    """A model whose predictions are multiples of 1/20."""

    def draw_unlabelled(self, n_samples, rng):
        x, y_prob, class_prob = super().draw_unlabelled(n_samples, rng)
        rounded = np.round(20 * y_prob)
        rounded[np.arange(n_samples), y_prob.argmax(axis=1)] += 20 - rounded.sum(axis=1)
        return Unlabelled(x, rounded / 20, class_prob)


def problems():
    """Ties, exact 0 and 1, values on edges, rare events, a constant, one-hot, one and two observations."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 8, size=60) / 7
    yield "ties, 0 and 1, on edges", np.column_stack([1 - coarse, coarse]), rng.random(60) < coarse
    rare = rng.beta(0.01, 5, size=200)
    yield "rare", np.column_stack([1 - rare, rare]), rng.random(200) < 0.01
    yield "constant", np.full((20, 2), 0.5), rng.integers(2, size=20)
    yield "one-hot", np.eye(3)[rng.integers(3, size=30)], rng.integers(3, size=30)
    yield "zeros of both signs", np.repeat([[1, -0.0], [1, 0.0], [1, -0.0], [0, 1]], 5, axis=0), np.arange(20) % 2
    yield "one", np.array([[0.3, 0.7]]), np.array([1])
    yield "two", np.array([[0.3, 0.7], [0.5, 0.5]]), np.array([1, 0])
    wide = rng.dirichlet(np.full(4, 0.4), size=150)
    yield "four classes", wide, rng.integers(4, size=150)
    yield "many classes", rng.dirichlet(np.full(40, 0.1), size=30), rng.integers(40, size=30)


def test_common_estimates_are_those_of_the_statistics():
    for name, prob, label in problems():
        outcome = np.asarray(label, dtype=np.int64)
        chosen = {repr(s): s for s in (*OF_EVENT, *OF_ALL) if is_common(s, prob.shape[1])}
        assert len(chosen) == len({repr(s) for s in (*(OF_EVENT if prob.shape[1] == 2 else ()), *OF_ALL)}), name
        found, sample = CommonEstimates(chosen, len(prob))(prob, outcome), make_sample(outcome, prob)
        for key, statistic in chosen.items():
            expected = float(statistic.evaluate(sample, sample.outcome))
            assert found[key] == pytest.approx(expected, rel=1e-11, abs=1e-14), (name, key)


def test_they_agree_with_loops_over_lists():
    name, prob, outcome = next(iter(problems()))
    statistic = ECE(EqualWidth(7))
    found = CommonEstimates({"ece": statistic}, len(prob))(prob, outcome.astype(np.int64))
    assert found["ece"] == pytest.approx(naive.ece(statistic, prob, outcome.astype(int)), rel=1e-12), name


def test_an_event_and_its_complement_have_the_same_errors():
    rng = np.random.default_rng(1)
    event = rng.random(500)
    outcome = (rng.random(500) < event**2).astype(np.int64)
    prob = np.column_stack([1 - event, event])
    for statistic in (
        ECE(EqualWidth(10, closed="outer")),
        ECE(VarianceTree()),
        SquaredL2(VarianceTree()),
        Kuiper(),
        SCE(),
    ):
        estimates = Estimates(caltest.Canonical(), {"a": statistic})
        one, other = (estimates(*view)["a"] for view in ((outcome, prob), (1 - outcome, prob[:, ::-1])))
        assert one == pytest.approx(other, rel=1e-11), statistic


def test_what_is_not_common_is_left_to_the_statistic():
    class Own(KS):
        def evaluate(self, sample, outcomes):
            return np.zeros(outcomes.shape[:-1])

    left = (
        *(MCE(), ECE(lambda prob: prob[:, 1] > 0.5), ECE(distance=caltest.predictions.chebyshev), Own()),
        *(SquaredL2(estimator="kumar"), caltest.statistics.ConvexECE(), caltest.TemperatureScore()),
    )
    assert not any(is_common(statistic, 2) for statistic in left)
    assert not is_common(ECE(EqualWidth(5)), 3), "a grid of several classes"


def test_predictions_are_validated():
    estimates = Estimates(caltest.Canonical(), {"ece": ECE(), "ks": KS()})
    prob, outcome = np.array([[0.3, 0.7], [0.5, 0.5]]), np.array([1, 0])
    assert estimates(outcome, prob) == estimates(outcome.astype(float), prob.tolist())
    cases = [(prob + 0.1, outcome), (prob, np.array([0, 2])), (prob - 0.5, outcome), (prob * np.nan, outcome)]
    for bad_prob, bad_outcome in cases:
        with pytest.raises(ValueError, match="`y_"):
            estimates(bad_outcome, bad_prob)
    with pytest.raises(ValueError, match="same length"):
        estimates(outcome[:1], prob)


@pytest.mark.slow(few_draws=True)
def test_many_data_sets_agree_with_the_statistics_on_the_same_draws():
    statistics = {repr(s): s for s in (*OF_EVENT, GCE(), SCE(4))}
    estimates = Estimates(caltest.Canonical(), statistics)
    for beta in ((0, -2), (0, 0), (1, 1), (0, -300)):
        for n_samples in (1, 70, 4000) if beta == (1, 1) else (1, 2, 70):
            (drawn,) = draw_data_sets(Block("a", GaussianMixture1D(*beta), n_samples, range(2), 1))
            found = estimates.of_many(drawn.y_true, drawn.y_prob)
            for one in drawn.one_by_one():
                sample = make_sample(one.y_true, one.y_prob)
                expected = [float(s.evaluate(sample, sample.outcome)) for s in statistics.values()]
                values = found[one.replicate]
                np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12, err_msg=f"{beta} {n_samples}")


@pytest.mark.parametrize("lens", mostly_slow(LENSES_OF_FOUR), ids=repr)
def test_data_sets_of_several_classes_agree_with_the_statistics_behind_every_lens(lens):
    """Entries of classes with few or no top predictions, below thresholds, and tied are among them."""
    n_outcomes = lens.induced(np.full((1, 4), 0.25)).shape[1]
    chosen = {repr(s): s for s in (*OF_EVENT, *OF_ALL) if is_common(s, n_outcomes)}
    estimates, model = Estimates(lens, chosen), RoundedModel(4, 0.2)
    for n_samples in (1, 7, 300):
        (drawn,) = draw_data_sets(Block("a", model, n_samples, range(5), 1))
        found = estimates.of_many(drawn.y_true, drawn.y_prob)
        for one in drawn.one_by_one():
            sample = make_sample(one.y_true, one.y_prob, lens=lens)
            expected = [float(s.evaluate(sample, sample.outcome)) for s in chosen.values()]
            np.testing.assert_allclose(found[one.replicate], expected, rtol=1e-11, atol=1e-13)


def test_a_data_set_does_not_depend_on_those_that_are_drawn_with_it():
    model = DirichletModel(3, 0.5)
    together = [one for some in draw_data_sets(Block("a", model, 6000, range(7), 1)) for one in some.one_by_one()]
    assert [one.replicate for one in together] == list(range(7))
    for one in together:
        (some,) = draw_data_sets(Block("a", model, 6000, range(one.replicate, one.replicate + 1), 1))
        (alone,) = some.one_by_one()
        np.testing.assert_array_equal(alone.y_true, one.y_true)
        np.testing.assert_array_equal(alone.y_prob, one.y_prob)
        np.testing.assert_array_equal(alone.class_prob(), one.class_prob())
        assert alone.rng.random() == one.rng.random()


def test_an_estimate_does_not_depend_on_the_others_and_other_data_sets():
    """To the last bit: with cells of equal mass data sets are sorted, without them they are not."""
    every = (*OF_EVENT, *OF_ALL)
    among = Estimates(caltest.Canonical(), {repr(s): s for s in every})
    for n_samples, seed in ((3, 0), (500, 1)):
        (drawn,) = draw_data_sets(Block("a", GaussianMixture1D(1, 1), n_samples, range(4), seed))
        found = among.of_many(drawn.y_true, drawn.y_prob)[2]
        for place, statistic in enumerate(every):
            alone = Estimates(caltest.Canonical(), {"alone": statistic})
            assert alone.of_many(drawn.y_true[2:3], drawn.y_prob[2:3])[0, 0] == found[place], (n_samples, statistic)


@pytest.mark.parametrize("partition", [EqualWidth(3), EqualMass(3)])
def test_no_sum_overflows(partition):
    prob = np.full((2**19, 2), [0.0, 1.0])
    values = Estimates(caltest.Canonical(), {"a": ECE(partition), "b": SquaredL2(partition)})
    assert values.of_many(np.zeros((1, len(prob)), dtype=np.int64), prob[None]).tolist() == [[1.0, 1.0]]


def test_the_extremes_of_cumulative_residuals_do_not_overflow():
    prob = np.full((2**19, 2), [0.0, 1.0])
    values = Estimates(caltest.Canonical(), {"a": KS(), "b": Kuiper()})
    assert values.of_many(np.zeros((1, len(prob)), dtype=np.int64), prob[None]).tolist() == [[1.0, 1.0]]
