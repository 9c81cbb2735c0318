"""The sample size of a validation: published numbers, and the standard errors that simulated validations have."""

import math

import numpy as np
import pytest
from scipy.special import expit, ndtri

from caltest.clinical import clinical_sample_size
from tests.reference.r_random import RRandom

Z = ndtri(0.975)


def risks_with(prevalence, c):
    """Calibrated risks, of which one value is 0, with a prevalence and a c-statistic (both with few digits)."""
    others = 2 * (1 - c) * (1 - prevalence)  # share of patients without the event who have the larger risk
    large = prevalence + others
    return np.repeat([prevalence / large, 0.0], [round(10_000 * large), round(10_000 * (1 - large))])


def number(risks, measure, **more):
    widths = {measure: more.pop("width")}
    (found,) = clinical_sample_size(risks, widths=widths, **more).criteria
    return found.n_samples


def steps_to(width):
    """The standard error of pmvalsampsize, in steps of 0.0001, and the width that it leads to."""
    steps = 1
    while 2 * math.sinh(1.96e-4 * steps) < width:
        steps += 1
    return 2 * math.sinh(Z * 1e-4 * steps)


def test_the_numbers_of_pmvalsampsize():
    """Help page and tests/testthat/test_bin.R of pmvalsampsize 0.1.0 (CRAN): prevalence 0.018, c 0.8, O/E width 1.

    905 patients for O/E and 4252 for the c-statistic. For the slope 4501 with ``rnorm(1000, -5, 2.5)``, 1641 with
    ``rbeta(1000, 0.5, 0.5)`` and 16175 with ``lpcstat=-4.7``, drawn as in R. Its quantile is 1.96.
    """
    ratio, risks = Z / 1.96, risks_with(0.018, 0.8)
    assert number(risks, "observed_expected", width=steps_to(1)) == 905
    assert number(risks, "c_statistic", width=0.1 * ratio, c_statistic=0.8) == 4252
    assert number(risks, "c_statistic", width=0.1 * ratio) == 4252  # the c-statistic of the risks
    lp = -5 + 2.5 * RRandom(123456).normal(1000)
    assert number(expit(lp), "calibration_slope", width=0.2 * ratio) == 4501
    beta = np.loadtxt("tests/reference/beta_risks.csv", skiprows=1)  # tests/reference/validation.R
    assert number(beta, "calibration_slope", width=0.2 * ratio) == 1641
    assert number(expit(binormal(0.018, 0.8, -4.7)), "calibration_slope", width=0.2 * ratio) == 16175


@pytest.mark.parametrize(
    ("prevalence", "c", "width", "slope_width", "c_width", "lp", "patients"),
    [
        (0.018, 0.8, 1.0, 0.2, 0.1, ("normal", -5, 2.5), (905, 4534, 4252)),
        (0.43, 0.8, 0.2, 0.2, 0.1, ("beta", 1.33, 1.75), (510, 2053, 308)),
        (0.2, 0.75, 0.4, 0.3, 0.15, ("normal", -1.7, 1.0), (390, 1696, 253)),
    ],
)
def test_the_program_pmvalsampsize(prevalence, c, width, slope_width, c_width, lp, patients):
    """pmvalsampsize 0.2.1 of PyPI, the authors' program in Python, run with ``simobs=1000``: NumPy's seed is 123456."""
    ratio, risks = Z / 1.96, risks_with(prevalence, c)
    drawn = getattr(np.random.RandomState(123456), lp[0])(*lp[1:], 1000)
    drawn = expit(drawn) if lp[0] == "normal" else drawn
    assert number(risks, "observed_expected", width=steps_to(width)) == patients[0]
    assert number(drawn, "calibration_slope", width=slope_width * ratio) == patients[1]
    assert number(risks, "c_statistic", width=c_width * ratio, c_statistic=c) == patients[2]


def binormal(prevalence, c, mean, n=10_000, seed=1234):
    """Linear predictors of a c-statistic, whose mean without the event moves by 0.1 until the prevalence is met.

    They are ``lpcstat`` of pmvalsampsize, with the numbers that R draws.
    """
    rng, variance, sign, before = RRandom(seed), 2 * ndtri(c) ** 2, 1, None
    while True:
        happened = rng.binary(np.full(n, prevalence))
        without, with_event = (at + math.sqrt(variance) * rng.normal(n) for at in (mean, mean + variance))
        found = np.where(happened, with_event, without)
        gap = abs(prevalence - rng.binary(expit(found)).mean())
        if gap <= 5e-4:
            return found
        if before is not None and sign > 0 and gap >= before:
            sign = -1
        before = math.inf if before is not None else gap
        mean += 0.1 * sign


@pytest.mark.parametrize(("prevalence", "c", "patients"), [(0.1, 0.7, 1154), (0.5, 0.8, 302), (0.018, 0.75, 5125)])
def test_the_c_statistics_of_the_paper(prevalence, c, patients):
    """Riley et al. (2021), section on the c-statistic: a width of 0.1."""
    assert number(risks_with(prevalence, c), "c_statistic", width=0.1 * Z / 1.96) == patients


@pytest.mark.parametrize(("prevalence", "error", "patients"), [(0.5, 0.051, 385), (0.1, 0.175, 294)])
def test_the_ratios_of_the_paper(prevalence, error, patients):
    """Riley et al. (2021), equation 5: 384.5 and 293.9 patients for standard errors of ln(O/E)."""
    risks = np.full(3, prevalence)
    assert number(risks, "observed_expected", width=2 * math.sinh(Z * error)) == patients


def test_net_benefit_is_that_of_the_formula():
    """As pmvalsampsize computes it (R/pmvalsampsize_bin.R), for sensitivity 0.8 and specificity 0.6."""
    share, sensitivity, specificity, cut = 0.2, 0.8, 0.6, 0.25
    treated = sensitivity * share + (1 - specificity) * (1 - share)
    high, low = sensitivity * share / treated, (1 - sensitivity) * share / (1 - treated)
    risks = np.repeat([high, low], [round(100 * treated), round(100 * (1 - treated))])
    found = clinical_sample_size(risks, thresholds=[cut], widths={"net_benefit": 0.2}).criteria[0]
    w = (1 - share) / share * cut / (1 - cut)
    variance = sensitivity * (1 - sensitivity) / share + w**2 * specificity * (1 - specificity) / (1 - share)
    variance += w**2 * (1 - specificity) ** 2 / (share * (1 - share))
    assert found.anticipated == pytest.approx(sensitivity - w * (1 - specificity))
    assert found.n_samples == math.ceil(variance / (0.1 / Z) ** 2)
    everybody = clinical_sample_size(risks, thresholds=[0.01], widths={"net_benefit": 0.2}).criteria[0]
    assert everybody.anticipated == pytest.approx(1 - 4 * 0.01 / 0.99)


def regression(design, y, offset):
    """The coefficients of a logistic regression, by Newton's steps."""
    found = np.zeros(design.shape[1])
    for _ in range(8):
        p = expit(offset + design @ found)
        found += np.linalg.solve(design.T * (p * (1 - p)) @ design, design.T @ (y - p))
    return found


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_simulated_validations_have_these_standard_errors(shift):
    """Patients of 300 validations are drawn from the risks: the estimates vary as much as the formulas say.

    The events of patients with known risks vary less than the formula of O/E, by a factor that is known. Newcombe's
    standard error of c approximates: it is compared with the logistic model of a normal logit, where he found it right.
    """
    rng, sets = np.random.default_rng(1), 300
    logit = rng.normal(-1, 1, 40_000)
    risks, truth = expit(logit), expit(shift + logit)
    widths = {
        "observed_expected": 0.3,
        "intercept": 0.4,
        "calibration_slope": 0.4,
        "c_statistic": 0.1,
        "net_benefit": 0.3,
    }
    widths["net_benefit"] = 0.3
    plan = clinical_sample_size(risks, prevalence=truth.mean(), thresholds=[0.3], widths=widths)
    n, share = plan.n_samples, truth.mean()
    values = {name: [] for name in widths}
    for _ in range(sets):
        rows = rng.integers(len(risks), size=n)
        p, y = risks[rows], rng.random(n) < truth[rows]
        x, one = logit[rows], np.ones((n, 1))
        values["observed_expected"].append(math.log(y.mean() / p.mean()))
        values["intercept"].append(regression(one, y, x)[0])
        values["calibration_slope"].append(regression(np.column_stack([one, x]), y, 0.0)[1])
        values["c_statistic"].append(np.mean(p[y][:, None] > p[~y]))
        gain = y * 1.0 - 0.3 / 0.7 * ~y
        values["net_benefit"].append((gain * (p >= 0.3)).mean() / y.mean())
    for criterion in plan.criteria:
        expected = criterion.standard_error * math.sqrt(criterion.n_samples / n)
        if criterion.measure == "observed_expected":
            expected *= math.sqrt((truth * (1 - truth)).mean() / (share * (1 - share)))
        found = np.std(values[criterion.measure], ddof=1)
        assert abs(found / expected - 1) < 4 / math.sqrt(2 * (sets - 1)), criterion.measure
        if criterion.measure != "observed_expected":
            error = expected / math.sqrt(sets)
            assert abs(np.mean(values[criterion.measure]) - criterion.anticipated) < 4 * error + 1 / n


def test_the_largest_decides():
    risks = np.random.default_rng(0).beta(2, 6, 400)
    found = clinical_sample_size(risks)
    assert [one.measure for one in found.criteria] == ["observed_expected", "calibration_slope", "c_statistic"]
    assert found.n_samples == max(one.n_samples for one in found.criteria)
    assert found.n_events == pytest.approx(found.n_samples * risks.mean())
    assert found.conclusion in " ".join(str(found).split())
    assert found.to_dict()["n_samples"] == found.n_samples
    half = clinical_sample_size(risks, alpha=0.5)
    assert half.confidence_level == 0.5
    assert half.n_samples < found.n_samples


def test_predictions_of_0_and_1():
    risks = np.array([0.0, 0.0, 0.2, 0.4, 0.6, 1.0])
    found = clinical_sample_size(risks, prevalence=0.4, widths={"calibration_slope": 0.5, "intercept": 1})
    v, x = (risks * (1 - risks))[2:5], np.log(risks[2:5] / (1 - risks[2:5]))
    shifted = found.criteria[0].anticipated + x
    assert expit(shifted).sum() + 1 == pytest.approx(0.4 * 6)
    v = expit(shifted) * expit(-shifted)
    error = found.criteria[1].standard_error
    inverse = np.linalg.inv([[v.sum() / 6, (v * x).sum() / 6], [(v * x).sum() / 6, (v * x * x).sum() / 6]])
    assert found.criteria[1].n_samples == math.ceil(inverse[1, 1] / error**2)


@pytest.mark.parametrize(
    ("risks", "more", "words"),
    [
        ([0.1, 0.1], {}, "`y_prob` must hold different risks"),
        ([0.0, 1.0], {}, "`y_prob` must hold risks other than 0 and 1"),
        (np.full((3, 3), 1 / 3), {}, "the predicted risk of one event, got 3 classes"),
        ([0.1, 0.2], {"prevalence": 1.0}, "`prevalence` must lie strictly between 0 and 1"),
        ([0.1, 0.0], {"prevalence": 0.5}, "`prevalence` must be possible"),
        ([0.1, 0.2], {"c_statistic": 0.3}, "`c_statistic` must be at least 0.5, got 0.3"),
        ([0.1, 0.2], {"thresholds": [0.5]}, "`thresholds` must be reached"),
        ([0.1, 0.2], {"thresholds": [0]}, "`thresholds` must be risks strictly"),
        ([0.1, 0.2], {"slope": -1}, "`slope` must be"),
        ([0.1, 0.2], {"widths": {"ICI": 0.1}}, r"`widths` must name at least one of .*, got \['ICI'\]"),
        ([0.1, 0.2], {"widths": {}}, "`widths` must name at least one"),
        ([0.1, 0.2], {"widths": {"net_benefit": 0.1}}, "`widths` has a net benefit, which needs `thresholds`"),
        ([0.1, 0.2], {"widths": {"c_statistic": 0}}, r"widths\['c_statistic'\]"),
    ],
)
def test_bad_values(risks, more, words):
    with pytest.raises(ValueError, match=words):
        clinical_sample_size(risks, **more)


def test_bad_types():
    with pytest.raises(TypeError, match="`widths` must map names"):
        clinical_sample_size([0.1, 0.2], widths=0.2)
