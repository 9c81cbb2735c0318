"""Broken files for the readers: ``python -m tests.fuzz_readers --minutes 10``; each must be read or be refused clearly.

Files are random bytes, random tables of odd cells, and valid files of every format that are cut, repeated or changed.
"""

import argparse
import contextlib
import io
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from caltest.cli import main
from tests import writers

ENDINGS = [*writers.TABLES, ".npz", ".npy", ".txt", ".zip", ".csv.gz", ".csv.zst", ".parquet.xz", ".tsv.bz2", ".xlsx"]
CELLS = (
    *("0.5", "0.25", "1", "0", "-1", "1e400", "nan", "inf", "NA", "", " ", "oops", "80%", "0,5", '"', '""', "'", "\0"),
    *("cat", "dog", "p_cat", "label", "y", "p", "True", "1_0", "0x1", "2024-01-01", "é", "\ufeff", "#", "[0.5, 0.5]"),
    *("{}", "9" * 400, "x" * 3000, "\r", "\u2028", "١", "1.0", "yes", "no", "weight", "fold", "patient_id", "prob_no"),
)
OPTIONS = (
    *(["--sep", ";"], ["--sep", "tab"], ["--sep", " "], ["--decimal", ","], ["--no-header"], ["--header"]),
    *(["--encoding", "latin-1"], ["--encoding", "utf-16"], ["--classes", "yes"], ["--classes", "0,1"], ["--normalise"]),
    *(["--label", "label"], ["--prob", "p"], ["--folds", "fold"], ["--groups", "patient_id"], ["--weights", "weight"]),
    *(["--class-names", "cat,dog"], *(["--format", word] for word in ("csv", "json", "jsonl", "parquet", "npz"))),
    ["--label", "0"],
)


LONGEST, MOST_MEMORY = 60, 6 * 2**30
"""Seconds for a file, and bytes of address space: a broken length must not have the machine's."""


def valid_files():
    """Bytes of good files, by their endings."""
    frame = writers.problem(12)
    y, prob = np.arange(12) % 3, frame.iloc[:, :3].to_numpy()
    files = {ending: [write(frame)] for ending, write in writers.TABLES.items()}
    files[".npz"], files[".npy"] = [writers.npz(probs=prob, labels=y)], [writers.npy(np.column_stack([prob, y]))]
    files[".zip"] = [writers.zipped(a_csv=writers.csv(frame))]
    files[".txt"] = [writers.csv(frame, sep=";", decimal=",")]
    for ending, compress in writers.COMPRESS.items():
        files[".csv" + ending] = [compress(writers.csv(frame))]
    with contextlib.suppress(ImportError):
        files[".xlsx"] = [writers.excel(frame)]
    return files


def mutated(rng, content):
    """Bytes that are cut, changed, repeated or mixed; some stay as they are."""
    data = bytearray(content)
    for _ in range(int(rng.choice([0, 1, 1, 1, 2, 4]))):
        n = len(data)
        if n == 0:
            break
        i, j = sorted(rng.integers(n + 1, size=2))
        kind = rng.integers(7)
        if kind == 0:
            del data[i:]
        elif kind == 1:
            del data[i : min(j, i + 20)]
        elif kind == 2:
            data[i:i] = data[i : min(j, i + 50)]
        elif kind == 3:
            data[i:i] = rng.bytes(int(rng.integers(1, 9)))
        elif kind == 4:
            data[i:i] = str(rng.choice(CELLS)).encode()
        else:
            for at in rng.integers(n, size=rng.integers(1, 6)):
                data[at] = rng.integers(256)
    return bytes(data)


def odd_table(rng):
    """Text of a table whose cells are odd."""
    n_columns = int(rng.integers(1, 6))
    sep = "," if rng.random() < 0.7 else str(rng.choice([";", "\t", " ", "|"]))
    header = rng.choice(["label", "p_cat", "p_dog", "y", "p", "a", "b", "0", "1", "weight", "fold"], size=n_columns)
    good = ["0.5", "0.25", "1", "0", "cat"]
    lines = [sep.join(header)] if rng.random() < 0.8 else []
    for _ in range(int(rng.integers(6))):
        pool = CELLS if rng.random() < 0.4 else good
        n = n_columns + int(rng.integers(-1, 2)) * int(rng.random() < 0.1)
        lines.append(sep.join(rng.choice(pool, size=max(n, 0))))
    return "\n".join(lines).encode("utf-16" if rng.random() < 0.1 else "utf-8", "replace")


def with_odd_cell(rng):
    """Text of a good table, but for one cell."""
    rows = [line.split(",") for line in writers.csv(writers.problem(6)).decode().splitlines()]
    rows[int(rng.integers(len(rows)))][int(rng.integers(4))] = str(rng.choice(CELLS))
    return "\n".join(",".join(row) for row in rows).encode("utf-8", "replace")


def one_file(rng, valid):
    """A broken file: its ending and its bytes."""
    kind = rng.random()
    if kind < 0.1:
        return str(rng.choice(ENDINGS)), rng.bytes(int(rng.integers(0, 400)))
    if kind < 0.25:
        content, packed = with_odd_cell(rng), str(rng.choice(["", *writers.COMPRESS]))
        return ".csv" + packed, writers.COMPRESS[packed](content) if packed else content
    if kind < 0.4:
        return str(rng.choice([".csv", ".tsv", ".txt", ".jsonl", ".json"])), odd_table(rng)
    ending = str(rng.choice(list(valid)))
    content = mutated(rng, valid[ending][0])
    return (str(rng.choice(ENDINGS)) if rng.random() < 0.05 else ending), content


def problem_with(path, options):
    """What is wrong with how a file is answered, and the exit code."""
    out, err = io.StringIO(), io.StringIO()
    signal.alarm(LONGEST)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["guess", str(path), *options])
    except BaseException:  # a traceback is what is looked for
        return traceback.format_exc(), None
    finally:
        signal.alarm(0)
    said = err.getvalue()
    errors = [line for line in said.splitlines() if "error: " in line]
    shown = out.getvalue().split()[:2]  # the columns of a file that is refused, if it can be read
    if code == 2 and (len(errors) != 1 or shown not in ([], ["column", "holds"]) or len(said) > 5000):
        return f"code 2 and {said!r}", code
    if code == 0 and (errors or not out.getvalue()):
        return f"code 0 and {said!r}", code
    return (None if code in {0, 2} else f"code {code}"), code


def fuzz(seconds, seed):
    """Answer broken files for some seconds: how often with each code, and the files that were answered wrongly."""
    rng, valid, codes, found = np.random.default_rng(seed), valid_files(), Counter(), []
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            ending, content = one_file(rng, valid)
            path = Path(folder) / f"fuzz{ending}"
            path.write_bytes(content)
            picked = rng.choice(len(OPTIONS), size=int(rng.choice([0, 0, 0, 1, 2])), replace=False)
            options = [text for k in picked for text in OPTIONS[k]]
            wrong, code = problem_with(path, options)
            codes[code] += 1
            if wrong:
                found.append((ending, options, content, wrong))
    return codes, found


def run():
    """Print what was found; the exit code says whether there was anything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("too long"))
    codes, found = fuzz(60 * options.minutes, options.seed)
    print(f"{codes.total()} files: {dict(codes)}; {len(found)} answered wrongly")
    for ending, arguments, content, wrong in found[:20]:
        print(f"\n{ending} {arguments} {content[:400]!r}\n{wrong}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(run())
