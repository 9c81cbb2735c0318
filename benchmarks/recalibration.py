"""The tables of Gupta et al. (2020) and Nixon et al. (2019) again, with noise floors, random splits and paired tests.

``python benchmarks/recalibration.py`` writes ``docs/data/recalibration-values.csv``, ``recalibration-pairs.csv``, what
Nixon's tables 3 and 4 need (by `benchmarks.disagreement`), and the tables of
``docs/papers/recalibration-compared.md``. Each network is a part that is stored when it is finished, so that a stopped
run resumes; ``--page`` writes the tables from the data that is there, ``--quick`` is a smoke test.
"""

import argparse
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
from benchmarks.network_scaling import NetworkScaling  # noqa: E402
from benchmarks.recalibration_page import METHODS, read, with_tables  # noqa: E402
from benchmarks.resampled_halves import N_SPLITS, SEED, halves, resampled_test  # noqa: E402
from caltest import recalibration as repair  # noqa: E402
from caltest.predictions import TopRank, WithinTop  # noqa: E402
from caltest.predictions._sample import make_sample  # noqa: E402
from caltest.resampling import correct_pvalues  # noqa: E402
from caltest.simulation.replications import _agreement as metrics_of  # noqa: E402
from caltest.statistics import GCE  # noqa: E402

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
OF_32_METRICS = ("VGG-16",)
"""Networks of Nixon's table 5; the paper has one."""
TOP1 = caltest.Confidence()
EVENTS = {
    "gupta-1": (caltest.KS(), TOP1, 6),
    "gupta-2": (caltest.KS(), TopRank(2), 6),
    "gupta-4": (caltest.KS(), WithinTop(2), 14),
    "gupta-6": (caltest.ECE(caltest.EqualWidth(25)), TOP1, 13),
    "gupta-7 KDE-ECE": (caltest.statistics.KDEError(), TOP1, 6),
    "gupta-7 MCE": (caltest.MCE(caltest.EqualWidth(25)), TOP1, 6),
    "gupta-7 Brier": (None, TOP1, 6),
}
"""Tables whose entries are an error of one event: statistic (None: the Brier score), event, knots of the spline."""
BINNED = {
    "nixon-1 ECE": (caltest.ECE(caltest.EqualWidth(15)), TOP1),
    "nixon-1 class conditional ECE": (caltest.statistics.ClassConditionalECE(), None),
}
"""Rows of table 1 of Nixon et al.: statistic, lens."""


def load(name):
    """Return labels and probabilities of a network, in single file order."""
    if name == "VGG-16":
        y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    elif name.startswith("digits"):
        y_true, models = caltest.datasets.load_digits_predictions()
        y_prob = models[NETWORKS[name]]
    else:
        with np.load(DATA / f"{NETWORKS[name]}.npz") as held:
            y_true, y_prob = held["labels"], held["scores" if "scores" in held else "probs"]
    prob = y_prob.astype(float)
    return y_true.astype(int), prob if prob.ndim == 1 else prob / prob.sum(axis=1, keepdims=True)


def is_bundled(name):
    """Return whether caltest itself holds the predictions."""
    return name == "VGG-16" or name.startswith("digits")


def fitted(known, new, methods):
    """Return predictions of the observations ``new`` by methods fitted to the labels and predictions ``known``."""
    y_true, y_prob = known
    return {BEFORE: new} | {name: method.fit(y_prob, y_true).predict_proba(new) for name, method in methods.items()}


def events(y_true, prob, lens):
    """Return whether the event of a lens happened, and its probability."""
    rank = np.argsort(-prob, axis=1, kind="stable")
    inside = rank[:, :2] if isinstance(lens, WithinTop) else rank[:, [1 if isinstance(lens, TopRank) else 0]]
    return (inside == y_true[:, None]).any(axis=1), np.take_along_axis(prob, inside, axis=1).sum(axis=1).clip(0, 1)


def judged(y_true, y_prob, statistic, **lens):
    """Return the error, its mean if calibrated, and the p-value of calibration; of the Brier score only the value."""
    if statistic is None:
        return float(((y_true - y_prob) ** 2).mean()), np.nan, np.nan
    found = caltest.calibration_test(
        y_true.astype(int), y_prob, statistic=statistic, method="monte-carlo", n_resamples=N_RESAMPLES, rng=SEED, **lens
    )
    return found.statistic, float(np.mean(found.null_distribution)), found.pvalue


def whole(known, unknown, quick):
    """Yield (table, method, value, noise floor, p-value) of a network whose probabilities are all known."""
    y_test, new = unknown
    methods = {"Temp. Scaling": repair.TemperatureScaling(), "Vector Scaling": repair.VectorScaling()}
    if not quick:
        methods |= {"MS-ODIR, Dir-ODIR": repair.MatrixScaling()}  # the same map: only log probabilities are known
    prob = fitted(known, new, methods | {SPLINE: repair.SplineCalibration()})
    for method, p in prob.items():
        yield "gupta-5", method, events(y_test, p, TOP1)[0].mean(), np.nan, np.nan
    for table, (statistic, lens, n_knots) in EVENTS.items():
        spline = repair.SplineCalibration(n_knots, lens).fit(known[1], known[0])
        for method, p in prob.items():
            event, score = events(y_test, new if method == SPLINE else p, lens)
            score = spline.predict_event(new) if method == SPLINE else score
            yield table, method, *judged(event, score, statistic)
    kinds = {"Histogram Binning": "shared", "Class Conditional Histogram Binning": "per_class"}
    binned = fitted(known, new, {name: repair.HistogramBinning(kind=kind) for name, kind in kinds.items()})
    for table, (statistic, lens) in BINNED.items():
        for method, p in binned.items():
            yield table, method, *judged(y_test, p, statistic, **({} if lens is None else {"lens": lens}))


def of_32_metrics(known, unknown):
    """Yield the same of Nixon's table 5: eight methods by 32 metrics, without noise floors and p-values."""
    made = {
        "class-conditional histogram binning": repair.HistogramBinning(),
        "bootstrap histogram binning": repair.HistogramBinning(kind="bootstrap", n_resamples=20, rng=SEED),
        "isotonic regression": repair.IsotonicCalibration(),
        "temperature scaling": repair.TemperatureScaling(),
        "temperature scaling by ECE": repair.TemperatureScaling(objective=GCE(max_prob=True, class_conditional=False)),
        "vector scaling": repair.VectorScaling(),
        "matrix scaling": repair.MatrixScaling(),
        "neural network scaling": NetworkScaling(rng=SEED),
    }
    prob = fitted(known, unknown[1], dict(zip(METHODS, made.values(), strict=True)))
    metrics = metrics_of.validate_metrics(None)
    for method in METHODS:
        for number, value in enumerate(metrics_of.metric_values(metrics, make_sample(unknown[0], prob[method]))):
            yield f"nixon-5 {number}", method, value, np.nan, np.nan


def top1(known, unknown):
    """Yield the same of a network of which only the largest probability is known."""
    hit, score = unknown
    for table, (statistic, lens, n_knots) in EVENTS.items():
        if lens is TOP1:
            spline = repair.SplineCalibration(n_knots, caltest.ClassWise(1)).fit(known[1], known[0])
            for method, p in ((BEFORE, score), (SPLINE, spline.predict_event(score))):
                yield table, method, *judged(hit, p, statistic)


def measure(name, quick):
    """Return the entries of a network of all splits: one row for each half, table and method."""
    y_true, y_prob = load(name)
    rng, rows = np.random.default_rng(SEED), []
    if quick:
        y_true, y_prob = y_true[:1000], y_prob[:1000]
    for half, parts in enumerate(halves(len(y_true), rng, 2 if quick else N_SPLITS)):
        known, unknown = ((y_true[part], y_prob[part]) for part in parts)
        found = list(top1(known, unknown) if y_prob.ndim == 1 else whole(known, unknown, quick))
        if name in OF_32_METRICS and not quick:
            found += of_32_metrics(known, unknown)
        rows += [(table, name, method, half, *entry) for table, method, *entry in found]
    return pd.DataFrame(rows, columns=["table", "network", "method", "half", "value", "floor", "pvalue"])


def averaged(entries):
    """Return mean and standard deviation of each entry over the halves, and a p-value of calibration.

    Twice the median of p-values is one, however they depend on each other (Rüger 1978).
    """
    grouped = entries.groupby(["table", "network", "method"], sort=False)
    found = grouped.agg(
        value=("value", "mean"), spread=("value", "std"), floor=("floor", "mean"), pvalue=("pvalue", "median")
    )
    return found.assign(pvalue=(2 * found["pvalue"]).clip(upper=1)).reset_index()


def compared(entries):
    """Return all pairs of methods: p-values of equal means, and after Holm's correction within a row of a table."""
    rows = []
    for key, group in entries.groupby(["table", "network"], sort=False):
        wide = group.pivot_table(index="half", columns="method", values="value", sort=False)
        pairs = [(a, b) for i, a in enumerate(wide) for b in wide.columns[i + 1 :]]
        tested = [resampled_test(wide[a] - wide[b]) for a, b in pairs]
        adjusted = correct_pvalues(np.array([pvalue for *_, pvalue in tested]))
        rows += [(*key, *pair, *test, q) for pair, test, q in zip(pairs, tested, adjusted, strict=True)]
    return pd.DataFrame(rows, columns=["table", "network", "a", "b", "difference", "error", "pvalue", "adjusted"])


def disagreement(docs):
    """Measure what tables 3 and 4 of Nixon et al. need."""
    import matplotlib as mpl

    from benchmarks import disagreement as nixon

    mpl.use("Agg")
    (docs / "images").mkdir(exist_ok=True)
    nixon.temperatures(docs)
    nixon.agreement(*nixon.one_architecture(), "networks", docs)


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
        made_by, begun = commit(), time.time()
        parts = asked.parts or Path(tempfile.gettempdir()) / f"caltest-recalibration-{made_by.split()[0]}"
        parts.mkdir(parents=True, exist_ok=True)
        found = []
        for name in ["VGG-16", "ResNet-50"] if asked.quick else NETWORKS:
            if not is_bundled(name) and not (DATA / f"{NETWORKS[name]}.npz").exists():
                print(f"{name}: left out, its predictions are not in {DATA}")
                continue
            part = parts / f"{NETWORKS[name]}{'-quick' * asked.quick}.csv"
            if not part.exists():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
                    measure(name, asked.quick).to_csv(part, index=False, float_format="%.6g")
                print(f"{name}: finished {time.time() - begun:.0f} s after the start", flush=True)
            found.append(pd.read_csv(part))
        entries = pd.concat(found)
        about = f"# seed: {SEED}; commit: {made_by}; date: {datetime.now(UTC):%Y-%m-%d}; resamples: {N_RESAMPLES}\n"
        for path, data in zip(files.values(), (averaged(entries), compared(entries)), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(about + data.to_csv(index=False, float_format="%.5g"))
        if not asked.quick:
            disagreement(asked.docs)
    page = asked.docs / "papers" / "recalibration-compared.md"
    if page.exists():
        page.write_text(with_tables(page.read_text(), *(read(path) for path in files.values()), asked.docs / "data"))
    print(f"written: {', '.join(map(str, files.values()))}")


if __name__ == "__main__":
    main()
