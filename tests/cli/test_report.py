"""``caltest report`` writes the page of one file or of several."""

import numpy as np
import pandas as pd
import pytest

from caltest.cli import main
from caltest.page import write_page
from caltest.streaming import CalibrationState


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    event = rng.random(300)
    y = (rng.random(300) < event).astype(int)
    for name, prob in (("one", event), ("two", event**2)):
        pd.DataFrame({"label": y, "prob": prob}).to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path, y, event


def test_the_page_of_a_file_is_that_of_the_function(files, capsys):
    folder, y, event = files
    out = folder / "page.html"
    assert main(["report", str(folder / "one.csv"), "-o", str(out), "--resamples", "299", "--seed", "3"]) == 0
    assert "page written to" in capsys.readouterr().err
    same = write_page(y, event, folder / "same.html", n_resamples=299, rng=3)
    assert out.read_text(encoding="utf-8") == same.read_text(encoding="utf-8")


def test_several_files_are_compared(files):
    folder, _, _ = files
    out = folder / "page.html"
    paths = [str(folder / f"{name}.csv") for name in ("one", "two")]
    assert main(["report", *paths, "-o", str(out), "--resamples", "299", "--title", "Risk & more"]) == 0
    text = out.read_text(encoding="utf-8")
    assert "<h1>Risk &amp; more</h1>" in text
    assert "Which model is better calibrated?" in text


def test_bad_input(files, capsys):
    folder, _, _ = files
    one = str(folder / "one.csv")
    assert main(["report", one, "-o", str(folder / "no" / "page.html")]) == 2
    assert "the folder" in capsys.readouterr().err
    assert main(["report", one, one, "-o", str(folder / "page.html")]) == 2
    assert "files must differ" in capsys.readouterr().err
    assert main(["report", one, "-o", str(folder / "page.html"), "--folds", "label"]) == 2
    assert "leave out --folds" in capsys.readouterr().err
    assert main(["report", one, "-o", str(folder / "page.pdf")]) == 2
    assert "-o must name a page such as PAGE.html" in capsys.readouterr().err
    state = folder / "state.npz"
    state.write_bytes(CalibrationState().update([0, 1], [0.25, 0.75]).to_bytes())
    assert main(["report", str(state), "-o", str(folder / "page.html")]) == 2
    assert "state.npz is a state that 'caltest scan' wrote" in capsys.readouterr().err


def test_labels_with_dollar_signs(run, frame, tmp_path):
    """What matplotlib would read as mathematics, or refuse."""
    names = ["$5$ & {more", "a_$x^{$", "$\\undefined$"]
    labels = [names[k] for k in frame.pop("label")]
    frame.set_axis(names, axis=1).assign(label=labels).to_csv(tmp_path / "dollars.csv", index=False)
    code, _, err = run("report", tmp_path / "dollars.csv", "-o", tmp_path / "page.html", "--resamples", "19")
    assert code == 0, err
    assert "$5$ &amp; {more" in (tmp_path / "page.html").read_text()
