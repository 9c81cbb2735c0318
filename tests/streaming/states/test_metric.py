"""The metric: one call of the function, whatever the batches, their kind and the order of merging are."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caltest
from caltest import ECE, CalibrationMetric, EqualWidth
from caltest.statistics import Kuiper
from caltest.streaming import CalibrationState


def problem(n=300, n_classes=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes))
    prob = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)).astype(dtype)
    label = (rng.random((n, 1)) > prob.cumsum(axis=1)).sum(axis=1)
    return np.minimum(label, n_classes - 1), prob


def fed(y, p, *cuts, **made):
    metric = CalibrationMetric(**made)
    for rows in np.split(np.arange(len(y)), cuts):
        metric.update(y[rows], p[rows])
    return metric


def usual(y, p):
    lens = caltest.Canonical() if p.ndim == 1 or p.shape[1] == 2 else caltest.Confidence()
    return caltest.calibration_error(y, p, statistic=ECE(EqualWidth(15)), lens=lens)


@pytest.mark.slow(few_draws=True)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_batches_in_any_order_are_one_call(data):
    n_classes = data.draw(st.sampled_from([2, 3, 10]))
    y, p = problem(60, n_classes, data.draw(st.sampled_from([np.float32, np.float64])), seed=n_classes)
    cuts = sorted(data.draw(st.sets(st.integers(1, 59), max_size=8)))
    expected = usual(y, p)
    assert fed(y, p, *cuts).compute() == expected  # the same bits: the order is that of the call
    parts = [CalibrationMetric().update(y[rows], p[rows]) for rows in np.split(np.arange(60), cuts)]
    order = data.draw(st.permutations(range(len(parts))))
    ends = CalibrationMetric().merge_state(*(parts[k] for k in order))
    pairs = parts[order[0]]
    for k in order[1:]:
        pairs = parts[k].merge_state(pairs)
    for merged in (ends, pairs):
        assert merged.n_samples == 60
        assert merged.compute() == pytest.approx(expected, rel=1e-12)  # sums in another order


def test_it_is_the_metric_of_torchmetrics():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'caltest[torch]'")
    theirs = pytest.importorskip(
        "torchmetrics.classification", reason="torchmetrics is not installed: pip install torchmetrics"
    )
    y, p = problem(2000, dtype=np.float32)
    for n_classes, prob, label, other in [
        (4, p, y, theirs.MulticlassCalibrationError(4)),
        (2, p[:, 1], (y == 1).astype(int), theirs.BinaryCalibrationError()),
    ]:
        metric, pairs = CalibrationMetric(), zip(np.split(label, 4), np.split(prob, 4), strict=True)
        for labels, preds in pairs:
            other.update(torch.tensor(preds), torch.tensor(labels))
            metric.update(torch.tensor(labels), torch.tensor(preds, requires_grad=True))
        assert isinstance(metric.compute(), float)
        assert metric.compute() == pytest.approx(float(other.compute()), rel=1e-4), n_classes  # theirs is float32


def test_kinds_of_batches_and_memory():
    y, p = problem(n_classes=3)
    expected = usual(y, p)
    assert fed(y, p, 100).compute() == expected
    frame = pd.DataFrame(p, columns=["a", "b", "c"])
    label = np.array(["a", "b", "c"])[y]
    named = CalibrationMetric().update(label[:100], frame[:100]).update(label[100:], frame.loc[100:, ["c", "a", "b"]])
    assert named.compute() == expected
    assert fed(label, p, 7, classes=["a", "b", "c"]).compute() == expected
    assert "class" in str(fed(label, p, classes=["a", "b", "c"], lens=caltest.ClassWise(1)).test(rng=0))
    y, p = problem(n_classes=2)
    assert fed(y == 1, p[:, 1], 50).compute() == fed(y, p, 50).compute() == usual(y, p)
    small, large = (fed(*problem(n_classes=5, dtype=kind)) for kind in (np.float32, np.float64))
    assert [each._probs[0].nbytes for each in (small, large, fed(y, p))] == [300 * 20, 300 * 40, 300 * 8]


def test_batches_are_copies():
    y, p = problem()
    metric, labels, probs = CalibrationMetric(), y.copy(), p.copy()
    metric.update(labels, probs)
    labels[:], probs[:] = 0, 0.25
    assert metric.compute() == usual(y, p)


def test_the_statistic_the_lens_and_the_state_in_constant_memory():
    y, p = problem(1000)
    metric = fed(y, p, 300, statistic="Kuiper", lens=caltest.ClassWise(2))
    assert metric.compute() == caltest.calibration_error(y, p, statistic=Kuiper(), lens=caltest.ClassWise(2))
    state = CalibrationState(4).update(y, p)
    assert fed(y, p, 300).compute() == pytest.approx(state.error(), rel=1e-9)


def test_the_verdict_is_that_of_the_test():
    y, p = problem(400)
    options = {"n_resamples": 199, "rng": 3}
    found, expected = fed(y, p, 100).test(**options), caltest.calibration_test(y, p, **options)
    assert (found.pvalue, found.conclusion) == (expected.pvalue, expected.conclusion)
    lens, groups = caltest.ClassWise(1), np.arange(400) // 4
    found = fed(y, p, 100, lens=lens).test(groups=groups, **options)
    assert found.pvalue == caltest.calibration_test(y, p, lens=lens, groups=groups, **options).pvalue
    assert fed(y, p, lens=lens).test(lens=caltest.Confidence(), **options).lens == caltest.Confidence()


def test_reset_and_copies():
    y, p = problem()
    metric = fed(y, p, 10)
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert twin.compute() == usual(y, p)
        assert metric.merge_state(twin).n_samples > twin.n_samples == 300
    assert repr(metric) == "CalibrationMetric(statistic=ECE(partition=EqualWidth(15))), 900 observations"
    assert metric.reset().n_samples == 0
    assert metric.update([0, 1], [0.25, 0.5]).n_samples == 2  # two classes now


@pytest.mark.parametrize(("n", "n_classes"), [(1, 2), (2, 2), (1, 3), (2, 1000), (50, 1000)])
def test_odd_sizes(n, n_classes):
    y, p = problem(n, n_classes)
    for prob in (p, p.astype(np.float32), np.eye(n_classes)[y], np.full((n, n_classes), 1 / n_classes)):
        metric = CalibrationMetric()
        for row in range(n):
            metric.update(y[row : row + 1], prob[row : row + 1])
        assert metric.compute() == usual(y, prob)


def test_logits():
    y, p = problem(n_classes=3)
    logits = np.log(p) + 7
    assert fed(y, logits, 10, input="logits").compute() == pytest.approx(usual(y, p), rel=1e-12)
    event, prob = (y == 1).astype(int), p[:, 1]
    found = fed(event, np.log(prob / (1 - prob)), 10, input="logits").compute()
    assert found == pytest.approx(usual(event, prob), rel=1e-12)
    huge = CalibrationMetric(input="logits").update([0, 1], np.array([[1000, -1000], [-np.inf, 5]], dtype=np.float32))
    assert huge.compute() == 0
    with pytest.raises(ValueError, match='input="logits"'):
        CalibrationMetric().update(y, logits)
    with pytest.raises(ValueError, match=r"`input` must be one of"):
        CalibrationMetric(input="logit")
    with pytest.raises(ValueError, match="labels come first"):
        CalibrationMetric().update(p, y)  # as torchmetrics has it


def test_tensors_in_bfloat16():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'caltest[torch]'")
    y, p = problem()
    logits = torch.tensor(np.log(p), requires_grad=True).to(torch.bfloat16)
    metric = CalibrationMetric(input="logits").update(torch.tensor(y), logits)
    assert metric.compute() == fed(y, logits.detach().double().numpy(), input="logits").compute()


class TensorOnGPU:
    """A tensor that NumPy can read only behind `detach` and `cpu`, as one on a GPU or with a gradient."""

    def __init__(self, values, where="gpu"):
        self.values, self.where, self.shape, self.dtype = values, where, values.shape, values.dtype

    def __len__(self):
        return len(self.values)

    def detach(self):
        return TensorOnGPU(self.values, "gpu, detached")

    def cpu(self):
        assert self.where == "gpu, detached"
        return TensorOnGPU(self.values, "cpu")

    def __array__(self, dtype=None, copy=None):
        if self.where != "cpu":
            msg = "can't convert cuda:0 device type tensor to numpy"
            raise TypeError(msg)
        return self.values


def test_tensors_on_a_gpu():
    y, p = problem()
    assert CalibrationMetric().update(TensorOnGPU(y), TensorOnGPU(p)).compute() == usual(y, p)


def test_half_precision():
    y, p = problem(dtype=np.float16)
    with pytest.warns(caltest.results.CalibrationWarning, match="Half precision"):
        metric = CalibrationMetric().update(y, p)
    assert metric.compute() == pytest.approx(usual(*problem()), abs=1e-3)


def refusals():
    y, p = problem(n_classes=3)
    metric = CalibrationMetric()
    named = CalibrationMetric(classes=["a", "b", "c"])
    three, two = fed(y, p), CalibrationMetric().update([0, 1], [0.25, 0.5])
    words = np.array(["a", "b", "c"])[y]
    return {
        "no observations; call `update` first": metric.compute,
        "the metric has no observations": metric.test,
        "`y_prob` must not be empty": lambda: metric.update([], np.empty((0, 3))),
        "labels": lambda: metric.update(words, p),
        "same length": lambda: metric.update(y, p[:5]),
        "3 classes without names before and 2 classes without names now": lambda: three.update([0, 1], [0.25, 0.5]),
        "2 classes without names before and 3 classes without": lambda: metric.merge_state(two, three),
        r"the classes \['a', 'b', 'c'\] before and 3 classes without names now": lambda: named.merge_state(three),
        "got this one": lambda: three.merge_state(three),
        "must be metrics, got dict": lambda: metric.merge_state({}),
        r"must be CalibrationMetric\(.*, got Cal": lambda: metric.merge_state(CalibrationMetric("MCE")),
        "`lens` must be a lens": lambda: CalibrationMetric(lens="confidence"),
        "estimates no error": lambda: CalibrationMetric("Omnibus"),
    }


@pytest.mark.parametrize("message", refusals())
def test_refusals(message):
    with pytest.raises((TypeError, ValueError), match=message):
        refusals()[message]()


def test_what_is_refused_changes_nothing():
    y, p = problem(n_classes=3)
    metric = fed(y, p)
    expected = metric.compute()
    for batch in [([0, 1], [0.25, 0.5]), (y, p[:5]), (y + 1, p)]:
        with pytest.raises(ValueError, match="must"):
            metric.update(*batch)
    with pytest.raises(ValueError, match="same classes"):
        metric.merge_state(fed(y, p), CalibrationMetric().update([0, 1], [0.25, 0.5]))
    assert metric.compute() == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: CalibrationMetric(n_bins=10),
            r"CalibrationMetric\(\) has no `n_bins`; use statistic=ECE\(Eq",
        ),
        (lambda: CalibrationMetric(norm="max"), r"no `norm`; use statistic=.* MCE\(EqualWidth\(15\)\) for 'max'"),
        (lambda: CalibrationMetric(num_classes=3), "no `num_classes`; use classes, the labels"),
        (lambda: CalibrationMetric().update(preds=[0.5], target=[1]), r"update\(\) has no `preds`; use y_prob"),
        (lambda: CalibrationMetric().update([1], y_pred=[0.5]), "no `y_pred`; use y_prob"),
        (lambda: CalibrationMetric().update([1], [2.0], input="logits"), r"CalibrationMetric\(input=.* is told once"),
        (lambda: caltest.CalibrationMonitor().update(target=[1], y_prob=[0.5]), "no `target`; use y_true"),
    ],
)
def test_names_of_torchmetrics_are_answered(call, message):
    with pytest.raises(TypeError, match=message):
        call()
