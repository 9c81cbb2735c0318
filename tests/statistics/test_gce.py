"""Errors over all classes: the 32 of Nixon et al. and their named members, by published values and by hand."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caltest
from caltest.hypothesis_tests._gce_table import gce_metrics
from caltest.statistics import ACE, GCE, RMSCE, SCE, TACE, UCE, ClassConditionalECE
from tests.reference import naive
from tests.reference.cases import check_refused, failures, mostly_nightly
from tests.reference.examples import draw_labels
from tests.statistics.networks import NETWORKS, network
from tests.statistics.problems import LEVELS, PROFILE, error, most_rejections, problems

# `gce32` of goldens.json, in the order of the paper: scheme, entries, classes, threshold, norm, the last fastest.
BUNDLED_GCE = (
    (0.0431622119655, 0.0812250647674, 0.0431622119655, 0.0812250647674),
    (0.0397800668567, 0.0652795246542, 0.0397800668567, 0.0652795246542),
    (0.00883674600609, 0.0305200439212, 0.0555531221876, 0.0929223459876),
    (0.00816918457933, 0.0241704021024, 0.0519635447848, 0.0773775562337),
    (0.0396345867317, 0.0868975721041, 0.0396345867317, 0.0868975721041),
    (0.039716762957, 0.0781338107147, 0.039716762957, 0.0781338107147),
    (0.0038926082155, 0.0117775509579, 0.0514678907549, 0.0937074700088),
    (0.00211673448439, 0.00483683741579, 0.0516897104599, 0.0872761578402),
)

# One column for each network. None: an edge cuts a block of ties there, which stays in one cell here.
NAMED = {
    "SCE15_classwiseECE15": (SCE(), (0.0101781205376, 0.00876948445659, 0.0038791462634, 0.0138610445815)),
    "ACE15": (ACE(), (None, 0.00455009208873, 0.00210984733767, 0.00939430774296)),
    "TACE15_thr0p01": (TACE(), (None, 0.0470057950609, 0.0168698836465, None)),
    "RMSCE15_equalwidth_top1": (
        RMSCE(scheme="equal-width"),
        (0.0662794835952, 0.0644636479313, 0.0249708943825, 0.086629044031),
    ),
    "RMSCE30_equalmass_top1": (RMSCE(30), (None, 0.0783735017045, None, None)),
    "UCE15": (UCE(), (0.0431524652624, 0.0259305892749, 0.0252691512831, 0.0574004507599)),
}


# Published values.


@pytest.mark.slow(few_draws=True)
def test_the_32_metrics_of_the_bundled_network():
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    values = [error(y_true, y_prob, metric) for metric in gce_metrics()]
    np.testing.assert_allclose(values, np.ravel(BUNDLED_GCE), rtol=0, atol=1e-12)


@pytest.mark.parametrize("column", range(4), ids=NETWORKS)
def test_metrics_and_named_members_of_other_networks(shared_data, column):
    goldens = json.loads((shared_data / "goldens.json").read_text())["models"][NETWORKS[column]]["gce32"]
    y_true, y_prob = network(shared_data, column)
    schemes = {"equal-width": "even", "equal-mass": "adaptive"}
    for m in gce_metrics():
        key = f"{schemes[m.scheme]}|max={m.max_prob}|class={m.class_conditional}|thr={m.threshold}|{m.norm}"
        assert error(y_true, y_prob, m) == pytest.approx(goldens[key], rel=0, abs=1e-12), m
    for name, (statistic, values) in NAMED.items():
        if values[column] is not None:
            assert error(y_true, y_prob, statistic) == pytest.approx(values[column], abs=1e-9), name


def test_named_members_are_members_where_conventions_agree():
    """The bundled predictions hold no exact 0 or 1."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    for named, general in (
        (SCE(), GCE()),
        (ClassConditionalECE(), GCE(max_prob=True)),
        (RMSCE(scheme="equal-width"), GCE(max_prob=True, class_conditional=False, norm="l2")),
    ):
        assert error(y_true, y_prob, named) == pytest.approx(error(y_true, y_prob, general), abs=1e-14), named
    confidence_ece = error(y_true, y_prob, caltest.ECE(caltest.EqualWidth(15)), lens=caltest.Confidence())
    top = error(y_true, y_prob, GCE(max_prob=True, class_conditional=False))
    assert top == pytest.approx(confidence_ece, abs=1e-14)


# By hand.

Y_TRUE = [0, 1, 1, 2]
Y_PROB = np.array([[0.5, 0.25, 0.25], [0.75, 0.125, 0.125], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]])


def test_static_error_by_hand():
    # Class 0: values 1/2, 3/4 above with one event, 1/8, 1/4 below without; and so on.
    by_class = [(0.25 + 0.375) / 4, (0.25 + 0.375) / 4, (0.5 + 0.5) / 4]
    assert error(Y_TRUE, Y_PROB, SCE(2)) == pytest.approx(sum(by_class) / 3, rel=1e-14)
    assert error(Y_TRUE, Y_PROB, SCE(2, average="sum")) == pytest.approx(sum(by_class), rel=1e-14)


def test_the_end_of_a_cell_that_belongs_to_it():
    # Closed on the right, 1/2 lies below: class 0 has 3/4 above alone, class 2 nothing.
    by_class = [(0.75 + 0.125) / 4, (0.25 + 0.375) / 4, 0.0]
    assert error(Y_TRUE, Y_PROB, SCE(2, closed="right")) == pytest.approx(sum(by_class) / 3, rel=1e-14)


def test_adaptive_error_by_hand():
    # Class 1: sorted 1/8, 1/4 | 1/4, 3/4; the tied 1/4 stays in the first cell.
    by_class = [3 / 16 + 1 / 8, 1 / 8 + 1 / 4, 1 / 8 + 1 / 8]
    assert error(Y_TRUE, Y_PROB, ACE(2)) == pytest.approx(sum(by_class) / 6, rel=1e-14)
    by_class = [(3 / 16 + 1 / 8) / 2, (3 * 1 / 8 + 1 / 4) / 4, (1 / 8 + 1 / 8) / 2]
    assert error(Y_TRUE, Y_PROB, ACE(2, cell_weight="observations")) == pytest.approx(sum(by_class) / 3, rel=1e-14)


def paper_ace(labels, prob, n_ranges, threshold=-1.0):
    """Equation of section 4.2 in loops: ranges of floor(N / R) sorted predictions, the last one with the rest."""
    total, n_classes = 0.0, len(prob[0])
    for k in range(n_classes):
        kept = sorted((row[k], y == k) for y, row in zip(labels, prob, strict=True) if row[k] > threshold)
        size = len(kept) // n_ranges
        for r in range(n_ranges):
            part = kept[r * size :] if r == n_ranges - 1 else kept[r * size : (r + 1) * size]
            total += abs(sum(hit for _, hit in part) - sum(p for p, _ in part)) / len(part)
    return total / (n_classes * n_ranges)


def test_adaptive_error_with_the_cells_of_the_paper():
    rng = np.random.default_rng(5)
    prob = rng.dirichlet(np.full(3, 0.4), 193)
    labels = rng.integers(3, size=193)
    for n_cells in (1, 4, 15):
        found = error(labels, prob, ACE(n_cells, "equal-mass-floor"))
        assert found == pytest.approx(paper_ace(labels, prob, n_cells), rel=1e-12)
        found = error(labels, prob, TACE(n_cells, 0.05, scheme="equal-mass-floor"))
        assert found == pytest.approx(paper_ace(labels, prob, n_cells, 0.05), rel=1e-12)
    whole = error(labels[:180], prob[:180], ACE(15, "equal-mass-floor"))
    assert whole == error(labels[:180], prob[:180], ACE(15)), "180 is a multiple of 15: there is no rest"
    assert error(labels, prob, ACE(15, "equal-mass-floor")) != error(labels, prob, ACE(15))


def test_cells_that_ties_leave_empty():
    y_true, y_prob = [1, 1, 0, 0], np.tile([0.25, 0.75], (4, 1))
    # One cell of gap 1/4 for each class: of two that are aimed at, or of one that holds observations.
    assert error(y_true, y_prob, ACE(2)) == 0.125
    assert error(y_true, y_prob, ACE(2, cell_weight="occupied")) == 0.25


def test_adaptive_error_of_the_top_prediction_by_hand():
    # Neumann: cell [1/2, 1] of confidences 1/2, 3/4, 3/4, 1/2, three right; a second cell of equal width is empty.
    neumann = ACE(2, "equal-width", max_prob=True, cell_weight="occupied")
    assert error(Y_TRUE, Y_PROB, neumann) == 0.125
    # In quarters: 1/2 of which all are right, 3/4 of which one is.
    neumann = ACE(4, "equal-width", max_prob=True, cell_weight="occupied")
    assert error(Y_TRUE, Y_PROB, neumann) == (0.5 + 0.25) / 2


def test_threshold_by_hand():
    # Above 1/4: class 0 has 1/2, 3/4 with one event, class 1 has 3/4 with one, class 2 has 1/2 with one.
    for statistic, expected in [
        (TACE(1, threshold=0.25), (0.125 + 0.25 + 0.5) / 3),
        (GCE(threshold=0.25, n_cells=1), (0.125 + 0.25 + 0.5) / 3),
        (GCE(threshold=0.25, n_cells=1, class_conditional=False), (3 - 2.5) / 4),
        (GCE(threshold=0.5, n_cells=1), (0.75 + 0.25 + 0) / 3),  # a class without entries counts 0, not left out
    ]:
        assert error(Y_TRUE, Y_PROB, statistic) == pytest.approx(expected, rel=1e-14), statistic


def test_root_mean_square_by_hand():
    expected = ((0.5**2 + 0.25**2) / 2) ** 0.5
    assert error(Y_TRUE, Y_PROB, RMSCE(4, "equal-width")) == pytest.approx(expected, rel=1e-14)
    assert error(Y_TRUE, Y_PROB, RMSCE(2)) == pytest.approx(expected, rel=1e-14)
    assert error(Y_TRUE, Y_PROB, RMSCE(samples_per_cell=2)) == error(Y_TRUE, Y_PROB, RMSCE(2))
    assert error(Y_TRUE, Y_PROB, RMSCE(samples_per_cell=100)) == error(Y_TRUE, Y_PROB, RMSCE(1))


def test_class_conditional_error_by_hand():
    # Predicted 0: 1/2 right, 3/4 wrong in one cell; predicted 1: 3/4 right; predicted 2: 1/2 right.
    gaps = [0.125, 0.25, 0.5]
    assert error(Y_TRUE, Y_PROB, ClassConditionalECE(1)) == pytest.approx(sum(gaps) / 3, rel=1e-14)
    by_share = (2 * 0.125 + 0.25 + 0.5) / 4
    assert error(Y_TRUE, Y_PROB, ClassConditionalECE(1, class_weight="observations")) == pytest.approx(
        by_share, rel=1e-14
    )


def test_certainties_have_a_separate_cell():
    """0.95 that is right and 1.0 that is wrong: 0.525 and not 0.475; with threshold 0 the exact zeros are dropped."""
    y_true, y_prob = [0, 1], [[0.95, 0.05], [1.0, 0.0]]
    top = GCE(max_prob=True, class_conditional=False)
    assert error(y_true, y_prob, top) == pytest.approx(0.525, rel=1e-14)
    assert error(y_true, y_prob, ClassConditionalECE()) == pytest.approx(0.475 / 2, rel=1e-14)
    assert error(y_true, y_prob, GCE()) == pytest.approx((0.525 + 0.05) / 2, rel=1e-14)
    assert error(y_true, y_prob, SCE()) == pytest.approx((0.475 + 0.475) / 2, rel=1e-14)


def test_the_top_prediction_behind_a_lens_may_be_the_rest():
    """Confidences 0.4, wrong, and 0.6, right: through the lens, two predictions of 0.6 that both happen."""
    y_true, y_prob = [1, 0], [[0.4, 0.3, 0.3], [0.6, 0.2, 0.2]]
    assert error(y_true, y_prob, RMSCE(1)) == pytest.approx(0, abs=1e-14)
    assert error(y_true, y_prob, RMSCE(1), lens=caltest.Confidence()) == pytest.approx(0.4, rel=1e-14)


def test_sides_of_a_cell_are_added_before_they_are_compared():
    """Pooled classes cancel in a cell where separate classes do not."""
    y_true, y_prob = [0] * 8, np.full((8, 2), 0.5)
    assert error(y_true, y_prob, GCE(class_conditional=False)) == 0
    assert error(y_true, y_prob, GCE()) == 0.5


# What must hold; each example takes a quarter of the 32 metrics.

QUARTER = st.sampled_from([slice(first, None, 4) for first in range(4)])


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(problem=problems(), n_cells=st.integers(1, 8))
def test_static_and_adaptive_errors_are_averages_over_class_wise_lenses(problem, n_cells):
    y_true, y_prob = problem
    for statistic, partition in [
        (SCE(n_cells), caltest.EqualWidth(n_cells)),
        (ACE(n_cells, cell_weight="observations"), caltest.EqualMass(n_cells)),
    ]:
        by_class = [
            error(y_true, y_prob, caltest.ECE(partition), lens=caltest.ClassWise(k)) for k in range(y_prob.shape[1])
        ]
        assert error(y_true, y_prob, statistic) == pytest.approx(np.mean(by_class), abs=1e-12)


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(problem=problems(), quarter=QUARTER, data=st.data())
def test_names_of_the_classes_do_not_matter(problem, quarter, data):
    """Where every entry is used; a tied top prediction goes to the smaller class."""
    y_true, y_prob = problem
    order = data.draw(st.permutations(range(y_prob.shape[1])))
    every = [metric for metric in gce_metrics(n_cells=3) if not metric.max_prob]
    for statistic in [SCE(), ACE(3), TACE(3, threshold=0.2), *every[quarter]]:
        other = error(np.argsort(order)[y_true], y_prob[:, order], statistic)
        assert error(y_true, y_prob, statistic) == pytest.approx(other, abs=1e-12), statistic


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(problem=problems(), quarter=QUARTER, data=st.data())
def test_a_whole_weight_is_a_repeated_observation(problem, quarter, data):
    """With cells of equal width; weights do not move the edges of equal mass."""
    y_true, y_prob = problem
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(y_true), max_size=len(y_true)).filter(any))
    wide = [metric for metric in gce_metrics() if metric.scheme == "equal-width"]
    for statistic in [
        *wide[quarter],
        SCE(),
        ClassConditionalECE(class_weight="observations"),
        RMSCE(scheme="equal-width"),
        UCE(),
    ]:
        weighted = error(y_true, y_prob, statistic, sample_weight=times)
        repeated = error(np.repeat(y_true, times), np.repeat(y_prob, times, axis=0), statistic)
        assert weighted == pytest.approx(repeated, abs=1e-12), statistic


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(problem=problems(), quarter=QUARTER)
def test_a_two_outcome_lens_shows_two_columns(problem, quarter):
    """Behind such a lens an error is that of the two-class problem the lens induces: the rest and the event."""
    y_true, y_prob = problem
    for lens in (caltest.Confidence(), caltest.ClassWise(0)):
        induced, happened = lens(y_prob, y_true)
        for statistic in [
            *gce_metrics(n_cells=3)[quarter],
            SCE(),
            ACE(2),
            TACE(),
            RMSCE(2),
            ClassConditionalECE(),
            UCE(),
        ]:
            behind = error(y_true, y_prob, statistic, lens=lens)
            values = naive.evaluate(statistic, induced, happened)
            assert behind == pytest.approx(values, abs=1e-12), (statistic, lens)


# Refusals.

REFUSED = {
    "scheme": (lambda: GCE("even"), ValueError, "`scheme` must be one of 'equal-width', 'equal-mass', got 'even'."),
    "max_prob": (lambda: GCE(max_prob=1), TypeError, "`max_prob` must be True or False, got 1."),
    "class_conditional": (
        lambda: GCE(class_conditional="yes"),
        TypeError,
        "`class_conditional` must be True or False, got 'yes'.",
    ),
    "threshold 1": (
        lambda: GCE(threshold=1),
        ValueError,
        "`threshold` must be a number of at least 0 and below 1, got 1.",
    ),
    "threshold None": (
        lambda: GCE(threshold=None),
        TypeError,
        "`threshold` must be a number of at least 0 and below 1, got None.",
    ),
    "threshold nan": (
        lambda: GCE(threshold=np.nan),
        ValueError,
        "`threshold` must be a number of at least 0 and below 1, got nan.",
    ),
    "norm": (lambda: GCE(norm="max"), ValueError, "`norm` must be one of 'l1', 'l2', got 'max'."),
    "n_cells": (lambda: GCE(n_cells=0), ValueError, "`n_cells` must be an integer >= 1, got 0."),
    "average": (lambda: SCE(average="median"), ValueError, "`average` must be one of 'mean', 'sum', got 'median'."),
    "closed": (lambda: SCE(closed="both"), ValueError, "`closed` must be one of 'left', 'right', got 'both'."),
    "scheme of ACE": (lambda: ACE(scheme="tree"), ValueError, "`scheme` must be one of"),
    "cell_weight": (
        lambda: ACE(cell_weight="none"),
        ValueError,
        "`cell_weight` must be one of 'cells', 'observations', 'occupied', got 'none'.",
    ),
    "threshold of TACE": (
        lambda: TACE(threshold=-0.1),
        ValueError,
        "`threshold` must be a number of at least 0 and below 1, got -0.1.",
    ),
    "n_cells of TACE": (lambda: TACE(2.5), TypeError, "`n_cells` must be an integer >= 1, got 2.5."),
    "samples_per_cell": (
        lambda: RMSCE(samples_per_cell=0),
        ValueError,
        "`samples_per_cell` must be an integer >= 1, got 0.",
    ),
    "samples_per_cell of equal width": (
        lambda: RMSCE(scheme="equal-width", samples_per_cell=100),
        ValueError,
        "`samples_per_cell` needs scheme=\"equal-mass\", got 'equal-width'.",
    ),
    "class_weight": (
        lambda: ClassConditionalECE(class_weight="sum"),
        ValueError,
        "`class_weight` must be one of 'equal', 'observations', got 'sum'.",
    ),
}


def test_bad_parameters_are_refused():
    def check(case):
        make, kind, message = case
        check_refused(make, kind, message)

    assert failures(REFUSED, check) == {}


# Level.

OTHERS = (SCE(), ACE(), TACE(), RMSCE(), RMSCE(scheme="equal-width"), ClassConditionalECE(), UCE())


def pvalues_under_calibration(n_data_sets, n_resamples=99):
    """P-values of calibrated predictions: each metric of the table, the global one, the others."""
    found = {}
    for i in range(n_data_sets):
        rng = np.random.default_rng(i)
        y_prob = rng.dirichlet(np.full(3, 0.5), size=200)
        y_true = draw_labels(y_prob, rng)
        table = caltest.gce_table(y_true, y_prob, n_resamples=n_resamples, rng=10**6 + i)
        others = caltest.calibration_test(
            y_true, y_prob, statistic=caltest.Omnibus(OTHERS), n_resamples=n_resamples, rng=10**6 + i
        )
        pvalues = {str(test.test_statistic): test.pvalue for test in (*table, *others.components)}
        for name, pvalue in {**pvalues, "global": table.pvalue}.items():
            found.setdefault(name, []).append(pvalue)
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
@pytest.mark.parametrize("n_data_sets", mostly_nightly([60, 250]))
def test_level(n_data_sets):
    """At most nominal within the one-sided binomial limit, shared by all metrics and levels."""
    pvalues = pvalues_under_calibration(n_data_sets)
    assert len(pvalues) == 32 + len(OTHERS) + 1
    limits = most_rejections(n_data_sets, len(pvalues) * len(LEVELS))
    rejected = {name: [int((values <= level).sum()) for level in LEVELS] for name, values in pvalues.items()}
    assert {name: counts for name, counts in rejected.items() if np.any(np.greater(counts, limits))} == {}
