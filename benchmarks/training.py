"""Training penalties on images of digits, with and without temperature scaling: table 1 of Laves et al. in small.

``python benchmarks/training.py`` writes ``docs/data/training.csv`` and the tables of ``docs/papers/training.md``, in
about four minutes on one core. It needs PyTorch (``pip install "caltest[torch]"``). ``--page`` writes the tables from
the data that is there.
"""

import argparse
import math
import os
import sys
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
from scipy.special import softmax  # noqa: E402
from scipy.stats import t  # noqa: E402

import caltest  # noqa: E402
from benchmarks.machine import commit  # noqa: E402
from benchmarks.markdown import table  # noqa: E402
from benchmarks.pages import mark, read, with_table  # noqa: E402
from caltest.resampling import correct_pvalues  # noqa: E402

SEEDS = range(5)
N_TRAIN, N_CALIBRATION = 300, 500
EPOCHS, BATCH, WIDTH = 100, 50, 256
LEVEL = 0.05
NONE = "unregularised"
PENALTIES = {
    NONE: (0.0, None),
    "entropy, 0.1": (0.1, "entropy"),
    "entropy, 1": (1.0, "entropy"),
    "weighted MMCE, 1": (1.0, "mmce"),
    "weighted MMCE, 10": (10.0, "mmce"),
    "UCE, 1": (1.0, "uce"),
    "UCE, 10": (10.0, "uce"),
}
"""Weight and kind of each penalty: those of the paper (0.1, 10, 10), and 1."""
CONFIDENCE = {"lens": caltest.Confidence()}
ERRORS = {
    "ECE": {"statistic": caltest.ECE(caltest.EqualWidth(15)), **CONFIDENCE},
    "UCE": {"statistic": caltest.statistics.UCE()},
    "MMCE": {"statistic": caltest.statistics.MMCE(), **CONFIDENCE},
}
COMPARED = ("accuracy", "log score", "ECE")


def split(seed: int) -> list[np.ndarray]:
    """Return the images to train on, for the temperature and to judge by."""
    order = np.random.default_rng(seed).permutation(1797)
    return np.split(order, [N_TRAIN, N_TRAIN + N_CALIBRATION])


def train(x: np.ndarray, y: np.ndarray, penalty: tuple[float, str | None], seed: int, epochs: int = EPOCHS):
    """Return a function from images to logits: a network with two hidden layers.

    Initialisation and batches follow from the seed, so that penalties are compared on equal terms.
    """
    import torch

    from caltest.torch import entropy_penalty, mmce_loss, uce_loss

    weight, kind = penalty
    penalties = {
        "entropy": lambda logits, labels: entropy_penalty(logits),
        "mmce": lambda logits, labels: mmce_loss(logits, labels, weighted=True),
        "uce": uce_loss,
    }
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        *(torch.nn.Linear(x.shape[1], WIDTH), torch.nn.ReLU()),
        *(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()),
        torch.nn.Linear(WIDTH, 10),
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    images, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(BATCH):
            logits = network(images[batch])
            loss = torch.nn.functional.cross_entropy(logits, labels[batch])
            if kind is not None:
                loss = loss + weight * penalties[kind](logits, labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    def predict(new: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return network(torch.tensor(new, dtype=torch.float32)).double().numpy()

    return predict


def judge(y_true: np.ndarray, y_prob: np.ndarray, seed: int) -> dict[str, float]:
    """Return scores, errors and the p-value of the default test."""
    test = caltest.calibration_test(y_true, y_prob, n_resamples=9999, rng=seed)
    return {
        "accuracy": float((y_prob.argmax(axis=1) == y_true).mean()),
        "log score": caltest.estimation.log_score(y_true, y_prob),
        "Brier score": caltest.estimation.brier_score(y_true, y_prob),
        **{name: caltest.calibration_error(y_true, y_prob, **options) for name, options in ERRORS.items()},
        "noise floor": caltest.noise_floor(y_prob, **ERRORS["ECE"], rng=seed).mean,
        "pvalue": test.pvalue,
        "direction": test.direction or "undecided",
    }


def measure(name: str, seed: int, epochs: int = EPOCHS) -> list[dict]:
    """Return what one network is worth before and after temperature scaling."""
    from sklearn.datasets import load_digits

    from caltest.recalibration import TemperatureScaling

    x, y = load_digits(return_X_y=True)
    fitted, calibration, rest = split(seed)
    predict = train(x[fitted] / 16, y[fitted], PENALTIES[name], seed, epochs)
    logits = predict(x[rest] / 16)
    scaling = TemperatureScaling(input="logits").fit(predict(x[calibration] / 16), y[calibration])
    found = []
    for scaled, prob in ((False, softmax(logits, axis=1)), (True, scaling.predict_proba(logits))):
        temperature = scaling.temperature_ if scaled else 1.0
        judged = judge(y[rest], prob, seed)
        found.append({"penalty": name, "seed": seed, "scaled": scaled, "temperature": temperature, **judged})
    return found


def label(name: str, scaled: bool) -> str:
    """Return a model as the tables call it."""
    return f"{name} + T" if scaled else name


def groups(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the rows of each model in the order of the table, first without temperature scaling."""
    chosen = [(name, scaled) for scaled in (False, True) for name in PENALTIES]
    return [
        (label(name, scaled), frame[(frame["penalty"] == name) & (frame["scaled"] == scaled)])
        for name, scaled in chosen
    ]


def score_table(frame: pd.DataFrame) -> str:
    """Return the means over the seeds, and how often calibration is rejected."""
    columns = ("accuracy", "log score", "Brier score", "ECE", "noise floor", "UCE", "MMCE")
    head = ("model", *columns, "T", f"rejected at {LEVEL:.0%}".replace("%", " %"), "direction")
    rows = []
    for name, own in groups(frame):
        means = own[list(columns)].mean()
        direction = own["direction"][own["pvalue"] <= LEVEL].value_counts()
        rows.append(
            (
                name,
                f"{means['accuracy']:.1%}".replace("%", " %"),
                *(f"{means[column]:.3f}" for column in columns[1:]),
                f"{own['temperature'].mean():.2f}",
                f"{(own['pvalue'] <= LEVEL).sum()} of {len(own)}",
                ", ".join(f"{count} {word}" for word, count in direction.items()) or "-",
            )
        )
    return table(head, rows)


def differences(frame: pd.DataFrame) -> pd.DataFrame:
    """Return each penalty minus unregularised on equal terms: paired t tests over the seeds, Holm over all."""
    found = []
    for scaled in (False, True):
        side = frame[frame["scaled"] == scaled]
        for name in [name for name in PENALTIES if name != NONE]:
            for column in COMPARED:
                wide = side.pivot_table(index="seed", columns="penalty", values=column)
                gap = wide[name] - wide[NONE]
                n, se = len(gap), gap.std(ddof=1) / math.sqrt(len(gap))
                half = t.ppf(0.975, n - 1) * se
                pvalue = 2 * t.sf(abs(gap.mean()) / se, n - 1) if se > 0 else 1.0
                found.append((label(name, scaled), column, gap.mean(), half, pvalue))
    result = pd.DataFrame(found, columns=["model", "score", "mean", "half", "pvalue"])
    result["holm"] = correct_pvalues(result["pvalue"])
    return result


def difference_table(frame: pd.DataFrame) -> str:
    """Return the differences with 95 % intervals; bold where the Holm-adjusted p-value is at most the level."""
    found = differences(frame)
    rows = []
    for name in found["model"].unique():
        own = found[found["model"] == name].set_index("score")
        texts = [
            f"{row['mean']:+.3f} ± {row['half']:.3f}".join(["**"] * 2 if row["holm"] <= LEVEL else [""] * 2)
            for _, row in own.loc[list(COMPARED)].iterrows()
        ]
        rows.append((name, *texts))
    return table(("model", *COMPARED), rows)


TABLES = {"scores": score_table, "differences": difference_table}


def with_tables(text: str, frame: pd.DataFrame) -> str:
    """Return the text of the page with its tables made from the data."""
    for name, make in TABLES.items():
        text = with_table(text, mark("training", name), make(frame))
    return text


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="measure nothing: write the tables from the data")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of data and page")
    asked = parser.parse_args()
    data, page = asked.docs / "data" / "training.csv", asked.docs / "papers" / "training.md"
    if not asked.page:
        warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
        rows = []
        for name in PENALTIES:
            for seed in SEEDS:
                rows += measure(name, seed)
                print(name, seed, rows[-2]["accuracy"], rows[-2]["pvalue"], rows[-1]["pvalue"], flush=True)
        note = f"# caltest {commit()}, {datetime.now(UTC):%Y-%m-%d}\n"
        data.write_text(note + pd.DataFrame(rows).to_csv(index=False, float_format="%.6g"))
    page.write_text(with_tables(page.read_text(), read(data.read_text())))
    print(f"written: {data}, {page}")


if __name__ == "__main__":
    main()
