"""Changed files of the corpus: ``python -m tests.fuzz_corpus --minutes 10``; each is read as it is meant, or refused.

Tables have their columns in another order or renamed, get columns that mean nothing, lose a column, are cut off, or mix
two encodings. What is read must be the labels and probabilities of the file that was changed.
"""

import argparse
import contextlib
import io
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from caltest.predictions import read_predictions
from tests.corpus import FILES

TEXTS = [file for file in (make() for make in FILES) if file.name.endswith((".csv", ".tsv", ".txt"))]
_TOLERANCE = 2e-4  # percentages with two decimals


def misread(data, file):
    """Return in words how what was read differs from what the file means; an empty text if it does not."""
    labels = [str(value) for value in data.y_true.tolist()]
    if data.y_true.dtype.kind == "b" and set(file.label) <= {"0", "1"}:
        labels = [str(int(value)) for value in data.y_true.tolist()]
    meant = [text.lower() for text in file.label][: len(labels)]
    if [text.lower() for text in labels] != meant:
        return f"labels {labels[:5]}, meant are {meant[:5]}"
    names = [str(name) for name in (range(data.n_classes) if data.classes is None else data.classes)]
    if data.y_true.dtype.kind == "b" and data.classes is None:
        names = ["0", "1"] if set(file.label) <= {"0", "1"} else ["false", "true"]
    prob = data.y_prob if data.y_prob.ndim == 2 else np.column_stack([1 - data.y_prob, data.y_prob])
    for k, name in enumerate(names):
        known = [values for label, values in file.prob.items() if label.lower() == name.lower()]
        if not known:
            return f"a class {name}"
        if not np.allclose(prob[:, k], known[0][: len(prob)], atol=_TOLERANCE):
            return f"probabilities of {name}: {prob[:3, k]}, meant are {known[0][:3]}"
    return ""


def changed_files(rng, number):
    """Yield changed files with what they mean."""
    for _ in range(number):
        file = TEXTS[rng.integers(len(TEXTS))]
        change = CHANGES[rng.integers(len(CHANGES))]
        content = change(rng, file)
        if content is not None:
            yield replace(file, content=content)


def _frame(file):
    """Return the table of texts of a file with commas; None for others."""
    with contextlib.suppress(Exception):
        frame = pd.read_csv(io.BytesIO(file.content), dtype=str, keep_default_na=False)
        if len(frame.columns) > 1 and not all(name.replace(".", "").isdigit() for name in frame.columns):
            return frame
    return None


def _with_frame(change):
    def changed(rng, file):
        frame = _frame(file)
        return None if frame is None else change(rng, frame).to_csv(index=False).encode()

    return changed


@_with_frame
def _permuted(rng, frame):
    return frame[list(rng.permutation(frame.columns))]


@_with_frame
def _renamed(rng, frame):
    name = frame.columns[rng.integers(len(frame.columns))]
    return frame.rename(columns={name: str(rng.choice(["x1", "value", "result", "V7", "col", "model_b", "truth2"]))})


@_with_frame
def _with_more(rng, frame):
    n = len(frame)
    more = {
        "age": rng.integers(20, 90, n),
        "sex": rng.choice(["m", "f"], n),
        "smoker": rng.integers(0, 2, n),
        "weight_kg": rng.normal(75, 12, n).round(1),
        "site": rng.choice(["A", "B", "C"], n),
        "id": rng.permutation(n) + 1,
        "date": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
        "lactate": rng.random(n).round(2),
    }
    name = str(rng.choice([key for key in more if key not in frame.columns]))
    frame.insert(int(rng.integers(len(frame.columns) + 1)), name, more[name])
    return frame


@_with_frame
def _with_less(rng, frame):
    return frame.drop(columns=[frame.columns[rng.integers(len(frame.columns))]])


def _cut(rng, file):
    content = file.content[: int(rng.integers(len(file.content) // 2, len(file.content)))]
    return content[: content.rfind(b"\n") + 1] or None  # a number that is cut cannot be told from another one


def _mixed(rng, file):
    lines = file.content.split(b"\n")
    place = int(rng.integers(1, len(lines)))
    lines[place] = lines[place].replace(b"a", "ä".encode("latin-1"))
    return b"\n".join(lines) if b"\xe4" in lines[place] else None


def _utf16(rng, file):
    with contextlib.suppress(UnicodeError):
        return file.content.decode().encode("utf-16")
    return None


CHANGES = [_permuted, _renamed, _with_more, _with_more, _with_less, _cut, _mixed, _utf16]


def run():
    """Print what was found; the exit code says whether there was anything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng, end = np.random.default_rng(options.seed), time.monotonic() + 60 * options.minutes
    found, codes = [], Counter()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            for file in changed_files(rng, 100):
                path = Path(folder) / file.name
                path.write_bytes(file.content)
                try:
                    data = read_predictions(path)
                except ValueError:
                    codes["refused"] += 1
                    continue
                reason = misread(data, file)
                codes["misread" if reason else "read"] += 1
                if reason:
                    found.append((file.name, file.content[:200], reason))
    print(f"{codes.total()} files: {dict(codes)}")
    for name, content, reason in found[:20]:
        print(f"\n{name} {content!r}\n{reason}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(run())
