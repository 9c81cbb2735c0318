"""Files that R itself has written, where R is installed: each is read at the first call."""

import shutil
import subprocess
import warnings

import numpy as np
import pytest

from caltest.predictions import read_predictions
from caltest.results import CalibrationWarning

SCRIPT = """
set.seed(1); n <- 80; p <- round(runif(n), 6); y <- as.integer(runif(n) < p); words <- ifelse(y == 1, "yes", "no")
m <- matrix(runif(3 * n), n); m <- round(m / rowSums(m), 6); m[, 3] <- 1 - m[, 1] - m[, 2]
colnames(m) <- c("cat", "dog", "owl"); animal <- factor(colnames(m)[max.col(m)])
event <- data.frame(died = y, risk = p); said <- data.frame(outcome = words, prob = p)
truth <- data.frame(correct = y == 1, confidence = p); classes <- data.frame(animal, m)
write.csv(event, "csv.csv"); write.csv(event, "bare.csv", row.names = FALSE, quote = FALSE)
write.csv2(event, "csv2.csv"); write.csv2(said, "words2.csv", row.names = FALSE)
write.table(event, "table.txt"); write.table(said, "tabs.tsv", sep = "\\t", row.names = FALSE, quote = FALSE)
write.table(truth, "logical.txt", col.names = NA, sep = ","); write.csv(classes, "classes.csv")
write.csv2(classes, "classes2.csv", row.names = FALSE)
write.csv(data.frame(y = y, p = p, age = ifelse(p > .9, NA, 50)), "gaps.csv")
write.table(cbind(m, max.col(m) - 1), "bare matrix.csv", sep = ",", row.names = FALSE, col.names = FALSE)
"""


@pytest.mark.slow(few_draws=True)
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed: apt-get install r-base-core")
def test_files_of_r_are_read_at_once(tmp_path):
    subprocess.run(["Rscript", "-e", SCRIPT], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 11
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        found = {path.name: read_predictions(path) for path in files}
    event = found["bare.csv"]
    of_an_event = [name for name in found if "classes" not in name and "matrix" not in name]
    assert len(of_an_event) == 8
    for name in of_an_event:
        data = found[name]
        happened = data.y_true == (1 if data.classes is None else data.classes[-1])
        np.testing.assert_array_equal(happened, event.y_true == 1, err_msg=name)
        np.testing.assert_array_equal(data.y_prob, event.y_prob, err_msg=name)
    classes = found["classes.csv"]
    assert classes.columns == {name: name for name in ("cat", "dog", "owl")}
    best = [list(classes.columns)[k] for k in classes.y_prob.argmax(axis=1)]
    np.testing.assert_array_equal(classes.y_true, best)
    for name in ("classes2.csv", "bare matrix.csv"):
        np.testing.assert_allclose(found[name].y_prob, classes.y_prob, atol=1e-15, err_msg=name)
        np.testing.assert_array_equal(found[name].y_prob.argmax(axis=1), classes.y_prob.argmax(axis=1))
