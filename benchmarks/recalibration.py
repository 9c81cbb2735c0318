"""The tables of Gupta et al. (2020) and Nixon et al. (2019) again, with noise floors and paired tests.

``python benchmarks/recalibration.py`` writes ``docs/data/recalibration-values.csv`` and ``recalibration-pairs.csv`` and
the tables of ``docs/recalibration-compared.md``. Each network is a part that is stored when it is finished, so that a
stopped run resumes; ``--page`` writes the tables from the data that is there, ``--quick`` is a smoke test.
"""

import argparse
import io
import os
import sys
import tempfile
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # this checkout, whatever is installed
    for library in ("OPENBLAS", "MKL", "OMP", "VECLIB_MAXIMUM"):  # one thread each
        os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import caltest  # noqa: E402
from benchmarks.machine import commit  # noqa: E402
from benchmarks.markdown import table  # noqa: E402
from caltest import recalibration as repair  # noqa: E402
from caltest.predictions import TopRank, WithinTop  # noqa: E402
from caltest.resampling import correct_pvalues  # noqa: E402

SEED = 20200612
LEVEL = 0.05
N_RESAMPLES = 999
DATA = ROOT.parent / "shared" / "data"
BEFORE, SPLINE = "Uncalibrated", "Spline"
NETWORKS = {
    "VGG-16": "cifar10_vgg16",
    "VGG-19-BN": "cifar10_vgg19_bn",
    "DenseNet-121": "cifar10_densenet121",
    "GoogLeNet": "cifar10_googlenet",
    "ResNet": "cifar10_resnet_orig",
    "ResNet-50": "top1_cifar10_resnet50",
    "ImageNet ResNet-152": "top1_imagenet_resnet152",
    "digits, logistic regression": "logistic_regression",
    "digits, naive Bayes": "naive_bayes",
    "digits, random forest": "random_forest",
    "digits, neural network": "neural_network",
}
"""CIFAR-10 unless another data set is named. Of ResNet-50 and ResNet-152 only the largest probability is known."""
METRICS = "disagreement-recalibrated-values.csv"  # written by benchmarks/disagreement.py
TOP1 = caltest.Confidence()
EVENTS = {
    "gupta-1": (caltest.KS(), TOP1, 6),
    "gupta-2": (caltest.KS(), TopRank(2), 6),
    "gupta-4": (caltest.KS(), WithinTop(2), 14),
    "gupta-6": (caltest.ECE(caltest.EqualWidth(25)), TOP1, 13),
    "gupta-7 KDE-ECE": (caltest.KDEError(), TOP1, 6),
    "gupta-7 MCE": (caltest.MCE(caltest.EqualWidth(25)), TOP1, 6),
}
"""Tables whose entries are an error of one event: statistic, event, knots of the spline."""
BINNED = {
    "nixon-1 ECE": (caltest.ECE(caltest.EqualWidth(15)), TOP1),
    "nixon-1 class conditional ECE": (caltest.statistics.ClassConditionalECE(), None),
}
"""Rows of table 1 of Nixon et al.: statistic, lens."""


def load(name):
    """Return labels and probabilities of a network, in single file order."""
    if name == "VGG-16":
        y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
        return y_true, y_prob.astype(float)
    if is_digits(name):
        y_true, models = caltest.datasets.load_digits_predictions()
        return y_true, models[NETWORKS[name]].astype(float)
    with np.load(DATA / f"{NETWORKS[name]}.npz") as held:
        return held["labels"], held["scores" if "scores" in held else "probs"].astype(float)


def is_digits(name):
    """Return whether a model is one of the bundled classifiers of scikit-learn's digits."""
    return name.startswith("digits")


def fitted(y_true, y_prob, known, quick):
    """Return predictions of the test half by methods that were fitted to the calibration half."""
    methods = {"Temp. Scaling": repair.TemperatureScaling(), "Vector Scaling": repair.VectorScaling()}
    if not quick:
        methods |= {"MS-ODIR, Dir-ODIR": repair.MatrixScaling()}  # the same map: only log probabilities are known
    methods |= {SPLINE: repair.SplineCalibration()}
    return {BEFORE: y_prob[~known]} | {
        name: method.fit(y_prob[known], y_true[known]).predict_proba(y_prob[~known]) for name, method in methods.items()
    }


def events(y_true, prob, lens):
    """Return whether the event of a lens happened, and its probability."""
    rank = np.argsort(-prob, axis=1, kind="stable")
    inside = rank[:, :2] if isinstance(lens, WithinTop) else rank[:, [1 if isinstance(lens, TopRank) else 0]]
    return (inside == y_true[:, None]).any(axis=1), np.take_along_axis(prob, inside, axis=1).sum(axis=1).clip(0, 1)


def placed(prob, score, lens):
    """Return probabilities whose event of a lens is that of ``prob`` and has this score; others share the rest."""
    rank = np.argsort(-prob, axis=1, kind="stable")
    found = np.zeros_like(prob)
    if isinstance(lens, TopRank):
        score = np.minimum(score, 0.5)  # a second class has no more
        np.put_along_axis(found, rank[:, :2], np.column_stack([1 - score, score]), axis=1)
        return found
    size = 2 if isinstance(lens, WithinTop) else 1
    found[:] = ((1 - score) / (prob.shape[1] - size))[:, None]
    np.put_along_axis(found, rank[:, :size], (score / size)[:, None], axis=1)
    return found


def judged(key, y_true, y_prob, statistic, **lens):
    """Return the row of an entry: the error, its mean if calibrated, and the p-value of calibration."""
    found = caltest.calibration_test(
        y_true.astype(int), y_prob, statistic=statistic, method="monte-carlo", n_resamples=N_RESAMPLES, rng=SEED, **lens
    )
    return (*key, found.statistic, float(np.mean(found.null_distribution)), found.pvalue)


def compare(key, names, difference):
    """Return the rows of all pairs of methods: p-values, and after Holm's correction within the row of the table."""
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    pvalue = np.array([difference(a, b) for a, b in pairs])
    adjusted = correct_pvalues(pvalue)
    return [(*key, *pair, p, q) for pair, p, q in zip(pairs, pvalue, adjusted, strict=True)]


def mean_difference(a, b):
    """Return the p-value of equal means of paired values, by the normal approximation."""
    from scipy.stats import norm

    change = np.asarray(a, float) - b
    spread = change.std(ddof=1) / np.sqrt(len(change))
    return 1.0 if spread == 0 else float(2 * norm.sf(abs(change.mean()) / spread))


def same_error(y_true, lens):
    """Return the p-value of equal miscalibration, by the squared l2 errors of two predictions."""
    lens = {} if lens is None else {"lens": lens}
    return lambda a, b: 1.0 if np.array_equal(a, b) else caltest.paired_test(y_true, a, b, **lens).pvalue


def whole(name, y_true, y_prob, known, quick):
    """Return entries and pairs of a network whose probabilities are all known."""
    prob, y_test = fitted(y_true, y_prob, known, quick), y_true[~known]
    values, pairs = [], []
    right = {method: events(y_test, p, TOP1)[0] for method, p in prob.items()}
    values += [("gupta-5", name, method, hit.mean(), np.nan, np.nan) for method, hit in right.items()]
    pairs += compare(("gupta-5", name), list(prob), lambda a, b: mean_difference(right[a], right[b]))
    for key, (statistic, lens, n_knots) in EVENTS.items():
        spline = repair.SplineCalibration(n_knots, lens).fit(y_prob[known], y_true[known])
        score = spline.predict_event(y_prob[~known])
        own = prob | {SPLINE: placed(y_prob[~known], score, lens)}
        for method, p in own.items():
            event, score = events(y_test, y_prob[~known] if method == SPLINE else p, lens)
            score = spline.predict_event(y_prob[~known]) if method == SPLINE else score
            values.append(judged((key, name, method), event, score, statistic))
        test = same_error(y_test, lens)
        pairs += compare((key, name), list(own), lambda a, b: test(own[a], own[b]))  # noqa: B023
        if key == "gupta-7 MCE":
            loss = {}
            for method, p in own.items():
                event, score = events(y_test, p, TOP1)
                loss[method] = (event - score) ** 2
            values += [("gupta-7 Brier", name, method, each.mean(), np.nan, np.nan) for method, each in loss.items()]
            pairs += compare(("gupta-7 Brier", name), list(own), lambda a, b: mean_difference(loss[a], loss[b]))  # noqa: B023
    binned = {BEFORE: y_prob[~known]}
    for method, kind in (("Histogram Binning", "shared"), ("Class Conditional Histogram Binning", "per_class")):
        mapped = repair.HistogramBinning(kind=kind).fit(y_prob[known], y_true[known])
        binned[method] = mapped.predict_proba(y_prob[~known])
    for key, (statistic, lens) in BINNED.items():
        for method, p in binned.items():
            values.append(judged((key, name, method), y_test, p, statistic, **({} if lens is None else {"lens": lens})))
        test = same_error(y_test, lens)
        pairs += compare((key, name), list(binned), lambda a, b: test(binned[a], binned[b]))  # noqa: B023
    return values, pairs


def top1(name, event, score, known):
    """Return entries and pairs of a network of which only the largest probability is known."""
    values, pairs, hit = [], [], event[~known].astype(int)
    for key, (statistic, lens, n_knots) in EVENTS.items():
        if lens is TOP1:
            spline = repair.SplineCalibration(n_knots, caltest.ClassWise(1)).fit(score[known], event[known])
            own = {BEFORE: score[~known], SPLINE: spline.predict_event(score[~known])}
            values += [judged((key, name, method), hit, p, statistic) for method, p in own.items()]
            pairs += compare((key, name), list(own), lambda a, b: same_error(hit, None)(own[a], own[b]))  # noqa: B023
    loss = {method: (hit - p) ** 2 for method, p in own.items()}
    values += [("gupta-7 Brier", name, method, each.mean(), np.nan, np.nan) for method, each in loss.items()]
    pairs += compare(("gupta-7 Brier", name), list(own), lambda a, b: mean_difference(loss[a], loss[b]))
    return values, pairs


def measure(name, quick):
    """Return entries and pairs of a network: fitted to a random half of its observations, judged on the other."""
    y_true, y_prob = load(name)
    order = np.random.default_rng(SEED).permutation(len(y_true))
    if quick:
        order = order[:1000]
    known = np.zeros(len(y_true), bool)
    known[order[: len(order) // 2]] = True
    used = np.sort(order)
    y_true, y_prob, known = y_true[used].astype(int), y_prob[used], known[used]
    if y_prob.ndim == 1:
        return top1(name, y_true, y_prob, known)
    return whole(name, y_true, y_prob / y_prob.sum(axis=1, keepdims=True), known, quick)


VALUES = ["table", "network", "method", "value", "floor", "pvalue"]
PAIRS = ["table", "network", "a", "b", "pvalue", "adjusted"]
BEGIN, END = "<!-- made by benchmarks/recalibration.py: {name} -->\n", "<!-- end -->\n"


def read(text):
    """Return the rows of a data file."""
    return pd.read_csv(io.StringIO(text), comment="#")


def marked(values, pairs):
    """Return the entries of a table: bold where best, starred where not told from the best one, with noise floors."""
    larger = values["table"].iloc[0] == "gupta-5"
    methods = list(dict.fromkeys(values["method"]))
    lines = []
    for network, entries in values.groupby("network", sort=False):
        row = entries.set_index("method")
        best = row["value"].idxmax() if larger else row["value"].idxmin()
        near = pairs[(pairs["network"] == network) & (pairs["adjusted"] > LEVEL)]
        same = set(near.loc[near["a"] == best, "b"]) | set(near.loc[near["b"] == best, "a"])
        cells = []
        for method in methods:
            if method not in row.index:
                cells.append("–")
                continue
            value, floor, pvalue = row.loc[method, ["value", "floor", "pvalue"]].astype(float)
            text = f"{100 * value:.3f}"
            text = f"**{text}**" if method == best else text + ("\\*" if method in same else "")
            cells.append(text + ("" if np.isnan(floor) else f" ({100 * floor:.3f}{', ok' if pvalue > LEVEL else ''})"))
        lines.append((network, *cells))
    return table(("network", *methods), lines)


def summary(pairs):
    """Return how many pairs of methods are told apart, with and without uncalibrated models; networks and digits."""
    lines = []
    for name, group in pairs.groupby("table", sort=True):
        digits, first = group["network"].map(is_digits), group["a"] == BEFORE
        parts = [group[kind & some] for kind in (~digits, digits) for some in (first, ~first)]
        lines.append((name, *(f"{(part['adjusted'] <= LEVEL).sum()} of {len(part)}" for part in parts)))
    heads = ("a method and no recalibration", "two methods")
    return table(("table", *heads, *(f"digits: {head}" for head in heads)), lines)


def orders(frame):
    """Return table 5 of Nixon et al.: the numbers of the methods in the order of each of 32 metrics, best first."""
    prefix = "value of "
    methods = [column for column in frame if column.startswith(prefix) and column != f"{prefix}as it is"]
    ranked = np.argsort(frame[methods].to_numpy(), axis=1, kind="stable").T
    heads = [str(i) for i in range(len(frame))]
    names = ", ".join(f"{i}: {method.removeprefix(prefix)}" for i, method in enumerate(methods))
    return f"{table(('place', *heads), [(str(i + 1), *map(str, row)) for i, row in enumerate(ranked)])}\n{names}.\n"


def with_tables(text, values, pairs):
    """Return the text of the page with its tables made from the data."""
    made = {key: marked(group, pairs[pairs["table"] == key]) for key, group in values.groupby("table", sort=False)}
    made |= {"summary": summary(pairs), "nixon-5": orders(read((ROOT / "docs" / "data" / METRICS).read_text()))}
    for name, content in made.items():
        before, begin, rest = text.partition(BEGIN.format(name=name))
        _, end, after = rest.partition(END)
        text = f"{before}{begin}\n{content}\n{end}{after}" if begin else text
    return text


def main():
    """Measure what is not stored yet, and write data and tables."""
    parser = argparse.ArgumentParser(description="The tables of two papers about recalibration.")
    parser.add_argument("--quick", action="store_true", help="a smoke test: 1,000 observations, two networks")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the tables from the data")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of data and page")
    parser.add_argument("--parts", type=Path, help="folder of finished networks (default: a temporary one per commit)")
    asked = parser.parse_args()
    files = {kind: asked.docs / "data" / f"recalibration-{kind}.csv" for kind in ("values", "pairs")}
    if not asked.page:
        made_by = commit()
        parts = asked.parts or Path(tempfile.gettempdir()) / f"caltest-recalibration-{made_by.split()[0]}"
        parts.mkdir(parents=True, exist_ok=True)
        found = {"values": [], "pairs": []}
        for name in ["VGG-16", "ResNet-50"] if asked.quick else NETWORKS:
            bundled = name == "VGG-16" or is_digits(name)
            if not bundled and not (DATA / f"{NETWORKS[name]}.npz").exists():
                print(f"{name}: left out, its predictions are not in {DATA}")
                continue
            part = {kind: parts / f"{kind}-{NETWORKS[name]}{'-quick' * asked.quick}.csv" for kind in files}
            if not all(path.exists() for path in part.values()):
                begun = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
                    rows = measure(name, asked.quick)
                for path, columns, one in zip(part.values(), (VALUES, PAIRS), rows, strict=True):
                    pd.DataFrame(one, columns=columns).to_csv(path, index=False, float_format="%.6g")
                print(f"{name}: {time.process_time() - begun:.0f} s of processor time", flush=True)
            for kind, path in part.items():
                found[kind].append(pd.read_csv(path))
        about = f"# seed: {SEED}; commit: {made_by}; date: {datetime.now(UTC):%Y-%m-%d}; resamples: {N_RESAMPLES}\n"
        for kind, path in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(about + pd.concat(found[kind]).to_csv(index=False))
    page = asked.docs / "recalibration-compared.md"
    if page.exists():
        page.write_text(with_tables(page.read_text(), *(read(path.read_text()) for path in files.values())))
    print(f"written: {', '.join(map(str, files.values()))}")


if __name__ == "__main__":
    main()
