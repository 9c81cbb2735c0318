"""Do calibration errors agree? Models, tables and figures of ``docs/papers/metric-disagreement.md``.

``python benchmarks/disagreement.py --out FOLDER`` takes some minutes and writes ``docs/data/disagreement-*.csv``,
``docs/images/agreement-*.png`` and ``docs/images/label-noise.png``. Needs scikit-learn, the extra ``study``.
Everything follows from one seed.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

import caltest
from caltest.simulation import best_temperatures, label_noise_study, metric_agreement
from caltest.simulation.replications._agreement import mean_by_property, rank_correlation

DOCS = Path(__file__).parents[1] / "docs"
SEED = 0
N_HALVES = 20  # random halves of the test observations, on which a metric is compared with itself
N_SPLITS = 10  # random splits of the network's observations: one half finds the temperature, the other judges it


# Models.


def digits():
    """Images and labels of a training half and a test half, not stratified."""
    image, label = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(label))
    train, test = order[: len(label) // 2], order[len(label) // 2 :]
    return image[train] / 16, label[train], image[test] / 16, label[test]


def trained_on_digits(classifiers):
    """Labels of the test half and predictions of classifiers, each trained on its own four fifths of the other."""
    x_train, y_train, x_test, y_test = digits()
    y_prob = {}
    for number, (name, classifier) in enumerate(classifiers.items()):
        some = np.random.default_rng([SEED, number]).permutation(len(y_train))[: len(y_train) * 4 // 5]
        y_prob[name] = classifier.fit(x_train[some], y_train[some]).predict_proba(x_test)
    return y_test, y_prob


def one_architecture():
    """Ten neural networks that differ in their seeds and training observations."""
    return trained_on_digits({f"network {i}": MLPClassifier((64,), max_iter=2000, random_state=i) for i in range(10)})


def five_classifiers():
    """Five kinds of classifiers, three times each."""
    kinds = {
        "logistic regression": lambda i: LogisticRegression(max_iter=2000),
        "naive Bayes": lambda i: GaussianNB(var_smoothing=1e-3),
        "nearest neighbours": lambda i: KNeighborsClassifier(10),
        "random forest": lambda i: RandomForestClassifier(200, random_state=i),
        "network": lambda i: MLPClassifier((64,), max_iter=2000, random_state=i),
    }
    return trained_on_digits({f"{name} {i}": make(i) for name, make in kinds.items() for i in range(3)})


def recalibrated():
    """The bundled network and eight recalibrations of it, fitted to one half of the data and used on the other."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    prob = y_prob.astype(float)
    order = np.random.default_rng(SEED).permutation(len(y_true))
    fit, test = order[:5000], order[5000:]
    label, known = y_true[fit], prob[fit]
    log, log_test = (np.log(np.clip(values, 1e-12, 1)) for values in (known, prob[test]))
    best = best_temperatures(label, known, metrics=[caltest.statistics.GCE(max_prob=True, class_conditional=False)])
    rng = np.random.default_rng(SEED)
    resamples = [rng.integers(len(fit), size=len(fit)) for _ in range(20)]

    def one_against_rest(make):
        raw = np.column_stack([make(known[:, k], label == k)(prob[test][:, k]) for k in range(10)])
        raw = np.clip(raw, 1e-6, None)
        return raw / raw.sum(axis=1, keepdims=True)

    return y_true[test], {
        "as it is": prob[test],
        "class-wise histogram binning": one_against_rest(histogram),
        "bootstrapped histogram binning": np.mean(
            [one_against_rest(lambda p, y, rows=rows: histogram(p[rows], y[rows])) for rows in resamples], axis=0
        ),
        "isotonic regression": one_against_rest(
            lambda p, y: IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p, y).predict
        ),
        "temperature": at_temperature(prob[test], best.log_temperature),
        "temperature by ECE": at_temperature(prob[test], best.temperature[0]),
        "vector scaling": vector_scaling(log, label, log_test),
        "matrix scaling": LogisticRegression(max_iter=5000).fit(log, label).predict_proba(log_test),
        "neural network": MLPClassifier((32,), max_iter=500, random_state=SEED, early_stopping=True)
        .fit(log, label)
        .predict_proba(log_test),
    }


def histogram(prob, event, n_cells=15):
    """Frequency of the event in cells of equal width; the middle of a cell that is empty."""
    cell = np.minimum((prob * n_cells).astype(int), n_cells - 1)
    count = np.bincount(cell, minlength=n_cells)
    middle = (np.arange(n_cells) + 0.5) / n_cells
    share = np.where(count > 0, np.bincount(cell, event, n_cells) / np.maximum(count, 1), middle)
    return lambda new: share[np.minimum((new * n_cells).astype(int), n_cells - 1)]


def at_temperature(prob, temperature):
    """Probabilities to the power 1 / temperature, normalised."""
    power = prob ** (1 / temperature)
    return power / power.sum(axis=1, keepdims=True)


def vector_scaling(log, label, log_test):
    """A scale and a shift of every class's logit, by the log score."""
    from scipy.optimize import minimize
    from scipy.special import log_softmax, softmax

    def loss(parameters):
        scale, shift = parameters.reshape(2, -1)
        fitted = log_softmax(log * scale + shift, axis=1)
        residual = np.exp(fitted)
        residual[np.arange(len(label)), label] -= 1
        gradient = np.concatenate([(residual * log).mean(axis=0), residual.mean(axis=0)])
        return -fitted[np.arange(len(label)), label].mean(), gradient

    found = minimize(loss, np.concatenate([np.ones(10), np.zeros(10)]), jac=True, method="L-BFGS-B").x.reshape(2, -1)
    return softmax(log_test * found[0] + found[1], axis=1)


# Studies.


def agreement(y_true, y_prob, name, docs):
    """Rank correlations of the metrics, and of each with itself on two halves of the observations: table and figure."""
    found = metric_agreement(y_true, y_prob, rng=SEED)
    rng = np.random.default_rng(SEED)
    itself = []
    for _ in range(N_HALVES):
        halves = np.array_split(rng.permutation(len(y_true)), 2)
        one, other = (
            metric_agreement(
                y_true[half], {key: prob[half] for key, prob in y_prob.items()}, n_cells=(10, 20), n_resamples=1
            ).values
            for half in halves
        )
        itself.append([rank_correlation(np.stack(pair))[0, 1] for pair in zip(one, other, strict=True)])
    table = found.by_property().rename(columns={"metrics": "between_metrics", "n_cells": "between_cells"})
    mean = np.mean(itself, axis=0)
    table["between_halves"] = mean_by_property(found.metrics, {"mean": lambda chosen: mean[chosen]})["mean"]
    table.to_csv(docs / "data" / f"disagreement-{name}.csv", index=False, float_format="%.4f")
    found.to_frame().to_csv(docs / "data" / f"disagreement-{name}-values.csv", index=False, float_format="%.5g")
    found.plot().figure.savefig(docs / "images" / f"agreement-{name}.png", dpi=90)
    print(
        f"\n{name}: {len(y_prob)} models, {len(y_true)} observations\n{table.round(3).to_string(index=False)}",
        flush=True,
    )
    first = found.values.argmin(axis=1)
    print(pd.Series(np.array(found.models)[first]).value_counts().to_string())


def temperatures(docs):
    """Mean over splits of the temperature at which each metric is smallest, and of ECE and RMSCE of the other half."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    rng = np.random.default_rng(SEED)
    frames, reference = [], []
    for split in range(N_SPLITS):
        half, other = np.array_split(rng.permutation(len(y_true)), 2)
        best = best_temperatures(y_true[half], y_prob[half], held_out=(y_true[other], y_prob[other]))
        control = [root_mean_square(y_true[other], y_prob[other], t) for t in best.temperature]
        of_control = mean_by_property(best.metrics, {"control": lambda chosen: np.array(control)[chosen]})  # noqa: B023
        frames.append(best.by_property().assign(control=of_control["control"], split=split))
        fixed = [root_mean_square(y_true[other], y_prob[other], t) for t in (best.log_temperature, 1.0)]
        reference.append((best.log_temperature, best.log_judged, fixed[0], 1.0, best.judged_before, fixed[1]))
    kept = ["temperature", "judged", "control"]
    table = pd.concat(frames).groupby("property", sort=False)[kept].agg(["mean", "std"])
    table.columns = [" ".join(column) for column in table.columns]
    both = np.stack([np.mean(reference, axis=0), np.std(reference, axis=0, ddof=1)], axis=1)
    table.loc["log score"], table.loc["temperature 1"] = both[:3].ravel(), both[3:].ravel()
    table.to_csv(docs / "data" / "disagreement-temperatures.csv", float_format="%.5f")
    whole = best_temperatures(y_true, y_prob)
    whole.to_frame().to_csv(docs / "data" / "disagreement-temperatures-metrics.csv", index=False, float_format="%.5g")
    print(f"\ntemperatures\n{table.round(4).to_string()}\n{whole}", flush=True)


def root_mean_square(y_true, y_prob, temperature):
    """RMSCE at a temperature: the control of table 3 of the paper."""
    scaled = at_temperature(y_prob.astype(float), temperature)
    return caltest.calibration_error(y_true, scaled, statistic=caltest.statistics.RMSCE())


def label_noise(docs, n_replicates, workers, out):
    """Logistic regression on digits with random labels, as in appendix B of the paper."""
    x_train, y_train, x_test, y_test = digits()

    def predict(labels):
        return LogisticRegression(C=30, max_iter=5000).fit(x_train, labels).predict_proba(x_test)

    with threadpool_limits(1):  # each small fit would take 20 times as long on several threads
        study = label_noise_study(
            predict, y_train, y_test, n_replicates=n_replicates, out=out, workers=workers, progress=True, rng=SEED
        )
    study.to_frame().to_csv(docs / "data" / "disagreement-label-noise.csv", index=False, float_format="%.4g")
    study.plot().flat[0].figure.savefig(docs / "images" / "label-noise.png", dpi=110)
    print(study.to_frame().query("share in (0, 0.05)").to_string(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=20, help="of the label noise study")
    parser.add_argument("--out", type=Path, help="folder of finished parts of the label noise study, where it goes on")
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where data and figures go")
    chosen = parser.parse_args()
    mpl.use("Agg")
    (chosen.docs / "data").mkdir(exist_ok=True)
    agreement(*one_architecture(), "networks", chosen.docs)
    agreement(*five_classifiers(), "classifiers", chosen.docs)
    agreement(*recalibrated(), "recalibrated", chosen.docs)
    temperatures(chosen.docs)
    label_noise(chosen.docs, chosen.replicates, chosen.workers, chosen.out)


if __name__ == "__main__":
    main()
