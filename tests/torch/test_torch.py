"""Penalties: values of the package's statistics, exact gradients, odd batches and clear refusals."""

import numpy as np
import pytest

import caltest
from caltest.statistics import MMCE, UCE
from tests.house.processes import in_fresh_process

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'caltest[torch]'")

from caltest.torch import entropy_penalty, mmce_loss, normalized_entropy, uce_loss  # noqa: E402

torch.set_num_threads(1)  # as many tests run at once as there are processors

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
UCE_WAYS = ("label", "prediction", "none")
LOSSES = {
    "entropy_penalty": lambda logits, labels: entropy_penalty(logits),
    "normalized_entropy": lambda logits, labels: normalized_entropy(logits),
    "mmce": mmce_loss,
    "mmce weighted": lambda logits, labels: mmce_loss(logits, labels, weighted=True),
    **{f"uce {way}": lambda logits, labels, way=way: uce_loss(logits, labels, classwise=way) for way in UCE_WAYS},
}


def batch(n_samples, n_classes, dtype=torch.float64, seed=0, scale=2.0):
    """Random logits, and labels of which about half are those of the largest logit."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=scale, size=(n_samples, n_classes))
    labels = np.where(rng.random(n_samples) < 0.5, logits.argmax(axis=1), rng.integers(n_classes, size=n_samples))
    return torch.tensor(logits, dtype=dtype), torch.tensor(labels)


BATCHES = [
    batch(n, k, dtype, seed)
    for seed, (n, k) in enumerate([(1, 2), (2, 2), (300, 2), (1, 10), (257, 10), (64, 1000), (1, 1000)])
    for dtype in TOLERANCE
]
LOGITS, LABELS = batch(200, 4)
BATCHES += [
    (LOGITS, LOGITS.argmax(dim=1)),  # all right
    (LOGITS, LOGITS.argmin(dim=1)),  # all wrong
    (LOGITS, torch.full((200,), 3)),  # constant labels
    (100 * LOGITS.float(), LABELS),  # nearly one-hot
    (1000 * LOGITS, LABELS),  # exactly one-hot
    (torch.zeros(50, 4), LABELS[:50]),  # constant predictions, all tied
    (LOGITS[:3].repeat(20, 1), LABELS[:60]),  # tied predictions
]


def reference(logits, labels):
    """The probabilities of the batch as the package reads them, and the labels."""
    z = logits.double().numpy()
    prob = np.exp(z - z.max(axis=1, keepdims=True))
    return prob / prob.sum(axis=1, keepdims=True), labels.numpy()


def error(y_true, y_prob, statistic, **options):
    return caltest.calibration_error(y_true, y_prob, statistic=statistic, **options)


def uce_by_class(y_true, y_prob, group, n_cells):
    """The mean over classes of UCE on their observations."""
    return np.mean([error(y_true[group == c], y_prob[group == c], UCE(n_cells)) for c in np.unique(group)])


@pytest.mark.parametrize("index", range(len(BATCHES)))
def test_values_are_those_of_the_statistics(index):
    logits, labels = BATCHES[index]
    y_prob, y_true = reference(logits, labels)
    top, tolerance = y_prob.argmax(axis=1), TOLERANCE[logits.dtype]
    right = top == y_true
    balanced = np.where(right, 1 / max(right.sum(), 1), 1 / max((~right).sum(), 1))
    entropy = caltest.estimation.normalized_entropy(y_prob)
    confidence = {"lens": caltest.Confidence()}
    expected = {
        (normalized_entropy, ()): entropy,
        (entropy_penalty, ()): -np.log(y_prob.shape[1]) * entropy.mean(),
        (mmce_loss, ()): error(y_true, y_prob, MMCE(), **confidence),
        (mmce_loss, (("bandwidth", 0.1),)): error(y_true, y_prob, MMCE(0.1), **confidence),
        (mmce_loss, (("weighted", True),)): len(np.unique(right))
        * error(y_true, y_prob, MMCE(), sample_weight=balanced, **confidence),
    }
    for n_cells in (1, 7, 15):
        for way, group in (("label", y_true), ("prediction", top), ("none", np.zeros(len(top)))):
            options = (("n_cells", n_cells), ("classwise", way))
            expected[uce_loss, options] = uce_by_class(y_true, y_prob, group, n_cells)
    for (function, options), value in expected.items():
        given = (logits,) if function in {normalized_entropy, entropy_penalty} else (logits, labels)
        found = function(*given, **dict(options)).numpy()
        np.testing.assert_allclose(found, value, rtol=0, atol=tolerance, err_msg=f"{function.__name__} {options}")


def test_the_weighted_mmce_is_the_published_sum():
    """Kumar et al. (2018): pairs of wrong, of right and of mixed predictions, each with its number of pairs."""
    logits, labels = batch(40, 5)
    y_prob, y_true = reference(logits, labels)
    top, r = y_prob.argmax(axis=1), y_prob.max(axis=1)
    c = top == y_true
    n, rest = c.sum(), (~c).sum()
    total = 0.0
    for i in range(len(c)):
        for j in range(len(c)):
            k = np.exp(-abs(r[i] - r[j]) / 0.4)
            if c[i] and c[j]:
                total += (1 - r[i]) * (1 - r[j]) * k / n**2
            elif not c[i] and not c[j]:
                total += r[i] * r[j] * k / rest**2
            elif c[i]:
                total -= 2 * (1 - r[i]) * r[j] * k / (n * rest)
    assert mmce_loss(logits, labels, weighted=True).item() == pytest.approx(np.sqrt(total), abs=1e-12)


def test_the_weighted_mmce_is_0_where_all_confidences_are_one_half():
    labels = torch.tensor([0] * 95 + [1] * 5)
    assert mmce_loss(torch.zeros(100, 2), labels, weighted=True).item() == pytest.approx(0, abs=1e-3)
    assert mmce_loss(torch.zeros(100, 2), labels).item() == pytest.approx(0.45, abs=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_exact(name):
    for n, k in ((1, 2), (8, 2), (6, 4)):
        logits, labels = batch(n, k, seed=n + k)
        for chosen in (labels, torch.zeros_like(labels), logits.argmax(dim=1)):
            assert torch.autograd.gradcheck(
                lambda z, chosen=chosen: LOSSES[name](z, chosen), (logits.clone().requires_grad_(),)
            ), (n, k)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_finite_at_the_edge(name):
    """One-hot and equal predictions, a class that is impossible, and a batch without any error."""
    impossible = LOGITS.clone()
    impossible[:, 1] = -torch.inf
    possible = torch.where(LABELS == 1, 0, LABELS)
    certain = 1000 * torch.eye(4)[LABELS]
    cases = [
        (1000 * LOGITS.float(), LABELS),
        (torch.zeros(5, 4), LABELS[:5]),
        (impossible, possible),
        (certain, LABELS),
    ]
    for logits, labels in cases:
        given = logits.clone().requires_grad_()
        value = LOSSES[name](given, labels).sum()
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(given.grad).all()
        assert torch.equal(given.detach(), logits)
    certain_value = LOSSES[name](certain, LABELS)
    assert (certain_value == 0).all()


@pytest.mark.parametrize("name", LOSSES)
def test_a_nan_is_not_hidden(name):
    logits = LOGITS.clone()
    logits[3, 2] = torch.nan
    assert torch.isnan(LOSSES[name](logits, LABELS)).any()


@pytest.mark.parametrize("name", LOSSES)
def test_permuted_classes_and_observations_give_the_same(name):
    logits, labels = batch(60, 6)
    classes, rows = torch.randperm(6), torch.randperm(60)
    one, other = LOSSES[name](logits, labels), LOSSES[name](logits[:, classes], torch.argsort(classes)[labels])
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    moved = LOSSES[name](logits[rows], labels[rows])
    torch.testing.assert_close(one[rows] if one.ndim else one, moved, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_dtypes_of_logits_and_labels(name):
    logits, labels = batch(40, 3)
    expected = LOSSES[name](logits, labels)
    for integer in (torch.int32, torch.int16, torch.uint8):
        assert torch.equal(LOSSES[name](logits, labels.to(integer)), expected)
    for half in (torch.float16, torch.bfloat16):
        found = LOSSES[name](logits.to(half), labels)
        assert found.dtype == torch.float32
        assert torch.equal(found, LOSSES[name](logits.to(half).float(), labels))


def test_penalties_lower_the_confidence_of_an_over_confident_batch():
    logits, labels = batch(500, 3, scale=5.0)
    for name in ("entropy_penalty", "mmce", "mmce weighted"):
        given = logits.clone().requires_grad_()
        LOSSES[name](given, labels).backward()
        before, after = ((logits - step * given.grad).softmax(dim=1).amax(dim=1).mean() for step in (0, 1))
        assert after < before, name


def test_the_uce_of_classes_does_not_lose_a_small_class():
    """The example of Laves et al. (2020), section 7.3: two observations of class 1 are certain to be of class 0."""
    logits = torch.tensor([[4.0, 0.0]] * 50).requires_grad_()
    labels = torch.tensor([1, 1] + [0] * 48)
    assert uce_loss(logits, labels).item() > 0.4 > uce_loss(logits, labels, classwise="none").item()
    uce_loss(logits, labels).backward()
    toward_wrong = -logits.grad[:, 0]  # what a step of descent adds to the logit of class 0
    assert (toward_wrong[:2] < 0).all()
    assert (toward_wrong[2:] > 0).all()


ONE, TWO = torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64)


@pytest.mark.parametrize(
    ("logits", "labels", "kind", "said"),
    [
        (np.zeros((3, 2)), TWO, TypeError, "`logits` must be a tensor of PyTorch, got ndarray"),
        (ONE.long(), TWO, TypeError, "`logits` must have a floating dtype, got torch.int64"),
        (ONE[:, 0], TWO, ValueError, r"`logits` must have the shape .* got \(3,\)"),
        (ONE[:0], TWO[:0], ValueError, r"at least one observation .* got \(0, 2\)"),
        (ONE[:, :1], TWO, ValueError, r"two classes, got \(3, 1\)"),
        (ONE[None], TWO, ValueError, r"got \(1, 3, 2\)"),
        (ONE, [0, 0, 0], TypeError, "`labels` must be a tensor of PyTorch, got list"),
        (ONE, TWO.float(), TypeError, "`labels` must be integers from 0 to 1, got torch.float32"),
        (ONE, TWO.bool(), TypeError, "`labels` must be integers from 0 to 1, got torch.bool"),
        (ONE, TWO[:2], ValueError, r"`labels` must have the shape \(3,\), .* got \(2,\)"),
        (ONE, torch.eye(3, 2).long(), ValueError, "of one-hot labels pass"),
        (ONE, TWO + 2, ValueError, "`labels` must lie between 0 and 1, got 2"),
        (ONE, TWO - 100, ValueError, "got -100; leave out observations without a label"),
        (ONE, TWO.to("meta"), ValueError, "on one device, got cpu and meta"),
    ],
)
def test_bad_batches_are_refused(logits, labels, kind, said):
    for loss in (mmce_loss, uce_loss):
        with pytest.raises(kind, match=said):
            loss(logits, labels)
    if "`logits`" in said and labels is TWO:
        for function in (entropy_penalty, normalized_entropy):
            with pytest.raises(kind, match=said):
                function(logits)


@pytest.mark.parametrize(
    ("loss", "options", "kind"),
    [
        (mmce_loss, {"bandwidth": 0}, ValueError),
        (mmce_loss, {"bandwidth": "0.4"}, TypeError),
        (mmce_loss, {"weighted": 1}, TypeError),
        (uce_loss, {"n_cells": 0}, ValueError),
        (uce_loss, {"n_cells": 1.5}, TypeError),
        (uce_loss, {"classwise": "labels"}, ValueError),
    ],
)
def test_bad_options_are_refused(loss, options, kind):
    with pytest.raises(kind, match=f"`{next(iter(options))}`"):
        loss(ONE, TWO, **options)


def test_the_room_is_named_without_loading_pytorch():
    code = (
        "import sys, caltest; from caltest.torch import uce_loss; print('torch' in sys.modules, uce_loss.__name__);"
        "sys.modules['torch'] = None\ntry:\n    uce_loss(0, 0)\nexcept ImportError as error:\n    print(error)"
    )
    said = in_fresh_process(code).splitlines()
    assert said[0] == "False uce_loss"
    assert said[1].endswith('PyTorch, which is missing: pip install "caltest[torch]".')
