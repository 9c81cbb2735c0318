"""``caltest report`` writes the page of one file or of several."""

import html
import re

import numpy as np
import pandas as pd
import pytest

from caltest.cli import main
from caltest.hypothesis_tests import calibration_table
from caltest.streaming import CalibrationState


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    event = rng.random(300)
    y = (rng.random(300) < event).astype(int)
    for name, prob in (("one", event), ("two", event**2)):
        pd.DataFrame({"label": y, "prob": prob}).to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path, y, event


def text_of(path):
    return " ".join(re.sub(r"<[^>]+>", " ", path.read_text(encoding="utf-8")).split())


def test_the_page_names_the_file_its_event_and_its_column(files, capsys):
    folder, y, event = files
    out = folder / "page.html"
    command = ["report", str(folder / "two.csv"), "-o", str(out), "--resamples", "299", "--seed", "3"]
    assert main(command) == 0
    assert "page written to" in capsys.readouterr().err
    text = text_of(out)
    verdict = calibration_table(y, event**2, n_resamples=299, rng=3).verdict
    assert html.escape(" ".join(verdict.sentences(brief=True)), quote=False) in text
    assert f'300 observations, event "label = 1" ({y.sum()}, ' in html.unescape(text)
    assert f"caltest repair {folder / 'two.csv'} -o repaired.csv" in text
    assert "<h1>two.csv</h1>" in out.read_text(encoding="utf-8")
    assert f"caltest {' '.join(command)}" in text  # so that it can be repeated


@pytest.mark.slow(few_draws=True)
def test_columns_of_the_file_are_subgroups(files):
    folder, y, event = files
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"label": y, "prob": event, "site": rng.choice(["north", "south"], 300)})
    frame = frame.assign(age=rng.normal(60, 9, 300).round(), id=np.arange(300), constant=1, same=np.where(y, "a", "b"))
    frame.to_csv(folder / "wide.csv", index=False)
    out = folder / "page.html"
    command = ["report", str(folder / "wide.csv"), "--label", "label", "--prob", "prob", "-o", str(out)]
    assert main([*command, "--resamples", "99"]) == 0
    assert "in none of 6 subgroups" in text_of(out)  # site and age
    assert main([*command, "--resamples", "99", "--by", "site"]) == 0
    assert "in none of 2 subgroups" in text_of(out)


@pytest.mark.slow(few_draws=True)
def test_several_files_are_compared(files):
    folder, _, _ = files
    out = folder / "page.html"
    paths = [str(folder / f"{name}.csv") for name in ("one", "two")]
    assert main(["report", *paths, "-o", str(out), "--resamples", "299", "--title", "Risk & more", "--repair"]) == 0
    text = out.read_text(encoding="utf-8")
    assert "<h1>Risk &amp; more</h1>" in text
    assert text.count("Before and after") == 2
    assert text.index("<h2>one</h2>") < text.index("<h2>two</h2>")


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


@pytest.mark.slow(few_draws=True)
def test_labels_with_dollar_signs(run, frame, tmp_path):
    """What matplotlib would read as mathematics, or refuse."""
    names = ["$5$ & {more", "a_$x^{$", "$\\undefined$"]
    labels = [names[k] for k in frame.pop("label")]
    frame.set_axis(names, axis=1).assign(label=labels).to_csv(tmp_path / "dollars.csv", index=False)
    code, _, err = run("report", tmp_path / "dollars.csv", "-o", tmp_path / "page.html", "--resamples", "19")
    assert code == 0, err
    assert "$5$ &amp; {more" in (tmp_path / "page.html").read_text()
