"""Groups of observations that may depend on each other: random signs, and tests, tables and intervals with groups."""

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import caltest as ct
from caltest.predictions._sample import make_sample, with_calibration_function
from caltest.predictions._view import LensView
from caltest.resampling import Consistency
from caltest.resampling.draws._signs import AllSigns, GroupsWithSurprise, SignDraws, n_groups
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._run import run
from caltest.results import CalibrationWarning
from caltest.statistics import MMCE, SCE, SKCE, UCE, ClasswiseKS
from tests.reference import signed
from tests.reference.cases import check_refused, mostly_nightly, mostly_slow
from tests.reference.examples import default_statistics, draw_labels


def half(prob):
    return np.full_like(prob, 0.5)


def problem(n, n_classes, n_ids, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.8), size=n)
    return draw_labels(prob, rng), prob, rng.permutation(np.arange(n) % n_ids)


def clustered(sizes, correlation, rng, rate=1.0):
    """Calibrated predictions of an event, and labels that share a latent variable within groups."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    prob = rate * rng.random(len(group))
    shared, own = rng.standard_normal(len(sizes))[group], rng.standard_normal(len(group))
    latent = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    return (ndtr(latent) < prob).astype(int), prob, group


def accepted():
    """Every statistic of the package that can be tested with groups, on two outcomes."""
    y_true, prob, group = problem(40, 2, 5)
    sample = make_sample(y_true, prob, groups=group)
    one = np.ones((1, 5), dtype=np.int8)
    settled = [statistic.for_sample(sample) for statistic in default_statistics()]
    parts = itertools.chain(*(statistic.components for statistic in settled))
    return [part for part in parts if part.evaluate_signs(sample, one) is not None]


def test_most_statistics_accept_groups():
    names = {type(part).__name__ for part in accepted()}
    wanted = "ECE MCE KS Kuiper ClasswiseKS SquaredL2 TemperatureScore SKCE MMCE SCE Spiegelhalter CoxScore GCE ACE "
    wanted += "OverConfidence UnderConfidence ConfidenceECE MatrixScore"
    assert set(wanted.split()) <= names


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.slow
def test_signs_are_exchanged_labels_where_both_outcomes_are_equally_probable(weighted):
    """A residual of +1/2 becomes -1/2: another label, which every statistic can evaluate."""
    y_true, prob, group = problem(60, 2, 7)
    weight = np.random.default_rng(1).exponential(size=60) if weighted else None
    sample = with_calibration_function(make_sample(y_true, prob, groups=group, sample_weight=weight), half)
    signs = np.random.default_rng(2).choice([-1, 1], size=(20, 7)).astype(np.int8)
    exchanged = np.where(signs[:, sample.group] > 0, sample.outcome, 1 - sample.outcome).astype(sample.outcome.dtype)
    for statistic in accepted():
        expected = statistic.evaluate(sample, exchanged)
        np.testing.assert_allclose(
            statistic.evaluate_signs(sample, signs), expected, rtol=1e-9, atol=1e-12, err_msg=str(statistic)
        )


@pytest.mark.parametrize(("n_classes", "weighted"), mostly_slow([(2, True), (3, False), (4, True)]))
def test_signed_statistics_equal_loops(n_classes, weighted):
    y_true, prob, group = problem(30, n_classes, 6)
    weight = np.random.default_rng(1).exponential(size=30) if weighted else None
    sample = make_sample(y_true, prob, groups=group, sample_weight=weight)
    signs = np.random.default_rng(2).choice([-1, 1], size=(4, 6)).astype(np.int8)
    tree = ct.VarianceTree(max_cells=4, min_leaf=5)
    twins = {
        ct.ECE(tree): lambda sign: signed.ece(sample, tree, sign),
        ct.SquaredL2(tree): lambda sign: signed.squared_l2(sample, tree, sign),
        ClasswiseKS(): lambda sign: signed.classwise_ks(sample, sign),
        SKCE(): lambda sign: signed.skce(SKCE(), sample, sign),
        SKCE(estimator="biased"): lambda sign: signed.skce(SKCE(estimator="biased"), sample, sign),
        ct.TemperatureScore(): lambda sign: signed.temperature(sample, sign),
    }
    whole = np.ones((1, 6), dtype=np.int8)
    for statistic in (
        ct.statistics.ConfidenceECE(5),
        ct.statistics.MatrixScore(),
        ct.statistics.OverConfidence(),
        ct.statistics.UnderConfidence(),
    ):
        assert statistic.evaluate_signs(sample, whole)[0] == pytest.approx(
            float(statistic.evaluate(sample, sample.outcome))
        )
    for statistic, twin in twins.items():
        found = statistic.evaluate_signs(sample, signs)
        assert found == pytest.approx([twin(sign) for sign in signs], abs=1e-10), statistic
        assert statistic.evaluate_signs(sample, whole)[0] == pytest.approx(
            float(statistic.evaluate(sample, sample.outcome)), abs=1e-10
        ), statistic


def test_signs_are_fair_and_depend_on_the_seed_alone():
    y_true, prob, group = problem(50, 3, 10)
    sample = make_sample(y_true, prob, groups=group)
    draws = SignDraws.of(4000, 3)
    signs = np.concatenate([some for _, some in draws.blocks(sample)])
    assert set(np.unique(signs)) == {-1, 1}
    assert np.abs(signs.mean(axis=0)).max() < 4 / np.sqrt(4000)
    covariance = signs.T.astype(float) @ signs / 4000 - np.eye(10)
    assert np.abs(covariance).max() < 5 / np.sqrt(4000)
    again = np.concatenate([some for part in draws.slices(123) for _, some in part.blocks(sample)])
    assert np.array_equal(signs, again)
    assert n_groups(sample) == 10


def test_the_larger_pvalue_of_signs_and_simulated_labels_counts():
    y_true, prob, group = clustered((25,) * 20, 0.3, np.random.default_rng(0))
    base = make_sample(y_true, prob, groups=group)
    found = run([Question(ct.KS(), LensView(base))], base, Consistency(), n_resamples=399, rng=0)
    generator = np.random.default_rng(0)
    for draws in (Consistency().draws(399, generator), Consistency().for_sample(base).draws(399, generator)):
        values = np.concatenate([
            ct.KS().evaluate_signs(base, drawn) if isinstance(draws, SignDraws) else ct.KS().evaluate(base, drawn)
            for _, drawn in draws.blocks(base)
        ])  # fmt: skip
        observed = float(ct.KS().evaluate(base, base.outcome))
        assert found.pvalue >= (1 + np.count_nonzero(values >= observed - 1e-12)) / 400
    alone = ct.calibration_test(y_true, prob, statistic=ct.KS(), n_resamples=399, rng=0).pvalue
    assert found.pvalue > alone


def test_no_event_is_no_evidence_against_a_small_risk():
    """All residuals have the same sign then, so that signs alone would reject."""
    result = ct.calibration_test([0] * 400, [0.001] * 400, groups=np.arange(400) // 4, n_resamples=199, rng=0)
    assert result.pvalue == 1
    assert "C303" in {note.code for note in result.notes}
    interval = ct.l2_interval([0] * 400, [0.001] * 400, groups=np.arange(400) // 4)
    assert interval.root_interval.high > 1 - 0.025 ** (1 / 100) - 0.001  # as if the labels of a group were equal


def test_unequal_groups_are_worth_fewer():
    """5 groups of 60 and 100 of 1: most of what is known of dependence comes from five groups."""
    rng = np.random.default_rng(0)
    prob = rng.random(400)
    y_true = rng.random(400) < prob
    unequal = np.repeat(np.arange(105), np.append(np.full(5, 60), np.ones(100, dtype=int)))
    surprises = GroupsWithSurprise.of(make_sample(y_true, prob, groups=unequal))
    size = np.bincount(unequal[(y_true != (prob > 0.5))])  # not the size of a group: only which have any
    sizes = np.bincount(unequal)[np.flatnonzero(size)]
    assert surprises.number == len(sizes) > 20
    assert surprises.effective_number == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum())
    (note,) = surprises.notes
    assert note.code == "C303"
    assert f"these are worth {surprises.effective_number:.2g} groups of equal size" in note.text
    equal = GroupsWithSurprise.of(make_sample(y_true, prob, groups=np.arange(400) // 4))
    assert equal.effective_number == pytest.approx(equal.number)
    assert not equal.notes
    weight = np.where(np.arange(400) < 12, 1000.0, 1.0)  # three groups have nearly all of the weight
    heavy = GroupsWithSurprise.of(make_sample(y_true, prob, groups=np.arange(400) // 4, sample_weight=weight))
    assert heavy.effective_number < 4
    assert [note.code for note in heavy.notes] == ["C303"]


def rejections(n_data_sets, seed, *, grouped, sizes, correlation, statistic=None, rate=1.0):
    rng, found = np.random.default_rng(seed), 0
    for _ in range(n_data_sets):
        y_true, prob, group = clustered(sizes, correlation, rng, rate)
        options = {"groups": group} if grouped else {"method": "monte-carlo"}
        result = ct.calibration_test(y_true, prob, statistic=statistic, n_resamples=99, rng=rng, **options)
        found += result.pvalue <= 0.05
    return found


@pytest.mark.slow
def test_dependent_observations_are_rejected_without_groups_and_not_with_them():
    """The limit allows for .07, as the p-value is asymptotic in the number of groups (docs/validity.md)."""
    design = {"sizes": (50,) * 20, "correlation": 0.1, "statistic": ct.KS()}
    assert rejections(100, 0, grouped=False, **design) > 20
    assert rejections(100, 0, grouped=True, **design) <= binom.ppf(1 - 1e-4, 100, 0.07)


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([80, 200]))
@pytest.mark.parametrize("rate", [1.0, 0.05])
@pytest.mark.parametrize(
    "sizes", mostly_nightly((s,) for s in ((100,) * 10, (50,) * 20, tuple(range(5, 100, 5)), (5,) * 200))
)
def test_the_level_with_groups(sizes, rate, n_sets):
    found = rejections(n_sets, 1, grouped=True, sizes=sizes, correlation=0.05, rate=rate)
    assert found <= binom.ppf(1 - 1e-4, n_sets, 0.07)


def test_power_with_groups():
    rng = np.random.default_rng(0)
    y_true, prob, group = clustered((20,) * 50, 0.1, rng)
    assert ct.calibration_test(y_true, prob, groups=group, rng=0, n_resamples=199).pvalue > 0.05
    assert ct.calibration_test(y_true, prob**2, groups=group, rng=0, n_resamples=199).pvalue == 0.005


def test_names_of_groups_and_order_of_rows_do_not_matter():
    y_true, prob, group = clustered((10,) * 30, 0.2, np.random.default_rng(4))
    options = {"n_resamples": 199, "rng": 0}
    first = ct.calibration_test(y_true, prob, groups=group, **options)
    named = ct.calibration_test(y_true, prob, groups=[f"patient {g:02d}" for g in group], workers=2, **options)
    assert first.pvalue == named.pvalue
    order = np.random.default_rng(5).permutation(300)
    moved = ct.calibration_test(y_true[order], prob[order], groups=group[order], **options)
    assert moved.pvalue == first.pvalue


@pytest.mark.slow(few_draws=True)
def test_tables_reports_and_subgroups_with_groups():
    y_true, prob, group = problem(300, 3, 30)
    options = {"groups": group, "n_resamples": 99, "rng": 0}
    table = ct.calibration_table(y_true, prob, **options)
    assert "30 groups" in str(table)
    assert table[0].pvalue == ct.calibration_test(y_true, prob, **options).pvalue
    assert all(np.array_equal(test.notes, table[0].notes) for test in table)
    assert "C104" in {note.code for note in table[0].conditions}
    more = {**options, "n_resamples": 699}
    assert ct.calibration_report(y_true, prob, **more).pvalue > 0.01
    assert ct.gce_table(y_true, prob, n_cells=5, **more).pvalue > 0.01
    found = ct.subgroup_tests(y_true, prob, subgroup=np.arange(300) % 2, **options)
    assert [test.n_samples for test in found] == [150, 150]
    region = ct.calibration_test(y_true, prob, region=lambda p: p[:, 0] > 0.5, **options)
    assert region.n_samples < 300


def test_the_groups_of_a_lens_are_those_of_the_observations():
    y_true, prob, group = problem(80, 4, 9)
    weight = np.arange(1.0, 81.0)
    base = make_sample(y_true, prob, groups=group, sample_weight=weight)
    for lens in (ct.Confidence(), ct.ClassWise(2), ct.TopK(2)):
        sample = LensView.of(lens, prob, y_true, base).sample
        assert np.array_equal(sample.group, group[sample.row])
        np.testing.assert_allclose(sample.weight, weight[sample.row] / 40.5, rtol=1e-15)
        assert np.array_equal(sample.take(np.arange(5)).group, sample.group[:5])


MISSING = "`groups` must have a group for every observation, got a missing id for observation 1."
REFUSED = {
    "shape": ([0, 1], ValueError, "`groups` must have the group of each of the 40 observations, got 2."),
    "None": ([0, None] * 20, ValueError, MISSING),
    "nan": ([1.0, np.nan] * 20, ValueError, MISSING),
    "series": (pd.Series(["a", None, "b", "c"] * 10), ValueError, MISSING),
    "categories": (pd.Series(["a", None, "b", "c"] * 10, dtype="category"), ValueError, MISSING),
    "text and nan": (["a", np.nan, "b", "c"] * 10, ValueError, MISSING),
    "one": (["a"] * 40, ValueError, "`groups` must hold at least 2 groups, got the id 'a' for every observation."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_groups(case):
    y_true, prob, _ = problem(40, 3, 5)
    groups, kind, message = REFUSED[case]
    check_refused(ct.calibration_test, kind, message, y_true, prob, groups=groups)


def test_refused_statistics_and_methods():
    y_true, prob, group = problem(40, 2, 5)
    for statistic in (UCE(), ct.MCE(distance=lambda p, q: np.abs(p - q).max(axis=-1)), ct.SmoothECE()):
        with pytest.raises(ValueError, match=r"`groups` needs a statistic of the residuals, such as ECE.*got "):
            ct.calibration_test(y_true, prob, statistic=statistic, groups=group)
    for method in ("exact", "asymptotic"):
        with pytest.raises(ValueError, match=f'method="{method}" is for independent observations'):
            ct.calibration_test(y_true, prob, statistic=ct.KS(), groups=group, method=method)
    with pytest.raises(ValueError, match="`groups` needs fixed predictions"):
        ct.calibration_test(y_true, prob, groups=group, resampling=Consistency(resample_predictions=True))


@pytest.mark.parametrize("statistic", [ct.ECE(), ct.KS(), ct.TemperatureScore(), SCE(), MMCE(), None])
def test_weights_of_one_change_nothing(statistic):
    y_true, prob, _ = problem(60, 2, 5)
    options = {"statistic": statistic, "n_resamples": 99, "rng": 0, "method": "monte-carlo"}
    if statistic == ct.ECE():  # without weights its counts are drawn from another distribution
        options["lens"] = lambda prob, outcome: (np.column_stack([prob, 0 * prob[:, 0]]), outcome)
    plain, weighted = (ct.calibration_test(y_true, prob, sample_weight=w, **options) for w in (None, np.ones(60)))
    assert plain.pvalue == weighted.pvalue
    assert plain.statistic == pytest.approx(weighted.statistic, rel=1e-12)


@pytest.mark.slow
def test_the_level_with_weights():
    """The p-value is exact given the weights."""
    rng, found = np.random.default_rng(6), 0
    for _ in range(150):
        prob = rng.dirichlet((0.5, 0.5, 0.5), size=80)
        weight = rng.exponential(size=80) ** 2
        found += (
            ct.calibration_test(
                draw_labels(prob, rng), prob, sample_weight=weight, statistic=ct.ECE(), n_resamples=99, rng=rng
            ).pvalue
            <= 0.05
        )
    assert found <= binom.ppf(1 - 1e-4, 150, 0.05)


def test_weights_choose_what_is_tested():
    """Half of the observations are miscalibrated; weight 0 leaves them out."""
    rng = np.random.default_rng(7)
    prob = rng.uniform(0.1, 0.9, 400)
    true = np.where(np.arange(400) < 200, prob, prob / 2)
    y_true = rng.random(400) < true
    options = {"n_resamples": 199, "rng": 0}
    assert ct.calibration_test(y_true, prob, **options).pvalue == 0.005
    assert ct.calibration_test(y_true, prob, sample_weight=np.arange(400) < 200, **options).pvalue > 0.05


def test_observations_without_weight_count_nowhere():
    """Neither as impossible labels, nor as groups, nor as surprises of a cell that has no others."""
    y_true, prob, group = clustered((4,) * 50, 0.0, np.random.default_rng(8))
    prob[:3], y_true[:3] = 0.0, 1
    weight = np.ones(200)
    weight[:3] = 0
    result = ct.calibration_test(y_true, prob, sample_weight=weight, n_resamples=199, rng=0)
    assert result.pvalue > 0.01
    assert not result.impossible_samples.size
    weight[:180], weight[180] = 0, 1000
    few = ct.calibration_test(y_true, prob, groups=group, sample_weight=weight, n_resamples=19)
    assert "There are only 5 groups" in few.notes[0].text
    assert "C304" in {note.code for note in few.notes}
    curve = ct.reliability_curve(y_true, prob, sample_weight=np.where(prob < 0.5, 0, 1), partition=ct.EqualWidth(2))
    assert curve.n_cells == 1
    with pytest.raises(ValueError, match="every subgroup must hold an observation of positive weight, got none in '0'"):
        ct.subgroup_tests(y_true, prob, subgroup=np.arange(200) % 2, sample_weight=np.arange(200) % 2, n_resamples=99)


@pytest.mark.slow(few_draws=True)
def test_reports_name_groups_and_weights():
    y_true, prob, group = clustered((6,) * 50, 0.3, np.random.default_rng(9))
    weight = np.arange(300) % 3 + 1.0
    size = "300 weighted observations in 50 groups"
    options = {"groups": group, "sample_weight": weight}
    for result in (
        ct.calibration_test(y_true, prob**2, **options, n_resamples=199, rng=0),
        ct.calibration_table(y_true, prob, **options, n_resamples=199, rng=0),
        ct.l2_interval(y_true, prob, **options),
        ct.equivalence_test(y_true, prob, 0.2, **options),
        ct.bootstrap_interval(y_true, prob, **options, n_resamples=19, rng=0),
    ):
        text = " ".join(str(result).split())
        assert size in text, text
        assert "observations with replacement" not in text
        assert "if observations are independent" not in text
    assert "whole groups with replacement" in str(result)


def test_a_frame_whose_index_repeats_an_id_is_noticed():
    y_true, prob, group = clustered((4,) * 20, 0.0, np.random.default_rng(10))
    patient = pd.Index(group, name="patient_id")
    frame = pd.Series(prob, index=patient)
    with pytest.warns(CalibrationWarning, match="The index 'patient_id' repeats"):
        ct.calibration_test(y_true, frame, n_resamples=19, rng=0)
    for silent in (pd.Series(prob, index=pd.Index(np.arange(80), name="patient_id")), pd.Series(prob, index=group)):
        ct.calibration_test(y_true, silent, n_resamples=19, rng=0)
    ct.calibration_test(y_true, frame, groups=patient, n_resamples=19, rng=0)


@pytest.mark.slow
def test_groups_take_memory_in_proportion_to_the_data():
    """A table of all groups and cells would take 150 times the memory of the data here."""
    rng = np.random.default_rng(3)
    n = 300_000
    y_prob = rng.random(n)
    y_true = (rng.random(n) < y_prob).astype(np.int64)
    options = {"groups": np.arange(n) // 2, "n_resamples": 9, "rng": 0}
    ct.calibration_test(y_true[:100], y_prob[:100], groups=np.arange(100) // 2, n_resamples=9)
    tracemalloc.start()
    str(ct.calibration_test(y_true, y_prob, **options))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25 * (y_true.nbytes + y_prob.nbytes)


# All arrangements of the signs of few groups.


def test_all_arrangements_are_every_one_but_the_observed_one():
    y_true, y_prob, group = problem(50, 2, 9)
    weight = np.where(group == 4, 0.0, 1.0)
    for sample, n in ((make_sample(y_true, y_prob, groups=group), 9),
                      (make_sample(y_true, y_prob, groups=group, sample_weight=weight), 8)):  # fmt: skip
        draws = Consistency().for_sample(sample).draws(99, 0)
        assert isinstance(draws, AllSigns)
        signs = np.concatenate([some for part in draws.slices(100) for _, some in part.blocks(sample)])
        assert signs.shape == (2**n - 1, n)
        found = {tuple(row) for row in signs.tolist()}
        every = {tuple(-1 if k in minus else 1 for k in range(n))
                 for size in range(1, n + 1) for minus in itertools.combinations(range(n), size)}  # fmt: skip
        assert found == every
    assert not isinstance(Consistency().for_sample(make_sample(*problem(50, 2, 10)[:2], groups=problem(50, 2, 10)[2]))
                          .draws(99, 0), AllSigns)  # fmt: skip


@pytest.mark.slow(few_draws=True)
def test_the_pvalue_of_few_groups_is_that_of_enumeration():
    """The share of all arrangements whose statistic is at least as large; labels of the groups agree."""
    rng = np.random.default_rng(5)
    for n_ids in (4, 6, 9):
        prob, group = rng.uniform(0.3, 0.7, 200), np.arange(200) % n_ids
        y_true = (rng.random(n_ids) < 0.8)[group].astype(int)
        sample = make_sample(y_true, prob, groups=group)
        signs = np.array(list(itertools.product([1, -1], repeat=n_ids)), dtype=np.int8)
        for statistic in (ct.KS(), ct.ECE(ct.EqualWidth(5)), ct.statistics.OverConfidence()):
            values = statistic.for_sample(sample).evaluate_signs(sample, signs)
            share = np.mean(values >= values[0] - 1e-12 * np.abs(values).max())
            largest = np.mean(values >= values.max() - 1e-12 * np.abs(values).max())
            found = ct.calibration_test(y_true, prob, groups=group, statistic=statistic, n_resamples=999, rng=0)
            if found.method == "all-signs":
                assert found.pvalue == share
            assert found.pvalue >= share
            assert found.smallest_possible_pvalue == max(largest, 1 / 1000)
