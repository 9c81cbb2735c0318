"""Errors over all classes: the 32 of Nixon et al., their named members, the error of uncertainty, and the table."""

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

import caltest
from caltest import ACE, GCE, RMSCE, SCE, TACE, UCE, ClassConditionalECE
from caltest.hypothesis_tests._gce_table import NAMES
from caltest.predictions._sample import make_sample
from caltest.statistics._base import joint_null
from tests.reference import naive
from tests.reference.examples import draw_labels

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=40)
FALSE_ALARM = 1e-3

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
NETWORKS = ["cifar10_vgg19_bn", "cifar10_densenet121", "cifar10_googlenet", "cifar10_resnet_orig"]
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


def error(y_true, y_prob, statistic, **options):
    return caltest.calibration_error(y_true, y_prob, statistic=statistic, **options)


@cache
def all_metrics(n_cells=15):
    """The 32, in the order of the paper."""
    return tuple(
        GCE(scheme, max_prob, class_conditional, threshold, norm, n_cells)
        for scheme in ("equal-width", "equal-mass")
        for max_prob in (True, False)
        for class_conditional in (True, False)
        for threshold in (0.0, 0.01)
        for norm in ("l1", "l2")
    )


# Reference values.


def test_the_32_metrics_of_the_bundled_network():
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    values = [error(y_true, y_prob, metric) for metric in all_metrics()]
    np.testing.assert_allclose(values, np.ravel(BUNDLED_GCE), rtol=0, atol=1e-12)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_32_metrics_of_other_networks(shared_data, network):
    goldens = json.loads((shared_data / "goldens.json").read_text())["models"][network]["gce32"]
    with np.load(shared_data / f"{network}.npz") as data:
        y_true, y_prob = data["labels"], data["probs"]
    schemes = {"equal-width": "even", "equal-mass": "adaptive"}
    expected = [
        goldens[f"{schemes[m.scheme]}|max={m.max_prob}|class={m.class_conditional}|thr={m.threshold}|{m.norm}"]
        for m in all_metrics()
    ]
    values = [error(y_true, y_prob, metric) for metric in all_metrics()]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "column"), [(name, i) for name in NAMED for i in range(4) if NAMED[name][1][i] is not None]
)
def test_named_members(shared_data, name, column):
    statistic, values = NAMED[name]
    with np.load(shared_data / f"{NETWORKS[column]}.npz") as data:
        assert error(data["labels"], data["probs"], statistic) == pytest.approx(values[column], abs=1e-9)


def test_named_members_are_members_where_conventions_agree():
    """The bundled predictions hold no exact 0 or 1."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    pairs = [
        (SCE(), GCE()),
        (ClassConditionalECE(), GCE(max_prob=True)),
        (RMSCE(scheme="equal-width"), GCE(max_prob=True, class_conditional=False, norm="l2")),
    ]
    for named, general in pairs:
        assert error(y_true, y_prob, named) == pytest.approx(error(y_true, y_prob, general), abs=1e-14)
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
    assert error(Y_TRUE, Y_PROB, ACE(2, cell_weight="rows")) == pytest.approx(sum(by_class) / 3, rel=1e-14)


def test_cells_that_ties_leave_empty():
    y_true, y_prob = [1, 1, 0, 0], np.tile([0.25, 0.75], (4, 1))
    # One cell of gap 1/4 for each class: of two that are aimed at, or of one that holds rows.
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
        (GCE(threshold=0.5, n_cells=1), (0.75 + 0.25 + 0) / 3),  # a class without rows counts 0 and is not left out
    ]:
        assert error(Y_TRUE, Y_PROB, statistic) == pytest.approx(expected, rel=1e-14)


def test_root_mean_square_by_hand():
    expected = ((0.5**2 + 0.25**2) / 2) ** 0.5
    assert error(Y_TRUE, Y_PROB, RMSCE(4, "equal-width")) == pytest.approx(expected, rel=1e-14)
    assert error(Y_TRUE, Y_PROB, RMSCE(2)) == pytest.approx(expected, rel=1e-14)
    assert error(Y_TRUE, Y_PROB, RMSCE(rows_per_cell=2)) == error(Y_TRUE, Y_PROB, RMSCE(2))
    assert error(Y_TRUE, Y_PROB, RMSCE(rows_per_cell=100)) == error(Y_TRUE, Y_PROB, RMSCE(1))


def test_class_conditional_error_by_hand():
    # Predicted 0: 1/2 right, 3/4 wrong in one cell; predicted 1: 3/4 right; predicted 2: 1/2 right.
    gaps = [0.125, 0.25, 0.5]
    assert error(Y_TRUE, Y_PROB, ClassConditionalECE(1)) == pytest.approx(sum(gaps) / 3, rel=1e-14)
    by_share = (2 * 0.125 + 0.25 + 0.5) / 4
    assert error(Y_TRUE, Y_PROB, ClassConditionalECE(1, class_weight="rows")) == pytest.approx(by_share, rel=1e-14)


def test_certainties_have_a_cell_of_their_own():
    """0.95 that is right and 1.0 that is wrong: 0.525 and not 0.475; with threshold 0 the exact zeros are dropped."""
    y_true, y_prob = [0, 1], [[0.95, 0.05], [1.0, 0.0]]
    top = GCE(max_prob=True, class_conditional=False)
    assert error(y_true, y_prob, top) == pytest.approx(0.525, rel=1e-14)
    assert error(y_true, y_prob, ClassConditionalECE()) == pytest.approx(0.475 / 2, rel=1e-14)
    assert error(y_true, y_prob, GCE()) == pytest.approx((0.525 + 0.05) / 2, rel=1e-14)
    assert error(y_true, y_prob, SCE()) == pytest.approx((0.475 + 0.475) / 2, rel=1e-14)


def test_uncertainty_by_hand():
    # Entropy 1 and wrong in one of two, entropy 0 and right.
    assert error([0, 1, 0, 0], [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [1.0, 0.0]], UCE()) == 0.25
    # log 2 / log 4 = 1/2 belongs to the cell below: with 2 cells the same one as 0.
    y_prob = [[0.5, 0.5, 0, 0], [1.0, 0, 0, 0]]
    assert error([1, 0], y_prob, UCE(2)) == pytest.approx(abs(1 - 0.5) / 2, rel=1e-14)


def test_a_model_that_is_wrong_may_have_a_smaller_uncertainty_error():
    """What the docstring warns of: entropy is not the error rate of a calibrated model."""
    y_prob = np.tile([0.5, 0.25, 0.25], (400, 1))
    result = caltest.calibration_test(np.ones(400, int), y_prob, statistic=UCE(), n_resamples=99, rng=0)
    assert result.pvalue == 1
    assert result.statistic < result.noise_floor


# What must hold.


@st.composite
def problems(draw):
    """Rows of small integer odds: ties, zeros and ones are common."""
    n_classes = draw(st.integers(2, 4))
    odds = st.lists(st.integers(0, 4), min_size=n_classes, max_size=n_classes).filter(any)
    rows = draw(st.lists(odds, min_size=1, max_size=16))
    labels = draw(st.lists(st.integers(0, n_classes - 1), min_size=len(rows), max_size=len(rows)))
    prob = np.array(rows, dtype=float)
    return np.array(labels), prob / prob.sum(axis=1, keepdims=True)


@PROFILE
@given(problem=problems(), n_cells=st.integers(1, 8))
def test_static_and_adaptive_errors_are_averages_over_class_wise_lenses(problem, n_cells):
    y_true, y_prob = problem
    for statistic, partition in [
        (SCE(n_cells), caltest.EqualWidth(n_cells)),
        (ACE(n_cells, cell_weight="rows"), caltest.EqualMass(n_cells)),
    ]:
        by_class = [
            error(y_true, y_prob, caltest.ECE(partition), lens=caltest.ClassWise(k)) for k in range(y_prob.shape[1])
        ]
        assert error(y_true, y_prob, statistic) == pytest.approx(np.mean(by_class), abs=1e-12)


@PROFILE
@given(problem=problems(), data=st.data())
def test_names_of_the_classes_do_not_matter(problem, data):
    """Where every entry is looked at; a tied top prediction goes to the smaller class."""
    y_true, y_prob = problem
    order = data.draw(st.permutations(range(y_prob.shape[1])))
    for statistic in [SCE(), ACE(3), TACE(3, threshold=0.2), *(m for m in all_metrics(3) if not m.max_prob)]:
        other = error(np.argsort(order)[y_true], y_prob[:, order], statistic)
        assert error(y_true, y_prob, statistic) == pytest.approx(other, abs=1e-12)


@PROFILE
@given(problem=problems(), data=st.data())
def test_a_whole_weight_is_a_repeated_row(problem, data):
    """With cells of equal width; weights do not move the edges of equal mass."""
    y_true, y_prob = problem
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(y_true), max_size=len(y_true)).filter(any))
    wide = [m for m in all_metrics() if m.scheme == "equal-width"]
    for statistic in [*wide, SCE(), ClassConditionalECE(class_weight="rows"), RMSCE(scheme="equal-width"), UCE()]:
        weighted = error(y_true, y_prob, statistic, sample_weight=times)
        repeated = error(np.repeat(y_true, times), np.repeat(y_prob, times, axis=0), statistic)
        assert weighted == pytest.approx(repeated, abs=1e-12)


@PROFILE
@given(problem=problems())
def test_a_two_outcome_lens_shows_two_columns(problem):
    """Behind such a lens an error is that of the two-class problem the lens induces: the rest and the event."""
    y_true, y_prob = problem
    for lens in (caltest.Confidence(), caltest.ClassWise(0)):
        induced, happened = lens(y_prob, y_true)
        for statistic in [*all_metrics(3), SCE(), ACE(2), TACE(), RMSCE(2), ClassConditionalECE(), UCE()]:
            behind = error(y_true, y_prob, statistic, lens=lens)
            values = naive.evaluate(statistic, induced, happened)
            assert behind == pytest.approx(values, abs=1e-12)


def test_the_top_prediction_behind_a_lens_may_be_the_rest():
    """Confidences 0.4, wrong, and 0.6, right: seen through the lens, two predictions of 0.6 that both happen."""
    y_true, y_prob = [1, 0], [[0.4, 0.3, 0.3], [0.6, 0.2, 0.2]]
    assert error(y_true, y_prob, RMSCE(1)) == pytest.approx(0, abs=1e-14)
    assert error(y_true, y_prob, RMSCE(1), lens=caltest.Confidence()) == pytest.approx(0.4, rel=1e-14)


def test_sides_of_a_cell_are_added_before_they_are_compared():
    """Pooled classes cancel in a cell where classes apart do not."""
    y_true, y_prob = [0] * 8, np.full((8, 2), 0.5)
    assert error(y_true, y_prob, GCE(class_conditional=False)) == 0
    assert error(y_true, y_prob, GCE()) == 0.5


def reversed_probabilities(prob):
    """A known calibration function."""
    return prob[:, ::-1]


@pytest.mark.parametrize("statistic", [GCE("equal-mass", norm="l2"), SCE(4), RMSCE(3), UCE(3)], ids=str)
def test_residuals_are_centred_on_a_known_calibration_function(statistic):
    rng = np.random.default_rng(3)
    y_prob = rng.dirichlet(np.ones(3), size=40)
    y_true = draw_labels(y_prob[:, ::-1], rng)
    scheme = caltest.Consistency(calibration_function=reversed_probabilities)
    result = caltest.calibration_test(y_true, y_prob, statistic=statistic, resampling=scheme, n_resamples=19, rng=0)
    expected = naive.evaluate(statistic, y_prob, y_true, expected=reversed_probabilities(y_prob))
    assert result.statistic == pytest.approx(expected, rel=1e-12)
    assert result.pvalue > 0.05


@pytest.mark.parametrize("statistic", [GCE(), ACE(3), UCE(3)], ids=str)
def test_resampled_rows_are_cut_anew(statistic):
    rng = np.random.default_rng(4)
    y_prob = rng.dirichlet(np.ones(3), size=30)
    sample = make_sample(draw_labels(y_prob, rng), y_prob)
    draws = caltest.Consistency(resample_predictions=True).draws(5, rng=1)
    expected = [naive.evaluate(statistic, drawn.prob, outcomes[0]) for drawn, outcomes in draws.blocks(sample)]
    np.testing.assert_allclose(statistic.null(sample, draws), expected, rtol=1e-12, atol=1e-12)


def test_resampled_rows_in_sparse_cells_are_warned_of():
    rng = np.random.default_rng(8)
    y_prob = rng.dirichlet(np.ones(3), size=30)
    rows = caltest.Consistency(resample_predictions=True)
    with pytest.warns(caltest.CalibrationWarning) as warned:
        caltest.calibration_test(draw_labels(y_prob, rng), y_prob, statistic=SCE(), resampling=rows, n_resamples=19)
    assert any("of the rows lie in cells of SCE() with fewer than 10 rows" in str(w.message) for w in warned)


PREDICTIONS = {
    "sharp": lambda rng: rng.dirichlet(np.full(10, 0.005), size=2500),
    "vague": lambda rng: rng.dirichlet(np.ones(10), size=2500),
    "sharp, then vague": lambda rng: np.concatenate([PREDICTIONS["sharp"](rng), PREDICTIONS["vague"](rng)]),
    "certain": lambda rng: np.eye(4)[rng.integers(4, size=1100)],
    "nearly certain": lambda rng: np.abs(np.eye(6)[rng.integers(6, size=1100)] - 1e-9 / np.array([1, 5, 5, 5, 5, 5])),
    "two classes": lambda rng: rng.dirichlet([0.05, 0.05], size=1500),
    "300 classes": lambda rng: rng.dirichlet(np.full(300, 0.0005), size=1500),
}


@pytest.mark.parametrize("name", PREDICTIONS)
def test_counting_while_drawing_is_counting_what_was_drawn(name):
    """Over several tiles of rows, sharp and vague ones; the same draws, to the bit."""
    y_prob = PREDICTIONS[name](np.random.default_rng(5))
    y_prob /= y_prob.sum(axis=1, keepdims=True)
    sample = make_sample(np.argmax(y_prob, axis=1), y_prob)
    draws = caltest.Consistency().draws(300, rng=6)
    for statistic in (GCE("equal-mass", norm="l2"), SCE(), RMSCE(), UCE()):
        np.testing.assert_array_equal(statistic.null(sample, draws), joint_null([statistic], sample, draws)[0])


def test_more_cells_than_a_short_integer_counts():
    rng = np.random.default_rng(7)
    y_prob = rng.dirichlet(np.ones(3), size=10)
    y_true = draw_labels(y_prob, rng)
    fine = error(y_true, y_prob, SCE(30_000))
    assert fine == pytest.approx(naive.evaluate(SCE(30_000), y_prob, y_true), abs=1e-12)
    null = caltest.calibration_test(y_true, y_prob, statistic=SCE(30_000), n_resamples=9, rng=0).null_distribution
    assert null.shape == (9,)


def test_threads_change_nothing():
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    options = {"statistic": SCE(), "n_resamples": 600, "rng": 1}
    one, two = (caltest.calibration_test(y_true, y_prob, **options, workers=workers) for workers in (1, 2))
    np.testing.assert_array_equal(one.null_distribution, two.null_distribution)


# The table.


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.full(4, 0.5), size=300)
    return draw_labels(y_prob, rng), y_prob


@pytest.fixture(scope="module")
def table(problem):
    return caltest.gce_table(*problem, n_resamples=699, rng=3)


def test_rows_are_the_tests_themselves(problem, table):
    assert table.metrics == all_metrics()
    for metric, row in zip(table.metrics, table, strict=True):
        alone = caltest.calibration_test(*problem, statistic=metric, n_resamples=699, rng=3)
        assert tuple(row) == tuple(alone)
        np.testing.assert_array_equal(row.null_distribution, alone.null_distribution)
        assert row.name == alone.name


def test_names_of_the_paper(table):
    """Appendix C: class-conditional ECE is metric 0, ECE 4, SCE 8, RMSCE 21, ACE 24; TACE is ACE above a threshold."""
    named = {name: i for i, name in enumerate(table.names) if name}
    assert named == {"class-conditional ECE": 0, "ECE": 4, "SCE": 8, "RMSCE": 21, "ACE": 24, "TACE": 26}
    assert set(named) == set(NAMES.values())


def test_corrected_and_global_pvalues(problem):
    table = caltest.gce_table(*problem, n_resamples=99, rng=3)
    expected = multipletests([row.pvalue for row in table], method="holm")[1]
    np.testing.assert_allclose(table.pvalue_corrected, expected)
    ranks = [naive.tail_pvalues([row.statistic, *row.null_distribution]) for row in table]
    assert table.pvalue == pytest.approx(naive.combine_pvalues(ranks)[0], abs=1e-14)


def test_threads_change_no_table(problem, table):
    other = caltest.gce_table(*problem, n_resamples=699, rng=3, workers=2)
    assert [tuple(row) for row in other] == [tuple(row) for row in table]
    assert other.pvalue == table.pvalue


def test_report_frame_and_json(table):
    text = str(table)
    assert len(text.splitlines()) > 32
    for part in ("noise floor", "p (Holm)", "equal-mass", "class-conditional ECE", "global p-value"):
        assert part in text
    frame = table.to_frame()
    assert frame.shape == (32, 10)
    assert frame["pvalue"].tolist() == [row.pvalue for row in table]
    assert frame.set_index("name").loc["SCE", "statistic"] == table.rows[8].statistic
    content = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert content["pvalue"] == table.pvalue
    assert content["rows"][24]["name"] == "GCE(scheme='equal-mass')"
    assert "<pre>" in table._repr_html_()


def test_options_of_the_table(problem):
    small = caltest.gce_table(*problem, threshold=0.2, n_cells=4, n_resamples=9, rng=0)
    assert {metric.threshold for metric in small.metrics} == {0.0, 0.2}
    assert {metric.n_cells for metric in small.metrics} == {4}
    named = caltest.gce_table(
        np.array(["a", "b", "c", "d"])[problem[0]], problem[1], classes=["a", "b", "c", "d"], n_resamples=9, rng=0
    )
    assert named.rows[8].statistic == error(*problem, GCE())


def test_a_constant_model_makes_a_table():
    y_prob = np.tile([0.5, 0.25, 0.25], (40, 1))
    table = caltest.gce_table(np.resize([0, 1, 0, 2], 40), y_prob, n_resamples=99, rng=0)
    assert table.pvalue > 0.05
    str(table)


def test_an_impossible_label_makes_every_pvalue_smallest_and_is_told_once():
    y_prob = np.array([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]] * 20)
    table = caltest.gce_table(np.array([0, 1] + [1, 2] * 19), y_prob, n_resamples=99, rng=0)
    assert {row.pvalue for row in table} == {table.pvalue} == {0.01}
    assert sum("had been given probability 0" in note for note in table.notes) == 1


def test_progress_is_told(problem):
    told = []
    caltest.gce_table(*problem, n_resamples=20, rng=0, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (20, 20)


# Refusals.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GCE("even"), r"`scheme` must be one of 'equal-width', 'equal-mass', got 'even'"),
        (lambda: GCE(max_prob=1), r"`max_prob` must be True or False, got 1"),
        (lambda: GCE(class_conditional="yes"), r"`class_conditional` must be True or False, got 'yes'"),
        (lambda: GCE(threshold=1), r"`threshold` must be a number of at least 0 and below 1, got 1"),
        (lambda: GCE(threshold=None), r"`threshold` must be a number of at least 0 and below 1, got None"),
        (lambda: GCE(threshold=np.nan), r"`threshold` must be a number of at least 0 and below 1, got nan"),
        (lambda: GCE(norm="max"), r"`norm` must be one of 'l1', 'l2', got 'max'"),
        (lambda: GCE(n_cells=0), r"`n_cells` must be an integer >= 1, got 0"),
        (lambda: SCE(average="median"), r"`average` must be one of 'mean', 'sum', got 'median'"),
        (lambda: SCE(closed="both"), r"`closed` must be one of 'left', 'right', got 'both'"),
        (lambda: ACE(scheme="tree"), r"`scheme` must be one of"),
        (lambda: ACE(cell_weight="none"), r"`cell_weight` must be one of 'cells', 'rows', 'occupied', got 'none'"),
        (lambda: TACE(threshold=-0.1), r"`threshold` must be a number of at least 0 and below 1, got -0.1"),
        (lambda: TACE(2.5), r"`n_cells` must be an integer >= 1, got 2.5"),
        (lambda: RMSCE(rows_per_cell=0), r"`rows_per_cell` must be an integer >= 1, got 0"),
        (
            lambda: RMSCE(scheme="equal-width", rows_per_cell=100),
            r"`rows_per_cell` needs scheme=\"equal-mass\", got 'equal-width'",
        ),
        (lambda: ClassConditionalECE(class_weight="sum"), r"`class_weight` must be one of 'equal', 'rows', got 'sum'"),
        (lambda: UCE(-1), r"`n_cells` must be an integer >= 1, got -1"),
        (lambda: caltest.gce_table([0, 1], [0.2, 0.7], threshold=2), r"`threshold` must be a number .* got 2"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


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
        pvalues = {row.name: row.pvalue for row in (*table, *others.components)} | {"global": table.pvalue}
        for name, pvalue in pvalues.items():
            found.setdefault(name, []).append(pvalue)
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.slow
def test_level():
    """At most nominal within the one-sided binomial limit, shared by all metrics and levels."""
    n_data_sets, levels = 2000, (0.01, 0.05, 0.1)
    pvalues = pvalues_under_calibration(n_data_sets)
    assert len(pvalues) == 32 + len(OTHERS) + 1
    limits = [binom.ppf(1 - FALSE_ALARM / (len(pvalues) * len(levels)), n_data_sets, level) for level in levels]
    rejected = {name: [int((values <= level).sum()) for level in levels] for name, values in pvalues.items()}
    assert {name: counts for name, counts in rejected.items() if np.any(np.greater(counts, limits))} == {}
